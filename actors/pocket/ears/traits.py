"""Traits: attributes with a handful of values, read from option words and weighed from evidence.

A trait is a row of data: words in the stem that ask for it, words of an option for each value, and one function
from evidence
to a log-likelihood of every value. Scoring is the same for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .reading import Asked, region

if TYPE_CHECKING:
    from .listen import Evidence

Span = tuple[float, float]
Weigh = Callable[["Evidence", Span, Asked], Mapping[str, float]]


@dataclass(frozen=True)
class Opinion:
    """What one scorer thinks: a log-score an option (None: the option does not speak of this), and how much it
    counts.
    """

    name: str
    scores: tuple[float | None, ...]
    weight: float
    asked: bool
    """Whether the stem asks for this by name."""


@dataclass(frozen=True)
class Trait:
    """An attribute with named values.

    cue: stem words that ask for it. values: option words that can only mean that value, tried in order. loose:
    words that mean
    it only where the stem asks. weigh: log-likelihood of each value.
    """

    name: str
    cue: str
    values: Mapping[str, str]
    loose: Mapping[str, str]
    weigh: Weigh

    def value(self, option: str, asked: bool) -> str | None:
        """The value an option claims: the pattern with the longest match among certain (and, if asked, loose) words."""
        tables = (self.values, self.loose) if asked else (self.values,)
        best: tuple[int, str] | None = None
        for table in tables:
            for value, pattern in table.items():
                lengths = [len(m[0]) for m in re.finditer(pattern, option) if m[0] and not _denied(option, m)]
                if lengths and (best is None or max(lengths) > best[0]):
                    best = (max(lengths), value)
        return best[1] if best else None

    def opinion(self, asked: Asked, evidence: Evidence) -> Opinion | None:
        """None where fewer than two different values are claimed."""
        cued = bool(re.search(self.cue, asked.stem))
        claims = [self.value(option, cued) for option in asked.options]
        distinct = sorted({c for c in claims if c is not None})
        share = sum(c is not None for c in claims) / len(claims)
        if len(distinct) < 2 or (not cued and share < 0.5):
            return None
        weights = self.weigh(evidence, scope(asked, evidence), asked)
        if not weights:
            return None
        known = [weights.get(v, min(weights.values())) for v in distinct]
        total = float(np.logaddexp.reduce(known))
        table = {v: max(w - total, -6.0) for v, w in zip(distinct, known, strict=True)}
        return Opinion(self.name, tuple(None if c is None else table[c] for c in claims), share, cued)


_DENIAL = re.compile(r"\b(?:no|not|never|without|isn't|doesn't|nor)\b(?: \w+)? $")


def _denied(option: str, match: re.Match[str]) -> bool:
    """Whether a "no", "not", "without" stands just before the words (and is not part of them)."""
    return bool(_DENIAL.search(option[: match.start()]))


def scope(asked: Asked, evidence: Evidence) -> Span:
    """Seconds of the clip that the stem speaks of: a named region, a numbered sound or voice, else all that sounds."""
    start, stop = evidence.scene.span_s
    part = region(asked.stem)
    if part:
        return start + part[0] * (stop - start), start + part[1] * (stop - start)
    if asked.ordinals:
        pieces = pieces_of(asked, evidence)
        index = asked.ordinals[-1]
        if pieces and -len(pieces) <= index < len(pieces):
            return pieces[index]
    return start, stop


def pieces_of(asked: Asked, evidence: Evidence) -> Sequence[Span]:
    """What "first", "second", "last" count: turns of voices, else sounding stretches, else bursts or single events."""
    if (
        re.search(r"voice|speaker|speak|person|talk|line|sentence|phrase|word|said|says", asked.stem)
        and evidence.speech.present
    ):
        return [(t.start_s, t.stop_s) for t in evidence.voice.turns]
    segments = evidence.scene.segments
    highest = max((i for i in asked.ordinals if i >= 0), default=1)
    if len(segments) > max(highest, 1):
        return segments
    events = evidence.scene.events
    return [(e.start_s, e.stop_s) for e in events] if len(events) > highest else segments


def normal(value: float, centre: float, width: float) -> float:
    """Log of a Gaussian without its constant, floored at -4.5: no single cue has a veto."""
    return max(-0.5 * ((value - centre) / width) ** 2, -4.5)
