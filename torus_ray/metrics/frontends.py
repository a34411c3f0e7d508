"""What tagger and embedding networks are fed: windows and log-mel spectrograms, in numpy alone (METRICS 4-6).

Waves are mono float arrays (n,) in [-1, 1] at the rate that a function names; nothing is normalised. Checked without
weights against the networks' own front ends. Runs on Python 3.9 and pulls in nothing else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

VGGISH_RATE_HZ = 16_000
VGGISH_LEAST = 15_600
"""Samples at 16 kHz below which VGGish has no example (0.975 s)."""
PASST_RATE_HZ = 32_000
CLAP_RATE_HZ = 48_000
_TEN_SECONDS = {"passt": 10 * PASST_RATE_HZ, "clap": 10 * CLAP_RATE_HZ}
_PASST_LEAST = 4_800


def vggish_padded(wave: Any) -> tuple[Any, bool]:
    """The wave at 16 kHz as VGGish hears it, and whether it was zero-padded to 1 s since it was too short."""
    samples = _mono(wave)
    short = 0 < len(samples) < VGGISH_LEAST
    return (np.pad(samples, (0, VGGISH_RATE_HZ - len(samples))), True) if short else (samples, False)


def vggish_examples(wave: Any) -> Any:
    """(k, 96, 64) log-mel examples of 0.96 s from a wave at 16 kHz; what is left over at the end is dropped.

    64 bands from 125 to 7500 Hz, windows of 25 ms every 10 ms, log(magnitude + 0.01).
    """
    samples = _mono(wave)
    frames = _frames(samples, 400, 160)
    if len(frames) < 96:
        return np.empty((0, 96, 64))
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    magnitude = np.abs(np.fft.rfft(frames * hann, 512))
    mel = np.log(magnitude @ _vggish_bands() + 0.01)
    return mel[: len(mel) // 96 * 96].reshape(-1, 96, 64)


@lru_cache(maxsize=1)
def _vggish_bands() -> Any:
    """(257, 64) triangles, straight on the mel scale of 1127 ln(1 + f / 700)."""

    def to_mel(hz: Any) -> Any:
        return 1127.0 * np.log1p(np.asarray(hz) / 700.0)

    edges = np.linspace(to_mel(125.0), to_mel(7500.0), 66)
    bins = to_mel(np.linspace(0.0, 8000.0, 257))[:, None]
    up = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    bands = np.maximum(0.0, np.minimum(up, down))
    bands[0] = 0.0  # no direct current
    return bands


def passt_windows(wave: Any) -> list[Any]:
    """A wave at 32 kHz in pieces of 10 s from the start, no overlap, no padding; pieces up to 0.15 s are dropped."""
    samples = _mono(wave)
    size = _TEN_SECONDS["passt"]
    pieces = [samples[at : at + size] for at in range(0, len(samples), size)]
    return [piece for piece in pieces if len(piece) > _PASST_LEAST]


def clap_ten_seconds(wave: Any) -> tuple[Any, bool]:
    """A wave at 48 kHz as exactly 10 s, and whether it was cropped: whole copies and then zeros, or the first 10 s.

    CLAP's own processors crop a longer clip at random. Raises ValueError for no samples.
    """
    samples = _mono(wave)
    if not len(samples):
        raise ValueError("a clip without samples cannot be repeated")
    size = _TEN_SECONDS["clap"]
    if len(samples) >= size:
        return samples[:size], len(samples) > size
    repeated = np.tile(samples, size // len(samples))
    return np.pad(repeated, (0, size - len(repeated))), False


def clap_log_mel(wave: Any) -> Any:
    """(1001, 64) log-mel in dB of a wave at 48 kHz, brought to 10 s by :func:`clap_ten_seconds`.

    The unfused checkpoint's: 1024-point Hann windows every 10 ms, 64 Slaney bands from 50 to 14000 Hz.
    """
    samples, _ = clap_ten_seconds(wave)
    frames = _frames(np.pad(samples.astype(np.float64), 512, mode="reflect"), 1024, 480)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1024) / 1024)
    power = np.abs(np.fft.rfft(frames * hann, 1024)) ** 2
    return 10.0 * np.log10(np.maximum(power @ _clap_bands(), 1e-10))


@lru_cache(maxsize=1)
def _clap_bands() -> Any:
    """(513, 64) triangles of equal area, straight in Hz, their edges even on Slaney's mel scale."""
    step = np.log(6.4) / 27

    def to_mel(hz: float) -> float:
        return 15.0 + float(np.log(hz / 1000.0)) / step if hz >= 1000.0 else 3.0 * hz / 200.0

    mels = np.linspace(to_mel(50.0), to_mel(14000.0), 66)
    edges = np.where(mels >= 15.0, 1000.0 * np.exp(step * (mels - 15.0)), 200.0 * mels / 3.0)
    bins = np.linspace(0.0, CLAP_RATE_HZ / 2, 513)[:, None]
    up = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.maximum(0.0, np.minimum(up, down)) * 2.0 / (edges[2:] - edges[:-2])


def int16_round_trip(wave: Any) -> Any:
    """float32 wave after laion_clap's 16-bit step: cut at 1, times 32767, towards zero, and back."""
    whole = np.trunc(np.clip(np.asarray(wave, dtype=np.float32), -1.0, 1.0) * np.float32(32767)).astype(np.int16)
    return (whole / np.float32(32767)).astype(np.float32)


def _mono(wave: Any) -> Any:
    samples = np.asarray(wave)
    if samples.ndim != 1 or samples.dtype.kind != "f":
        raise ValueError(f"a mono wave is a float array (n,), got {samples.dtype} {samples.shape}; downmix it first")
    if not np.isfinite(samples).all():
        raise ValueError("the wave holds NaN or infinite samples")
    return samples


def _frames(samples: Any, size: int, hop: int) -> Any:
    """(k, size) windows that lie wholly inside the samples."""
    if len(samples) < size:
        return np.empty((0, size))
    return np.lib.stride_tricks.sliding_window_view(samples, size)[::hop].astype(np.float64)
