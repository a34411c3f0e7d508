"""Which of several: options that name events, parts or groups ("the second one", "the short sounds", "the lower
part"), where the stem asks for the one that is loudest, longest, highest, nearest, or unlike the others.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from .reading import NUMBERS, Asked
from .signal import HOP_S, RATE_HZ, Array
from .traits import Opinion, Span
from .traits_music import register_midi
from .traits_place import span_colour

if TYPE_CHECKING:
    from .listen import Evidence

_ASKED: tuple[tuple[str, str, float], ...] = (
    (r"differ\w*|odd one|unlike|stands? out|not like|does(?:n't| not) (?:fit|match|belong)|out of line", "odd", 1.0),
    (r"loud\w+|\bloud|strong\w*|more force|most force|hardest|harder|heav(?:y|ier|iest)|promin\w+|accent\w*|stress\w*|"
     r"forceful|dominat\w*|greatest (?:level|volume)|more powerful|most powerful", "level", 1.0),
    (r"soft\w*|quiet\w*|faint\w*|weak\w*|gentl\w+|least loud", "level", -1.0),
    (r"longe\w+|lasts? (?:the )?(?:most|more)|more time|most time|most drawn|long-lasting", "length", 1.0),
    (r"short\w+|brief\w*|least time|less time", "length", -1.0),
    (r"highest|higher|high in pitch", "pitch", 1.0),
    (r"lowest|lower|deep\w*", "pitch", -1.0),
    (r"nearest|nearer|closest|closer|\bnear\b|\bclose\b", "near", 1.0),
    (r"farthest|furthest|farther|further|most distant|\bdistant\b|\bfar\b", "near", -1.0),
    (r"bright\w*|sharp\w*|crisp\w*|shrill\w*|clear\w*", "colour", 1.0),
    (r"dull\w*|dark\w*|muffled", "colour", -1.0),
)  # fmt: skip
"""(words of the stem, axis, sign), the first that is found counts."""
_GROUPS: tuple[tuple[str, str, float], ...] = (
    (r"\b(?:long|longer|sustained|drawn-out|held|continuous|steady)\b", "length", 1.0),
    (r"\b(?:short|shorter|brief|clipped|quick)\b", "length", -1.0),
    (r"\b(?:high|higher|upper|top|treble)\b", "pitch", 1.0),
    (r"\b(?:low|lower|bottom|bass|deep|deeper)\b", "pitch", -1.0),
    (r"\b(?:loud|louder|strong|main|foreground|dominant)\b", "level", 1.0),
    (r"\b(?:soft|softer|quiet|faint|background)\b", "level", -1.0),
    (r"\b(?:bright|sharp)\b", "colour", 1.0),
    (r"\b(?:dull|dark|muffled)\b", "colour", -1.0),
)
_PLACES: dict[str, int] = {
    "first": 0, "1st": 0, "earlier": 0, "earliest": 0, "former": 0, "opening": 0, "initial": 0, "second": 1, "2nd": 1,
    "third": 2, "3rd": 2, "fourth": 3, "4th": 3, "fifth": 4, "5th": 4, "sixth": 5, "seventh": 6, "eighth": 7,
    "last": -1, "final": -1, "later": -1, "latter": -1, "closing": -1,
}  # fmt: skip
_PLACE = re.compile(
    r"^(?:it is |it's |only )?(?:the )?(?:very )?(" + "|".join(_PLACES) + r")"
    r"(?: (?!half|third|part|quarter|seconds?|moments?|and|then)[a-z]+){0,2}$"
)
_NUMBERED = re.compile(r"(?:number|no\.?|event|sound|stroke|tone) (\d|one|two|three|four|five|six)$")
_SAME = re.compile(r"\b(?:all|both|they|each|every)\b.*\b(?:alike|equal\w*|same|identical|one)\b|equally|no difference")
_HELD_AGAINST = r"compar|\bthan\b(?! (?:the |all )?(?:others?|rest|remaining|any))"
_WIDTHS = {"level": 2.5, "length": 0.5, "pitch": 1.5, "near": 2.0, "colour": 0.35}
"""Difference on each axis (dB, octaves of time, semitones, dB, octaves of centroid) that is clearly heard."""


def _place(option: str) -> int | None:
    """The position that an option names, 0 the first and -1 the last."""
    found = _PLACE.match(option)
    if found:
        return _PLACES[found[1]]
    numbered = _NUMBERED.search(option)
    return int(NUMBERS.get(numbered[1], 0) or int(numbered[1])) - 1 if numbered else None


def pieces(evidence: Evidence, count: int | None, most: int) -> list[Span]:
    """The clip as separate sounds: `count` of them where it is known, else at most `most`; strokes, stretches, voices
    or bursts.
    """
    scene = evidence.scene
    events = [(e.start_s, e.stop_s) for e in scene.events]
    turns = [(t.start_s, t.stop_s) for t in evidence.voice.turns] if evidence.speech.present else []
    bursts = [(g[0], g[-1] + 0.25) for g in scene.groups]
    ways = [w for w in (turns, events, list(scene.segments), bursts) if len(w) >= 2]
    exact = [w for w in ways if len(w) == count]
    fitting = [w for w in ways if len(w) <= most]
    if exact or fitting:
        return exact[0] if exact else max(fitting, key=len)
    loudest = sorted(scene.events, key=lambda e: -e.gain_db)[:most]
    return [(e.start_s, e.stop_s) for e in sorted(loudest, key=lambda e: e.start_s)]


def measured(evidence: Evidence, spans: list[Span]) -> dict[str, Array]:
    """Each axis of :data:`_WIDTHS` for each piece, in units of a clear difference."""
    scene = evidence.scene
    level, length, pitch, colour = [], [], [], []
    for a, b in spans:
        i, j = int(a / HOP_S), max(int(b / HOP_S), int(a / HOP_S) + 3)
        track = scene.level[i:j]
        event = next((e for e in scene.events if abs(e.start_s - a) < 0.06), None)
        peak = float(track.max(initial=-100.0))
        struck = event is not None and b - event.stop_s < 0.3
        level.append(0.5 * event.gain_db + 0.5 * peak if event is not None and struck else peak)
        sounding = np.flatnonzero(track > peak - 15.0)
        length.append(float(np.log2(max((sounding[-1] + 1) * HOP_S if len(sounding) else b - a, 0.03))))
        pitch.append(register_midi(evidence, (a, min(b, a + 1.5)), single=True))
        colour.append(span_colour(evidence, (a, min(b, a + 0.4)))[0])
    raw = {"level": level, "length": length, "pitch": pitch, "colour": colour}
    raw["near"] = [0.7 * x + 2.5 * c for x, c in zip(level, colour, strict=True)]
    return {axis: np.asarray(values) / _WIDTHS[axis] for axis, values in raw.items()}


def oddness(axes: dict[str, Array]) -> Array:
    """How far each piece lies from all others, less how far the others lie apart: positive only for an odd one out."""
    count = len(axes["level"])
    best = np.full(count, -9.0)
    for values in (axes[k] for k in ("level", "length", "pitch", "colour")):
        for k in range(count):
            rest = np.delete(values, k)
            apart = max((abs(a - b) for a, b in combinations(rest, 2)), default=0.0)
            best[k] = max(best[k], float(np.abs(rest - values[k]).min() - 1.5 * apart))
    return best


def _members(values: Array, sign: float) -> list[int]:
    """Indices of the pieces on one side of the widest gap of an axis."""
    order = np.argsort(values, kind="stable")
    cut = int(np.diff(values[order]).argmax()) + 1
    return [int(k) for k in (order[cut:] if sign > 0 else order[:cut])]


def _lines(evidence: Evidence) -> dict[float, float] | None:
    """Level in dB of the upper (1) and the lower (-1) line of music: power at the first two partials of its notes."""
    notes = evidence.music.notes
    if evidence.kind != "music" or len(notes) < 6:
        return None
    tones = np.asarray(sorted({n.midi for n in notes}), dtype=float)
    gap = int(np.diff(tones).argmax()) if len(tones) > 1 else 0
    if len(tones) < 2 or tones[gap + 1] - tones[gap] < 5:
        return None
    border = (tones[gap] + tones[gap + 1]) / 2
    power = evidence.scene.magnitude**2
    found: dict[float, list[float]] = {1.0: [], -1.0: []}
    for note in notes:
        hz = 440 * 2 ** ((note.midi - 69) / 12)
        k, i = round(hz / (RATE_HZ / 512)), int(note.start_s / HOP_S)
        rows = power[i + 2 : max(int(note.stop_s / HOP_S), i + 6)]
        part = [rows[:, max(m * k - 1, 0) : m * k + 2].sum(axis=1).mean() for m in (1, 2, 3) if len(rows)]
        found[1.0 if note.midi > border else -1.0].append(float(sum(part)))
    return {side: 10 * float(np.log10(np.mean(v) + 1e-9)) for side, v in found.items()}


def which(asked: Asked, evidence: Evidence) -> Opinion | None:
    """The piece, group or line that an option names, by the attribute that the stem asks for."""
    if evidence.scene.silent or not re.search(r"\bwhich\b|\bwhat\b|\bwhose\b|:", asked.stem):
        return None
    aim = next(((axis, sign) for words, axis, sign in _ASKED if re.search(rf"\b(?:{words})", asked.stem)), None)
    places = [_place(o) for o in asked.options]
    sides = [next(((a, s) for w, a, s in _GROUPS if re.search(w, o)), None) for o in asked.options]
    same = [bool(_SAME.search(o)) for o in asked.options]
    sides = [
        None if re.match(r"(?:nothing|none|neither|no)\b", o) else s for o, s in zip(asked.options, sides, strict=True)
    ]
    named = [p is not None or (s is not None and not q) for p, s, q in zip(places, sides, same, strict=True)]
    if aim is None or sum(named) < 2 or re.search(_HELD_AGAINST, asked.stem):
        return None
    axis, sign = aim
    if all(p is None for p in places) and axis == "level" and any(s and s[0] == "pitch" for s in sides):
        lines = _lines(evidence)
        if lines is not None:
            difference = sign * float(np.clip((lines[1.0] - lines[-1.0]) / 4.0, -3.0, 3.0))
            scores = [
                0.5 * s[1] * difference if s and s[0] == "pitch" else 0.3 - abs(difference) / 2 if q else -1.5
                for s, q in zip(sides, same, strict=True)
            ]
            return Opinion("which", tuple(scores), 1.5, True)
    counted = re.search(r"\b(?:of|the|all) (?:the |these )?(two|three|four|five|six|seven|eight|\d)\b", asked.stem)
    count = int(NUMBERS.get(counted[1], 0) or int(counted[1])) if counted else None
    most = max([p + 1 for p in places if p is not None and p >= 0], default=6)
    spans = pieces(evidence, count or (most if -1 not in places else None), max(most, count or 2))
    if len(spans) < 2:
        return None
    axes = measured(evidence, spans)
    values = oddness(axes) if axis == "odd" else sign * axes[axis]
    return Opinion("which", tuple(_scored(values, axes, axis, places, sides, same)), 1.5, True)


def _scored(
    values: Array,
    axes: dict[str, Array],
    axis: str,
    places: list[int | None],
    sides: list[tuple[str, float] | None],
    same: list[bool],
) -> list[float | None]:
    top = float(values.max())
    rest = np.delete(values, int(values.argmax()))
    # Of numbered pieces one may stand out over alike ones; groups differ by all their members.
    other = float(np.median(rest) if any(p is not None for p in places) else rest.min())
    spread = top if axis == "odd" else top - other
    scores: list[float | None] = []
    for place, side, equal in zip(places, sides, same, strict=True):
        if place is not None:
            inside = -len(values) <= place < len(values)
            scores.append(max(float(values[place]) - top, -3.0) if inside else -3.5)
        elif equal:
            scores.append(0.4 - min(max(spread, 0.0), 2.5))
        elif side is not None:
            members = _members(axes[side[0]], side[1])
            scores.append(max(float(np.mean(values[members])) - top, -3.0))
        else:
            scores.append(-2.5)
    return scores
