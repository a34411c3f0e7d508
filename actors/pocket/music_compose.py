"""From a plan to notes: harmony, melody, bass and patterns, seeded, with phrases that end where phrases end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import music_drums
from .english import MODES, Key
from .music_parts import DRUMS, Part, bar_quarters, beat_quarters
from .music_patterns import MAKERS, Event, melody, nearest, parent, voicing
from .music_plan import Plan, Section

Rng = np.random.Generator


@dataclass(frozen=True)
class Note:
    """start and duration in seconds; pitch and velocity as in MIDI; part: index into :attr:`Score.parts`."""

    start: float
    duration: float
    pitch: int
    velocity: int
    part: int


@dataclass(frozen=True)
class Score:
    """Notes in time, the parts they belong to, and where the last bar ends, in seconds."""

    notes: tuple[Note, ...]
    parts: tuple[Part, ...]
    end: float


_PROGRESSIONS: dict[str, tuple[tuple[int, ...], ...]] = {
    "major": ((0, 3, 4, 0), (0, 3, 0, 4), (0, 0, 3, 0), (0, 5, 3, 0)),
    "minor": ((0, 0, 3, 0), (0, 3, 0, 0), (0, 0, 4, 0), (0, 3, 4, 0)),
    "dorian": ((0, 3, 0, 3), (0, 6, 3, 0)),
    "mixolydian": ((0, 6, 3, 0), (0, 3, 6, 0)),
    "phrygian": ((0, 1, 0, 1), (0, 1, 2, 1)),
    "lydian": ((0, 1, 0, 1), (0, 1, 4, 0)),
    "blues": ((0, 3, 0, 4),),
}


def compose(plan: Plan, rng: Rng) -> Score:
    """The notes of a plan. The same plan and seed give the same notes."""
    seeds = rng.integers(0, 2**31, 8)
    parts: list[Part] = []
    notes: list[Note] = []
    at = 0.0
    for number, section in enumerate(plan.sections):
        last = number == len(plan.sections) - 1
        clock = _clock(section)
        degrees = _degrees(section, np.random.default_rng(seeds[section.theme % 8]), last and plan.ending == "cadence")
        if not section.silent:
            for part in section.parts:
                if part not in parts:
                    parts.append(part)
                index = parts.index(part)
                part_rng = np.random.default_rng([int(seeds[section.theme % 8]), _stable(part.name + part.role)])
                played = _play(part, section, degrees, part_rng, last and plan.ending != "abrupt")
                notes += _timed(played, clock, at, index, section, part)
        at += float(clock(section.bars * bar_quarters(section.meter)))
    if plan.ending == "cadence" and not plan.sections[-1].silent:
        notes += _final_chord(plan.sections[-1], parts, at, plan.seconds)
    return Score(tuple(sorted(notes, key=lambda n: (n.start, n.part, n.pitch))), tuple(parts), at)


def _stable(text: str) -> int:
    return sum((i + 1) * ord(c) for i, c in enumerate(text))


def _clock(section: Section):  # type: ignore[no-untyped-def]
    """Quarter notes since the section's start -> seconds; the tempo moves evenly from bpm to bpm_end."""
    total = section.bars * bar_quarters(section.meter)
    grid = np.linspace(0.0, total, 257)
    bpm = np.linspace(section.bpm, section.bpm_end, 257)
    beat = beat_quarters(section.meter)
    step = (total / 256) / beat * 60.0 / ((bpm[1:] + bpm[:-1]) / 2)
    seconds = np.concatenate([[0.0], np.cumsum(step)])
    return lambda quarters: np.interp(quarters, grid, seconds)


def _degrees(section: Section, rng: Rng, cadence: bool) -> list[int]:
    """One chord a bar: a progression that starts on the tonic; before the end of a piece, the dominant."""
    options = _PROGRESSIONS.get(section.key.mode) or _PROGRESSIONS["minor" if 3 in MODES[section.key.mode] else "major"]
    chosen = options[int(rng.integers(len(options)))]
    degrees = [chosen[i % len(chosen)] for i in range(section.bars)]
    if section.bars >= 3 and section.key.mode in ("major", "minor", "harmonic minor", "blues"):
        degrees[-1] = 4 if cadence else degrees[-1]
        if cadence and degrees[-2] == 4:
            degrees[-2] = 0 if section.key.mode in ("minor", "harmonic minor") else 3
        if section.key.mode != "major" and section.key.mode != "blues" and cadence and section.bars < 4:
            degrees[-1] = 0  # too short to leave the minor chord
    if section.key.mode == "minor" and any(p.program in (29, 30) for p in section.parts):
        degrees = [6 if d == 4 else d for d in degrees]  # rock's minor: the flat seventh, no leading note
    if section.bars in (2, 3) and not cadence:
        degrees[-1] = 0
    return degrees


