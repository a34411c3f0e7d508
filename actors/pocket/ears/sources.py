"""Which source: a phrase is matched to AudioSet classes by wording and by meaning, and to how such a source sounds
physically.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from .reading import Asked
from .signal import HOP_S, Array
from .source_words import CLASSES, PROTOTYPES, Prototype
from .tags import PATCH_S

if TYPE_CHECKING:
    from .listen import Evidence
    from .traits import Span

_STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "to",
        "and",
        "or",
        "with",
        "then",
        "is",
        "are",
        "it",
        "its",
        "his",
        "her",
        "from",
        "by",
        "for",
        "as",
        "that",
        "this",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "some",
        "sound",
        "sounds",
        "sounding",
        "noise",
        "heard",
        "hear",
        "only",
        "just",
        "very",
        "short",
        "long",
        "single",
        "several",
        "low",
        "high",
        "soft",
        "loud",
        "quick",
        "slow",
        "being",
    ]
)


@dataclass(frozen=True)
class Meaning:
    """What a phrase may be: classes with weights (sum 1), and a physical prototype when its words name one."""

    classes: tuple[tuple[str, float], ...]
    prototype: Prototype | None
    sure: bool


@lru_cache(maxsize=64)
def _class_words(labels: tuple[str, ...]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(_stem(w) for w in re.findall(r"[a-z]+", label.lower())) - _STOP for label in labels)


def _stem(word: str) -> str:
    for ending in ("ing", "es", "ed", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def meaning(phrase: str, evidence: Evidence) -> Meaning:
    """Classes of a phrase: by the table of everyday words, else by words shared with class names, else by MiniLM
    nearness.
    """
    for pattern, names in CLASSES:
        if re.search(pattern, phrase):
            return Meaning(tuple((n, 1.0) for n in names), prototype_of(phrase), True)
    labels = evidence.tags.labels
    words = {_stem(w) for w in re.findall(r"[a-z]+", phrase)} - _STOP
    shared = [i for i, have in enumerate(_class_words(labels)) if have and have <= words]
    if shared:
        return Meaning(tuple((labels[i], 1.0) for i in shared), prototype_of(phrase), True)
    near = evidence.models.label_vectors @ evidence.models.embedder([phrase])[0]
    order = np.argsort(-near, kind="stable")[:4]
    kept = [(labels[i], float(near[i])) for i in order if near[i] > 0.45]
    return Meaning(tuple(kept), prototype_of(phrase), False)


def prototype_of(phrase: str) -> Prototype | None:
    return next((p for p in PROTOTYPES if re.search(p.words, phrase)), None)


def features(evidence: Evidence, span: Span) -> Array:
    """(log2 centroid Hz, log2 flatness, struck share, log2 events a second, pitch clearness, pitch range in
    octaves) of a span.
    """
    scene = evidence.scene
    a, b = int(span[0] / HOP_S), max(int(span[1] / HOP_S), int(span[0] / HOP_S) + 5)
    mask = scene.active[a:b]
    if not mask.any():
        return np.asarray([10.0, -4.0, 0.5, 0.0, 0.3, 0.2])
    weight = 10 ** (scene.level[a:b] / 20) * mask + 1e-9
    centroid = np.average(np.log2(np.maximum(scene.centroid[a:b], 60.0)), weights=weight)
    flat = np.log2(np.average(scene.flatness[a:b], weights=weight) + 0.002)
    events = [e for e in scene.events if span[0] - 0.06 <= e.start_s <= span[1]]
    struck = np.mean([e.fall_db > 8 for e in events]) if events else 0.0
    rate = np.log2(max(len(events), 0.7) / max(span[1] - span[0], 0.3))
    f0, clear = evidence.pitch
    good = (clear[a:b] > 0.7)[: len(mask)] & mask[: len(clear[a:b])]
    share = float(good.sum() / mask.sum())
    tones = np.log2(f0[a:b][: len(good)][good])
    spread = float(np.percentile(tones, 90) - np.percentile(tones, 10)) if good.sum() > 10 else 0.2
    return np.asarray([centroid, flat, struck, rate, share, spread])


_WIDTHS = np.asarray([0.9, 1.6, 0.4, 1.2, 0.35, 0.5])


def physical(prototype: Prototype, heard: Array) -> float:
    """Log-likelihood 0 to -4 of what was heard under a prototype; None in the prototype is not looked at."""
    offs = [((h - p) / w) ** 2 for h, p, w in zip(heard, prototype.features, _WIDTHS, strict=True) if p is not None]
    return max(-0.5 * float(np.mean(offs)) * 1.6, -4.0)


def source_score(phrase: str, evidence: Evidence, span: Span) -> float | None:
    """Log-score of a phrase as what sounds in a span; None where its words name no source."""
    means = meaning(phrase, evidence)
    if not means.classes and means.prototype is None:
        return None
    score = 0.0
    if means.classes:
        names = [n for n, _ in means.classes]
        mean, top = evidence.tags.of(names, *span)
        strength = (0.4 * mean + 0.6 * top) * (1.0 if means.sure else max(w for _, w in means.classes))
        score = float(np.log(strength + 0.02)) * (1.0 if means.sure else 0.7)
        if not means.sure:
            score -= 0.6
    else:
        score = -2.6
    if means.prototype is not None:
        score += 0.6 * physical(means.prototype, features(evidence, span))
    else:
        score -= 0.6
    return score


def parts(phrase: str) -> list[str]:
    """A phrase cut at "and", "with", "over" and commas: each part may be a source."""
    cut = [
        p.strip()
        for p in re.split(r",|\band\b|\bwith\b|\bover\b|\bplus\b|\balongside\b|\bbehind\b|&", phrase)
        if p.strip()
    ]
    return cut or [phrase]


def phrase_score(phrase: str, evidence: Evidence, span: Span) -> float | None:
    """As :func:`source_score`, for a phrase that may name several sources: their mean."""
    scores = [s for s in (source_score(p, evidence, span) for p in parts(phrase)) if s is not None]
    return float(np.mean(scores)) if scores else source_score(phrase, evidence, span)


def moment_of(phrase: str, evidence: Evidence) -> Span | None:
    """When a named source sounds: the patches in which its classes score at least half their best; None where it
    is not heard.
    """
    means = meaning(phrase, evidence)
    if not means.classes:
        return None
    track = evidence.tags.track([n for n, _ in means.classes])
    if track.max() < 0.15:
        return None
    hits = np.flatnonzero(track >= 0.5 * track.max())
    starts = evidence.tags.starts_s
    return float(starts[hits[0]] + PATCH_S / 4), float(starts[hits[-1]] + 3 * PATCH_S / 4)


_COUNTED = re.compile(
    (
        r"how (?:many|often)(?: times)?(?: (?:does|do|is|are|can))?(?: the| a| an)? (.+?)(?: "
        r"(?:sound|occur|heard|ring|there|happen|repeat|strike|in the)\b|\?|$)"
    )
)


def count_of_source(asked: Asked, evidence: Evidence, span: Span) -> int | None:
    """How many separate times a source that the stem names is heard, where the tagger knows it and hears it; else
    None.
    """
    found = _COUNTED.search(asked.stem)
    if not found:
        return None
    means = meaning(found[1], evidence)
    if not means.sure:
        return None
    track = evidence.tags.track([n for n, _ in means.classes])
    if track.max() < 0.3:
        return None
    strong = track >= 0.4 * track.max()
    centres = evidence.tags.starts_s + PATCH_S / 2
    near = [
        e
        for e in evidence.scene.events
        if span[0] - 0.1 <= e.start_s <= span[1] and strong[int(np.abs(centres - e.start_s - 0.2).argmin())]
    ]
    return len(near) if len(near) < len(evidence.scene.events) else None


_DULL = frozenset(
    [
        "Music",
        "Musical instrument",
        "Sound effect",
        "Silence",
        "Inside, small room",
        "Inside, large room or hall",
        "Inside, public space",
        "Outside, rural or natural",
        "Outside, urban or manmade",
        "Animal",
        "Domestic animals, pets",
        "Wild animals",
        "Noise",
        "Environmental noise",
        "Speech",
        "Vehicle",
        "Reverberation",
        "Echo",
        "Sidetone",
        "Speech synthesizer",
        "Narration, monologue",
        "Conversation",
        "Child speech, kid speaking",
        "Domestic sounds, home sounds",
        "Single-lens reflex camera",
    ]
)
"""Classes that say too little to be named in a description."""
_PLAIN = {
    "Keyboard (musical)": "keyboard",
    "Walk, footsteps": "footsteps",
    "Bird vocalization, bird call, bird song": "bird song",
    "Bowed string instrument": "bowed strings",
    "Plucked string instrument": "plucked strings",
    "Vehicle horn, car horn, honking": "car horn",
    "Burst, pop": "pop",
    "Thump, thud": "thud",
    "Chink, clink": "clinking",
    "Telephone bell ringing": "ringing telephone",
    "Police car (siren)": "police siren",
}


def heard_sources(evidence: Evidence) -> list[tuple[str, float, float]]:
    """(plain name, first second, last second) of up to four classes that clearly score, in order of entry.

    Of classes that sound at the same time only the two strongest are named: the rest are mostly kinds of the same
    thing.
    """
    tags = evidence.tags
    strength = 0.4 * tags.mean + 0.6 * tags.peak
    found: list[tuple[str, float, float]] = []
    for i in np.argsort(-strength, kind="stable")[:14]:
        label = tags.labels[i]
        if label in _DULL or strength[i] < 0.22:
            continue
        hits = np.flatnonzero(tags.scores[:, i] >= 0.5 * tags.scores[:, i].max())
        start, stop = float(tags.starts_s[hits[0]]), float(tags.starts_s[hits[-1]] + PATCH_S)
        same = sum(min(stop, b) - max(start, a) > 0.5 * min(stop - start, b - a) for _, a, b in found)
        if same < 2:
            found.append((_plain(label), start, stop))
        if len(found) == 4:
            break
    return sorted(found, key=lambda f: f[1])


_DOUBTFUL = frozenset(
    [
        "Synthesizer", "Sampler", "Busy signal", "Dial tone", "Electric shaver, electric razor", "Electric toothbrush",
        "Buzzer", "Sine wave", "Chirp tone", "Harmonic", "Hum", "Mains hum", "Theremin", "Ping", "Ding", "Ding-dong",
        "Plop", "Glass", "Chink, clink", "Spray", "Static", "Pulse", "Throbbing", "Clicking", "Tuning fork",
        "Beatboxing",
        "Typewriter", "Camera", "Zipper (clothing)", "Cash register", "Printer", "Scissors", "Chop",
        "Cutlery, silverware",
        "Electronic music", "Video game music", "Sound effect", "Whoosh, swoosh, swish", "Toot", "Boing", "Telephone",
        "Singing bowl", "Effects unit", "Arrow", "Rub", "Basketball bounce", "Ringtone", "Telephone bell ringing",
        "Alarm", "Keyboard (musical)", "Stream", "Waterfall", "Fire", "Crackle", "Mechanisms", "Frog", "Insect", "Pant",
        "Whip", "Heart sounds, heartbeat", "Heart murmur", "Biting", "Chewing, mastication", "Snake",
        "Burping, eructation",
    ]
)  # fmt: skip
"""Classes that the tagger gives to many synthetic or plain sounds: named only when it is nearly certain."""


def clear_sources(evidence: Evidence) -> list[tuple[str, float, float]]:
    """As :func:`heard_sources`, of those that a description may name: a clear score, and a sound that fits the name."""
    tags = evidence.tags
    strength = 0.4 * tags.mean + 0.6 * tags.peak
    found = []
    for name, start, stop in heard_sources(evidence):
        score, label = max(
            (float(strength[i]), label)
            for i, label in enumerate(tags.labels)
            if label not in _DULL and _plain(label) == name
        )
        prototype = prototype_of(name)
        fits = physical(prototype, features(evidence, (start, stop))) if prototype else -1.0
        if score > (0.8 if label in _DOUBTFUL else 0.5) and (fits > -2.2 or score > 0.85):
            found.append((name, start, stop))
    return found


def _plain(label: str) -> str:
    return _PLAIN.get(label, label.split(",")[0].split(" (")[0].lower())
