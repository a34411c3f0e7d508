"""Comparing two sounds of one clip: louder, higher, longer, brighter, faster, nearer, or the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from .order import _measured
from .reading import ORDINALS, Asked
from .traits import Opinion, Span, pieces_of
from .traits_place import span_colour

if TYPE_CHECKING:
    from .listen import Evidence

_AXES: dict[str, tuple[str, float]] = {
    "louder|stronger|more forceful": ("level", 1.0),
    "softer|quieter|weaker|fainter": ("level", -1.0),
    "higher|up in pitch": ("pitch", 1.0),
    "lower|deeper": ("pitch", -1.0),
    "longer|more sustained": ("length", 1.0),
    "shorter|briefer": ("length", -1.0),
    "brighter|sharper|shriller|clearer": ("colour", 1.0),
    "duller|darker|more muffled": ("colour", -1.0),
    "faster|quicker": ("pace", 1.0),
    "slower": ("pace", -1.0),
    "nearer|closer": ("place", 1.0),
    "farther|further": ("place", -1.0),
}
_CUE = r"compar\w*|\bthan\b|relative to|versus|differ\w*|next to the|against the (?:first|second)"


def _pair(asked: Asked, evidence: Evidence) -> tuple[Span, Span] | None:
    """(the one asked about, the one it is held against)."""
    order = asked.ordinals
    pieces = list(pieces_of(asked, evidence))
    if len(pieces) < 2:
        start, stop = evidence.scene.span_s
        middle = (start + stop) / 2
        pieces = [(start, middle), (middle, stop)]
    if "half" in asked.stem:
        start, stop = evidence.scene.span_s
        return ((start + stop) / 2, stop), (start, (start + stop) / 2)
    against = re.search(
        r"\b(?:with|to|than|from|against|versus|unlike) (?:that of )?(?:the |its )?([a-z]+)", asked.stem
    )
    if len(order) >= 2 and against and ORDINALS.get(against[1]) == order[0]:
        order = (order[1], order[0])
    if len(order) >= 2 and all(-len(pieces) <= k < len(pieces) for k in order[:2]):
        return pieces[order[0]], pieces[order[1]]
    return pieces[-1], pieces[0]


def compare(asked: Asked, evidence: Evidence) -> Opinion | None:
    """How one numbered sound differs from another, by options that say in which way."""
    if not re.search(_CUE, asked.stem) or evidence.scene.silent:
        return None
    pair = _pair(asked, evidence)
    if pair is None:
        return None
    differences = {
        axis: float(np.subtract(*_measured(axis, evidence, list(pair))))
        for axis in ("level", "pitch", "length", "pace", "place")
    }
    differences["colour"] = 2.5 * (span_colour(evidence, pair[0])[0] - span_colour(evidence, pair[1])[0])
    biggest = max(abs(v) for v in differences.values())
    scores: list[float | None] = []
    for option in asked.options:
        marks = [axis for words, axis in _AXES.items() if re.search(rf"\b(?:{words})\b", option)]
        same = bool(
            re.search(r"\bsame\b|\bequal\w*|identical|no (?:clear )?difference|alike|unchanged|just as", option)
        )
        if marks:
            scores.append(
                float(np.mean([np.clip(sign * differences[axis], -2.5, 2.5) for axis, sign in marks]))
                - 0.4
                - 0.5 * same
            )
        else:
            scores.append(0.6 - min(biggest, 2.5) if same else None)
    if sum(s is not None for s in scores) < 3:
        return None
    return Opinion("comparison", tuple(scores), 1.2, True)
