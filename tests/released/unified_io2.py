"""Unified-IO 2: the library as it is, over a configuration of two heads and a tokenizer trained here."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.actors.serving import reason, reply
from tests.released.asked import listens, renders
from tests.released.cases import Say
from tests.systems.clips import caption, render, stored
from torus_ray.engine.hosting import HeadServer, load_class

SETTINGS: Mapping[str, Any] = {}
BESIDE: tuple[str, ...] = ()
MADE_SMALL = (
    "the configuration: width 32, two heads, one layer in every transformer; vocabularies and lengths as released",
    "the tokenizer: a SentencePiece file in the layout of LLaMA's, trained on a few sentences",
    "the vocoder's weights, where the checkout lacks them: random, in the released configuration",
    "the end of audio has no embedding: a random network would end before its 512 tokens, which the library refuses",
)
SIZES = {"emb_dim": 32, "num_heads": 2, "head_dim": 16, "mlp_dim": 32}
TEXT = ("a dog barks twice", "rain on a tin roof", "what is heard", "how loud is it", "synthesize the sound of a bell")


def weights(folder: Path, source: Path) -> Mapping[str, Path]:
    import torch
    import transformers  # noqa: F401  outside the shim, as in the adapter

    shim = load_class(
        str(Path(__file__).parents[2] / "actors" / "unified_io2"), "dataclass_shim", "hashable_dataclasses"
    )
    with shim():
        from uio2 import config
        from uio2.model import UnifiedIOModel
        from uio2.preprocessing import UnifiedIOPreprocessor

    torch.manual_seed(0)
    folder.mkdir()
    tokenizer = folder / "tokenizer.model"
    tokenizer.write_bytes(_sentencepiece())
    quantizer = {
        f"{part}_{name}": value
        for part in ("encoder", "decoder")
        for name, value in {"hidden_size": 32, "num_layers": 1, "mlp_dim": 32, "num_heads": 2, "head_dim": 16}.items()
    }
    small = config.Config(
        t5_config=config.T5Config(**SIZES, num_encoder_layers=1, num_decoder_layers=2),
        image_history_cfg=config.ImageResamplerConfig(**SIZES, num_layers=1, xattention_index=(0,)),
        audio_history_cfg=config.AudioResamplerConfig(**SIZES, num_layers=1, xattention_index=(0,)),
        image_vqgan=config.VQGANConfig(ch=32, ch_mult=(1, 1, 1, 1), num_res_blocks=1),
        audio_vqgan=config.AudioViTVQGANConfig(**quantizer),
        image_vit_cfg=config.ImageVitFeatureConfig(**SIZES, num_layers=2),
        audio_vit_cfg=config.AudioVitFeatureConfig(**SIZES, num_layers=2),
    )
    net = UnifiedIOModel(small)
    _never_ends(net.audio_token_embedder.weight.data, config.EOS_ID)
    for name, value in net.decoder.named_parameters():
        if name.endswith("encoder_decoder_attention.out.weight"):
            value.data.mul_(20.0)  # else what was read is lost beside the tokens sampled before
    net.save_pretrained(str(folder / "model"))
    UnifiedIOPreprocessor.from_config(small, str(tokenizer)).save_pretrained(str(folder / "preprocessor"))
    _vocoder(source / "uio2" / "hifigan" / "checkpoints")
    return {"model": folder / "model", "preprocessor": folder / "preprocessor", "tokenizer": tokenizer}


def _never_ends(embedding: Any, end: int) -> None:
    """Logits are this times a vector of length one a channel: the end's is 0 among ones so wide that `top_p` drops it.
    A trained network fills its 512 tokens; one that ends before raises in the released code."""
    embedding.mul_(3.0)
    embedding[end] = 0.0


def _sentencepiece() -> bytes:
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_writer=written,
        model_type="bpe",
        vocab_size=320,
        hard_vocab_limit=False,
        byte_fallback=True,
        pad_id=-1,
        minloglevel=2,
    )
    return written.getvalue()


def _vocoder(folder: Path) -> None:
    import torch
    from uio2.hifigan.models import Generator

    file = folder / "g_00930000"
    if not file.exists():
        told = type("Told", (), json.loads((folder / "config.json").read_text()))
        torch.save({"generator": Generator(told()).state_dict()}, file)


@contextlib.contextmanager
def patched(adapter: type) -> Iterator[None]:
    yield


def prove(server: HeadServer, say: Say, folder: Path) -> None:
    clip = renders(server, say, lambda prompt, seed: render(prompt, seed=seed), 16_000, 1)
    assert 4.0 < clip.duration_s < 4.2, clip.duration_s
    listens(server, say, "Give a short description of this audio.")
    long = reply(server, caption("Say the audio", stored(30.0)))
    assert long["notes"] == "heard the first 20.4 of 30.00 s", long
    assert reply(server, caption("Say the audio", stored(20.0)))["notes"] == ""
    say("30 s: the first five segments are heard, and noted; 20 s are heard whole")
    assert reason(server, render("dog " * 600)) == "prompt_too_long"
    assert reason(server, caption("dog " * 600, stored(1.0))) == "prompt_too_long"
    say("a prompt and an instruction of more than 512 tokens: refused, prompt_too_long")
