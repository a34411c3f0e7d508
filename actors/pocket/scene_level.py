"""Levels of a scene: beds under a voice, where a sound is heard, what comes and goes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from . import english, speech

RATE_HZ = 44_100
_UNDER_VOICE_DB = {"usual": 17.0, "strong": 14.0, "soft": 21.0, "faint": 26.5, "loud": 6.0}
_UNDER_SOUND_DB = -5.0
_FAINT = re.compile(
    r"\b(?:faint\w*|distant\w*|barely|subtle|subtly|far(?:[- ](?:off|away))|low in the mix|in the (?:far )?distance|"
    r"very (?:soft|low|quiet)\w*|almost inaudibl\w+)\b"
)
_SOFT = re.compile(r"\b(?:soft(?:ly)?|quiet\w*|gentl[ey]|light(?:ly)?|delicate\w*|muffled|low)\b")
_LOUD = re.compile(r"\b(?:loud\w*|deafening\w*|blar\w+|overwhelm\w*|drown\w*|roaring|thunderous)\b")
_STRONG = re.compile(r"\b(?:heavy|heavily|strong|howl\w*|torrential|pouring|driving|busy|noisy|storm\w*)\b")


def active_db(wave: np.ndarray) -> float:
    """The level in dBFS while a wave (channels, frames) sounds: RMS over the 50-ms frames within 25 dB of the top."""
    mono = np.atleast_2d(wave).mean(axis=0)
    size = RATE_HZ // 20
    count = mono.size // size
    if count == 0:
        return float(10 * np.log10((mono.astype(np.float64) ** 2).mean() + 1e-12)) if mono.size else -120.0
    power = (mono[: count * size].reshape(count, size).astype(np.float64) ** 2).mean(axis=1)
    loud = power[power > power.max() * 10**-2.5]
    return float(10 * np.log10(loud.mean() + 1e-12)) if loud.size else -120.0


def voice_db(voices: Sequence[np.ndarray]) -> float | None:
    """The active level of all that is spoken; None without speech."""
    return max((active_db(v) for v in voices), default=None)


def bed_gain_db(wave: np.ndarray, text: str, voice: float | None) -> float:
    """The gain in dB of what lies under others. Under a voice it comes to 17 dB below it (soft 21, faint 26,
    strong 14, loud 6). voice: active level of the speech in dBFS, or None: it lies under sounds."""
    lowered = text.lower()
    if voice is None:
        return _UNDER_SOUND_DB + (5.0 if _LOUD.search(lowered) or _STRONG.search(lowered) else 0.0)
    how = "usual"
    for name, pattern in (("loud", _LOUD), ("faint", _FAINT), ("soft", _SOFT), ("strong", _STRONG)):
        if pattern.search(lowered):
            how = name
            break
    return voice - _UNDER_VOICE_DB[how] - active_db(wave)


def heard_s(wave: np.ndarray) -> tuple[float, float]:
    """Seconds between which a wave (channels, frames) is heard: within 36 dB of its loudest 10 ms."""
    start, end = speech.active(np.atleast_2d(wave).mean(axis=0), RATE_HZ)
    return start / RATE_HZ, end / RATE_HZ


def silenced(wave: np.ndarray, after_s: float) -> np.ndarray:
    """Without its dying tail: faded to nothing within 60 ms after `after_s`, for a silence that is stated."""
    start = round(after_s * RATE_HZ)
    fade = int(0.06 * RATE_HZ)
    if start >= wave.shape[1]:
        return wave
    out = wave[:, : start + fade].copy()
    out[:, start:] *= np.linspace(1.0, 0.0, out.shape[1] - start, dtype=np.float32)
    return out


_COMES = re.compile(r"\b(?:approach\w*|com\w+ (?:closer|nearer|towards?|up)|draw\w* near\w*|near(?:s|ing)\b)")
_GOES = re.compile(
    r"\b(?:pass(?:es|ing)?|reced\w*|fad(?:es|ing)|leav\w*|(?:driv|mov|go|speed|pull|head|drift|roll|rush|"
    r"fly)\w* (?:\w+ )?(?:away|off|past|by)|"
    r"into the distance|disappear\w*|vanish\w*|dies? away|dying away)\b"
)


def comes_and_goes(text: str) -> bool:
    """Whether a source approaches and then leaves."""
    come, go = _COMES.search(text), _GOES.search(text)
    return bool(come and go and go.start() > come.start())


def shaped(wave: np.ndarray, curve: english.Curve, even_s: float = 0.7) -> np.ndarray:
    """A mono texture evened out over `even_s` seconds, then led along a curve."""
    size = max(1, int(even_s * RATE_HZ))
    power = (
        np.convolve(np.pad(wave.astype(np.float64) ** 2, size // 2, mode="edge"), np.ones(size) / size, "valid")
        if (wave.size < size)
        else _moving_mean(wave.astype(np.float64) ** 2, size)
    )
    level = np.sqrt(power[: wave.size] + 1e-12)
    usual = float(np.sqrt((wave.astype(np.float64) ** 2).mean())) + 1e-9
    gain = np.clip(usual / level, 0.3, 4.0)
    out = wave * gain * speech.curve_gain(curve, wave.size)
    peak = float(np.abs(out).max(initial=0.0))
    return np.asarray(out * min(1.0, 0.9 / max(peak, 1e-9)), np.float32)


def _moving_mean(x: np.ndarray, size: int) -> np.ndarray:
    padded = np.pad(x, (size // 2, size - size // 2), mode="reflect")
    total = np.cumsum(padded)
    return np.maximum((total[size:] - total[:-size]) / size, 0.0)
