"""Frame-wise numpy primitives shared by every listener: windows, spectra, mel bands, levels, pitch.

Everything runs on one channel at :data:`RATE_HZ`; only stereo and bandwidth cues look at the clip's own channels
and rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
RATE_HZ = 16_000
"""Analysis rate, Hz."""
HOP_S = 0.01
"""Step of every frame-wise track, seconds."""
HOP = 160
FLOOR_DB = -100.0
"""Level of digital silence, dB re full scale."""


def windows(wave: Array, size: int, hop: int) -> Array:
    """Overlapping frames of `wave` (n,), centred: (frames, size); the ends are padded with zeros."""
    padded = np.pad(np.asarray(wave, dtype=np.float32), (size // 2, size // 2 + hop))
    return np.lib.stride_tricks.sliding_window_view(padded, size)[::hop][: max(1, -(-len(wave) // hop))]


def spectrogram(wave: Array, size: int, hop: int, fft: int | None = None) -> Array:
    """Magnitude (frames, fft // 2 + 1) under a periodic Hann window."""
    hann = np.hanning(size + 1)[:-1].astype(np.float32)
    return np.abs(np.fft.rfft(windows(wave, size, hop) * hann, n=fft or size, axis=1)).astype(np.float32)


def mel_bank(bands: int, fft: int, low_hz: float, high_hz: float, rate_hz: int = RATE_HZ) -> Array:
    """Triangular HTK-mel filters, (fft // 2 + 1, bands), peak 1."""

    def mel(hz: Array) -> Array:
        return 1127.0 * np.log1p(np.asarray(hz, dtype=np.float64) / 700.0)

    edges = np.linspace(mel(low_hz), mel(high_hz), bands + 2)
    bins = mel(np.linspace(0.0, rate_hz / 2, fft // 2 + 1))[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.maximum(0.0, np.minimum(rising, falling)).astype(np.float32)


def decibels(power: Array) -> Array:
    """10 log10 of power, never below :data:`FLOOR_DB`."""
    return np.maximum(10.0 * np.log10(np.maximum(power, 1e-12)), FLOOR_DB)


def level_track(wave: Array, size: int = 400) -> Array:
    """RMS level in dB re full scale, one value each :data:`HOP_S`."""
    if not len(wave):
        return np.full(1, FLOOR_DB)
    total = np.concatenate([[0.0], np.cumsum(np.asarray(wave, dtype=np.float64) ** 2)])
    centres = np.arange(0, len(wave), HOP)
    start, stop = np.maximum(centres - size // 2, 0), np.minimum(centres + size // 2, len(wave))
    return decibels((total[stop] - total[start]) / np.maximum(stop - start, 1))


def smooth(track: Array, frames: int) -> Array:
    """Moving average over an odd number of frames, the ends held."""
    if frames < 2 or len(track) < 2:
        return np.asarray(track, dtype=float)
    half = frames // 2
    padded = np.pad(np.asarray(track, dtype=float), half, mode="edge")
    return np.convolve(padded, np.ones(2 * half + 1) / (2 * half + 1), mode="valid")


def runs(mask: Array) -> list[tuple[int, int]]:
    """Half-open (start, stop) of each stretch of True in `mask`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(mask).astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def close_gaps(spans: list[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Spans joined where less than `gap` frames lie between."""
    joined: list[tuple[int, int]] = []
    for start, stop in spans:
        if joined and start - joined[-1][1] < gap:
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return joined


def pitch_track(wave: Array, low_hz: float = 60.0, high_hz: float = 1100.0) -> tuple[Array, Array]:
    """F0 in Hz and its clearness 0-1, one pair each :data:`HOP_S` (YIN on 64-ms windows).

    The first dip of the cumulative mean normalised difference below 0.2, else the deepest; refined by a parabola.
    """
    size = 1024
    frames = windows(wave, size, HOP).astype(np.float64)
    frames = frames - frames.mean(axis=1, keepdims=True)
    longest = min(int(RATE_HZ / low_hz), size // 2)
    shortest = max(int(RATE_HZ / high_hz), 2)
    spectrum = np.fft.rfft(frames, n=2 * size, axis=1)
    correlation = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, : longest + 2]
    energy = np.concatenate([np.zeros((len(frames), 1)), np.cumsum(frames**2, axis=1)], axis=1)
    lags = np.arange(longest + 2)
    head, tail = energy[:, size - lags], energy[:, -1:] - energy[:, lags]
    difference = np.maximum(head + tail - 2 * correlation, 0.0)
    running = np.cumsum(difference[:, 1:], axis=1) / np.arange(1, longest + 2)
    normal = np.ones_like(difference)
    normal[:, 1:] = difference[:, 1:] / np.maximum(running, 1e-12)
    search = normal[:, shortest : longest + 1]
    dip = (search[:, 1:-1] < search[:, :-2]) & (search[:, 1:-1] <= search[:, 2:]) & (search[:, 1:-1] < 0.2)
    first = np.where(dip.any(axis=1), dip.argmax(axis=1) + 1, search.argmin(axis=1)) + shortest
    rows = np.arange(len(frames))
    before, here, after = normal[rows, first - 1], normal[rows, first], normal[rows, first + 1]
    bend = before - 2 * here + after
    shift = np.where(np.abs(bend) > 1e-9, 0.5 * (before - after) / np.where(np.abs(bend) > 1e-9, bend, 1.0), 0.0)
    loud = energy[:, -1] > size * 1e-8
    return RATE_HZ / (first + np.clip(shift, -0.5, 0.5)), np.where(loud, np.clip(1.0 - here, 0.0, 1.0), 0.0)


def softmax(scores: Array) -> Array:
    exp = np.exp(np.asarray(scores, dtype=float) - np.max(scores))
    return exp / exp.sum()


def gaussian_log(value: float, centre: float, width: float) -> float:
    """log of an unnormalised Gaussian, floored at -4.5 so that no single cue can veto."""
    return max(-0.5 * ((value - centre) / width) ** 2, -4.5)
