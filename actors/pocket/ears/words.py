"""Words: which are said, in what place of the sentence, which one stands out."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .reading import NUMBERS, Asked
from .traits import Opinion, scope

if TYPE_CHECKING:
    from .listen import Evidence

_CUE = (
    r"\bwords?\b|\bsaid\b|\bsays?\b|\bsaying\b|phrase|sentence|\bline\b|spoken|speaks?|"
    r"\bname[ds]?\b|mention|utter|ask(?:s|ed)?\b|tells?|announc|transcri|object|number"
)
_STRESS = (
    r"stress|emphas|accent(?!ed voice)|stands? out|strongest|prominent|loudest word|leans? on|weight|heaviest|underlin"
)
_PERSON = (
    r"\bhow\b|\bage\b|who (?:is )?(?:speak|talk)|(?:kind|type|sort) of (?:voice|person|speaker)|order|background|behind"
)
_FILLER = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "to",
        "in",
        "on",
        "at",
        "and",
        "or",
        "is",
        "are",
        "was",
        "were",
        "it",
        "that",
        "this",
        "word",
        "says",
        "said",
    ]
)


def tokens(text: str) -> list[str]:
    """Lower-case words, number words made figures."""
    return [
        f"{NUMBERS[w]:g}" if w in NUMBERS and w not in ("no", "single", "half") else w
        for w in re.findall(r"[a-z0-9']+", text.lower())
    ]


def alike(a: str, b: str) -> float:
    """Likeness of two words 0-1; small differences in ending or sound count little."""
    if a == b:
        return 1.0
    ratio = SequenceMatcher(None, a, b, autojunk=False).ratio()
    return ratio if ratio > 0.6 else 0.0


def said_share(wanted: list[str], said: list[str]) -> float:
    """Share of the wanted words that are said, in any place, with a bonus for the right order of neighbours."""
    if not wanted or not said:
        return 0.0
    each = [max(alike(w, s) for s in said) for w in wanted]
    pairs = list(pairwise(wanted))
    heard = list(pairwise(said))
    order = (
        np.mean([max((min(alike(a, x), alike(b, y)) for x, y in heard), default=0.0) for a, b in pairs])
        if pairs
        else each[0]
    )
    return float(0.7 * np.mean(each) + 0.3 * order)


def _wanted(option: str) -> list[str]:
    quoted = re.findall(r"\"([^\"]+)\"", option)
    return tokens(" ".join(quoted)) if quoted else tokens(option)


def words(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Options that are words or sentences, against the transcript (or the named part of it)."""
    if not re.search(_CUE, asked.stem) or re.search(_STRESS, asked.stem) or re.search(_PERSON, asked.stem):
        return None
    if not evidence.speech.present:
        return None
    heard = list(evidence.speech.words)
    part = _part(asked, evidence)
    inside = part if part else heard
    said = tokens(" ".join(w.text for w in inside))
    wanted = [[w for w in _wanted(o) if w not in _FILLER] or _wanted(o) for o in asked.options]
    shares = [said_share(w, said) for w in wanted]
    if max(shares) < 0.6 and not asked.negated:
        return None
    sign = -1.0 if asked.negated else 1.0
    return Opinion("words", tuple(sign * 5.0 * (s - 1.0) for s in shares), 1.3, True)


def _part(asked: Asked, evidence: Evidence) -> list:  # type: ignore[type-arg]
    """The words that the stem singles out: the first, the last, the one after or before a quoted word, or those of
    a span.
    """
    heard = list(evidence.speech.words)
    flat = [tokens(w.text)[:1] for w in heard]
    near = re.search(r"\b(after|before|follows|precedes)\b[^\"']*[\"']([a-z0-9 ']+?)[\"']", asked.stem)
    if near:
        target = tokens(near[2])
        hits = [k for k, t in enumerate(flat) if t and target and alike(t[0], target[-1]) > 0.75]
        if hits:
            step = 1 if near[1] in ("after", "follows") else -1
            k = hits[0] + step
            return heard[max(k - 0, 0) : k + 1]
    if re.search(
        r"\b(last|final|closing) word|word .*\b(last|final)|\bends? (?:with|on)\b.*word|word (?:that )?(?:ends|closes)",
        asked.stem,
    ):
        return heard[-1:]
    if re.search(r"\b(first|opening) word|word .*\bfirst\b|word (?:that )?(?:opens|begins|starts)", asked.stem):
        return heard[:1]
    if asked.ordinals or re.search(r"half|start|beginning|\bend\b", asked.stem):
        span = scope(asked, evidence)
        return [w for w in heard if span[0] - 0.1 <= (w.start_s + w.stop_s) / 2 <= span[1] + 0.1]
    return []


def stress(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Which word stands out most."""
    if not re.search(_STRESS, asked.stem) or not evidence.speech.present:
        return None
    said = [tokens(w.text) for w in evidence.speech.words]
    scores: list[float | None] = []
    for option in asked.options:
        wanted = [w for w in _wanted(option) if w not in _FILLER] or _wanted(option)
        hits = [
            evidence.voice.stress[k]
            for k, t in enumerate(said)
            if t and wanted and max(alike(w, x) for w in wanted for x in t) > 0.75
        ]
        scores.append(0.6 * max(hits) if hits else None)
    if sum(s is not None for s in scores) < 2:
        return None
    low = min(s for s in scores if s is not None) - 1.0
    return Opinion("stress", tuple(low if s is None else s for s in scores), 1.2, True)


SCORERS = (words, stress)
