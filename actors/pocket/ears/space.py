"""Where it sounds: reverberation, distance cues, stereo place and movement, bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from torus_ray.audio import Clip

from .events import Scene
from .signal import HOP_S, close_gaps, decibels, runs, smooth, spectrogram


@dataclass(frozen=True)
class Space:
    """Cues of a place.

    decay_s: reverberation time T60 read from the fastest free decays, seconds. tail_share: part of the sounding
    time spent in
    slow decays. cutoff_hz: frequency under which 95% of the power lies. brightest_db: share of power above 3 kHz in
    the frames that
    have most of it, dB (near -3 for open speech with its sibilants, under -20 behind a wall).
    pan: five-part course of left-right balance, -1 left to 1 right; width: how unlike the channels are, 0 mono.
    """

    decay_s: float
    tail_share: float
    cutoff_hz: float
    brightest_db: float
    pan: tuple[float, ...]
    width: float

    @property
    def stereo(self) -> bool:
        return self.width > 0.02


_WINDOW = 15
"""Frames (10 ms) over which one slope of decay is read."""


def decay_time(scene: Scene) -> tuple[float, float]:
    """(T60 in seconds, share of sounding frames in decay); 0 where nothing dies away freely.

    A room bounds how fast any sound in it can die away, so the faster falls of a clip show the room and not the
    source. The
    slope of each fall is read as its median over 0.15-s windows, after its first 9 dB (the direct sound's share)
    and above the
    background.
    """
    if scene.silent or len(scene.level) < 4 * _WINDOW:
        return 0.0, 0.0
    level = smooth(scene.level, 3)
    steps = np.arange(_WINDOW) - (_WINDOW - 1) / 2
    slope = np.correlate(level, steps / (steps @ steps) / HOP_S, mode="valid")
    start_level = level[: len(slope)]
    recent = np.lib.stride_tricks.sliding_window_view(np.pad(level, (40, 0), mode="edge"), 41).max(axis=1)[: len(slope)]
    end_level = level[_WINDOW - 1 :]
    usable = (
        (start_level < recent - 9.0) & (end_level > max(scene.floor_db + 3.0, scene.peak_db - 55.0)) & (slope < -8.0)
    )
    usable &= start_level > scene.peak_db - 30.0
    falls = [float(-np.median(slope[a:b])) for a, b in close_gaps(runs(usable), 5)]
    # A fall so fast that it is over within the window leaves only its ends: read from the level before and after.
    hard = (level[:-_WINDOW] - level[_WINDOW:] > 25.0) & (level[:-_WINDOW] > scene.peak_db - 12.0)
    falls += [25.0 / (_WINDOW * HOP_S)] * len(close_gaps(runs(hard), 5))
    if not falls:
        return 0.0, 0.0
    apparent = 60.0 / float(np.percentile(falls, 70))
    # Speech and strokes die away by themselves within 0.37 s of T60: below that there is no room to be heard.
    return (0.15 if apparent < 0.37 else min(apparent, 6.0)), float(usable.sum()) / max(int(scene.active.sum()), 1)


def space_of(clip: Clip, scene: Scene) -> Space:
    """The place cues of a clip; `scene` is its one-channel scene."""
    decay_s, tail = decay_time(scene)
    wave = np.asarray(clip.wave, dtype=np.float64).mean(axis=0)
    size = 2048 if clip.frames >= 2048 else max(64, clip.frames // 2 * 2)
    power = (spectrogram(wave, size, size // 2) ** 2).mean(axis=0)
    hz = np.linspace(0, clip.rate_hz / 2, len(power))
    total = np.cumsum(power)
    cutoff = float(hz[min(int(np.searchsorted(total, 0.95 * total[-1])), len(hz) - 1)]) if total[-1] > 0 else 0.0
    frames = scene.magnitude[scene.active] ** 2 if scene.active.any() else scene.magnitude**2
    strong = frames[frames.sum(axis=1) >= frames.sum(axis=1).max() * 10**-2.5]  # of silence: all
    shares = strong[:, 96:].sum(axis=1) / np.maximum(strong[:, 3:].sum(axis=1), 1e-12)
    brightest = float(decibels(np.percentile(shares, 95)))
    pan, width = (0.0,) * 5, 0.0
    if clip.channels >= 2:
        left, right = clip.wave[0].astype(np.float64), clip.wave[1].astype(np.float64)
        energy = float((left**2 + right**2).sum())
        width = float(((left - right) ** 2).sum() / energy) if energy > 0 else 0.0
        hop = max(1, round(clip.rate_hz * HOP_S))
        frames = max(1, clip.frames // hop)
        l_power = (left[: frames * hop].reshape(frames, -1) ** 2).mean(axis=1)
        r_power = (right[: frames * hop].reshape(frames, -1) ** 2).mean(axis=1)
        track = (r_power - l_power) / np.maximum(r_power + l_power, 1e-12)
        frames = min(len(track), len(scene.active))
        weight = (r_power + l_power)[:frames]
        start, stop = (int(t / HOP_S) for t in scene.span_s)
        edges = np.linspace(min(start, frames - 1), max(min(stop, frames), min(start, frames - 1) + 5), 6).astype(int)
        pan = tuple(
            float((track[a:b] * weight[a:b]).sum() / max(weight[a:b].sum(), 1e-12)) if len(weight[a:b]) else 0.0
            for a, b in pairwise(edges)
        )
    return Space(decay_s, tail, cutoff, brightest, pan, width)
