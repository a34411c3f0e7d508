"""Which of several events an instruction names: "the second", "the middle one", "the last but one", "the first two"."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import english
from .edit_events import RATE, Scene, Wave, likeness, mono, spectrum
from .edit_words import part

_NTH = (
    r"first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|\d+(?:st|nd|rd|th)|last|final"
)
_FEW = r"two|three|four|five|six|seven|eight|\d|couple(?: of)?|pair(?: of)?"
Pick = Callable[[int], tuple[int, ...]]


@dataclass(frozen=True)
class Which:
    """Some of a number of events. said: the words that say it. of: count -> 0-based indices, empty when there are
    too few."""

    said: str
    of: Pick


def _at(order: int) -> Pick:
    """One event by its 1-based number, or from the end by a negative one."""
    return lambda n: ((order - 1 if order > 0 else n + order),) if abs(order) <= n and order else ()


def _run(found: re.Match[str]) -> Pick:
    many = re.sub(r" of$", "", found.group("few"))
    size = {"couple": 2, "pair": 2}.get(many, int(english.number(many) or 2))
    start = english.ordinal(found.group("edge")) or 1
    return lambda n: () if size > n else tuple(range(n - size, n) if start < 0 else range(size))


def _from_end(found: re.Match[str]) -> Pick:
    back = {"one": 2, "two": 3, "three": 4}
    said = found.groupdict()
    if said.get("but"):
        return _at(-back[said["but"]])
    return _at(-(english.ordinal(said["back"]) or 2)) if said.get("back") else _at(-2)


def _several(found: re.Match[str]) -> Pick:
    orders = [english.ordinal(word) or 1 for word in re.findall(_NTH, found.group())]
    return lambda n: tuple(sorted({i for order in orders for i in _at(order)(n)}))


def _middle(n: int) -> tuple[int, ...]:
    return ((n - 1) // 2,) if n % 2 else (n // 2 - 1, n // 2) if n else ()


_TABLE: tuple[tuple[str, Callable[[re.Match[str]], Pick]], ...] = (
    (r"(?:last|final) but (?P<but>one|two|three)", _from_end),
    (r"(?P<back>second|third|fourth|2nd|3rd|4th)[- ](?:to|from|before)[- ](?:the[- ])?(?:last|end|final)", _from_end),
    (r"one before (?:the )?(?:last|final)(?: one)?|penultimate|next[- ]to[- ](?:the[- ])?last", _from_end),
    (
        r"all (?:of )?(?:the )?(?:\w+ )?(?:but|except)(?: for)? the (?P<nth>" + _NTH + r")",
        lambda m: lambda n: tuple(i for i in range(n) if i not in _at(english.ordinal(m.group("nth")) or 1)(n)),
    ),
    (r"(?:every|each) (?:other|second|2nd)", lambda m: lambda n: tuple(range(1, n, 2))),
    (rf"(?P<edge>first|last|final|opening|closing) (?P<few>{_FEW})\b(?!-)", _run),
    (rf"(?:{_NTH})(?:(?:,? and|,| or|,? &) (?:the )?(?:{_NTH}))+", _several),
    (r"(?:middle|central|mid(?!\w)|centre|center)(?! of\b)(?= )", lambda m: _middle),
    (
        r"(?:number|no\.?|#) ?(?P<number>\d|one|two|three|four|five|six|seven|eight|nine|ten)\b",
        lambda m: _at(int(english.number(m.group("number")) or 1)),
    ),
    (
        rf"(?<=the )(?:very )?(?P<nth>{_NTH})(?! (?:half|third|quarter|time|seconds?\b|\w+ seconds?\b|minutes?\b))",
        lambda m: _at(english.ordinal(m.group("nth")) or 1),
    ),
    (r"opening(?= \w)", lambda m: _at(1)),
    (r"(?:closing|ending)(?= \w)", lambda m: _at(-1)),
)


def which(text: str) -> Which | None:
    """The selection that a text names; None when it names none or a part of time."""
    if part(text) is not None:
        return None
    for pattern, read in _TABLE:
        found = re.search(rf"(?<![\w-])(?:{pattern})", text)
        if found:
            return Which(found.group(), read(found))
    return None


def kinds(wave: Wave, scene: Scene) -> list[list[int]]:
    """Event indices by kind, in order of first appearance: groups that sound alike are of one kind, tones of the same
    timbre at other pitches too."""
    x = mono(wave)
    prints = []
    for group in scene.groups:
        first = scene.events[group[0]]
        piece = x[first.start : max(first.end, first.start + RATE // 30)]
        prints.append((spectrum(piece), spectrum(piece, _FINE)))
    out: list[list[int]] = []
    heads: list[int] = []
    for k, group in enumerate(scene.groups):
        same = next((j for j, head in enumerate(heads) if _alike(prints[k], prints[head])), None)
        if same is None:
            heads.append(k)
            out.append(list(group))
        else:
            out[same] += group
    return out


_FINE = 94
"""Bands of a spectrum at twelve an octave."""


def _alike(a: tuple[Wave, Wave], b: tuple[Wave, Wave]) -> bool:
    """Whether two band spectra agree; those of two tones may be moved by up to an octave and a half."""
    if likeness(a[0], b[0]) > 0.72:
        return True
    x, y = a[1], b[1]
    if min(float(s.max() - np.median(s)) for s in (x, y)) < 25.0:
        return False
    n = len(x)
    moved = (likeness(x[max(0, k) : n + min(0, k)], y[max(0, -k) : n + min(0, -k)]) for k in range(-18, 19))
    return max(moved) > 0.7


def whole_events(scene: Scene) -> list[tuple[int, ...]]:
    """Events as a listener counts them: onsets that follow within 0.14 s on a sound that has not stopped are part of
    it."""
    out: list[tuple[int, ...]] = []
    for i, event in enumerate(scene.events):
        before = scene.events[i - 1] if i else None
        joined = before is not None and (
            event.start - before.end <= 0.03 * RATE and event.start - scene.events[out[-1][0]].start < 0.14 * RATE
        )
        if joined:
            out[-1] = (*out[-1], i)
        else:
            out.append((i,))
    return out
