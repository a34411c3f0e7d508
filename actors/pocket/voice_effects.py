"""What makes a voice whisper, tremble, shout, or come out of a telephone: float32 mono in, the same out, any rate."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_toeplitz
from scipy.signal import butter, lfilter, sosfilt, sosfiltfilt


def level(wave: np.ndarray, rms_db: float) -> np.ndarray:
    """Brought to an active level: the RMS over 20-ms frames within 25 dB of the loudest is `rms_db` dBFS."""
    if not wave.size:
        return wave
    frames = _frames(wave, 480, 480)
    power = (frames**2).mean(axis=1)
    active = power[power > power.max() * 10 ** (-25 / 10)]
    now = np.sqrt(active.mean()) if active.size else 0.0
    return wave if now <= 1e-9 else (wave * (10 ** (rms_db / 20) / now)).astype(np.float32)


def soft_clip(wave: np.ndarray, drive: float = 1.0) -> np.ndarray:
    """tanh saturation; more drive adds the harmonics of effort."""
    return (np.tanh(drive * wave) / np.tanh(drive)).astype(np.float32)


def shelf(wave: np.ndarray, rate_hz: int, corner_hz: float, gain_db: float) -> np.ndarray:
    """A first-order high shelf: `gain_db` above the corner."""
    high = sosfilt(butter(1, corner_hz, "high", fs=rate_hz, output="sos"), wave)
    return (wave + (10 ** (gain_db / 20) - 1) * high).astype(np.float32)


def band(wave: np.ndarray, rate_hz: int, low_hz: float, high_hz: float) -> np.ndarray:
    """Only what lies between two frequencies (4th order, no delay)."""
    return sosfiltfilt(butter(4, (low_hz, high_hz), "band", fs=rate_hz, output="sos"), wave).astype(np.float32)


def telephone(wave: np.ndarray, rate_hz: int, rng: np.random.Generator, hiss_db: float = -46.0) -> np.ndarray:
    """A narrow line: 300 to 3400 Hz, a little overload, some hiss."""
    narrow = band(soft_clip(3.0 * wave, 1.0), rate_hz, 320.0, 3300.0)
    hiss = band(rng.standard_normal(wave.size).astype(np.float32), rate_hz, 400.0, 3000.0)
    return (level(narrow, -19.0) + 10 ** (hiss_db / 20) * 3.0 * hiss).astype(np.float32)


def tremor(wave: np.ndarray, rate_hz: int, depth: float, rng: np.random.Generator) -> np.ndarray:
    """An old voice: pitch and level shake at 5 Hz, and some breath."""
    if not wave.size or depth <= 0:
        return wave
    t = np.arange(wave.size) / rate_hz
    phase = rng.uniform(0, 2 * np.pi)
    wobble = np.sin(2 * np.pi * 5.2 * t + phase) + 0.5 * np.sin(2 * np.pi * 3.1 * t + 2 * phase)
    shift = depth * 0.00055 * rate_hz * wobble  # samples of delay: about 2 % of pitch at full depth
    moved = np.interp(np.arange(wave.size) + shift, np.arange(wave.size), wave)
    envelope = np.convolve(np.abs(moved), np.full(400, 1 / 400), "same")
    breath = band(rng.standard_normal(wave.size).astype(np.float32), rate_hz, 1500.0, 6000.0) * envelope * 0.25 * depth
    return (moved * (1 + 0.16 * depth * wobble) + breath).astype(np.float32)


def whisper(wave: np.ndarray, rate_hz: int, rng: np.random.Generator) -> np.ndarray:
    """The same words without vocal folds: the spectral envelope excites noise."""
    noise = rng.standard_normal(wave.size + rate_hz // 10).astype(np.float32)
    out = _revoice(wave, rate_hz, noise, order=20)
    return shelf(
        sosfilt(butter(2, 250, "high", fs=rate_hz, output="sos"), out).astype(np.float32), rate_hz, 2500.0, 3.0
    )


def robot(wave: np.ndarray, rate_hz: int, pitch_hz: float) -> np.ndarray:
    """The same words on one pitch: the spectral envelope excites a pulse train."""
    pulses = np.zeros(wave.size + rate_hz // 10, np.float32)
    pulses[:: max(1, round(rate_hz / pitch_hz))] = 1.0
    pulses = lfilter([1.0], [1.0, -0.7], pulses).astype(np.float32)
    buzz = pulses / max(1e-6, float(pulses.std())) + 0.08 * np.sin(2 * np.pi * 71 * np.arange(pulses.size) / rate_hz)
    voiced = _revoice(wave, rate_hz, buzz.astype(np.float32), order=24)
    # Consonants live in the highs of the original; the buzz alone loses them.
    highs = sosfilt(butter(2, 3500, "high", fs=rate_hz, output="sos"), wave)
    return (level(voiced, -20.0) + 0.8 * level(highs.astype(np.float32), -34.0)).astype(np.float32)


def _frames(wave: np.ndarray, size: int, hop: int) -> np.ndarray:
    count = max(1, 1 + (wave.size - size + hop - 1) // hop)
    padded = np.pad(wave, (0, max(0, (count - 1) * hop + size - wave.size)))
    return np.lib.stride_tricks.sliding_window_view(padded, size)[::hop][:count]


def _revoice(wave: np.ndarray, rate_hz: int, source: np.ndarray, order: int) -> np.ndarray:
    """Frame by frame (32 ms, hop 8 ms), the LPC envelope and energy of `wave` put on `source`."""
    if not wave.size:
        return wave
    size, hop = 4 * int(0.008 * rate_hz), int(0.008 * rate_hz)
    window = np.hanning(size + 1)[:-1].astype(np.float32)
    padded = np.pad(wave, (size, size))
    fft = 1 << (size - 1).bit_length() + 1
    frames = _frames(padded, size, hop) * window
    power = np.abs(np.fft.rfft(frames, fft, axis=1)) ** 2
    lags = np.fft.irfft(power, axis=1)[:, : order + 1]
    extended = np.resize(source, padded.size + size)
    out = np.zeros(padded.size + 2 * size, np.float64)
    for index, lag in enumerate(lags):
        if lag[0] < 1e-5:
            continue
        lag = lag * np.exp(-0.5 * (2 * np.pi * 40.0 / rate_hz * np.arange(order + 1)) ** 2)  # 40-Hz lag window
        lag[0] *= 1.0001
        coefficients = np.concatenate([[1.0], -solve_toeplitz(lag[:order], lag[1:])])
        envelope = 1.0 / np.maximum(1e-4, np.abs(np.fft.rfft(coefficients, fft)))
        at = index * hop
        excited = np.fft.irfft(np.fft.rfft(extended[at : at + size] * window, fft) * envelope)[:size] * window
        energy = float(np.sqrt((excited**2).sum()))
        if energy > 0:
            out[at : at + size] += excited * float(np.sqrt(lag[0])) / energy
    return out[size : size + wave.size].astype(np.float32)
