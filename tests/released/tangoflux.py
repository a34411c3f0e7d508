"""TangoFlux: its own network and tokenizer code over a T5 and an autoencoder of a few thousand parameters."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tests.actors.serving import reason
from tests.released.asked import rendered, renders, same
from tests.released.cases import Say
from tests.systems.clips import render
from torus_ray.audio import Clip, decode, encode
from torus_ray.engine.hosting import HeadServer

SETTINGS = {"steps": 2}
BESIDE: tuple[str, ...] = ()
MADE_SMALL = (
    "config.json: one joint and one single block, one head of 128, text width 32; latents of 645 x 64, as released",
    "flan-t5: one layer, a vocabulary of letters, 512 tokens at most",
    "the autoencoder, whose class the released code calls without sizes: 8 channels; its ratios as released",
)
WIDTH = 32
SMALL_VAE = {"encoder_hidden_size": 8, "decoder_channels": 8, "channel_multiples": [1, 1, 1, 1, 1]}


def weights(folder: Path, source: Path) -> Mapping[str, Path]:
    import diffusers
    import torch
    from safetensors.torch import save_file
    from tangoflux.model import TangoFlux

    torch.manual_seed(0)
    model, encoder = folder / "model", folder / "text_encoder"
    model.mkdir(parents=True)
    _flan_t5(encoder)
    sizes = {"num_layers": 1, "num_single_layers": 1, "num_attention_heads": 1, "joint_attention_dim": WIDTH}
    lengths = {"attention_head_dim": 128, "in_channels": 64, "audio_seq_len": 645, "max_duration": 30}
    config = {**sizes, **lengths, "text_encoder_name": str(encoder)}
    (model / "config.json").write_text(json.dumps(config))
    state = TangoFlux(config, text_encoder_dir=str(encoder)).state_dict()
    # As released: the embedding that is shared lies in the file once.
    del state["text_encoder.encoder.embed_tokens.weight"]
    save_file({name: value.contiguous() for name, value in state.items()}, model / "tangoflux.safetensors")
    save_file(diffusers.AutoencoderOobleck().state_dict(), model / "vae.safetensors")
    return {"model": model, "text_encoder": encoder}


def _flan_t5(folder: Path) -> None:
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    pieces = ["<pad>", "</s>", "<unk>", "▁", *"abcdefghijklmnopqrstuvwxyz.,"]
    words = Tokenizer(models.Unigram([(piece, -float(at)) for at, piece in enumerate(pieces)], unk_id=2))
    words.pre_tokenizer = pre_tokenizers.Metaspace()
    words.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast = transformers.T5TokenizerFast(tokenizer_object=words, model_max_length=512, extra_ids=0)
    fast.save_pretrained(folder)
    config = transformers.T5Config(
        vocab_size=len(pieces),
        d_model=WIDTH,
        d_ff=32,
        d_kv=8,
        num_layers=1,
        num_heads=2,
        feed_forward_proj="gated-gelu",
    )
    transformers.T5EncoderModel(config).save_pretrained(folder)


@contextmanager
def patched(adapter: type) -> Iterator[None]:
    import diffusers

    whole: Any = diffusers.AutoencoderOobleck
    diffusers.AutoencoderOobleck = functools.partial(whole, **SMALL_VAE)
    try:
        yield
    finally:
        diffusers.AutoencoderOobleck = whole


def _released(model: Path, prompt: str) -> Clip:
    """The clip of the class that the package offers: its seed is always 0."""
    import tangoflux

    with mock.patch.object(tangoflux, "snapshot_download", return_value=str(model)):
        wave = tangoflux.TangoFluxInference(device="cpu").generate(prompt, steps=SETTINGS["steps"])
    return Clip(wave.numpy(), 44_100)


def prove(server: HeadServer, say: Say, folder: Path) -> None:
    clip = renders(server, say, lambda prompt, seed: render(prompt, seed=seed), 44_100, 2)
    assert clip.duration_s == 10.0
    released = _released(folder / "model", "a dog barks twice")
    ours, _ = rendered(server, render("a dog barks twice", seed=0))
    assert same(ours, decode(encode(released).data)), "the package's own class makes another clip"
    say("seed 0 is, to the last bit, what the package's own class makes of the same weights")
    assert reason(server, render("a dog barks " * 50)) == "prompt_too_long"
    say("a prompt of more tokens than the encoder takes: refused, prompt_too_long")
