"""Patterns that a prompt describes note by note: scales, counted notes, one note again and again, octave leaps."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import english
from .english import MODES, Key

_LONGEST_S = 8.6


@dataclass(frozen=True)
class Figure:
    """A pattern to be played as described. kind: scale, chromatic, notes, repeated, arpeggio or leaps. count: how many
    notes; None: as many as fit. ways: +1 up, -1 down, one after the other; (0,): no direction. length: long, short or
    None."""

    kind: str
    count: int | None
    ways: tuple[int, ...]
    length: str | None


_KINDS: tuple[tuple[str, str], ...] = (
    ("leaps", r"octave[- ](?:leap|jump|skip|hop)\w*|(?:leap|jump|skip)\w* (?:\w+ ){0,3}octaves?|leaping octaves"),
    (
        "repeated",
        r"repeat\w* (?:(?:a|the|one|single|same|just|only|short|long|low|high|\w+) ){0,4}notes?\b(?! (?:pattern|"
        r"figure))|"
        r"(?:single|same|one) (?:\w+ ){0,2}notes? (?:is |being )?(?:repeat|again|over and over|played|struck)\w*|"
        r"(?:single|same) repeated note|notes? (?:all )?(?:on|at) the same pitch|(?:same|one) note \w+ times|"
        r"one note over and over",
    ),
    ("chromatic", r"chromatic (?:scale|run|line|ascent|descent)"),
    ("scale", r"scales?\b(?! of)|scales? of|runs? (?:up|down)|run up|run down"),
    ("arpeggio", r"arpeggi\w*|broken chords?"),
    ("notes", r"notes?\b|tones?\b"),
)
_UP = r"ascend\w*|ris(?:es|e|ing)|upwards?|climb\w*|going up|goes up|low to high|\bup\b"
_DOWN = r"descend\w*|fall(?:s|ing)?|downwards?|going down|goes down|high to low|\bdown\b"


def figure(text: str) -> Figure | None:
    """The pattern that a text describes, or None where composing is free."""
    lowered = text.lower()
    if re.search(r"\bcall[- ]and[- ]|\bmelod|\bimprovis|\bostinato|\btune\b|\briff", lowered):
        return None
    kind = next((name for name, pattern in _KINDS if re.search(rf"\b(?:{pattern})", lowered)), None)
    if kind is None:
        return None
    number = _count(lowered)
    ways = _ways(lowered)
    long = re.search(r"\blong\b|\bsustained\b|\bheld\b|\bslow notes\b|\bdrawn[- ]out\b", lowered)
    short = re.search(r"\bshort\b|\bstaccato\b|\bquick\b|\bclipped\b|\bfast\b|\brapid\w*", lowered)
    length = "long" if long else "short" if short else None
    if kind == "notes" and (number is None or (ways == (0,) and length is None)):
        return None
    if kind == "arpeggio" and number is None:
        return None
    if kind == "repeated" and number is not None and number < 2:
        number = None
    default = {"scale": 8, "chromatic": 13}.get(kind)
    return Figure(kind, number or default, ways, length)


def _count(text: str) -> int | None:
    times = re.search(rf"\b({english.NUMBER}) times\b", text)
    found = re.search(rf"\b({english.NUMBER})[- ](?:(?!bars?\b|beats?\b)[\w-]+,? ){{0,4}}?(?:notes?|tones?)\b", text)
    values = [english.number(m.group(1)) for m in (times, found) if m is not None]
    return next((int(v) for v in values if v and 1 <= v <= 48), None)


def _ways(text: str) -> tuple[int, ...]:
    marks = sorted(
        [(m.start(), 1) for m in re.finditer(rf"\b(?:{_UP})", text)]
        + [(m.start(), -1) for m in re.finditer(rf"\b(?:{_DOWN})", text)]
    )
    ways = tuple(way for i, (_, way) in enumerate(marks) if i == 0 or marks[i - 1][1] != way)
    return ways[:3] or (0,)


def total_s(shape: Figure, beat_s: float) -> float | None:
    """How long it lasts when it has a count."""
    return (
        None
        if shape.count is None
        else step_s(shape, beat_s) * len(pitches(shape, 60, Key(0, "major", ""), shape.count))
    )


def step_s(shape: Figure, beat_s: float) -> float:
    """Seconds from one note to the next, so that a counted figure fits into a clip."""
    usual = {"long": 2.2, "short": max(0.3, beat_s / 2), None: beat_s}[shape.length]
    turns = max(1, len([w for w in shape.ways if w]))
    return min(usual, _LONGEST_S / (shape.count * turns)) if shape.count else usual


def pitches(shape: Figure, tonic: int, key: Key, count: int) -> list[int]:
    """MIDI pitches from a tonic near the middle of the instrument."""
    if shape.kind == "repeated":
        return [tonic] * count
    if shape.kind == "leaps":
        first = tonic if shape.ways[0] >= 0 else tonic + 12
        other = tonic + 12 if shape.ways[0] >= 0 else tonic
        return [first if i % 2 == 0 else other for i in range(count)]
    steps = MODES["chromatic"] if shape.kind == "chromatic" else MODES[key.mode]
    if shape.kind == "arpeggio" or (shape.kind == "notes" and count <= 4):
        steps = (0, 3 if 3 in MODES[key.mode] and 4 not in MODES[key.mode] else 4, 7)
    if shape.kind == "notes" and shape.ways == (0,):
        return [tonic] * count
    ladder = [tonic + 12 * (i // len(steps)) + steps[i % len(steps)] for i in range(count)]
    found: list[int] = []
    for way in shape.ways:
        run = ladder if way >= 0 else ladder[::-1]
        turns = shape.kind != "notes" and found and found[-1] == run[0]
        found += run[1:] if turns else run
    return found
