"""Clips whose content is known: a scene is a list of sources with onset, length and level; plain data in, a wave out.

A scene: {"seconds": 6, "sources": [{"is": "knock", "at": 1.0, "db": -12}, ...], "room_s": 1.2, "low_pass_hz": 800}.
Every source has `is` (a key of SOURCES), `at` (s) and `db` (its loudest 50 ms, dB re full scale); the rest is its own.
`times` in place of `at` repeats a source. `ramp_db` = [from, to] on a source or the scene changes level evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import signal

from benchmarks.obedience import voices

RATE = 24_000
Array = Any
Source = Mapping[str, Any]


def clock(seconds: float) -> Array:
    return np.arange(int(seconds * RATE)) / RATE


def eased(wave: Array, attack_s: float = 0.01, release_s: float = 0.02) -> Array:
    """Faded at both ends, so that nothing clicks."""
    gain = np.ones(len(wave))
    a, r = min(int(attack_s * RATE), len(wave)), min(int(release_s * RATE), len(wave))
    gain[:a] *= np.linspace(0, 1, a)
    gain[len(wave) - r :] *= np.linspace(1, 0, r)
    return wave * gain


def harmonics(phase: Array, count: int, tilt: float) -> Array:
    return sum(np.sin(k * phase) / k**tilt for k in range(1, count + 1))


def tone(s: Source) -> Array:
    """Steady, `count` harmonics of `hz` for `for` seconds."""
    count = min(int(s.get("count", 6)), int(10_000 / s["hz"]))
    return eased(harmonics(2 * np.pi * s["hz"] * clock(s["for"]), count, s.get("tilt", 1.0)))


def sweep(s: Source) -> Array:
    """Glides evenly in pitch from `hz` to `to_hz`."""
    t = clock(s["for"])
    frequency = s["hz"] * (s["to_hz"] / s["hz"]) ** (t / s["for"])
    return eased(harmonics(2 * np.pi * np.cumsum(frequency) / RATE, int(s.get("count", 4)), 1.2))


def siren(s: Source) -> Array:
    """Wavers between `hz` and `to_hz`, `each` seconds a cycle."""
    t = clock(s["for"])
    middle, half = np.sqrt(s["hz"] * s["to_hz"]), np.log(s["to_hz"] / s["hz"]) / 2
    frequency = middle * np.exp(half * np.sin(2 * np.pi * t / s.get("each", 1.5)))
    return eased(harmonics(2 * np.pi * np.cumsum(frequency) / RATE, 5, 1.0))


def bell(s: Source) -> Array:
    """Struck metal: partials of no common period, dying over `for` seconds."""
    length, hz = float(s.get("for", 1.5)), s.get("hz", 700.0)
    t = clock(length)
    partials = ((1.0, 1.0, 1.0), (2.0, 0.7, 0.7), (2.76, 0.5, 0.5), (4.1, 0.35, 0.35), (5.4, 0.25, 0.25))
    return eased(sum(a * np.sin(2 * np.pi * hz * r * t) * np.exp(-t * 5 / (length * d)) for r, a, d in partials), 0.002)


def pluck(s: Source) -> Array:
    """A plucked string: harmonics dying over `for` seconds, the high ones first."""
    length = float(s.get("for", 0.8))
    t = clock(length)
    count = min(10, int(9000 / s["hz"]))
    wave = sum(np.sin(2 * np.pi * k * s["hz"] * t) / k * np.exp(-t * (3 + k) / length) for k in range(1, count + 1))
    return eased(wave, 0.003)


def noise(s: Source) -> Array:
    """Even noise between `low_hz` and `high_hz`."""
    raw = np.random.default_rng(int(s.get("seed", 1))).standard_normal(int(s["for"] * RATE) + 2000)
    sos = signal.butter(3, (s.get("low_hz", 200), s.get("high_hz", 9000)), "band", fs=RATE, output="sos")
    return eased(signal.sosfilt(sos, raw)[2000:], s.get("attack", 0.02), s.get("release", 0.05))


def struck(s: Source, hz: float, spread: float, length: float) -> Array:
    t = clock(length)
    raw = np.random.default_rng(int(s.get("seed", 2))).standard_normal(len(t))
    sos = signal.butter(2, (hz / spread, min(hz * spread, 11_000)), "band", fs=RATE, output="sos")
    return eased(signal.sosfilt(sos, raw * np.exp(-t * 60)) * np.exp(-t * 7 / length), 0.001)


def knock(s: Source) -> Array:
    """Knuckles on wood."""
    body = np.sin(2 * np.pi * 190 * clock(0.16)) * np.exp(-clock(0.16) * 45)
    return struck(s, 420, 1.8, 0.16) + 0.5 * body


def click(s: Source) -> Array:
    """A dry tick, all above 2 kHz."""
    return struck(s, 4200, 1.6, 0.05)


def thud(s: Source) -> Array:
    """A dull blow, nearly all under 150 Hz."""
    t = clock(0.35)
    return eased(np.sin(2 * np.pi * (70 * t + 2.2 * (1 - np.exp(-t * 30)))) * np.exp(-t * 12), 0.002)


def clap(s: Source) -> Array:
    return struck(s, 1500, 1.9, 0.12)


def beep(s: Source) -> Array:
    return eased(np.sin(2 * np.pi * s.get("hz", 1000) * clock(s.get("for", 0.15))), 0.005, 0.01)


def hum(s: Source) -> Array:
    """An engine's drone: many harmonics of `hz`, a little rough."""
    t = clock(s["for"])
    rough = 1 + 0.25 * np.sin(2 * np.pi * s["hz"] / 4 * t)
    return eased(harmonics(2 * np.pi * s["hz"] * t, 14, 0.9) * rough, 0.05, 0.1)


