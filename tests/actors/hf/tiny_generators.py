"""Generators of random weights, small enough for a laptop's blink, as folders that diffusers and transformers read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers.models.bark.generation_configuration_bark import BarkGenerationConfig

RATE_HZ = 16_000
WORDS = ("<pad>", "</s>", "<unk>", "a", "dog", "barks", "twice", "louder", "rain", "piano")


def words(limit: int = 16, **names: str) -> Any:
    """A tokenizer of whole words that takes at most `limit` of them."""
    whole = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="<unk>"))
    whole.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=whole, unk_token="<unk>", pad_token="<pad>", eos_token="</s>", model_max_length=limit, **names
    )


def t5(width: int = 8) -> Any:
    return transformers.T5Config(vocab_size=99, d_model=width, d_ff=16, num_layers=1, num_heads=2, d_kv=4)


def oobleck(latent: int, ratios: tuple[int, ...]) -> Any:
    """An autoencoder whose latents are as many samples apart as the product of the ratios."""
    return diffusers.AutoencoderOobleck(
        encoder_hidden_size=2 * latent,
        downsampling_ratios=list(ratios),
        decoder_channels=8,
        decoder_input_channels=latent,
        audio_channels=2,
        channel_multiples=[1] * len(ratios),
        sampling_rate=RATE_HZ,
    )


def stable_audio(folder: Path) -> Path:
    torch.manual_seed(0)
    return _saved(
        folder,
        diffusers.StableAudioPipeline(
            vae=oobleck(3, (2, 4)),
            text_encoder=transformers.T5EncoderModel(t5(4)),
            projection_model=diffusers.StableAudioProjectionModel(
                text_encoder_dim=4, conditioning_dim=4, min_value=0, max_value=32
            ),
            tokenizer=words(limit=128),
            transformer=diffusers.StableAudioDiTModel(
                sample_size=400,
                in_channels=3,
                num_layers=2,
                attention_head_dim=4,
                num_attention_heads=2,
                num_key_value_attention_heads=2,
                out_channels=3,
                cross_attention_dim=4,
                time_proj_dim=8,
                global_states_input_dim=8,
                cross_attention_input_dim=4,
            ),
            # As the published one: its noise is five hundred times the size of what it stands on.
            scheduler=diffusers.CosineDPMSolverMultistepScheduler(
                solver_order=2, prediction_type="v_prediction", sigma_data=1.0, sigma_schedule="exponential"
            ),
        ),
    )


def ace_step(folder: Path) -> Path:
    from diffusers.pipelines.ace_step import (
        AceStepAudioTokenDetokenizer,
        AceStepAudioTokenizer,
        AceStepConditionEncoder,
    )

    torch.manual_seed(0)
    text = transformers.Qwen3Config(
        vocab_size=99,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
    )
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "sliding_window": 16,
    }
    tokens = {**sizes, "audio_acoustic_hidden_dim": 8, "num_attention_pooler_hidden_layers": 1}
    levels = {"fsq_dim": 32, "fsq_input_levels": [4, 4, 4], "fsq_input_num_quantizers": 1}
    conditions = AceStepConditionEncoder(
        **sizes,
        text_hidden_dim=32,
        timbre_hidden_dim=8,
        num_lyric_encoder_hidden_layers=1,
        num_timbre_encoder_hidden_layers=1,
    )
    conditions.silence_latent.data.normal_()
    return _saved(
        folder,
        diffusers.AceStepPipeline(
            vae=oobleck(8, (8, 10, 8)),  # 25 latents a second, as the published one
            text_encoder=transformers.Qwen3Model(text),
            tokenizer=words(limit=64),
            transformer=diffusers.AceStepTransformer1DModel(
                **sizes, num_hidden_layers=2, in_channels=24, audio_acoustic_hidden_dim=8, patch_size=2
            ),
            condition_encoder=conditions,
            scheduler=diffusers.FlowMatchEulerDiscreteScheduler(num_train_timesteps=1, shift=1.0),
            audio_tokenizer=AceStepAudioTokenizer(**tokens, **levels),
            audio_token_detokenizer=AceStepAudioTokenDetokenizer(**tokens),
        ),
    )


def musicgen(folder: Path) -> Path:
    torch.manual_seed(0)
    config = transformers.MusicgenConfig(
        text_encoder=t5(16).to_dict(),
        audio_encoder=encodec(32_000, [8, 5, 4, 4], codebook_size=64, target_bandwidths=[2.2]).to_dict(),
        decoder=transformers.MusicgenDecoderConfig(
            vocab_size=64,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            ffn_dim=32,
            num_codebooks=4,
            pad_token_id=64,
            bos_token_id=64,
            max_position_embeddings=64,
        ).to_dict(),
    )
    net = transformers.MusicgenForConditionalGeneration(config)
    net.generation_config = transformers.GenerationConfig(
        decoder_start_token_id=64,
        pad_token_id=64,
        bos_token_id=64,
        guidance_scale=3.0,
        do_sample=True,
        max_new_tokens=20,
    )
    _drawn(net.audio_encoder)
    net.save_pretrained(folder)
    listens = transformers.EncodecFeatureExtractor(sampling_rate=32_000)
    transformers.MusicgenProcessor(listens, _t5_tokenizer()).save_pretrained(folder)
    return folder


def bark(folder: Path) -> Path:
    torch.manual_seed(0)
    sizes = {"block_size": 1024, "num_layers": 1, "num_heads": 2, "hidden_size": 16}
    config = transformers.BarkConfig(
        semantic_config={**sizes, "input_vocab_size": 129_600, "output_vocab_size": 10_048},
        coarse_acoustics_config={**sizes, "input_vocab_size": 12_096, "output_vocab_size": 12_096},
        fine_acoustics_config={**sizes, "input_vocab_size": 1_056, "output_vocab_size": 1_056, "n_codes_total": 8},
        codec_config=encodec(24_000, [8, 5, 4, 2], codebook_size=1024, target_bandwidths=[6.0]).to_dict(),
    )
    net = transformers.BarkModel(config)
    _drawn(net.codec_model)
    net.generation_config = transformers.GenerationConfig()
    net.save_pretrained(folder)
    # As the published one has it: made in code, it cannot be saved.
    (folder / "generation_config.json").write_text(json.dumps(_plain(BarkGenerationConfig())), encoding="utf-8")
    transformers.BarkProcessor(words(limit=512)).save_pretrained(folder)
    return folder


def _plain(said: Any) -> dict[str, Any]:
    parts = ("semantic_config", "coarse_acoustics_config", "fine_acoustics_config")
    held = {part: getattr(said, part) for part in parts}
    return {
        "model_type": "bark",
        "codebook_size": said.codebook_size,
        "sample_rate": said.sample_rate,
        **{part: value if isinstance(value, dict) else value.to_dict() for part, value in held.items()},
    }


def encodec(rate_hz: int, ratios: list[int], **more: Any) -> Any:
    return transformers.EncodecConfig(
        sampling_rate=rate_hz,
        upsampling_ratios=ratios,
        num_filters=4,
        hidden_size=16,
        codebook_dim=16,
        num_lstm_layers=1,
        **more,
    )


def _drawn(codec: Any) -> None:
    """Codebooks that differ: made in code they are all zeros, so that every token sounds the same."""
    for layer in codec.quantizer.layers:
        layer.codebook.embed.normal_()


def _t5_tokenizer() -> Any:
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((f"▁{word}", -2.0) for word in WORDS[3:]), ("▁", -3.0)]
    return transformers.T5TokenizerFast(vocab=pieces, extra_ids=0, model_max_length=60)


def audioldm2(folder: Path) -> Path:
    torch.manual_seed(0)
    unet = diffusers.AudioLDM2UNet2DConditionModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        norm_num_groups=8,
        sample_size=32,
        in_channels=4,
        out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=(8, 16),
    )
    vae = diffusers.AutoencoderKL(
        block_out_channels=[8, 16],
        in_channels=1,
        out_channels=1,
        norm_num_groups=8,
        down_block_types=["DownEncoderBlock2D", "DownEncoderBlock2D"],
        up_block_types=["UpDecoderBlock2D", "UpDecoderBlock2D"],
        latent_channels=4,
    )
    branch = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1, "num_hidden_layers": 1}
    clap = transformers.ClapModel(
        transformers.ClapConfig(
            text_config={**branch, "vocab_size": 99, "projection_dim": 16, "pad_token_id": 1},
            audio_config={
                "spec_size": 8,
                "window_size": 4,
                "num_mel_bins": 8,
                "patch_size": 2,
                "patch_stride": 2,
                "patch_embeds_hidden_size": 8,
                "depths": [1, 1],
                "num_attention_heads": [1, 1],
                "num_hidden_layers": 2,
                "hidden_size": 16,
                "projection_dim": 16,
            },
            projection_dim=16,
        )
    )
    gpt2 = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=16, n_head=2, n_layer=1, vocab_size=99, n_positions=99)
    )
    vocoder = transformers.SpeechT5HifiGan(
        transformers.SpeechT5HifiGanConfig(
            model_in_dim=8,
            sampling_rate=RATE_HZ,
            upsample_initial_channel=16,
            upsample_rates=[2, 2],
            upsample_kernel_sizes=[4, 4],
            resblock_kernel_sizes=[3, 7],
            resblock_dilation_sizes=[[1, 3, 5], [1, 3, 5]],
            normalize_before=False,
        )
    )
    for weight in vocoder.parameters():
        weight.data.mul_(20)  # else next to nothing is heard
    roberta = transformers.RobertaTokenizerFast(
        vocab={
            word: at
            for at, word in enumerate(("<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklmnopqrstuvwxyzĠ"))
        },
        merges=[],
        model_max_length=60,
    )
    listens = transformers.ClapFeatureExtractor(feature_size=8, sampling_rate=RATE_HZ, max_length_s=1)
    return _saved(
        folder,
        diffusers.AudioLDM2Pipeline(
            vae=vae,
            text_encoder=clap,
            text_encoder_2=transformers.T5EncoderModel(t5(32)),
            projection_model=diffusers.AudioLDM2ProjectionModel(
                text_encoder_dim=16, text_encoder_1_dim=32, langauge_model_dim=16
            ),
            language_model=gpt2,
            tokenizer=roberta,
            tokenizer_2=_t5_tokenizer(),
            feature_extractor=listens,
            unet=unet,
            scheduler=diffusers.DDIMScheduler(
                beta_start=0.0015,
                beta_end=0.0195,
                beta_schedule="scaled_linear",
                clip_sample=False,
                set_alpha_to_one=False,
            ),
            vocoder=vocoder,
        ),
    )


def _saved(folder: Path, pipeline: Any) -> Path:
    pipeline.save_pretrained(folder)
    return folder


GENERATORS: Mapping[str, Callable[[Path], Path]] = {
    "StableAudioPipeline": stable_audio,
    "AceStepPipeline": ace_step,
    "AudioLDM2Pipeline": audioldm2,
    "musicgen": musicgen,
    "bark": bark,
}
"""Kind -> what makes a tiny one in a folder."""
