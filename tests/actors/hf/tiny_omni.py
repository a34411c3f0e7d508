"""Qwen-Omni of random weights: the part that thinks, the voice, and what makes waves of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from tests.actors.hf.tiny_listeners import SPECIAL, TEMPLATE, VOCABULARY, features, text, tokenizer

TOKENS = {
    "image_token": "<|IMAGE|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}
EARS = {
    "d_model": 16,
    "encoder_layers": 1,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "num_mel_bins": 80,
    "max_source_positions": 1500,
    "n_window": 50,
    "output_dim": 16,
}
EYES = {"depth": 1, "hidden_size": 16, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 16}
ROPE = {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [1, 1, 2]}
CODES = 40
"""Of the voice; the last ones are its special tokens."""


def _words() -> Any:
    return tokenizer(tuple(TOKENS.values()), extra_special_tokens=TOKENS)


def _processor(name: str, words: Any) -> Any:
    template = TEMPLATE.replace("AUDIO", "<|audio_bos|> <|AUDIO|> <|audio_eos|>")
    return getattr(transformers, name)(
        image_processor=transformers.Qwen2VLImageProcessor(),
        video_processor=transformers.Qwen2VLVideoProcessor(),
        feature_extractor=features(),
        tokenizer=words,
        chat_template=template,
    )


def _save(folder: Path, net: Any, processor: Any, listening: Any) -> Path:
    listening.generation_config = transformers.GenerationConfig(
        eos_token_id=SPECIAL.index("<|im_end|>"), pad_token_id=SPECIAL.index("<pad>"), max_new_tokens=8
    )
    net.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _drawn(net: Any) -> Any:
    """Every weight drawn: some of the experts' stay as the memory was when they are made in code."""
    for weight in net.parameters():
        if weight.ndim > 1:
            weight.data.normal_(0, 0.1)
    return net


def _loud(vocoder: Any) -> None:
    """Convolutions that pass on what they get: as they are made, next to nothing is heard."""
    for weight in vocoder.parameters():
        if weight.ndim == 3:
            weight.data.normal_(0, (weight.shape[1] * weight.shape[2]) ** -0.5)


def qwen2_5_omni(folder: Path) -> Path:
    torch.manual_seed(0)
    words = _words()
    ids = {name: words.convert_tokens_to_ids(token) for name, token in TOKENS.items()}
    shared = {
        "audio_token_index": ids["audio_token"],
        "image_token_index": ids["image_token"],
        "video_token_index": ids["video_token"],
        "audio_start_token_id": ids["audio_bos_token"],
        "audio_end_token_id": ids["audio_eos_token"],
    }
    says = text(rope_parameters=ROPE)
    del says["model_type"]
    config = transformers.Qwen2_5OmniConfig(
        thinker_config={
            **shared,
            "audio_config": EARS,
            "vision_config": EYES,
            "text_config": says,
            "user_token_id": words.convert_tokens_to_ids("user"),
            "vision_start_token_id": ids["vision_bos_token"],
            "vision_end_token_id": ids["vision_eos_token"],
        },
        talker_config={
            **shared,
            **says,
            "vocab_size": CODES,
            "embedding_size": 16,
            "head_dim": 8,
            "vision_start_token_id": ids["vision_bos_token"],
            "vision_end_token_id": ids["vision_eos_token"],
            "tts_text_start_token_id": VOCABULARY - 1,
            "tts_text_end_token_id": VOCABULARY - 2,
            "tts_text_pad_token_id": VOCABULARY - 3,
            "tts_codec_start_token_id": CODES - 1,
            "tts_codec_end_token_id": CODES - 2,
            "tts_codec_pad_token_id": CODES - 3,
            "tts_codec_mask_token_id": CODES - 4,
        },
        token2wav_config={
            "dit_config": {
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "emb_dim": 8,
                "head_dim": 8,
                "block_size": 24,
                "num_embeds": CODES + 1,
                "enc_emb_dim": 8,
                "enc_dim": 8,
                "enc_channels": [8, 8, 8, 8, 24],
                "enc_attention_channels": 8,
                "enc_se_channels": 8,
            },
            "bigvgan_config": {"upsample_initial_channel": 64},
        },
    )
    net = _drawn(transformers.Qwen2_5OmniForConditionalGeneration(config))
    _loud(net.token2wav.code2wav_bigvgan_model)
    _save(folder, net, _processor("Qwen2_5OmniProcessor", words), net.thinker)
    voice = {"cond": torch.randn(1, 8), "ref_mel": torch.randn(1, 40, 80), "bos_token": CODES - 5}
    torch.save({"Chelsie": voice}, folder / "spk_dict.pt")
    return folder


