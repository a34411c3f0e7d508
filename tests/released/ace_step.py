"""ACE-Step 1.5: handler, planner loop, constrained decoding and transformer, each of one or two layers."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.actors.serving import reason
from tests.released.asked import renders
from tests.released.cases import Say
from tests.systems.clips import render
from torus_ray.engine.hosting import HeadServer

SETTINGS: Mapping[str, Any] = {}
BESIDE = ("configuration_acestep_v15.py", "modeling_acestep_v15_turbo.py")
"""The code that comes with the published weights; --beside names the folder that has it."""
MADE_SMALL = (
    "the transformer: width 64, two layers; its latents of 64 channels, 25 a second, and its codebook as released",
    "planner and text encoder: Qwen3 of one layer, a vocabulary of bytes and 64 audio codes",
    "the autoencoder: 8 channels, 1,920 samples a latent at 48 kHz, as released",
)
WIDTH, TEXT_WIDTH = 64, 32
DIT, PLANNER, READER = "acestep-v15-turbo", "acestep-5Hz-lm-1.7B", "Qwen3-Embedding-0.6B"
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def weights(folder: Path, source: Path) -> Mapping[str, Path]:
    sys.modules.setdefault("torchao", None)  # type: ignore[arg-type]  as in the adapter
    import diffusers
    import torch

    torch.manual_seed(0)
    folder.mkdir()
    _transformer(folder / DIT, source)
    diffusers.AutoencoderOobleck(
        encoder_hidden_size=8,
        downsampling_ratios=[2, 4, 4, 6, 10],
        channel_multiples=[1, 1, 1, 1, 1],
        decoder_channels=8,
        decoder_input_channels=64,
        audio_channels=2,
        sampling_rate=48_000,
    ).save_pretrained(folder / "vae")
    _qwen3(folder / READER, "Qwen3Model")
    _qwen3(folder / PLANNER, "Qwen3ForCausalLM")
    return {"checkpoints": folder}


def _transformer(folder: Path, source: Path) -> None:
    import torch
    import transformers

    folder.mkdir()
    for name in BESIDE:
        shutil.copy(source / "beside" / name, folder / name)
    layers = ("lyric_encoder", "timbre_encoder", "attention_pooler", "audio_decoder")
    config = {
        "model_type": "acestep",
        "auto_map": {
            "AutoConfig": "configuration_acestep_v15.AceStepConfig",
            "AutoModel": "modeling_acestep_v15_turbo.AceStepConditionGenerationModel",
        },
        "is_turbo": True,
        "hidden_size": WIDTH,
        "intermediate_size": WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "fsq_dim": WIDTH,
        "in_channels": 192,
        "text_hidden_dim": TEXT_WIDTH,
        **{f"num_{name}_hidden_layers": 1 for name in layers},
    }
    (folder / "config.json").write_text(json.dumps(config))
    read = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=True)
    net = transformers.AutoModel.from_config(read, trust_remote_code=True)
    net.save_pretrained(folder)
    torch.save(torch.randn(1, 64, 1500), folder / "silence_latent.pt")


def _qwen3(folder: Path, kind: str) -> None:
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE(vocab={piece: at for at, piece in enumerate(letters)}, merges=[]))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=4096)
    fast.add_special_tokens(
        {"additional_special_tokens": list(SPECIAL), "pad_token": SPECIAL[0], "eos_token": SPECIAL[2]}
    )
    fast.add_tokens(["<think>", "</think>", *(f"<|audio_code_{at}|>" for at in range(64))])
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    config = transformers.Qwen3Config(
        vocab_size=len(fast),
        hidden_size=TEXT_WIDTH,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    getattr(transformers, kind)(config).save_pretrained(folder)


@contextlib.contextmanager
def patched(adapter: type) -> Iterator[None]:
    yield


def prove(server: HeadServer, say: Say, folder: Path) -> None:
    clip = renders(server, say, lambda prompt, seed: render(prompt, "music", seed), 48_000, 2)
    assert clip.duration_s == 10.0, clip.duration_s
    assert reason(server, render("piano " * 100, "music")) == "prompt_too_long"
    say("a caption of more than 512 characters: refused, prompt_too_long")
