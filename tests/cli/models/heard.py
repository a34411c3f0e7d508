"""A renderer whose clips are the same sound in any format, odd clips where told, and a head that really hears them.

What is heard is simple enough to be known beforehand: which of three pitches sounds in each half second, and how much
there is in 8 bands of each 0.96 s.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from torus_ray.audio import SILENT_PEAK, Clip, mono
from torus_ray.heads import Model

WORDS = {"low": 300.0, "mid": 900.0, "high": 2700.0}
BEAT_S, SECONDS = 0.5, 2.5
RATE_HZ, PATCH = 16_000, 15_360
EDGES = np.geomspace(60.0, 8_000.0, 9)


def scene(prompt: str, rate_hz: int, seconds: float = SECONDS) -> Any:
    """A word each half second over 12 quiet partials, all below 6 kHz: float64 (frames,)."""
    rng = np.random.default_rng(zlib.crc32(prompt.encode()))
    time_s = np.arange(round(seconds * rate_hz)) / rate_hz
    wave = np.zeros(len(time_s))
    for pitch, phase, level in zip(*rng.uniform([[60], [0], [0]], [[6_000], [6.28], [0.03]], (3, 12)), strict=True):
        wave += level * np.sin(2 * np.pi * pitch * time_s + phase)
    said = rng.choice(list(WORDS.values()), size=max(1, round(seconds / BEAT_S)))
    beat = np.minimum((time_s / BEAT_S).astype(int), len(said) - 1)
    wave += 0.2 * np.sin(2 * np.pi * said[beat] * time_s) * np.abs(np.sin(np.pi * time_s / BEAT_S))
    # A wave that sets in at once would ring when it is resampled.
    return wave * np.minimum(1, np.minimum(time_s, time_s[::-1]) / 0.02)


ODD: Mapping[str, Callable[[str, int], Any]] = {
    "silent": lambda prompt, rate_hz: np.zeros(2 * rate_hz),
    "short": lambda prompt, rate_hz: scene(prompt, rate_hz)[:240],
    "twelve seconds": lambda prompt, rate_hz: scene(prompt, rate_hz, 12),
    "twelve minutes": lambda prompt, rate_hz: np.tile(scene(prompt, rate_hz, 2.4), 300),
    "nan": lambda prompt, rate_hz: np.where(np.arange(rate_hz) == 7, np.nan, 0.1),
    "opposite": lambda prompt, rate_hz: np.stack([scene(prompt, rate_hz), -scene(prompt, rate_hz)]),
}


class Scenes(Model):
    """odd: what becomes of a prompt, {prompt: a name of ODD}. rate_hz, channels: of every clip."""

    batch_invariant = True

    def __init__(self, odd: Mapping[str, str] | None = None, rate_hz: int = RATE_HZ, channels: int = 1) -> None:
        self.odd, self.rate_hz, self.channels = dict(odd or {}), rate_hz, channels

    def generate(self, requests: list[Any]) -> list[Any]:
        return [request.reply(self._clip(request.prompt)) for request in requests]

    edit = generate

    def caption(self, requests: list[Any]) -> list[Any]:
        return [request.reply(f"{request.clip.frames} samples") for request in requests]

    def answer(self, requests: list[Any]) -> list[Any]:
        return [request.reply(["A" for _ in request.questions]) for request in requests]

    def _clip(self, prompt: str) -> Clip:
        if prompt in self.odd:
            return Clip(ODD[self.odd[prompt]](prompt, self.rate_hz), self.rate_hz)
        return Clip(np.tile(scene(prompt, self.rate_hz), (self.channels, 1)), self.rate_hz)


class Ears(Model):
    """heard-words: a word each half second; "" and `silent` where nothing sounds. heard8: log level of 8 bands, patch
    by patch. heard-vector: their mean over patches. heard4: loudest third of the bands, and 0 for noise."""

    batch_invariant = True

    def measure(self, requests: list[Any]) -> list[Any]:
        return [request.reply(self._heard(request.measure, request.clip_bytes)) for request in requests]

    def _heard(self, measure: str, clip: bytes) -> Mapping[str, Any]:
        wave = mono(clip, RATE_HZ).astype(np.float64)
        flags = ["silent"] if not len(wave) or np.abs(wave).max() < SILENT_PEAK else []
        if measure == "heard-words":
            return {"text": "", "flags": flags} if flags else {"text": _words(wave)}
        padded = np.pad(wave, (0, max(0, PATCH - len(wave))))
        patches = padded[: len(padded) // PATCH * PATCH].reshape(-1, PATCH)
        levels = np.stack([_levels(patch) for patch in patches])
        flags += ["padded"] if len(wave) < PATCH else []
        mean = levels.mean(axis=0)
        values = {
            "heard8": levels,
            "heard-vector": mean,
            "heard4": [mean[:3].max(), mean[3:6].max(), mean[6:].max(), -9.0],
        }[measure]
        return {"values": np.asarray(values).tolist(), "flags": flags}


def _words(wave: Any) -> str:
    beat = round(BEAT_S * RATE_HZ)
    heard = []
    for at in range(0, max(len(wave) - beat // 2, 1), beat):
        part = wave[at : at + beat]
        heard.append(list(WORDS)[int(np.abs(_tones(len(part)) @ part).argmax())])
    return " ".join(heard)


@cache
def _tones(samples: int) -> Any:
    pitches = np.array(list(WORDS.values()))[:, None]
    return np.exp(-2j * np.pi * pitches * np.arange(samples) / RATE_HZ)


def _levels(patch: Any) -> Any:
    spectrum = np.abs(np.fft.rfft(patch)) / PATCH
    hz = np.fft.rfftfreq(PATCH, 1 / RATE_HZ)
    edges = np.searchsorted(hz, EDGES)
    return np.log(np.add.reduceat(spectrum, edges[:-1]) + 0.01)