def _play(part: Part, section: Section, degrees: list[int], rng: Rng, ends: bool) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    if part.program == DRUMS:
        events: list[Event] = []
        for number in range(section.bars):
            beats = max(1, round(bar / beat))
            hits = (
                music_drums.single(part.drum_notes, beats, beat, part.text)
                if part.drum_notes
                else music_drums.groove(part.groove or "rock", bar, beat)
            )
            if number == 0 and not part.drum_notes:
                hits = [*hits, (0.0, music_drums.CRASH, 84)]
            events += [(number * bar + t, 0.2, note, velocity) for t, note, velocity in hits if t < bar - 1e-6]
        return events
    events = MAKERS.get(part.role, melody)(part, section, degrees, rng)
    if part.voices > 1 and part.role in ("melody", "counter", "scale", "ostinato"):
        events = _harmonised(events, part.voices, section.key)
    if section.stop_time:
        events = [e for e in events if (e[0] % (2 * bar)) < bar + 0.51]
    return [e for e in events if part.turn is None or int(e[0] // bar) % 2 == part.turn]


def _swung(t: float, section: Section) -> float:
    """The second of two eighths a little late."""
    if not section.swing or beat_quarters(section.meter) != 1.0:
        return t
    fraction = t % 1.0
    return t + (1 / 6 if abs(fraction - 0.5) < 0.01 else 0.0)


_HOLD = {"staccato": 0.35, "pizzicato": 0.5, "legato": 1.04, None: 0.92}


def _timed(events: list[Event], clock, at: float, index: int, section: Section, part: Part) -> list[Note]:  # type: ignore[no-untyped-def]
    hold = (
        _HOLD[part.articulation]
        if part.role not in ("drone", "chords") or part.articulation in ("staccato", "pizzicato")
        else 0.98
    )
    gain = section.level_db + part.level_db
    notes = []
    for start, length, pitch, velocity in events:
        begin, end = float(clock(_swung(start, section))), float(clock(start + length * hold))
        scaled = int(np.clip(velocity * 10 ** (gain / 45), 20, 127))
        notes.append(Note(at + begin, max(0.06, end - begin), int(np.clip(pitch, 21, 108)), scaled, index))
    return notes


def _harmonised(events: list[Event], voices: int, key: Key) -> list[Event]:
    scale = tuple((key.tonic + s) % 12 for s in parent(key))
    found = list(events)
    for voice in range(1, voices):
        for start, length, pitch, velocity in events:
            found.append((start, length, nearest(pitch - 3.6 * voice, scale), velocity - 8))
    return found


def _final_chord(section: Section, parts: list[Part], at: float, limit: float) -> list[Note]:
    """The tonic after the last bar: one more downbeat, held while there is room."""
    beat_s = 60.0 / section.bpm_end
    length = min(2.0 * beat_s, limit + 0.9 - at)
    if length < 0.3:
        return []
    notes: list[Note] = []
    for part in section.parts:
        index = parts.index(part)
        velocity = int(np.clip(100 * 10 ** ((section.level_db + part.level_db) / 45), 20, 127))
        if part.program == DRUMS:
            drums = part.drum_notes[:1] or (music_drums.KICK, music_drums.CRASH)
            notes += [Note(at, 0.2, d, velocity, index) for d in drums]
        elif part.role in ("chords", "waltz", "stride", "offbeat", "arpeggio") and part.chordal:
            notes += [Note(at, length, p, velocity, index) for p in voicing(section, 0, min(part.center, 64))]
        elif part.role in ("bass", "walking", "pulse"):
            notes.append(Note(at, length, nearest(min(part.center, 52), (section.key.tonic,)), velocity, index))
        elif part.turn in (None, 1):
            notes.append(Note(at, length, nearest(part.center, (section.key.tonic,)), velocity, index))
    return notes
