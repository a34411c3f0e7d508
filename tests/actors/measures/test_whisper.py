"""Whisper: the adapter over tiny random checkpoints, openai-whisper's own code underneath."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import whisper

from actors.whisper.measuring import hear
from tests.actors.measures.served import FORMATS, Served, clip, opposite, silent, stored, wave
from tests.actors.serving import ACTORS
from torus_ray.heads import MeasureRequest

MEASURE = "whisper-large-v3"
HELLO = 7751
"""The token " hello"."""


def checkpoint(folder: Path, *, says: int | None = None, text_context: int = 16) -> Path:
    """A file of random weights in large-v3's format: its mel bands and vocabulary, one layer of sixteen.

    says: a token that the decoder wants whatever it hears.
    """
    torch.manual_seed(0)
    dims = whisper.ModelDimensions(
        n_mels=128,
        n_audio_ctx=1500,
        n_audio_state=16,
        n_audio_head=2,
        n_audio_layer=1,
        n_vocab=51866,
        n_text_ctx=text_context,
        n_text_state=16,
        n_text_head=2,
        n_text_layer=1,
    )
    net = whisper.model.Whisper(dims)
    torch.nn.init.normal_(net.decoder.positional_embedding)
    net.decoder.token_embedding.weight.data *= 0.3  # sure of nothing, so that the library's ladder is climbed
    if says is not None:
        torch.nn.init.zeros_(net.decoder.ln.weight)
        torch.nn.init.ones_(net.decoder.ln.bias)
        net.decoder.token_embedding.weight.data[says] = 40.0
    path = folder / "tiny.pt"
    torch.save({"dims": vars(dims), "model_state_dict": net.state_dict()}, path)
    return path


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served("whisper", "Whisper", {"model": checkpoint(tmp_path_factory.mktemp("whisper"))})


def test_a_transcript_and_how_sure_the_decoder_was(head: Served) -> None:
    values = head.values(MEASURE, clip())
    assert values["text"]
    assert values["text"] == " ".join(values["text"].split())
    assert set(values["decoding"]) == {"segments", "temperature", "compression_ratio", "no_speech_prob", "avg_logprob"}
    assert "raw" not in values


def test_the_options_are_those_of_the_convention(head: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def transcribe(audio: Any, **options: Any) -> dict[str, Any]:
        asked.update(options, audio=audio)
        return {"text": "", "segments": []}

    monkeypatch.setattr(head.server.model._net, "transcribe", transcribe)
    head.values(MEASURE, clip(3.0, 44_100, 2))
    assert (asked["language"], asked["task"], asked["condition_on_previous_text"]) == ("en", "transcribe", False)
    assert asked["temperature"] == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert asked["audio"].dtype == np.float32
    assert asked["audio"].shape == (48_000,)


def test_the_same_clip_gives_the_same_text_whoever_was_before(head: Served) -> None:
    clips = [clip(seed=seed) for seed in range(3)]
    alone = [head.values(MEASURE, one) for one in clips]
    together = [result["reply"]["values"] for result in head.batch(MEASURE, clips[::-1])][::-1]
    assert alone == together
    assert max(values["decoding"]["temperature"] for values in alone) > 0, "a draw that is seeded"


def test_the_seed_is_what_is_drawn_from(head: Served) -> None:
    requests = [MeasureRequest("0", MEASURE, clip(), seed) for seed in range(4)]
    texts = {head.server.model.measure([request])[0].values["text"] for request in requests}
    assert len(texts) > 1


def test_one_clip_in_every_format(head: Served) -> None:
    """What the decoder is given; the words of a random decoder would hang on the last bit of every number."""
    wanted = _encoded(head, clip())
    for rate, channels, bits in FORMATS:
        found = _encoded(head, clip(3.0, rate, channels, bits))
        assert np.abs(found - wanted).mean() < 0.02 * np.abs(wanted).mean()


def _encoded(head: Served, data: bytes) -> Any:
    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(hear(data, 16_000).wave), 128)
    with torch.inference_mode():
        return head.server.model._net.embed_audio(mel[None])[0, :150].numpy()


@pytest.mark.parametrize("data", [silent(), opposite()], ids=["silence", "opposite phase"])
def test_silence_has_no_words_and_what_was_heard_is_kept(head: Served, data: bytes) -> None:
    values = head.values(MEASURE, data)
    assert values["text"] == ""
    assert values["flags"][0] == "silent"
    assert values["raw"]


def test_240_samples(head: Served) -> None:
    assert isinstance(head.values(MEASURE, stored(wave()[4000:4240]))["text"], str)


def test_a_clip_with_no_sample_left_is_refused(head: Served) -> None:
    assert head.reason(MEASURE, stored(np.full(1, 0.1), 48_000)) == "empty"


def test_twelve_minutes_are_all_heard(tmp_path: Path) -> None:
    head = Served("whisper", "Whisper", {"model": checkpoint(tmp_path, says=HELLO, text_context=12)})
    values = head.values(MEASURE, clip(720.0))
    assert values["decoding"]["segments"] >= 24
    assert set(values["text"].split()) == {"hello"}


def test_a_loop_is_kept_and_flagged(tmp_path: Path) -> None:
    head = Served("whisper", "Whisper", {"model": checkpoint(tmp_path, says=HELLO, text_context=160)})
    values = head.values(MEASURE, clip())
    assert values["flags"] == ["looped"]
    assert values["text"].split().count("hello") > 50
    assert values["decoding"]["compression_ratio"] > 2.4


def test_another_checkpoint_than_the_card_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not the checkpoint that the card names") as stopped:
        Served("whisper", "Whisper", {"model": checkpoint(tmp_path)}, sha256="0" * 64)
    assert "expected: sha256 000" in str(stopped.value)


def test_the_card_names_the_published_file() -> None:
    with (ACTORS / "whisper" / "whisper-large-v3.system.toml").open("rb") as file:
        host = tomllib.load(file)["hosts"]["whisper"]
    published = whisper._MODELS["large-v3"].split("/")[-2]
    assert host["settings"]["sha256"] == host["weights"]["model"]["sha256"] == published


def test_nothing_is_fetched_by_name(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nothing is fetched"):
        Served("whisper", "Whisper", {"model": Path("large-v3")})
