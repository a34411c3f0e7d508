"""Listeners of random weights, a few kilobytes each, as folders that transformers reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

SPECIAL = ("<unk>", "<pad>", "<|im_start|>", "<|im_end|>", "<|endoftext|>")
WORDS = ("system", "user", "assistant", "A", "B", "C", "D", "E", "F", ":", ".", "?", "the", "a", "audio", "says", "Say")
TEMPLATE = (
    "{% for m in messages %}<|im_start|> {{ m.role }} {% for c in m.content %}"
    "{% if c.type == 'audio' %}AUDIO{% else %} {{ c.text }} {% endif %}{% endfor %}<|im_end|> {% endfor %}"
    "<|im_start|> assistant "
)
VOCABULARY = 64


def tokenizer(audio: tuple[str, ...], **named: str) -> Any:
    """One token a word; those of `audio` are special."""
    vocabulary = {word: at for at, word in enumerate((*SPECIAL, *audio, *WORDS))}
    whole = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    whole.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=whole, unk_token="<unk>", pad_token="<pad>", eos_token="<|im_end|>", **named
    )
    fast.add_special_tokens({"additional_special_tokens": list(dict.fromkeys((*SPECIAL[2:], *audio)))})
    return fast


def features() -> Any:
    return transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=30)


def text(**more: Any) -> dict[str, Any]:
    return {
        "model_type": "qwen2",
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        **more,
    }


def qwen2_audio(folder: Path) -> Path:
    words = tokenizer(("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>"))
    ears = {"model_type": "qwen2_audio_encoder", "d_model": 16, "encoder_layers": 1, "encoder_attention_heads": 2}
    config = transformers.Qwen2AudioConfig(
        audio_config={**ears, "encoder_ffn_dim": 32, "num_mel_bins": 80, "max_source_positions": 1500},
        text_config=text(),
        audio_token_index=words.convert_tokens_to_ids("<|AUDIO|>"),
    )
    template = TEMPLATE.replace("AUDIO", "<|audio_bos|> <|AUDIO|> <|audio_eos|>")
    processor = transformers.Qwen2AudioProcessor(features(), words, chat_template=template)
    return _saved(folder, transformers.Qwen2AudioForConditionalGeneration, config, processor)


def _flamingo(folder: Path, name: str, **ids: int) -> Path:
    words = tokenizer(("<sound>", "<|sound_bos|>", "<|sound_eos|>"))
    ears = {"model_type": "audioflamingo3_encoder", "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
    sizes = {"intermediate_size": 32, "num_mel_bins": 80, "max_source_positions": 1500}
    tokens = {"audio_token_id": "<sound>", "audio_bos_token_id": "<|sound_bos|>", "audio_eos_token_id": "<|sound_eos|>"}
    config = getattr(transformers, f"{name}Config")(
        audio_config={**ears, **sizes},
        text_config=text(),
        **{key: words.convert_tokens_to_ids(token) for key, token in tokens.items()},
    )
    template = TEMPLATE.replace("AUDIO", " <sound> ")
    processor = getattr(transformers, f"{name}Processor")(features(), words, chat_template=template)
    return _saved(folder, getattr(transformers, f"{name}ForConditionalGeneration"), config, processor)


def audioflamingo3(folder: Path) -> Path:
    return _flamingo(folder, "AudioFlamingo3")


def musicflamingo(folder: Path) -> Path:
    return _flamingo(folder, "MusicFlamingo")


def _saved(folder: Path, model: Any, config: Any, processor: Any) -> Path:
    torch.manual_seed(0)
    net = model(config)
    net.generation_config = transformers.GenerationConfig(
        eos_token_id=SPECIAL.index("<|im_end|>"), pad_token_id=SPECIAL.index("<pad>"), max_new_tokens=8
    )
    net.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


LISTENERS: Mapping[str, Callable[[Path], Path]] = {
    "qwen2_audio": qwen2_audio,
    "audioflamingo3": audioflamingo3,
    "musicflamingo": musicflamingo,
}
"""Kind -> what makes a tiny one in a folder."""
