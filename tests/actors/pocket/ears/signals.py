"""Small synthetic sounds with a known truth, 44.1 kHz, made here from first principles."""

from __future__ import annotations

import numpy as np

from torus_ray.audio import Clip

RATE_HZ = 44_100


def time(seconds: float) -> np.ndarray:
    return np.arange(round(seconds * RATE_HZ)) / RATE_HZ


def hiss(seconds: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(round(seconds * RATE_HZ)) * 0.2


def tone(hz: float, seconds: float, level: float = 0.5) -> np.ndarray:
    t = time(seconds)
    return level * np.sin(2 * np.pi * hz * t) * np.minimum(1, np.minimum(t, seconds - t) / 0.01)


def glide(start_hz: float, stop_hz: float, seconds: float) -> np.ndarray:
    hz = np.geomspace(start_hz, stop_hz, round(seconds * RATE_HZ))
    phase = 2 * np.pi * np.cumsum(hz) / RATE_HZ
    return 0.4 * np.sin(phase) + 0.15 * np.sin(2 * phase)


def stroke(hz: float = 280.0) -> np.ndarray:
    t = time(0.3)
    return np.sin(2 * np.pi * hz * t) * np.exp(-t / 0.04) + hiss(0.3) * np.exp(-t / 0.006) * 2


def siren(seconds: float) -> np.ndarray:
    hz = 900 + 350 * np.sin(2 * np.pi * time(seconds) / 2.5)
    phase = 2 * np.pi * np.cumsum(hz) / RATE_HZ
    return 0.3 * sum(np.sin(k * phase) / k for k in (1, 2, 3))


def place(seconds: float, *items: tuple[float, np.ndarray]) -> np.ndarray:
    wave = np.zeros(round(seconds * RATE_HZ))
    for at, sound in items:
        start = round(at * RATE_HZ)
        stop = min(len(wave), start + len(sound))
        wave[start:stop] += sound[: stop - start]
    return wave


def strokes(times: list[float], hz: float = 280.0, levels: list[float] | None = None) -> np.ndarray:
    gains = levels or [1.0] * len(times)
    return place(times[-1] + 1.0, *((t, g * stroke(hz)) for t, g in zip(times, gains, strict=True)))


def ramp(wave: np.ndarray, *points_db: float) -> np.ndarray:
    places = np.linspace(0, 1, len(points_db))
    return wave * 10 ** (np.interp(np.linspace(0, 1, len(wave)), places, points_db) / 20)


def hall(wave: np.ndarray, t60_s: float) -> np.ndarray:
    size = round(1.3 * t60_s * RATE_HZ)
    tail = np.random.default_rng(5).standard_normal(size) * 10 ** (-3 * np.arange(size) / RATE_HZ / t60_s)
    tail /= np.sqrt((tail**2).sum())
    whole = len(wave) + size
    wet = np.fft.irfft(np.fft.rfft(wave, 2 * whole) * np.fft.rfft(tail, 2 * whole))[:whole]
    return np.pad(wave, (0, size)) * 0.5 + wet * 0.5


def scale(root: int, steps: list[int], seconds_each: float, held: float = 1.0, accents: int = 0) -> np.ndarray:
    """A tune of plucked tones; every `accents`-th is louder and has a bass note."""
    notes = []
    for k, step in enumerate(steps):
        strong = accents and k % accents == 0
        hz = 440 * 2 ** ((root + step - 69) / 12)
        t = time(seconds_each * held)
        sound = (
            sum(np.sin(2 * np.pi * hz * n * t) / n**1.3 for n in range(1, 7))
            * np.exp(-t / 0.5)
            * (0.5 if strong else 0.25)
        )
        if strong:
            sound = sound + 0.5 * np.sin(2 * np.pi * hz / 4 * t) * np.exp(-t / 0.4)
        notes.append((k * seconds_each, sound * np.minimum(1, (t[-1] - t) / 0.01 + 1e-3)))
    return place(len(steps) * seconds_each + 0.5, *notes)


def clip(wave: np.ndarray, rate_hz: int = RATE_HZ, peak: float = 0.6) -> Clip:
    top = float(np.abs(wave).max())
    return Clip((wave / top * peak if top > 0 else wave).astype(np.float32), rate_hz)
