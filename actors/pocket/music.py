"""Music: a phrase to stereo sound, through a plan, notes, and a General MIDI soundfont."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import music_compose, music_plan, weights
from .music_compose import Note, Score
from .music_parts import DRUMS, Part
from .music_plan import Plan

RATE_HZ = 44_100
_LEVEL_DB = -19.0
_TAIL_S = 1.2


def render(phrase: str, seconds: float | None, rng: np.random.Generator) -> np.ndarray:
    """float32 (2, frames) at 44.1 kHz, at most 10 s, about -19 dBFS RMS before its own dynamics. seconds: a wanted
    length, or None."""
    plan = music_plan.make_plan(phrase, rng, seconds)
    score = music_compose.compose(plan, rng)
    return perform(plan, score)


def perform(plan: Plan, score: Score) -> np.ndarray:
    """The notes as sound, with the plan's dynamics and ending: float32 (2, frames) at 44.1 kHz."""
    end = score.end + (0.02 if plan.ending == "abrupt" else _TAIL_S)
    frames = int(min(end, 9.99) * RATE_HZ)
    usable = weights.available("music.soundfont")
    wave = _soundfont(score, frames) if usable else additive(score, frames)
    wave = _levelled(wave)
    wave = wave * _envelope(plan, score.end, frames)
    if plan.ending == "abrupt":
        stop = min(frames, int(score.end * RATE_HZ))
        wave = wave[:, :stop]
        wave[:, -220:] *= np.linspace(1, 0, min(220, wave.shape[1]), dtype=np.float32)
    else:
        fade = min(wave.shape[1], int(0.25 * RATE_HZ))
        wave[:, -fade:] *= np.linspace(1, 0, fade, dtype=np.float32)
    return wave.astype(np.float32)


def _levelled(wave: np.ndarray) -> np.ndarray:
    rms = float(np.sqrt((wave**2).mean())) if wave.size else 0.0
    if rms < 1e-7:
        return wave
    wave = wave * (10 ** (_LEVEL_DB / 20) / rms)
    peak = float(np.abs(wave).max())
    return wave if peak < 0.97 else wave * (0.97 / peak)


def _envelope(plan: Plan, end_s: float, frames: int) -> np.ndarray:
    """The gain over time that the dynamics ask for; a level word moves the whole."""
    if plan.curve is not None:
        at, db = zip(*plan.curve)
        where = np.clip(np.arange(frames) / RATE_HZ / max(end_s, 0.1), 0.0, 1.0)
        return (10 ** (np.interp(where, at, db) / 20)).astype(np.float32)
    shape, t = plan.dynamics.shape, np.arange(frames) / RATE_HZ
    share = np.clip(t / max(end_s, 0.1), 0.0, 1.0)
    ramps = {
        "crescendo": -22.0 * (1 - share),
        "diminuendo": -22.0 * share,
        "fade_in": -40.0 * np.clip(1 - share / 0.6, 0, 1),
        "fade_out": -45.0 * np.clip((share - 0.4) / 0.6, 0, 1),
        "swell": -20.0 * np.abs(2 * share - 1),
    }
    still_fades = "fade_out" if plan.ending == "fade" else ""
    db = ramps.get(shape or still_fades, np.zeros(frames))
    level = float(np.clip(plan.dynamics.level_db, -10, 3))
    return (10 ** ((db + level) / 20)).astype(np.float32)


# --- General MIDI ----------------------------------------------------------------------------------------------------


def _synth() -> tuple[Any, int]:
    """A fresh synthesiser: one that has played keeps its voices' state, and the same notes would give other bytes."""
    import tinysoundfont

    synth = tinysoundfont.Synth(samplerate=RATE_HZ, gain=-8)
    return synth, synth.sfload(str(weights.path("music.soundfont")))


