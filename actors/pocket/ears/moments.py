"""When: options that are places in the clip ("near the end", "in the middle"), for whatever the stem asks the time
of.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .reading import Asked
from .signal import smooth
from .sources import moment_of
from .traits import Opinion, normal
from .traits_level import pitch_five

if TYPE_CHECKING:
    from .listen import Evidence

_PLACES: tuple[tuple[str, tuple[float, float]], ...] = (
    (r"never|not at all|nowhere|does not|no (?:such|clear)", (-9.0, -9.0)),
    (
        (
            r"throughout|all (?:the way|along|through)|from start to (?:end|finish)|(?:the )?whole|"
            r"entire|equally|the same|always|(?:no|without) (?:change|difference)|all parts"
        ),
        (0.0, 1.0),
    ),
    (r"(?:first|opening) (?:half)", (0.0, 0.5)),
    (r"(?:second|last|latter|closing) half", (0.5, 1.0)),
    (r"both ends|start and (?:the )?end|beginning and (?:the )?end", (-1.0, -1.0)),
    (r"(?:second|middle) third|\bmiddle\b|halfway|midway|mid-?point|\bcent(?:re|er)\b|mid-clip", (0.4, 0.6)),
    (r"quarter of the way|a quarter in|early|shortly after|soon after|just after the start", (0.12, 0.35)),
    (r"three[- ]quarters|late\b|later|towards? the end|shortly before|just before the end", (0.65, 0.9)),
    (r"start|beginning|opening|outset|first|at once|immediately|very beginning", (0.0, 0.2)),
    (r"\bend(?:ing)?\b|close|finish|last|final", (0.82, 1.0)),
)


def place_of(option: str) -> tuple[float, float] | None:
    """The part of the clip that an option names, as fractions; (-9, -9) for never, (-1, -1) for both ends."""
    return next((span for pattern, span in _PLACES if re.search(pattern, option)), None)


def _extreme(track: list[float], sign: float) -> list[float]:
    values = sign * np.asarray(track, dtype=float)
    return list(values - values.max())


def loudest(evidence: Evidence, sign: float) -> list[float]:
    """dB under the loudest (or above the softest) of five parts, in units of 2 dB."""
    return [v / 2.0 for v in _extreme(evidence.scene.level_five, sign)]


def highest(evidence: Evidence, sign: float) -> list[float]:
    return [v / 1.5 for v in _extreme(pitch_five(evidence, evidence.scene.span_s), sign)]


def busiest(evidence: Evidence, sign: float) -> list[float]:
    start, stop = evidence.scene.span_s
    counts = np.histogram(evidence.scene.onsets_s, bins=5, range=(start, max(stop, start + 0.1)))[0]
    return [float(v) for v in _extreme(list(counts), sign)]


def quiet_place(evidence: Evidence, sign: float) -> list[float]:
    """Where the longest silence lies."""
    start, stop = evidence.scene.span_s
    gaps = list(evidence.scene.gaps) or [(start, start)]
    longest = max(gaps, key=lambda g: g[1] - g[0])
    middle = (sum(longest) / 2 - start) / max(stop - start, 0.1)
    return [normal(middle, centre, 0.15) for centre in (0.1, 0.3, 0.5, 0.7, 0.9)]


_TARGETS: tuple[tuple[str, Callable[["Evidence", float], list[float]], float], ...] = (
    (r"loudest|strongest|peak|most intense|climax|greatest (?:level|volume)|louder", loudest, 1.0),
    (r"quietest|softest|faintest|weakest|least loud", loudest, -1.0),
    (r"highest (?:pitch|note|tone|point)|pitch .*highest|highest", highest, 1.0),
    (r"lowest (?:pitch|note|tone|point)|pitch .*lowest|lowest", highest, -1.0),
    (r"silence|gap|pause|break", quiet_place, 1.0),
    (r"busiest|densest|fastest|most (?:sounds|events|notes|strokes)|crowded", busiest, 1.0),
    (r"sparsest|emptiest|slowest|fewest", busiest, -1.0),
)
_ENTERS = re.compile(
    (
        r"(?:when|where|at what point|in which part)(?: in the (?:clip|recording|piece))?,? "
        r"(?:does|do|is|are|can)(?: the| a| an)? (.{3,}?) (?:first )?(?:enter|start|begin|join|"
        r"come in|appear|heard|sound|stop|end|drop out|cease|leave|occur|happen)"
    )
)


def _source_time(asked: Asked, evidence: Evidence) -> list[float] | None:
    """Five-part scores for when a named source enters (or stops)."""
    found = _ENTERS.search(asked.stem)
    span = moment_of(found[1], evidence) if found else None
    if not found or span is None:
        return None
    start, stop = evidence.scene.span_s
    leaving = bool(re.search(r"stop|drop out|cease|leave|\bend\b", asked.stem))
    place = ((span[1] if leaving else span[0]) - start) / max(stop - start, 0.1)
    return [normal(place, centre, 0.18) for centre in (0.08, 0.3, 0.5, 0.7, 0.92)]


def moment(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Options that are places in time, scored by the five-part course of what the stem asks for."""
    places = [place_of(o) for o in asked.options]
    if sum(p is not None for p in places) < 4 or len({p for p in places if p}) < 2:
        return None
    if not re.search(
        (
            r"\bwhen\b|\bwhere\b|which (?:part|third|half|point|section|moment)|at what (?:point|time|"
            r"moment)|part of|point"
        ),
        asked.stem,
    ):
        return None
    course = next((f(evidence, sign) for pattern, f, sign in _TARGETS if re.search(pattern, asked.stem)), None)
    if course is None:
        course = _source_time(asked, evidence)
    if course is None:
        return None
    track = smooth(np.interp(np.linspace(0, 1, 21), [0.1, 0.3, 0.5, 0.7, 0.9], np.maximum(course, -5.0)), 3)
    spread = float(np.ptp(track))
    scores: list[float | None] = []
    for place in places:
        if place is None:
            scores.append(None)
        elif place == (0.0, 1.0):
            scores.append(-0.8 * spread + 0.2)
        elif place[0] < -5:
            scores.append(-3.5)
        elif place[0] < 0:
            scores.append(float((track[1] + track[-2]) / 2 - 0.3))
        else:
            low, high = round(place[0] * 20), max(round(place[1] * 20), round(place[0] * 20) + 1)
            scores.append(float(np.max(track[low : high + 1]) - 0.15 * (high - low) / 10))
    return Opinion("moment", tuple(scores), 1.1, True)
