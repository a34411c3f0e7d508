"""Measurements on a wave: events, levels, tempo, spectrum, order; pure numpy and scipy (pitch and key: `pitch.py`).

Every function takes `wave`, float (frames,) at :data:`RATE`, one channel, full scale 1, and measures one thing,
tested on signals whose truth is known. Times are seconds, levels dB re full scale (RMS), frequencies Hz. Nothing here
knows what was asked for: `expect.py` compares.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy import signal

RATE = 16_000
HOP_S = 0.01
FLOOR_DB = -90.0
Array = Any


# --- level ------------------------------------------------------------------------------------------------------------


def levels(wave: Array, window_s: float = 0.03) -> Array:
    """RMS level in dB every HOP_S, window centred; never below FLOOR_DB."""
    power = np.concatenate([[0.0], np.cumsum(np.square(np.asarray(wave, float)))])
    half = int(window_s * RATE / 2)
    centres = np.arange(0, max(len(wave), 1), int(HOP_S * RATE))
    left, right = np.clip(centres - half, 0, len(wave)), np.clip(centres + half, 0, len(wave))
    mean = (power[right] - power[left]) / np.maximum(right - left, 1)
    return 10 * np.log10(np.maximum(mean, 10 ** (FLOOR_DB / 10)))


def rms_db(wave: Array) -> float:
    return float(10 * np.log10(max(float(np.mean(np.square(wave))) if len(wave) else 0.0, 10 ** (FLOOR_DB / 10))))


def cut(wave: Array, start_s: float, end_s: float | None) -> Array:
    return wave[int(start_s * RATE) : len(wave) if end_s is None else int(end_s * RATE)]


def spans(
    wave: Array, below_db: float = 30.0, join_s: float = 0.15, least_s: float = 0.04
) -> list[tuple[float, float]]:
    """Stretches louder than `below_db` under the loudest, joined over pauses shorter than `join_s`."""
    db = levels(wave)
    loud = db > max(db.max() - below_db, -70.0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], loud.astype(int), [0]])))
    found: list[tuple[float, float]] = []
    for start, end in zip(edges[::2] * HOP_S, edges[1::2] * HOP_S, strict=True):
        if found and start - found[-1][1] < join_s:
            found[-1] = (found[-1][0], float(end))
        else:
            found.append((float(start), float(end)))
    return [(start, end) for start, end in found if end - start >= least_s]


def sounding_s(wave: Array) -> float:
    """From the first to the last sound; 0 for silence."""
    found = spans(wave)
    return found[-1][1] - found[0][0] if found else 0.0


def longest_gap_s(wave: Array, below_db: float = 32.0) -> float:
    """The longest pause between two sounds (not before the first, not after the last)."""
    found = spans(wave, below_db, join_s=0.0, least_s=0.03)
    return max((b[0] - a[1] for a, b in itertools.pairwise(found)), default=0.0)


def sixths_db(wave: Array) -> tuple[float, ...]:
    """How loud the loud moments (95th percentile) of each sixth of the sounding part are."""
    found = spans(wave, below_db=45.0)
    if not found:
        return (FLOOR_DB,) * 6
    db = levels(cut(wave, found[0][0], found[-1][1]))
    parts = np.array_split(db, 6)
    return tuple(float(np.percentile(p, 95)) for p in parts)


def bed_db(wave: Array) -> float:
    """The level of the quietest tenth under the loudest twentieth: near 0 for steady noise, far below for events."""
    inner = levels(wave, 0.05)[10:-10]
    return float(np.percentile(inner, 10) - np.percentile(inner, 95)) if len(inner) else FLOOR_DB


def tail_s(wave: Array, drop_db: float = 25.0) -> float:
    """How long the end rings: from the last loud moment (within 8 dB of the loud level) to `drop_db` below that level.

    When the wave ends before it has dropped so far, the slope seen is carried on.
    """
    db = levels(wave, 0.04)
    loud = float(np.percentile(db[db > db.max() - 40], 90))
    last = int(np.flatnonzero(db >= loud - 8).max())
    after = db[last:]
    low = np.flatnonzero(after <= loud - drop_db)
    if len(low):
        return float(low[0] * HOP_S)
    if len(after) < 4:
        return float(len(after) * HOP_S)
    slope = float(np.polyfit(np.arange(len(after)) * HOP_S, after, 1)[0])
    return float(min((drop_db - 8) / -slope, 10.0)) if slope < -1 else 10.0


# --- events -----------------------------------------------------------------------------------------------------------


def band(wave: Array, low_hz: float | None, high_hz: float | None) -> Array:
    """The wave between two frequencies; None leaves a side open."""
    if low_hz is None and high_hz is None:
        return wave
    if low_hz is None:
        sos = signal.butter(4, high_hz, "low", fs=RATE, output="sos")
    elif high_hz is None:
        sos = signal.butter(4, low_hz, "high", fs=RATE, output="sos")
    else:
        sos = signal.butter(4, (low_hz, high_hz), "band", fs=RATE, output="sos")
    return signal.sosfiltfilt(sos, wave) if len(wave) > 100 else wave


def band_levels(wave: Array, bands: int = 24, window: int = 512, hop: int = 128) -> Array:
    """(frames, bands) dB in up to 24 log-spaced bands, 60 Hz to 7.8 kHz, kept within 50 dB of the loudest."""
    padded = np.concatenate([np.zeros(window), wave, np.zeros(window)])
    _, _, spectrum = signal.stft(padded, RATE, "hann", window, window - hop, boundary=None, padded=False)
    power = np.abs(spectrum.T) ** 2
    edges = np.geomspace(60, 7800, bands + 1)
    # At least four bins a band: the level of a narrower one wavers so much in noise that it looks like events.
    bins = [int(b) for b in np.searchsorted(np.fft.rfftfreq(window, 1 / RATE), edges)]
    kept = [bins[0]]
    for b in bins[1:]:
        if b - kept[-1] >= 4:
            kept.append(b)
    out = np.stack([power[:, a:b].sum(1) for a, b in itertools.pairwise(kept)], 1)
    db = 10 * np.log10(np.maximum(out, 1e-12))
    return np.maximum(db, db.max() - 50)


NOVELTY_S = 128 / RATE


def novelty(wave: Array) -> Array:
    """Mean rise in dB over all bands within 32 ms, every NOVELTY_S: large where something begins."""
    db = band_levels(wave)
    rise = np.maximum(db[4:] - db[:-4], 0).mean(1)
    return np.concatenate([rise, np.zeros(4)])


def onsets(wave: Array, apart_s: float = 0.1, least_db: float = 3.0, share: float = 0.25) -> list[float]:
    """Times at which something begins: peaks of the novelty, at least `share` of a strong (95th percentile) one."""
    # Nothing comes before the first frame, so that a sound that opens the clip is a peak as well.
    rise = np.concatenate([[0.0], novelty(wave)])
    peaks, _ = signal.find_peaks(rise, height=least_db, distance=max(int(apart_s / NOVELTY_S), 1))
    if not len(peaks):
        return []
    strong = float(np.percentile(rise[peaks], 95))
    # Frame p ends (padding taken off) just where the frames that rise above it begin to hear the event.
    return [float((p - 1) * NOVELTY_S) for p in peaks if rise[p] >= share * strong]


def bumps(wave: Array, apart_s: float = 0.15, dip_db: float = 8.0, range_db: float = 25.0) -> list[float]:
    """Times of level peaks that stand `dip_db` above the dips beside them, within `range_db` of the loudest."""
    db = levels(wave, 0.05)
    db = np.concatenate([[FLOOR_DB], np.maximum(db, db.max() - 45), [FLOOR_DB]])
    peaks, _ = signal.find_peaks(
        db, height=db.max() - range_db, prominence=dip_db, distance=max(int(apart_s / HOP_S), 1)
    )
    return [float((p - 1) * HOP_S) for p in peaks]


# --- rhythm -----------------------------------------------------------------------------------------------------------


def rhythm(wave: Array) -> Array:
    """Autocorrelation of the novelty by lag (NOVELTY_S each), free of the taper that a short clip gives; 1 at lag 0."""
    rise = novelty(wave)
    rise = signal.convolve(rise - rise.mean(), signal.windows.gaussian(9, 1.6), "same")
    n = len(rise)
    spectrum = np.abs(np.fft.rfft(rise, 2 * n)) ** 2
    raw = np.fft.irfft(spectrum)[:n] / np.maximum(np.arange(n, 0, -1), n // 5)
    return raw / max(raw[0], 1e-12)


def tempo_bpm(wave: Array, slowest: float = 45.0, fastest: float = 220.0) -> float:
    """Beats a minute: the lag whose first four multiples repeat best, with a mild pull to 110 that decides octaves.

    Even beats (all alike) are read without an octave error from 60 to 150 bpm.
    """
    repeat = rhythm(wave)
    grid = np.geomspace(slowest, fastest, 800)
    lags = 60 / grid / NOVELTY_S
    score = np.zeros(len(grid))
    weight = 0.0
    for k in (1, 2, 3, 4):
        inside = k * lags < len(repeat) - 2
        value = np.interp(k * lags, np.arange(len(repeat)), repeat)
        score += np.where(inside, value, 0) * (1 / k)
        weight += 1 / k
    pull = np.exp(-0.5 * (np.log2(grid / 110) / 1.2) ** 2)
    return float(grid[int(np.argmax(score / weight * pull))])


def beat_strength(wave: Array, bpm: float, beats: int) -> float:
    """How well the novelty repeats after that many beats, -1 to 1 (the best within 3 % of the lag)."""
    repeat = rhythm(band(wave, None, None))
    lag = beats * 60 / bpm / NOVELTY_S
    nearby = np.linspace(lag * 0.97, lag * 1.03, 41)
    return float(np.interp(nearby, np.arange(len(repeat)), repeat, right=0.0).max())


def spacing_s(times: list[float]) -> float:
    """Median time between neighbours; nan for fewer than two."""
    return float(np.median(np.diff(times))) if len(times) > 1 else float("nan")


# --- spectrum ---------------------------------------------------------------------------------------------------------


def centroid_hz(wave: Array) -> float:
    """Centre of gravity of the magnitude spectrum, frames weighted by their energy: low is dull, high is bright."""
    frequencies, _, spectrum = signal.stft(wave, RATE, "hann", 1024, 768)
    magnitude = np.abs(spectrum)
    energy = np.square(magnitude).sum(0)
    centre = (frequencies[:, None] * magnitude).sum(0) / np.maximum(magnitude.sum(0), 1e-12)
    return float((centre * energy).sum() / max(energy.sum(), 1e-12))


def frame_features(wave: Array) -> dict[str, Array]:
    """Every 64 ms: `time`, `db`, `centroid` (power-weighted, Hz) and `noisiness` (0 for tones, 0.55 for noise)."""
    frequencies, times, spectrum = signal.stft(wave, RATE, "hann", 2048, 1024)
    power = np.abs(spectrum) ** 2 + 1e-14
    edges = np.searchsorted(frequencies, np.geomspace(90, 7800, 13))
    flat, weight = [], []
    for a, b in itertools.pairwise(edges):
        part = power[a : max(b, a + 3)]
        flat.append(np.exp(np.log(part).mean(0)) / part.mean(0))
        weight.append(part.sum(0))
    share = np.array(weight) / np.maximum(np.array(weight).sum(0), 1e-20)
    return {
        "time": times,
        "db": 10 * np.log10(power.sum(0)),
        "centroid": (frequencies[:, None] * power).sum(0) / power.sum(0),
        "noisiness": (np.array(flat) * share).sum(0),
    }


def noisiness(wave: Array) -> float:
    """Median noisiness of the loud frames (within 20 dB of the loudest)."""
    f = frame_features(wave)
    return float(np.median(f["noisiness"][f["db"] > f["db"].max() - 20]))


def band_db(wave: Array, low_hz: float | None, high_hz: float | None) -> float:
    return rms_db(band(wave, low_hz, high_hz))


def spectrum_likeness(one: Array, other: Array) -> float:
    """Pearson correlation of two waves' band levels over time and band, the longer cut to the shorter."""
    n = min(len(one), len(other))
    a, b = band_levels(one[:n], hop=256), band_levels(other[:n], hop=256)
    if a.std() < 1e-6 or b.std() < 1e-6:
        return 0.0
    return float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


