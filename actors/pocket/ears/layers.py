"""Layers: options that place two sources at once ("the voices near, the knocks far"), scored clause by clause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from .reading import Asked
from .signal import HOP_S
from .sources import meaning, prototype_of
from .traits import Opinion

if TYPE_CHECKING:
    from .listen import Evidence

_NEAR = r"\b(?:near\w*|clos(?:e|er|est)(?: by| up)?|up front|in front|foreground|prominent|loud\w*|strong\w*)\b"
_FAR = r"\b(?:far\w*(?: away| off)?|distan\w+|remote|background|behind|faint\w*|soft\w*|quiet\w*)\b"
_BOTH = r"\b(?:both|everything|all|each|equally)\b"


def _clauses(option: str) -> list[tuple[str, float]]:
    """(source phrase, 1 near or -1 far) of each clause that says where something is."""
    found = []
    for clause in re.split(r",|;|\band\b|\bwhile\b|\bbut\b|\bwith\b", option):
        near, far = re.search(_NEAR, clause), re.search(_FAR, clause)
        if bool(near) != bool(far):
            found.append((re.sub(f"{_NEAR}|{_FAR}", " ", clause).strip(), 1.0 if near else -1.0))
    return found


def strokes_over_bed(evidence: Evidence) -> float:
    """How far the strokes stand over what sounds between them, dB."""
    scene = evidence.scene
    strokes = [e for e in scene.events if e.fall_db > 12.0]
    if len(strokes) < 2:
        return 0.0
    struck = np.zeros(len(scene.level), dtype=bool)
    for event in strokes:
        struck[max(0, int(event.start_s / HOP_S) - 1) : int(event.start_s / HOP_S) + 25] = True
    bed = scene.level[~struck & (scene.level > scene.peak_db - 50.0)]
    top = sorted((e.level_db for e in strokes), reverse=True)[: max(3, len(strokes) // 2)]
    # The loud parts of a voice count as its level, not its pauses.
    return float(np.median(top) - np.percentile(bed, 75)) if len(bed) > 20 else 15.0


def layers(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Two sources, one of strokes and one that lasts: which is near and which far, by their levels."""
    clauses = [_clauses(o) for o in asked.options]
    if sum(len(c) >= 2 for c in clauses) < 2 or evidence.scene.silent:
        return None

    def struck(phrase: str) -> bool | None:
        prototype = prototype_of(phrase)
        if prototype is not None and prototype.features[2] is not None:
            return prototype.features[2] > 0.6
        if re.search(r"impact|stroke|hit|blow|bump", phrase):
            return True
        return False if meaning(phrase, evidence).sure or "people" in phrase else None

    kinds = {struck(p) for c in clauses if len(c) >= 2 for p, _ in c}
    if not {True, False} <= kinds:
        return None
    over = strokes_over_bed(evidence)
    near = {True: float(np.clip((over - 9.0) / 5.0, -2, 2)), False: float(np.clip((9.0 - over) / 5.0, -2, 2))}
    scores: list[float | None] = []
    for option, clause in zip(asked.options, clauses, strict=True):
        if len(clause) >= 2:
            scores.append(sum(sign * near[k] for p, sign in clause if (k := struck(p)) is not None))
        elif clause and re.search(_BOTH, option):
            scores.append(1.0 - abs(near[True]))
        else:
            scores.append(None)
    return Opinion("layers", tuple(scores), 1.2, True)
