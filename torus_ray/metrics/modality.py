"""Modality check CM (METRICS 7): is a clip nearest to what its test asks for, speech, music or sound?

`noise` is never asked for, so a clip that is nearest to it is a miss; a clip that is missing or has no finite score is
a miss too and stays in the denominator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torus_ray.errors import InputError
from torus_ray.metrics.arrays import Array, read_array, same_length
from torus_ray.metrics.convention import Convention, Measure

LABELS = ("speech", "music", "sound", "noise")
ASKED = LABELS[:3]
PROMPTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"template": tuple(f"This is a sound of {label}." for label in LABELS), "words": LABELS}
)
"""Texts of the four labels: the usual template (headline) and the bare words; CM may move by points between them."""

NEAREST = Convention(
    name="cm.argmax4",
    title="CM",
    unit="%",
    better="higher",
    bounds=(0, 100),
    minimum=1,
    says="share of clips whose nearest text of four by cosine is that of their test's audio type",
    source="METRICS 7",
    headline=True,
)
CLASSES = Convention(
    name="cm.class_argmax4",
    title="CM, by tagger",
    unit="%",
    better="higher",
    bounds=(0, 100),
    minimum=1,
    says="share of clips whose best class among those mapped to the four labels belongs to their test's audio type",
    source="METRICS 6, embedded backbones",
    headline=True,
)
CONVENTIONS = (NEAREST, CLASSES)


@dataclass(frozen=True)
class Confusion:
    """How many clips of an audio type got a label; label None: no clip, or no finite score."""

    expected: str
    label: str | None
    clips: int


@dataclass(frozen=True)
class Modality(Measure):
    """CM in percent of all clips. hits: right ones. unlabelled: misses without a label. confusion: all cells, zeros
    too, in the order of ASKED and LABELS. n counts clips with a label, the denominator is `expected`."""

    hits: int
    unlabelled: int
    confusion: tuple[Confusion, ...]


def nearest_labels(*, audio: ArrayLike, text: ArrayLike) -> tuple[str | None, ...]:
    """Label of each row of `audio` (clips, d) by cosine with `text` (4, d) in the order of LABELS; ties: the first.

    None where no cosine is finite (a NaN, an all-zero row). Raises InputError on shapes that do not fit.
    """
    texts = read_array(text, 2, "text")
    rows = np.asarray(audio, dtype=np.float64)
    if rows.ndim != 2 or texts.shape != (len(LABELS), rows.shape[1]):
        raise InputError(
            f"audio has the shape {rows.shape} and text {texts.shape}",
            expected=f"(clips, d) and ({len(LABELS)}, d), texts in the order {', '.join(LABELS)}",
        )
    sizes: Array = np.linalg.norm(texts, axis=1, keepdims=True)
    if not sizes.all():
        raise InputError("a text embedding is all zeros", expected="four texts with a direction each")
    lengths: Array = np.linalg.norm(rows, axis=1)
    heard: NDArray[np.bool_] = np.isfinite(lengths) & (lengths > 0)
    scores = np.where(heard[:, None], rows, 0.0) @ (texts / sizes).T
    return tuple(LABELS[int(best)] if fine else None for best, fine in zip(scores.argmax(axis=1), heard, strict=True))


def class_labels(*, scores: ArrayLike, groups: Sequence[str | None]) -> tuple[str | None, ...]:
    """Label of each row of a tagger's `scores` (clips, classes): the group of its best class among those that have one.

    groups: a label, or None, for each class. None where a row is not finite. Raises InputError on unknown groups.
    """
    rows = np.asarray(scores, dtype=np.float64)
    kept = [index for index, group in enumerate(groups) if group is not None]
    unknown = sorted({str(groups[index]) for index in kept} - set(LABELS))
    if unknown or not kept:
        raise InputError(f"unknown groups: {', '.join(unknown) or 'no class has one'}", expected=", ".join(LABELS))
    if rows.ndim != 2 or rows.shape[1] != len(groups):
        raise InputError(f"scores have the shape {rows.shape}", expected=f"(clips, {len(groups)} classes)")
    heard = np.asarray(np.isfinite(rows).all(axis=1))
    best = np.where(heard[:, None], rows, 0.0)[:, kept].argmax(axis=1)
    return tuple(groups[kept[int(one)]] if fine else None for one, fine in zip(best, heard, strict=True))


def modality_check(
    *, labels: Sequence[str | None], expected: Sequence[str], convention: Convention = NEAREST, backbone: str = ""
) -> Modality:
    """CM over the clips that there should be: `labels` (None: a miss) against the audio type of each clip's test.

    Raises InputError on lengths that differ, or a word that is no label or audio type.
    """
    clips = same_length(labels=labels, expected=expected)
    for name, words, known in (("label", set(labels) - {None}, LABELS), ("audio type", set(expected), ASKED)):
        if not words <= set(known):
            raise InputError(f"unknown {name} {sorted(map(str, words - set(known)))}", expected=", ".join(known))
    cells = Counter(zip(expected, labels, strict=True))
    hits = sum(cells[asked, asked] for asked in ASKED)
    unlabelled = sum(label is None for label in labels)
    measure = convention.measure(100 * hits / clips if clips else None, clips, clips, backbone=backbone)
    return Modality(
        column=measure.column,
        value=measure.value,
        n=clips - unlabelled,
        expected=clips,
        reason=measure.reason,
        hits=hits,
        unlabelled=unlabelled,
        confusion=tuple(Confusion(asked, label, cells[asked, label]) for asked in ASKED for label in (*LABELS, None)),
    )
