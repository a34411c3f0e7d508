"""Building blocks of the procedural sounds: noise, filters, damped modes, grains, source and formants.

Everything is mono float64 at `RATE` Hz. Randomness comes only from the generator handed in, so the same seed gives the
same bytes. No block normalises; levels are set once, in sound.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import signal

RATE = 44100
Wave = np.ndarray[Any, np.dtype[np.float64]]
Rng = np.random.Generator


def frames(seconds: float) -> int:
    """Whole frames in `seconds`, at least one."""
    return max(1, round(seconds * RATE))


def time_axis(n: int) -> Wave:
    """Seconds of n frames from 0."""
    return np.arange(n, dtype=np.float64) / RATE


def noise(n: int, rng: Rng) -> Wave:
    """White Gaussian noise, unit variance."""
    return rng.standard_normal(n)


def tilted(n: int, rng: Rng, db_per_octave: float) -> Wave:
    """Noise whose spectrum falls by `db_per_octave` (3 pink, 6 brown), unit variance; flat below 20 Hz."""
    spectrum = np.fft.rfft(noise(n, rng))
    hz = np.maximum(np.fft.rfftfreq(n, 1 / RATE), 20.0)
    shaped = np.fft.irfft(spectrum * (hz / 1000.0) ** (-db_per_octave / 6.02), n)
    return shaped / (shaped.std() + 1e-12)


def low(x: Wave, hz: float, order: int = 2) -> Wave:
    """Butterworth low-pass."""
    return np.asarray(signal.sosfilt(signal.butter(order, min(hz, 21000), "low", fs=RATE, output="sos"), x))


def high(x: Wave, hz: float, order: int = 2) -> Wave:
    """Butterworth high-pass."""
    return np.asarray(signal.sosfilt(signal.butter(order, hz, "high", fs=RATE, output="sos"), x))


def band(x: Wave, low_hz: float, high_hz: float, order: int = 2) -> Wave:
    """Butterworth band-pass."""
    edges = [max(low_hz, 15.0), min(high_hz, 21000.0)]
    return np.asarray(signal.sosfilt(signal.butter(order, edges, "band", fs=RATE, output="sos"), x))


def resonate(x: Wave, hz: float, width_hz: float) -> Wave:
    """Two-pole resonator with about unit gain at `hz`; `width_hz` its -3 dB width."""
    r = np.exp(-np.pi * width_hz / RATE)
    w = 2 * np.pi * min(hz, 20000.0) / RATE
    gain = (1 - r) * np.sqrt(1 - 2 * r * np.cos(2 * w) + r * r)
    return np.asarray(signal.lfilter([gain], [1.0, -2 * r * np.cos(w), r * r], x))


def formants(x: Wave, peaks: Sequence[tuple[float, float, float]]) -> Wave:
    """Parallel resonators over a source: (Hz, width in Hz, gain) each."""
    return np.asarray(sum(gain * resonate(x, hz, width) for hz, width, gain in peaks))


def decay(n: int, t60: float) -> Wave:
    """Exponential envelope, 60 dB down after `t60` seconds."""
    return np.exp(-6.908 * time_axis(n) / max(t60, 1e-4))


def shape(n: int, points: Sequence[tuple[float, float]]) -> Wave:
    """Piecewise linear curve through (fraction of the length, value)."""
    xs, ys = zip(*points, strict=True)
    return np.interp(np.linspace(0.0, 1.0, n), xs, ys)


def rounded(x: Wave, attack_s: float, release_s: float) -> Wave:
    """The same with raised-cosine ends."""
    out = x.copy()
    a, r = min(frames(attack_s), len(x)), min(frames(release_s), len(x))
    out[:a] *= 0.5 - 0.5 * np.cos(np.pi * np.arange(a) / a)
    out[len(x) - r :] *= 0.5 + 0.5 * np.cos(np.pi * np.arange(1, r + 1) / r)
    return out


def wander(n: int, hz: float, rng: Rng) -> Wave:
    """A smooth random curve in [0, 1] with about `hz` new values a second."""
    knots = max(4, int(n / RATE * hz) + 4)
    values = rng.random(knots)
    at = np.linspace(1, knots - 2.001, n)
    i = at.astype(int)
    f = 0.5 - 0.5 * np.cos(np.pi * (at - i))
    return values[i] * (1 - f) + values[i + 1] * f


def tone(hz: Wave | float, n: int, phase: float = 0.0) -> Wave:
    """Sine of constant or changing frequency."""
    curve = np.broadcast_to(np.asarray(hz, dtype=np.float64), (n,))
    return np.sin(2 * np.pi * np.cumsum(curve) / RATE + phase)


def buzz(hz: Wave | float, n: int, brightness: float = 0.5) -> Wave:
    """A glottis-like pulse train: bright (1) is nearly an impulse each period, dark (0) nearly a sine."""
    curve = np.broadcast_to(np.asarray(hz, dtype=np.float64), (n,))
    phase = np.cumsum(curve) / RATE
    sharp = 1.5 + 60.0 * brightness**2
    pulse = np.exp(sharp * (np.cos(2 * np.pi * phase) - 1.0))
    return pulse - pulse.mean()


def modes(n: int, hz: Sequence[float], t60: Sequence[float], gains: Sequence[float], rng: Rng) -> Wave:
    """Damped sines with random phases: a struck solid. Modes above 18 kHz are left out."""
    out = np.zeros(n)
    for f, t, g in zip(hz, t60, gains, strict=True):
        if f > 18000:
            continue
        m = min(n, frames(t * 1.1))
        out[:m] += g * decay(m, t) * np.sin(2 * np.pi * f * time_axis(m) + 0.4 * rng.random())
    return out


def add(out: Wave, x: Wave, at_s: float, gain: float = 1.0) -> None:
    """Mix x into out from `at_s` seconds; what reaches past the end is cut."""
    start = round(at_s * RATE)
    if start < 0:
        x, start = x[-start:], 0
    m = min(len(x), len(out) - start)
    if m > 0:
        out[start : start + m] += gain * x[:m]


def moments(n: int, per_second: float, rng: Rng, jitter: float = 1.0) -> Wave:
    """Seconds at which things happen: from a steady beat (jitter 0) to a Poisson process (1), the first at 0."""
    if per_second <= 0:
        return np.zeros(1)
    most = int(n / RATE * per_second * 2.5) + 4
    gaps = ((1 - jitter) + jitter * rng.exponential(1.0, most)) / per_second
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    return times[times < n / RATE]


def grains(
    n: int,
    per_second: float,
    rng: Rng,
    make: Callable[[Rng], Wave],
    kinds: int = 24,
    jitter: float = 1.0,
    spread_db: float = 12.0,
) -> Wave:
    """A texture of `kinds` different grains scattered at random, their levels spread over `spread_db`."""
    store = [make(rng) for _ in range(kinds)]
    times = moments(n, per_second, rng, jitter)
    which = rng.integers(0, kinds, len(times))
    gain = 10 ** (-rng.random(len(times)) * spread_db / 20)
    out = np.zeros(n)
    # One convolution per kind of grain: cheap however dense the texture is.
    for k, grain in enumerate(store):
        hits = np.zeros(n)
        mine = which == k
        np.add.at(hits, np.minimum((times[mine] * RATE).astype(int), n - 1), gain[mine])
        if mine.any():
            out += signal.oaconvolve(hits, grain)[:n] if mine.sum() > 8 else _sparse(hits, grain, n)
    return out


def _sparse(hits: Wave, grain: Wave, n: int) -> Wave:
    out = np.zeros(n)
    for i in np.flatnonzero(hits):
        m = min(len(grain), n - i)
        out[i : i + m] += hits[i] * grain[:m]
    return out


def chirp_grain(rng: Rng, low_hz: float, high_hz: float, t60: float, rise: float = 0.0) -> Wave:
    """A damped sine at a random frequency, rising by `rise` octaves: a drop, a bubble."""
    n = frames(t60)
    hz = low_hz * (high_hz / low_hz) ** rng.random()
    curve = hz * 2.0 ** (rise * np.linspace(0, 1, n))
    return tone(curve, n) * decay(n, t60)


def normal(x: Wave, peak: float = 1.0) -> Wave:
    """Scaled to that peak; silence stays silence."""
    top = float(np.abs(x).max()) if len(x) else 0.0
    return x if top < 1e-9 else x * (peak / top)


def voice(
    f0: Wave,
    vowels: Sequence[tuple[float, tuple[float, float, float]]],
    rng: Rng,
    brightness: float = 0.45,
    breath: float = 0.05,
) -> Wave:
    """Source and filter: a pulse train of `f0` Hz and breath through three formants that pass through `vowels`.

    vowels: (fraction of the length, (F1, F2, F3) in Hz).
    """
    n = len(f0)
    source = buzz(f0, n, brightness) + breath * noise(n, rng)
    hop = 256 if n < 2 * RATE else 1024
    at = np.linspace(0, 1, n // hop + 2)
    places = [p for p, _ in vowels]
    tracks = [np.interp(at, places, [v[k] for _, v in vowels]) for k in range(3)]
    # Long textures of many voices move their mouths more coarsely.
    out = np.zeros(n)
    for track, width, gain in zip(tracks, (90.0, 130.0, 220.0), (1.0, 0.7, 0.3), strict=True):
        state = np.zeros(2)
        for j, start in enumerate(range(0, n, hop)):
            r = np.exp(-np.pi * width / RATE)
            w = 2 * np.pi * min(track[min(j, len(track) - 1)], 18000.0) / RATE
            top = (1 - r) * np.sqrt(1 - 2 * r * np.cos(2 * w) + r * r)
            y, state = signal.lfilter(
                [gain * top], [1.0, -2 * r * np.cos(w), r * r], source[start : start + hop], zi=state
            )
            out[start : start + hop] += y
    return out
