"""Clips of known sounds, and what is heard in an edited one."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")
pytest.importorskip("tokenizers")
pytest.importorskip("pedalboard")

import numpy as np

from actors.pocket import edit, edit_events, sound
from torus_ray.audio import Clip

RATE = 44100


def clip(*parts: tuple[str, float], seconds: float = 8.0, bed: str | None = None, channels: int = 1) -> Clip:
    out = np.zeros(int(seconds * RATE))
    for k, (phrase, at) in enumerate(parts):
        wave = sound.render_event(phrase, None, np.random.default_rng(k))
        start = int(at * RATE)
        out[start : start + len(wave)] += wave[: len(out) - start]
    if bed:
        out += 0.3 * sound.render_event(bed, seconds, np.random.default_rng(9))
    return Clip(np.tile(out, (channels, 1)).astype(np.float32), RATE)


THREE = clip(("three dog barks", 0.3), ("a door slamming", 3.5), ("a doorbell", 5.5))
STEPS = clip(("two knocks on a door", 0.4), ("six footsteps on gravel", 3.0))
RAINY = clip(("two car horn honks", 1.0), seconds=6.0, bed="rain")
TICKS = clip(("twelve clock ticks, half a second apart", 0.1), seconds=7.0)


def edited(source: Clip, prompt: str, kind: str = "sound", seed: int = 1) -> Clip:
    return edit.apply_edit(source, prompt, kind, seed)


def onsets(source: Clip) -> list[float]:
    return [e.start / RATE for e in edit_events.analyse(source.wave.astype(float)).events]


def groups(source: Clip) -> list[list[float]]:
    scene = edit_events.analyse(source.wave.astype(float))
    return [[scene.events[i].start / RATE for i in g] for g in scene.groups]


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(x, dtype=np.float64))))


def span(source: Clip, start: float, stop: float) -> np.ndarray:
    return source.wave[:, int(start * RATE) : int(stop * RATE)]


def centroid(source: Clip) -> float:
    power = np.abs(np.fft.rfft(source.wave[0].astype(float))) ** 2
    return float((power * np.fft.rfftfreq(source.frames, 1 / RATE)).sum() / power.sum())


def likeness(source: Clip, start: float, stop: float, phrase: str) -> float:
    template = sound.render_event(phrase, None, np.random.default_rng(3)).astype(float)
    piece = span(source, start, stop).mean(axis=0).astype(float)
    return edit_events.likeness(edit_events.spectrum(piece), edit_events.spectrum(template))


def tones(pitches: tuple[float, ...], times: tuple[float, ...], seconds: float = 8.0, decay_s: float = 0.15) -> Clip:
    out = np.zeros(int(seconds * RATE))
    t = np.arange(int(min(6 * decay_s, 3.0) * RATE)) / RATE
    for hz, at in zip(pitches, times, strict=True):
        x = 0.25 * np.minimum(1, t / 0.004) * np.exp(-t / decay_s) * (np.sin(2 * np.pi * hz * t))
        start = int(at * RATE)
        out[start : start + len(x)] += x[: len(out) - start]
    return Clip(out[np.newaxis].astype(np.float32), RATE)