def qwen3_omni_moe(folder: Path) -> Path:
    torch.manual_seed(0)
    words = _words()
    ids = {name: words.convert_tokens_to_ids(token) for name, token in TOKENS.items()}
    experts = {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2, "head_dim": 8}
    says = text(rope_parameters={**ROPE, "mrope_interleaved": True}, **experts)
    del says["model_type"]
    shared = {
        "audio_token_id": ids["audio_token"],
        "image_token_id": ids["image_token"],
        "video_token_id": ids["video_token"],
        "audio_start_token_id": ids["audio_bos_token"],
    }
    config = transformers.Qwen3OmniMoeConfig(
        thinker_config={
            **shared,
            "audio_config": {**EARS, "downsample_hidden_size": 8, "n_window_infer": 100, "conv_chunksize": 100},
            "vision_config": {**EYES, "deepstack_visual_indexes": [0], "num_position_embeddings": 16},
            "text_config": says,
            "user_token_id": words.convert_tokens_to_ids("user"),
            "vision_start_token_id": ids["vision_bos_token"],
            "vision_end_token_id": ids["vision_eos_token"],
        },
        talker_config={
            **shared,
            "text_config": {**says, "vocab_size": 1100, "shared_expert_intermediate_size": 16},
            "code_predictor_config": {
                "vocab_size": CODES,
                "hidden_size": 16,
                "intermediate_size": 32,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "num_key_value_heads": 2,
                "head_dim": 8,
                "num_code_groups": 4,
            },
            "num_code_groups": 4,
            "spatial_merge_size": 2,
            "thinker_hidden_size": 16,
            "accept_hidden_layer": 1,
            "vision_start_token_id": ids["vision_bos_token"],
            "codec_eos_token_id": CODES + 10,
            "codec_nothink_id": CODES + 11,
            "codec_think_bos_id": CODES + 12,
            "codec_think_eos_id": CODES + 13,
            "codec_pad_id": CODES + 14,
            "codec_bos_id": CODES + 15,
            "speaker_id": {"ethan": CODES + 16},
        },
        code2wav_config={
            "codebook_size": CODES,
            "hidden_size": 16,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "num_quantizers": 4,
            "decoder_dim": 32,
        },
        im_start_token_id=words.convert_tokens_to_ids("<|im_start|>"),
        im_end_token_id=words.convert_tokens_to_ids("<|im_end|>"),
        system_token_id=words.convert_tokens_to_ids("system"),
        user_token_id=words.convert_tokens_to_ids("user"),
        assistant_token_id=words.convert_tokens_to_ids("assistant"),
        tts_bos_token_id=VOCABULARY - 1,
        tts_eos_token_id=VOCABULARY - 2,
        tts_pad_token_id=VOCABULARY - 3,
    )
    net = _drawn(transformers.Qwen3OmniMoeForConditionalGeneration(config))
    _loud(net.code2wav)
    return _save(folder, net, _processor("Qwen3OmniMoeProcessor", words), net.thinker)


OMNI = {"qwen2_5_omni": qwen2_5_omni, "qwen3_omni_moe": qwen3_omni_moe}
"""Kind -> what makes a tiny one in a folder."""
