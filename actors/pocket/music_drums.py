"""Drum grooves: for a bar, which General MIDI drum sounds when and how strong. Times are in quarter notes."""

from __future__ import annotations

KICK, SIDE_STICK, SNARE, CLAP, CLOSED, OPEN, CRASH, RIDE = 36, 37, 38, 39, 42, 46, 49, 51

Hit = tuple[float, int, int]
"""(time in quarter notes, drum note, velocity)."""


def _every(step: float, length: float, note: int, velocity: int, start: float = 0.0) -> list[Hit]:
    count = int((length - start - 1e-9) / step) + 1
    return [(start + i * step, note, velocity - (12 if i % 2 else 0)) for i in range(count)]


def groove(name: str, length: float, beat: float) -> list[Hit]:
    """One bar of a groove. length: the bar, beat: the felt beat, both in quarter notes; bars of any length work."""
    beats = max(1, round(length / beat))
    makers = {
        "rock": _rock,
        "four on the floor": _floor,
        "swing": _swing,
        "shuffle": _shuffle,
        "march": _march,
        "polka": _polka,
        "bossa": _bossa,
        "latin": _bossa,
        "reggae": _reggae,
        "hip hop": _hip_hop,
        "funk": _funk,
        "breakbeat": _breakbeat,
        "hand": _hand,
    }
    return [hit for hit in makers.get(name, _rock)(beats, beat, length) if hit[0] < length - 1e-6]


def _rock(beats: int, beat: float, length: float) -> list[Hit]:
    hits = _every(beat / (3 if abs(beat - 1.5) < 1e-6 else 2), length, CLOSED, 74)
    backs = [b for b in range(beats) if (b % 2 == 1 if beats % 2 == 0 else b > 0)]
    if beats == 3:
        hits += [(0.0, KICK, 112), (beat, SNARE, 80), (2 * beat, SNARE, 80)]
        return hits
    hits += [(b * beat, SNARE, 106) for b in backs]
    return hits + [(b * beat, KICK, 112) for b in range(beats) if b not in backs]


def _floor(beats: int, beat: float, length: float) -> list[Hit]:
    hits = [(b * beat, KICK, 118) for b in range(beats)] + [(b * beat + beat / 2, OPEN, 66) for b in range(beats)]
    return hits + [(b * beat, CLAP, 88) for b in range(beats) if b % 2 == 1]


def _swing(beats: int, beat: float, length: float) -> list[Hit]:
    hits: list[Hit] = []
    for b in range(beats):
        hits.append((b * beat, RIDE, 88))
        if b % 2 == 1:
            hits += [(b * beat + beat * 2 / 3, RIDE, 66), (b * beat, 44, 80)]
    return [*hits, (0.0, KICK, 64)]


def _shuffle(beats: int, beat: float, length: float) -> list[Hit]:
    hits: list[Hit] = []
    for b in range(beats):
        hits += [
            (b * beat, CLOSED, 78),
            (b * beat + beat * 2 / 3, CLOSED, 58),
            (b * beat, SNARE if b % 2 else KICK, 104),
        ]
    return hits


def _march(beats: int, beat: float, length: float) -> list[Hit]:
    hits: list[Hit] = [(b * beat, KICK, 104) for b in range(0, beats, 2)]
    for b in range(beats):
        hits += [(b * beat, SNARE, 92), (b * beat + beat / 2, SNARE, 62), (b * beat + beat * 3 / 4, SNARE, 70)]
    return hits


def _polka(beats: int, beat: float, length: float) -> list[Hit]:
    return [(b * beat, KICK, 100) for b in range(beats)] + [(b * beat + beat / 2, SNARE, 70) for b in range(beats)]


def _bossa(beats: int, beat: float, length: float) -> list[Hit]:
    hits = _every(beat / 2, length, 70, 62)
    for b in range(0, beats, 2):
        hits += [(b * beat, KICK, 92), (b * beat + beat * 1.5, KICK, 76)]
    return hits + [(t * beat, SIDE_STICK, 82) for t in (0, 1.5, 3) if t < beats]


def _reggae(beats: int, beat: float, length: float) -> list[Hit]:
    hits = _every(beat / 2, length, CLOSED, 60)
    return hits + [(b * beat, n, 104) for b in range(beats) if b % 4 == 2 for n in (KICK, SIDE_STICK)]


def _hip_hop(beats: int, beat: float, length: float) -> list[Hit]:
    hits = _every(beat / 2, length, CLOSED, 66)
    hits += [(b * beat, SNARE, 106) for b in range(beats) if b % 2 == 1]
    return hits + [(t * beat, KICK, 112) for t in (0, 1.75, 2.5) if t < beats]


def _funk(beats: int, beat: float, length: float) -> list[Hit]:
    hits = _every(beat / 4, length, CLOSED, 62)
    hits += [(b * beat, SNARE, 108) for b in range(beats) if b % 2 == 1]
    return hits + [(t * beat, KICK, 112) for t in (0, 0.75, 2.5) if t < beats]


def _breakbeat(beats: int, beat: float, length: float) -> list[Hit]:
    hits = _every(beat / 2, length, CLOSED, 70)
    hits += [(t * beat, SNARE, 108) for t in (1, 3) if t < beats] + [
        (t * beat, SNARE, 60) for t in (1.75, 2.25) if t < beats
    ]
    return hits + [(t * beat, KICK, 114) for t in (0, 2.5) if t < beats]


def _hand(beats: int, beat: float, length: float) -> list[Hit]:
    hits: list[Hit] = []
    for b in range(beats):
        hits += [
            (b * beat, 64 if b == 0 else 61, 100),
            (b * beat + beat / 2, 60, 74),
            (b * beat + beat * 3 / 4, 60, 64),
        ]
    return hits


def single(notes: tuple[int, ...], beats: int, beat: float, text: str) -> list[Hit]:
    """One percussion instrument alone for a bar: rolls, offbeats, backbeats, eighths, else every beat with the first
    accented."""
    if "roll" in text:
        return [(i * beat / 8, notes[0], 78 + 4 * (i % 2)) for i in range(beats * 8)]
    if "gong" in text or notes == (52,) or notes == (49,):
        return [(0.0, notes[0], 112)]
    if "off" in text and "beat" in text:
        return [(b * beat + beat / 2, notes[0], 96) for b in range(beats)]
    if "backbeat" in text or "two and four" in text:
        return [(b * beat, notes[0], 104) for b in range(1, beats, 2)]
    if notes in ((42,), (70,), (60, 61)):
        return [(i * beat / 2, notes[i % len(notes)], 96 if i == 0 else 84 - 16 * (i % 2)) for i in range(beats * 2)]
    return [(b * beat, notes[b % len(notes)], 114 if b == 0 else 92) for b in range(beats)]
