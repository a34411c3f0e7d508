"""MMEdit: its transformer, autoencoder and conditioning, over a Qwen2-Audio of one layer."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.actors.serving import reason
from tests.released.asked import rendered, renders, silence
from tests.released.cases import Say
from tests.systems.clips import edit, stored
from torus_ray.engine.hosting import HeadServer

SETTINGS = {"steps": 2}
BESIDE: tuple[str, ...] = ()
MADE_SMALL = (
    "ckpt/config.yaml of the copy: transformer of width 64, two joint and one fused block, autoencoder of 8 channels",
    "Qwen2-Audio: one layer a side; its text width stays 4,096, which the released projection names",
    "device: the encoder's default is cuda, and it is loaded on GPU 0; both are the CPU here",
)
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% for c in m.content %}"
    "{% if c.type == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>\n{% else %}{{ c.text }}{% endif %}{% endfor %}"
    "<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")


def weights(folder: Path, source: Path) -> Mapping[str, Path]:
    import torch
    from hydra.utils import instantiate
    from omegaconf import OmegaConf
    from safetensors.torch import save_file
    from utils.config import register_omegaconf_resolvers

    torch.manual_seed(0)
    model, qwen = folder / "model", folder / "qwen2_audio"
    (model / "vae").mkdir(parents=True)
    _qwen2_audio(qwen)
    register_omegaconf_resolvers()
    file = source / "ckpt" / "config.yaml"
    config = OmegaConf.load(file)
    for part in ("encoder", "decoder"):
        config.model.autoencoder[part].channels = 8
    config.model.backbone.update({"hidden_dim": 64, "depth": 3, "fused_depth": 1, "num_heads": 2, "text_dim": 32})
    config.model.content_encoder.text_encoder.embed_dim = 32
    config.model.content_encoder.embed_dim = config.model.content_dim = 32
    OmegaConf.save(config, file)
    config.model.autoencoder.pretrained_ckpt = None
    config.model.content_encoder.text_encoder.model_path = str(qwen)
    config.model.noise_scheduler_name = str(source / "stabilityai" / "stable-diffusion-2-1")
    net = instantiate(config.model)
    # Its layers start as nothing, so that an untrained one makes nothing of its input.
    for name, value in net.named_parameters():
        if name.startswith("backbone.") and not value.any():
            torch.nn.init.normal_(value, std=0.1)
    autoencoder = net.autoencoder.state_dict()
    kept = {"state_dict": {f"autoencoder.{name}": value for name, value in autoencoder.items()}}
    torch.save(kept, model / "vae" / "epoch=13-step=1000000.ckpt")
    # What its trainer keeps: what was trained, and the buffers.
    state = net.state_dict()
    save_file(
        {name: state[name].contiguous() for name in net.param_names_to_save if name in state},
        model / "model.safetensors",
    )
    return {"model": model, "qwen2_audio": qwen}


def _qwen2_audio(folder: Path) -> None:
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE(vocab={piece: at for at, piece in enumerate([*letters, *SPECIAL])}, merges=[]))
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token=SPECIAL[0], eos_token=SPECIAL[2])
    fast.add_special_tokens({"additional_special_tokens": list(SPECIAL)})
    ears = {
        "d_model": 16,
        "encoder_layers": 1,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 32,
        "num_mel_bins": 128,
    }
    layers = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16}
    config = transformers.Qwen2AudioConfig(
        audio_config={"model_type": "qwen2_audio_encoder", **ears},
        text_config={"model_type": "qwen2", "hidden_size": 4096, "head_dim": 64, "vocab_size": len(fast), **layers},
        audio_token_index=fast.convert_tokens_to_ids("<|AUDIO|>"),
    )
    transformers.Qwen2AudioForConditionalGeneration(config).save_pretrained(folder)
    hearing = transformers.WhisperFeatureExtractor(feature_size=128)
    transformers.Qwen2AudioProcessor(hearing, fast, chat_template=TEMPLATE).save_pretrained(folder)


@contextlib.contextmanager
def patched(adapter: type) -> Iterator[None]:
    """The adapter asks for a GPU because the released code names one; here that code is told of the CPU instead."""
    from models.content_encoder import llm_encoder

    whole, embedder = llm_encoder.Qwen2AudioForConditionalGeneration, llm_encoder.Qwen2AudioEmbedder

    class OnCpu:
        @staticmethod
        def from_pretrained(path: str, torch_dtype: Any, device_map: Any) -> Any:
            return whole.from_pretrained(path, torch_dtype=torch_dtype, device_map="cpu")

    defaults = tuple("cpu" if value == "cuda" else value for value in embedder.__init__.__defaults__)
    with (
        mock.patch.object(sys.modules[adapter.__module__], "needs_gpu"),
        mock.patch.object(llm_encoder, "Qwen2AudioForConditionalGeneration", OnCpu),
        mock.patch.object(embedder.__init__, "__defaults__", defaults),
    ):
        yield


def _lengths_read(server: HeadServer) -> list[int]:
    """Fills up with the length of every sequence that Qwen2-Audio reads from now on."""
    model: Any = server.model
    lengths: list[int] = []
    model._net.content_encoder.text_encoder.model.register_forward_hook(
        lambda module, given, made: lengths.append(int(made.hidden_states[-1].shape[1]))
    )
    return lengths


def prove(server: HeadServer, say: Say, folder: Path) -> None:
    clip = stored(3.0)
    made = renders(server, say, lambda prompt, seed: edit(prompt, clip, seed=seed), 24_000, 1)
    assert made.duration_s == 3.0, made.duration_s
    other, _ = rendered(server, edit("a dog barks twice", silence(3.0)))
    assert other.frames == made.frames
    assert not np.array_equal(other.wave, made.wave)
    say("silence is edited like any clip, and into another one than the tone")
    for seconds in (0.02, 0.5, 10.0):
        made, notes = rendered(server, edit("Add rain.", stored(seconds)))
        say(f"{seconds:g} s in, {made.duration_s:.3f} s out, notes {notes!r}")
    made, notes = rendered(server, edit("Add rain.", stored(12.0)))
    assert made.duration_s == 10.0
    assert notes == "heard the first 10 of 12.00 s", notes
    assert reason(server, edit("Add rain.", stored(0.015))) == "clip_too_short"
    lengths = _lengths_read(server)
    made, notes = rendered(server, edit("Add rain. " * 20, stored(10.0)))
    assert notes == f"{lengths[-1]} tokens of clip and instruction, MMEdit's encoder keeps 320: the end is cut", notes
    say(f"12 s: the first ten; 15 ms: refused, clip_too_short; a long instruction: {notes!r}")