def speech(s: Source) -> Array:
    """`text` spoken by `voice` (a key of voices.VOICES), at `speed` (1 as usual)."""
    wave, rate = voices.speak(s["text"], s["voice"], float(s.get("speed", 1.0)))
    return signal.resample_poly(wave, RATE, rate) if rate != RATE else wave


def midi(s: Source) -> Array:
    """`notes` = [[at, for, key number, velocity], ...] on General MIDI `program`; `drums` true for the drum channel."""
    notes = [tuple(n) for n in s["notes"]]
    return voices.play(notes, int(s.get("program", 0)), bool(s.get("drums", False)), RATE)


SOURCES: dict[str, Callable[[Source], Array]] = {
    f.__name__: f for f in (tone, sweep, siren, bell, pluck, noise, knock, click, thud, clap, beep, hum, speech, midi)
}


def ramp(wave: Array, from_db: float, to_db: float) -> Array:
    return wave * 10 ** (np.linspace(from_db, to_db, len(wave)) / 20)


def at_level(wave: Array, db: float) -> Array:
    """Scaled so that its loudest 50 ms have this RMS level."""
    width = min(int(0.05 * RATE), len(wave))
    power = np.convolve(np.square(wave), np.ones(width) / width, "valid").max()
    return wave * 10 ** (db / 20) / np.sqrt(max(power, 1e-12))


def in_room(wave: Array, seconds: float, wet: float = 0.5) -> Array:
    """With a diffuse tail that falls 60 dB in `seconds`."""
    t = clock(seconds)
    tail = np.random.default_rng(7).standard_normal(len(t)) * 10 ** (-3 * t / seconds)
    tail = signal.sosfilt(signal.butter(1, 4500, fs=RATE, output="sos"), tail)
    wet_wave = signal.fftconvolve(wave, tail / np.sqrt(np.square(tail).sum()))[: len(wave)]
    return wave * (1 - wet) + wet_wave * wet * 1.6


def build(scene: Mapping[str, Any]) -> tuple[Array, int]:
    """(float32 wave of one channel, RATE) of a scene; peaks above 0.95 are scaled down, all together."""
    out = np.zeros(int(scene["seconds"] * RATE))
    for s in scene["sources"]:
        wave = at_level(SOURCES[s["is"]](s), float(s.get("db", -12)))
        if "ramp_db" in s:
            wave = ramp(wave, *s["ramp_db"])
        for i, at in enumerate(s.get("times", [s.get("at", 0.0)])):
            gain = 10 ** (s["step_db"] * i / 20) if "step_db" in s else 1.0
            start = int(at * RATE)
            piece = wave[: max(len(out) - start, 0)]
            out[start : start + len(piece)] += gain * piece
    if "room_s" in scene:
        out = in_room(out, scene["room_s"], scene.get("wet", 0.5))
    if "low_pass_hz" in scene:
        out = signal.sosfilt(signal.butter(3, scene["low_pass_hz"], fs=RATE, output="sos"), out)
    if "ramp_db" in scene:
        out = ramp(out, *scene["ramp_db"])
    if "gain_db" in scene:
        out = out * 10 ** (scene["gain_db"] / 20)
    return (out * min(1.0, 0.95 / max(float(np.abs(out).max()), 1e-9))).astype(np.float32), RATE