def level_likeness(one: Array, other: Array, shift_s: float = 0.15) -> float:
    """Best correlation of two level curves (dB), the one moved against the other by at most `shift_s`."""
    a, b = levels(one, 0.05), levels(other, 0.05)
    a, b = np.maximum(a, a.max() - 45), np.maximum(b, b.max() - 45)
    n, reach = min(len(a), len(b)), int(shift_s / HOP_S)
    best = -1.0
    for k in range(-reach, reach + 1):
        x, y = a[max(k, 0) : n + min(k, 0)], b[max(-k, 0) : n + min(-k, 0)]
        if len(x) > 20 and x.std() > 1e-6 and y.std() > 1e-6:
            best = max(best, float(np.corrcoef(x, y)[0, 1]))
    return best


# --- order --------------------------------------------------------------------------------------------------------


def kind_weights(wave: Array, kind: str, split_hz: float = 1000.0) -> tuple[Array, Array]:
    """(times, 0 or 1) of the loud frames that are of a kind: low, high (about `split_hz`), tonal, noise."""
    f = frame_features(wave)
    loud = f["db"] > f["db"].max() - 25
    member = {
        "low": f["centroid"] < split_hz,
        "high": f["centroid"] >= split_hz,
        "tonal": f["noisiness"] < 0.2,
        "noise": f["noisiness"] > 0.3,
    }[kind]
    return f["time"], (loud & member).astype(float)


def earlier(times: Array, first: Array, second: Array) -> float:
    """Probability that a moment of the first kind comes before one of the second; nan when one kind has no moment."""
    if first.sum() <= 0 or second.sum() <= 0:
        return float("nan")
    before = np.cumsum(first) - first / 2
    return float((second * before).sum() / (first.sum() * second.sum()))