def _soundfont(score: Score, frames: int) -> np.ndarray:
    synth, font = _synth()
    channels = _channels(score.parts)
    for index, (part, channel) in enumerate(zip(score.parts, channels)):
        if part.program == DRUMS:
            synth.program_select(channel, font, 128, 0, True)
        else:
            synth.program_select(channel, font, 0, part.program)
        synth.control_change(
            channel, 10, 64 if part.program == DRUMS or len(channels) == 1 else (52, 78, 64, 40, 90)[index % 5]
        )
        synth.control_change(channel, 7, _VOLUMES.get(part.role, 100))
    events: list[tuple[int, int, int, int, int]] = []
    for note in score.notes:
        channel = channels[note.part]
        start = int(note.start * RATE_HZ)
        events.append((start, 1, channel, note.pitch, note.velocity))
        events.append((start + int(note.duration * RATE_HZ), 0, channel, note.pitch, 0))
    out = np.zeros((frames, 2), np.float32)
    at = 0
    for time, on, channel, pitch, velocity in sorted(events):
        time = min(time, frames)
        if time > at:
            out[at:time] = np.frombuffer(bytes(synth.generate(time - at)), np.float32).reshape(-1, 2)
            at = time
        if time >= frames:
            break
        if on:
            synth.noteon(channel, pitch, velocity)
        else:
            synth.noteoff(channel, pitch)
    if at < frames:
        out[at:] = np.frombuffer(bytes(synth.generate(frames - at)), np.float32).reshape(-1, 2)
    return np.ascontiguousarray(out.T)


_VOLUMES = {
    "melody": 112,
    "scale": 112,
    "drums": 104,
    "chords": 78,
    "waltz": 88,
    "arpeggio": 88,
    "drone": 84,
    "counter": 90,
    "offbeat": 84,
}


def _channels(parts: tuple[Part, ...]) -> list[int]:
    """A MIDI channel for each part: drums share channel 9, the others take the rest in turn."""
    free = [c for c in range(16) if c != 9]
    pitched = 0
    found = []
    for part in parts:
        if part.program == DRUMS:
            found.append(9)
        else:
            found.append(free[pitched % len(free)])
            pitched += 1
    return found


# --- without a soundfont ---------------------------------------------------------------------------------------------


def additive(score: Score, frames: int) -> np.ndarray:
    """The same notes from sine partials and noise: the fallback when the soundfont's package is not installed."""
    out = np.zeros(frames + RATE_HZ, np.float32)
    for note in score.notes:
        part = score.parts[note.part]
        sound = _strike(note) if part.program == DRUMS else _tone(note, part)
        start = int(note.start * RATE_HZ)
        stop = min(out.size, start + sound.size)
        if start < out.size:
            out[start:stop] += sound[: stop - start]
    return np.stack([out[:frames], out[:frames]])


def _tone(note: Note, part: Part) -> np.ndarray:
    plucked = part.program < 16 or 24 <= part.program < 40 or part.program in (45, 46, 105, 106, 107, 108)
    length = note.duration + (0.3 if plucked else 0.08)
    t = np.arange(int(length * RATE_HZ)) / RATE_HZ
    hz = 440.0 * 2 ** ((note.pitch - 69) / 12)
    partials = [k for k in range(1, 9) if k * hz < 16_000]
    decay = 2.5 if plucked else 0.3
    wave = sum(np.sin(2 * np.pi * k * hz * t) / k**1.3 * np.exp(-decay * k * t) for k in partials)
    gate = np.clip(t / 0.008, 0, 1) * np.clip((length - t) / 0.06, 0, 1)
    return np.asarray(wave * gate * note.velocity / 127 * 0.2, np.float32)


def _strike(note: Note) -> np.ndarray:
    t = np.arange(int(0.25 * RATE_HZ)) / RATE_HZ
    noise = np.random.default_rng(note.pitch).standard_normal(t.size)
    if note.pitch in (35, 36, 41, 43, 45):
        wave = np.sin(2 * np.pi * (50 * t + 6 * (1 - np.exp(-t * 30)))) * np.exp(-t * 14)
    else:
        wave = noise * np.exp(-t * (60 if note.pitch in (42, 44, 70) else 18)) * 0.4
    return (wave * note.velocity / 127 * 0.5).astype(np.float32)
