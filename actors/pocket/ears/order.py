"""Order: options that are sequences ("a bell, then rain", "low, high, low"), and what lies first, last, before or
after.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .reading import ORDINALS, Asked
from .signal import Array
from .sources import features, meaning, moment_of, phrase_score, physical, prototype_of, source_score
from .tags import PATCH_S
from .traits import Opinion, Span, scope
from .traits_music import register_midi
from .traits_voice import SEX_OF_WORD, sex_scores

if TYPE_CHECKING:
    from .listen import Evidence

_CONNECT = (
    r"(?:,|;)?\s*(?:and )?(?:\bthen\b|\bfollowed by\b|\bafter that\b|\band finally\b|"
    r"\bfinally\b|\bnext\b|\bgiving way to\b|\bleading (?:in)?to\b|->|→)\s*|,\s*(?:and\s+)?|"
    r"\s-\s"
)
_AXES: tuple[tuple[str, dict[str, str]], ...] = (
    ("pitch", {"-": r"\blow\w*|\bdeep\w*", "+": r"\bhigh\w*", "0": r"\bmid\w*"}),
    ("level", {"-": r"\bsoft\w*|\bquiet\w*|\bfaint\w*", "+": r"\bloud\w*|\bstrong\w*", "0": r"\bmedium|\bmoderate"}),
    ("length", {"-": r"\bshort\w*|\bbrief", "+": r"\blong\w*", "0": r"\bmedium"}),
    ("place", {"-": r"\bfar\b|\bdistant", "+": r"\bnear\b|\bclose", "0": r"\bmiddle"}),
    ("side", {"-": r"\bleft\b", "+": r"\bright\b", "0": r"\bcent(?:re|er)"}),
    ("pace", {"-": r"\bslow\w*", "+": r"\bfast\w*|\bquick\w*|\brapid\w*", "0": r"\bmoderate|\bmedium"}),
)


def steps(option: str) -> list[str]:
    """The option cut into what comes one after another."""
    option = re.sub(r",? (?:and |with )?(?:after (?:it|that|this|which)|afterwards?|later)\b,?( on)?", ", then", option)
    turned = re.sub(r"^(.*?) (?:preceded by|after) (.*)$", r"\2, then \1", option)
    turned = re.sub(r"^(.*?) (?:before|until|precedes?|leads? into|gives way to) (.*)$", r"\1, then \2", turned)
    return [p.strip() for p in re.split(_CONNECT, turned) if p and p.strip()]


def _patch_scores(phrase: str, evidence: Evidence) -> Array | None:
    """Log-score of a phrase in each patch of the tagger."""
    means = meaning(phrase, evidence)
    if not means.classes and means.prototype is None:
        return None
    starts = evidence.tags.starts_s
    track = evidence.tags.track([n for n, _ in means.classes]) if means.classes else np.full(len(starts), 0.08)
    score = np.log(track + 0.03)
    if means.prototype is not None:
        score = score + 0.5 * np.asarray(
            [physical(means.prototype, features(evidence, (s + 0.1, s + PATCH_S - 0.1))) for s in starts]
        )
    return score


def _align(rows: list[Array], weight: Array) -> float:
    """Best mean score of giving each patch, in order, to one of the steps; every step gets at least one patch."""
    best = np.full(len(rows), -np.inf)
    for t in range(len(weight)):
        moved = np.concatenate([[-np.inf if t else 0.0], best[:-1]])
        stay = best if t else np.full(len(rows), -np.inf)
        best = np.maximum(stay, moved) + np.asarray([row[t] for row in rows]) * weight[t]
        if t == 0:
            best[1:] = -np.inf
    return float(best[-1] / max(weight.sum(), 1e-9))


def _split(evidence: Evidence, count: int) -> list[Span] | None:
    """The clip cut at its `count` - 1 longest silences; None where it has fewer of 0.15 s."""
    scene = evidence.scene
    gaps = sorted((g for g in scene.gaps if g[1] - g[0] > 0.15), key=lambda g: g[0] - g[1])[: count - 1]
    if len(gaps) < count - 1:
        return None
    cuts = sorted(gaps)
    starts = [scene.span_s[0], *(g[1] for g in cuts)]
    return list(zip(starts, [*(g[0] for g in cuts), scene.span_s[1]], strict=True))


def _piece_score(phrase: str, evidence: Evidence, span: Span) -> float | None:
    """Log-score of a phrase as what fills one stretch between silences; how it sounds counts beside the tags."""
    score, prototype = source_score(phrase, evidence, span), prototype_of(phrase)
    if score is None:
        return None
    voiced = sum(max(0.0, min(b, span[1]) - max(a, span[0])) for a, b in evidence.speech.spans_s)
    spoken = voiced / max(span[1] - span[0], 0.1)
    is_voice = "Speech" in [name for name, _ in meaning(phrase, evidence).classes]
    score += (2.0 * spoken - 1.0) * (1.0 if is_voice else -1.0)
    return score + (0.6 * physical(prototype, features(evidence, span)) if prototype else -0.6)


def _in_pieces(pieces: list[str], evidence: Evidence) -> float | None:
    """Mean score of each step in its stretch of the clip."""
    spans = _split(evidence, len(pieces))
    found = [_piece_score(p, evidence, s) for p, s in zip(pieces, spans, strict=True)] if spans else []
    known = [s for s in found if s is not None]
    return float(np.mean(known)) if known and len(known) == len(pieces) else None


def sequence(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Options that are sequences of sources, aligned with the tags over time."""
    cut = [steps(o) for o in asked.options]
    cued = bool(
        re.search(
            r"order|sequence|succession|come(?:s)? (?:first|next|after)|what happens|unfold|course|in which", asked.stem
        )
    )
    if sum(len(c) >= 2 for c in cut) < (3 if cued else 5) or evidence.scene.silent:
        return None
    starts = evidence.tags.starts_s
    active = evidence.scene.active
    weight = np.asarray(
        [active[int(s * 100) : int((s + PATCH_S) * 100)].mean() if int(s * 100) < len(active) else 0.0 for s in starts]
    )
    weight = np.maximum(weight, 0.05)
    scores: list[float | None] = []
    for pieces in cut:
        rows = [_patch_scores(p, evidence) for p in pieces]
        known = [r for r in rows if r is not None]
        enough = len(known) == len(rows) and len(rows) <= len(starts)
        aligned = 2.5 * _align(known, weight) if enough else None
        split = _in_pieces(pieces, evidence) if enough else None
        scores.append(aligned if aligned is None or split is None else 0.5 * aligned + 1.5 * split)
    return Opinion("sequence", tuple(scores), 1.0, cued) if sum(s is not None for s in scores) >= 3 else None


