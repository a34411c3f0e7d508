"""Edits of a piece: tempo, key, instrument, drums."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")
pytest.importorskip("tokenizers")
pytest.importorskip("pedalboard")

import numpy as np

from actors.pocket import edit_music
from actors.pocket.ears.music import Note
from tests.actors.pocket.edited import RATE, edited, tones
from torus_ray.audio import Clip


def tune(program: int = 0, bpm: float = 120.0, seconds: float = 8.0) -> Clip:
    steps = [0, 4, 7, 4, 5, 9, 7, 4, 0, 2, 4, 7, 5, 4, 2, 0] * 3
    beat = 60 / bpm
    notes = [
        Note(k * beat, (k + 0.9) * beat, 60 + step, 0.6) for k, step in enumerate(steps) if (k + 1) * beat < seconds
    ]
    return Clip(edit_music.played(tuple(notes), program, int(seconds * RATE)).astype(np.float32), RATE)


@pytest.mark.parametrize(
    ("prompt", "bpm"), [("Slow the tempo to 90 bpm", 90.0), ("What if the pianist had played it 30 bpm faster?", 150.0)]
)
def test_tempo(prompt: str, bpm: float) -> None:
    assert edit_music.tempo_of(edited(tune(), prompt, "music").wave.astype(float)) == pytest.approx(bpm, rel=0.03)


def test_key_moves() -> None:
    before = edit_music.key_of(tune().wave.astype(float)).tonic
    after = edit_music.key_of(edited(tune(), "transpose it up two semitones", "music").wave.astype(float)).tonic
    assert (after - before) % 12 == 2


def test_another_instrument_keeps_the_tempo() -> None:
    out = edited(tune(), "Imagine the piece were played on a flute instead of a piano", "music")
    assert edit_music.tempo_of(out.wave.astype(float)) == pytest.approx(120, rel=0.03)
    assert out.frames == tune().frames
    assert not np.allclose(out.wave, tune().wave, atol=0.01)


def test_drums_are_taken_out() -> None:
    rng = np.random.default_rng(0)
    clean = tune().wave.astype(float)
    drums = np.zeros_like(clean)
    for k in range(16):
        at = int(k * 0.5 * RATE)
        drums[0, at : at + 2000] = 0.3 * rng.standard_normal(2000) * np.exp(-np.arange(2000) / 400)
    out = edited(Clip((clean + drums).astype(np.float32), RATE), "remove the drums", "music").wave
    high = [np.abs(np.fft.rfft(x[0])[60000:]) for x in (out, clean + drums)]
    assert (high[0] ** 2).sum() < 0.3 * (high[1] ** 2).sum()


@pytest.mark.parametrize("bpm", [40, 60, 90, 150, 200])
def test_the_tempo_of_even_notes_is_no_octave_off(bpm: float) -> None:
    times = tuple(np.arange(0.1, 9.0, 60 / bpm))
    row = tones(tuple(440.0 + 40 * (k % 4) for k in range(len(times))), times, 9.5, min(0.1, 8 / bpm))
    assert edit_music.tempo_of(row.wave.astype(float)) == pytest.approx(bpm, rel=0.02)
