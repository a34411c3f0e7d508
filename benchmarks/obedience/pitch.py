"""Measurements of pitch: F0, its course, chroma and key; pure numpy and scipy. Conventions as in `checks.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import signal, stats

from benchmarks.obedience.checks import HOP_S, RATE, levels

Array = Any


def pitch_track(wave: Array, low_hz: float = 65.0, high_hz: float = 500.0, sure: float = 0.2) -> tuple[Array, Array]:
    """(times, F0) of the pitched frames, by YIN (de Cheveigné and Kawahara 2002): first dip under `sure`."""
    longest, shortest = int(RATE / low_hz) + 2, max(int(RATE / high_hz), 4)
    width = max(longest * 2, 640)
    hop = int(HOP_S * RATE)
    total = width + longest
    if len(wave) < total:
        return np.array([]), np.array([])
    frames = np.lib.stride_tricks.sliding_window_view(np.asarray(wave, float), total)[::hop]
    energy = np.square(frames[:, :width]).mean(1)
    size = 1 << (total + width - 1).bit_length()
    cross = np.fft.irfft(np.fft.rfft(frames, size) * np.conj(np.fft.rfft(frames[:, :width], size)), size)[
        :, : longest + 1
    ]
    squares = np.cumsum(np.pad(np.square(frames), ((0, 0), (1, 0))), axis=1)
    lags = np.arange(longest + 1)
    difference = squares[:, width : width + 1] + squares[:, lags + width] - squares[:, lags] - 2 * cross
    difference = np.maximum(difference, 0)
    difference[:, 0] = 0
    scaled = difference[:, 1:] * lags[1:] / np.maximum(np.cumsum(difference[:, 1:], 1), 1e-12)
    scaled = np.concatenate([np.ones((len(frames), 1)), scaled], 1)
    times, pitches = [], []
    loud = energy > energy.max() * 10**-3.5
    for i in np.flatnonzero(loud):
        row = scaled[i]
        under = np.flatnonzero(row[shortest : longest - 1] < sure)
        if not len(under):
            continue
        lag = int(under[0]) + shortest
        while lag + 1 < longest and row[lag + 1] < row[lag]:
            lag += 1
        a, b, c = row[lag - 1], row[lag], row[min(lag + 1, longest)]
        bend = a - 2 * b + c
        exact = lag + (0.5 * (a - c) / bend if bend > 1e-9 else 0.0)
        times.append((i * hop + total / 2) / RATE)
        pitches.append(RATE / exact)
    return np.array(times), np.array(pitches)


def median_pitch(wave: Array, part: str = "all", low_hz: float = 65.0, high_hz: float = 500.0) -> float:
    """Median F0 of the pitched frames: of all, or of the `first` or `last` third of them; nan for fewer than 10."""
    _, pitch = pitch_track(wave, low_hz, high_hz)
    n = len(pitch) // 3
    chosen = {"all": pitch, "first": pitch[:n], "middle": pitch[n : 2 * n], "last": pitch[len(pitch) - n :]}[part]
    return float(np.median(chosen)) if len(chosen) >= 10 else float("nan")


def pitched_share(wave: Array) -> float:
    """Share of the loud frames (within 25 dB of the loudest) that have a pitch: high for voice, near 0 for whispers."""
    db = levels(wave)
    times, _ = pitch_track(wave)
    loud = np.flatnonzero(db > db.max() - 25)
    pitched = set(np.round(times / HOP_S).astype(int).tolist())
    return sum(bool({i - 1, i, i + 1} & pitched) for i in loud.tolist()) / max(len(loud), 1)


def aligned_ratios(base: Array, result: Array, low_hz: float = 65.0, high_hz: float = 500.0) -> Array:
    """F0 of the result over F0 of the base at each moment where both are pitched, for edits that keep the timing."""
    one, other = (
        dict(zip((np.round(t / HOP_S)).tolist(), p.tolist(), strict=True))
        for t, p in (pitch_track(base, low_hz, high_hz), pitch_track(result, low_hz, high_hz))
    )
    return np.array([other[t] / one[t] for t in one if t in other])


def peak_track(wave: Array, low_hz: float, high_hz: float) -> tuple[Array, Array]:
    """(times, frequency of the strongest partial) of the loud frames, every 32 ms: for whistles of several partials."""
    frequencies, times, spectrum = signal.stft(wave, RATE, "hann", 2048, 2048 - 512)
    inside = (frequencies >= low_hz) & (frequencies <= high_hz)
    magnitude = np.abs(spectrum[inside])
    best = magnitude.max(0)
    loud = best > best.max() * 10 ** (-25 / 20)
    return times[loud], frequencies[inside][magnitude.argmax(0)][loud]


def pitch_trend(wave: Array, low_hz: float = 65.0, high_hz: float = 1500.0, by: str = "period") -> tuple[float, float]:
    """(Spearman correlation of pitch with time, semitones from the first to the last fifth of the pitched frames).

    by: `period` (YIN) or `peak` (the strongest partial).
    """
    times, pitch = {"period": pitch_track, "peak": peak_track}[by](wave, low_hz, high_hz)
    if len(pitch) < 20:
        return (0.0, 0.0)
    n = len(pitch) // 5
    if np.ptp(pitch) == 0:
        return (0.0, 0.0)
    step = 12 * np.log2(np.median(pitch[-n:]) / np.median(pitch[:n]))
    return float(stats.spearmanr(times, pitch).statistic), float(step)


MAJOR = np.array([6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88])
MINOR = np.array([6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17])
NOTES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")


def chroma(wave: Array) -> Array:
    """Share of each pitch class C..B in the spectral peaks from 100 Hz to 2 kHz."""
    frequencies, _, spectrum = signal.stft(wave, RATE, "hann", 4096, 2048)
    magnitude = np.abs(spectrum).mean(1)
    peaks, _ = signal.find_peaks(magnitude, height=magnitude.max() * 0.02)
    out = np.zeros(12)
    for p in peaks:
        if 100 <= frequencies[p] <= 2000:
            a, b, c = np.log(magnitude[p - 1 : p + 2] + 1e-12)
            exact = frequencies[p] + (frequencies[1] * 0.5 * (a - c) / (a - 2 * b + c))
            out[round(69 + 12 * np.log2(exact / 440)) % 12] += magnitude[p]
    return out / max(out.sum(), 1e-12)


def key_fit(wave: Array) -> dict[str, float]:
    """Correlation of the chroma with each key's profile (Krumhansl and Kessler 1982), by name such as `D minor`."""
    seen = chroma(wave)
    return {
        f"{NOTES[root]} {mode}": float(np.corrcoef(seen, np.roll(profile, root))[0, 1])
        for root in range(12)
        for mode, profile in (("major", MAJOR), ("minor", MINOR))
    }