def _measured(axis: str, evidence: Evidence, spans: list[Span]) -> Array:
    scene = evidence.scene
    values = []
    for a, b in spans:
        i, j = int(a * 100), max(int(b * 100), int(a * 100) + 2)
        if axis == "pitch":
            values.append(register_midi(evidence, (a, b)) / 4.0)
        elif axis in ("level", "place"):
            values.append(float(scene.level[i:j].max(initial=-100.0)) / 4.0)
        elif axis == "length":
            values.append(float(np.log2(max(b - a, 0.03))) * 1.5)
        elif axis == "side":
            start, stop = scene.span_s
            k = int(np.clip(5 * ((a + b) / 2 - start) / max(stop - start, 0.1), 0, 4))
            values.append(2 * evidence.space.pan[k])
        else:
            inside = np.diff([t for t in scene.onsets_s if a - 0.05 <= t <= b])
            values.append(-1.5 * float(np.log2(np.median(inside))) if len(inside) else 0.0)
    return np.asarray(values)


def _pieces(evidence: Evidence, count: int) -> list[Span] | None:
    """The clip as `count` sounds: single events, sounding stretches, voice turns or bursts, whichever has that
    many; else equal parts.
    """
    scene = evidence.scene
    events = [(e.start_s, e.stop_s) for e in scene.events]
    bursts = [(g[0], g[-1] + 0.2) for g in scene.groups]
    turns = [(t.start_s, t.stop_s) for t in evidence.voice.turns] if evidence.speech.present else []
    for candidate in (turns, list(scene.segments), events, bursts):
        if len(candidate) == count:
            return candidate
    a, b = scene.span_s
    edges = np.linspace(a, b, count + 1)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def pattern(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Options such as "loud, soft, soft" or "the man, the woman, the man": each piece against the others on one
    axis.
    """
    cut = [
        re.findall(r"[a-z]+(?: [a-z]+)?", o) if "," not in o and " " in o and "-" in o else steps(o.replace("-", ", "))
        for o in asked.options
    ]
    if evidence.scene.silent:
        return None
    for axis, words in _AXES:
        marks = [
            [next((v for v, p in words.items() if re.search(p, piece)), None) for piece in pieces] for pieces in cut
        ]
        good = [len(m) >= 2 and None not in m for m in marks]
        if sum(good) < 4:
            continue
        scores: list[float | None] = []
        for pieces, usable in zip(marks, good, strict=True):
            if not usable:
                scores.append(None)
                continue
            spans = _pieces(evidence, len(pieces))
            heard = _measured(axis, evidence, spans) if spans else np.zeros(len(pieces))
            wanted = np.asarray([{"-": -1.0, "0": 0.0, "+": 1.0}[v] for v in pieces if v])
            heard, wanted = heard - heard.mean(), wanted - wanted.mean()
            scale = float(np.clip(np.abs(heard).max(), 0.6, 2.0))
            misfit = float(np.mean((heard / scale - wanted) ** 2))
            exact = len(pieces) in (
                len(evidence.scene.events),
                len(evidence.scene.segments),
                len(evidence.scene.groups),
            )
            scores.append(-1.6 * misfit - (0.0 if exact else 0.8))
        return Opinion(f"{axis} pattern", tuple(scores), 1.0, True)
    return None


def turn_pattern(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Sequences of voices by sex: "a man, then a woman"."""
    cut = [steps(o) for o in asked.options]
    marks = [
        [next((w for w, p in SEX_OF_WORD.items() if re.search(p, piece)), None) for piece in pieces] for pieces in cut
    ]
    good = [len(m) >= 2 and None not in m for m in marks]
    if sum(good) < 3 or not evidence.speech.present or not evidence.voice.turns:
        return None
    turns = evidence.voice.turns
    merged = [t for k, t in enumerate(turns) if k == 0 or t.speaker != turns[k - 1].speaker]
    scores: list[float | None] = []
    for who, usable in zip(marks, good, strict=True):
        if not usable:
            scores.append(None)
            continue
        fit = [sex_scores(evidence, evidence.voice.speaker_f0(t.speaker), (t.start_s, t.stop_s)) for t in merged]
        total = sum(f[w] for f, w in zip(fit, who, strict=False) if w)
        scores.append(float(total) / max(min(len(fit), len(who)), 1) * 2 - 1.5 * abs(len(merged) - len(who)))
    return Opinion("turns", tuple(scores), 1.0, True)


_ANCHOR = re.compile(
    (
        r"\b(after|before|follow(?:s|ing)|preced(?:es|ing)|until|once)\b (?:the |a |an "
        r")?(?:(first|second|third|last|final) )?(.+?)(?: (?:ends?|stops?|starts?|begins?|is "
        r"heard|sounds|has)\b|[,?]|$)"
    )
)


def anchored(asked: Asked, evidence: Evidence) -> Span | None:
    """The span after or before a sound that the stem names; None where it names none or it is not heard."""
    found = _ANCHOR.search(asked.stem)
    if not found:
        return None
    where, ordinal, phrase = found.groups()
    start, stop = evidence.scene.span_s
    if ordinal:
        events = evidence.scene.segments
        k = ORDINALS[ordinal]
        moment = events[k] if events and -len(events) <= k < len(events) else None
    else:
        moment = moment_of(phrase, evidence)
    if moment is None:
        return None
    if where in ("before", "until") or where.startswith("preced"):
        return (start, moment[0]) if moment[0] - start > 0.2 else None
    return (moment[1], stop) if stop - moment[1] > 0.2 else None


def behind(asked: Asked, evidence: Evidence) -> Span | None:
    """The longest stretch between attacks, where what lies behind is heard alone; None where the stem does not ask
    for that.
    """
    if not re.search(
        r"background|behind|underneath|beneath|under the|backdrop|ambien|faint|in the distance", asked.stem
    ):
        return None
    start, stop = evidence.scene.span_s
    marks = [start, *evidence.scene.onsets_s, stop]
    gaps = [(a + 0.4 * (b - a), b) for a, b in pairwise(marks) if b - a > 0.6]
    return max(gaps, key=lambda g: g[1] - g[0]) if gaps else None


def identity(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Options that name sources: which is heard in the part of the clip that the stem speaks of."""
    if evidence.scene.silent:
        return None
    span = behind(asked, evidence) or anchored(asked, evidence) or scope(asked, evidence)
    scores = [phrase_score(o, evidence, span) for o in asked.options]
    cued = bool(
        re.search(
            r"what|which|who|source|instrument|sound|heard|animal|object|background|foreground|causes?|plays?",
            asked.stem,
        )
    )
    sure = [bool(meaning(o, evidence).sure) for o in asked.options]
    if sum(s is not None for s in scores) < 3 or sum(sure) < 2:
        return None
    if asked.negated:
        scores = [None if s is None else -s for s in scores]
    return Opinion("source", tuple(scores), 0.9 * sum(sure) / len(sure), cued)
