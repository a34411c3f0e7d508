"""Distances between the clips of a system and those of its reference, as wholes: FAD, FD and their kernel companion.

A set is made of clips; a clip of one or more rows (VGGish frames, one CLAP vector) and belongs to a test. What is
missing is left out and counted. Tests are what is independent: floors, jackknives and swaps move whole tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torus_ray.errors import InputError
from torus_ray.metrics.arrays import Array, read_array, same_length
from torus_ray.metrics.convention import Convention, Measure
from torus_ray.metrics.frechet import frechet_distance
from torus_ray.metrics.kernel import kernel_distance, median_distance

Distance = Callable[[Array, Array], float]

FAD = Convention(
    name="fad",
    title="FAD",
    unit="squared distance",
    better="lower",
    bounds=(0, None),
    minimum=2,
    says="squared Frechet distance of the rows (frames) of all clips, pooled: a clip weighs by its length",
    source="METRICS 5",
    headline=True,
)
FD = Convention(
    name="fd",
    title="FD",
    unit="squared distance",
    better="lower",
    bounds=(0, None),
    minimum=2,
    says="squared Frechet distance of one vector a clip",
    source="METRICS 6",
    headline=True,
)
MMD2 = Convention(
    name="mmd2.rbf_median",
    title="MMD2",
    unit="squared distance",
    better="lower",
    bounds=(None, 2),
    minimum=2,
    says="unbiased squared MMD, Gaussian kernel, bandwidth the median distance in the reference; may lie just below 0",
    source="METRICS 6",
)
CONVENTIONS = (FAD, FD, MMD2)


@dataclass(frozen=True, eq=False)
class ClipSet:
    """Embeddings of a set of clips.

    rows: float64 (N, d). owner: (N,) index of the clip that a row belongs to. clips, tests: name and test of each clip
    that has rows. missing: names of those that have none.
    """

    rows: Array
    owner: NDArray[np.int64]
    clips: tuple[str, ...]
    tests: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def n(self) -> int:
        return len(self.clips)

    @property
    def expected(self) -> int:
        return len(self.clips) + len(self.missing)

    @property
    def row_tests(self) -> NDArray[np.str_]:
        """(N,) test of each row."""
        return np.array(self.tests, dtype=np.str_)[self.owner] if self.n else np.array([], dtype=np.str_)

    def rows_of(self, tests: Collection[str]) -> Array:
        """The rows of some tests."""
        kept: Array = self.rows[np.isin(self.row_tests, list(tests))]
        return kept


@dataclass(frozen=True)
class SetDistance(Measure):
    """A distance of two sets; `n` of `expected` generated clips, `reference_n` of `reference_expected`.

    rows, reference_rows: embeddings behind it. low_rank: a set has no more rows than dimensions, so that a Frechet
    distance is far above 0 even between equal laws: read it beside its floor; False where a set has no rows at all.
    """

    reference_n: int
    reference_expected: int
    rows: int
    reference_rows: int
    dimensions: int
    low_rank: bool


@dataclass(frozen=True)
class Floor:
    """What a distance would be between two sets of this size from one law. reason: why `value` is None."""

    value: float | None
    tests: int
    reference_tests: int
    splits: int
    reason: str | None


def clip_set(
    vectors: Sequence[ArrayLike | None], *, tests: Sequence[str] | None = None, clips: Sequence[str] | None = None
) -> ClipSet:
    """A set from one entry a clip: (d,), (rows, d), or None for a clip that is missing (no row counts as missing).

    tests: the test of each clip; without it each clip stands for itself. clips: names for messages.
    Raises InputError naming the clip whose values are not finite or not as wide as the others.
    """
    names = [f"clip {index}" for index in range(len(vectors))] if clips is None else list(clips)
    groups = names if tests is None else list(tests)
    same_length(vectors=vectors, clips=names, tests=groups)
    there = [index for index, vector in enumerate(vectors) if vector is not None and np.size(vector)]
    rows = [read_array(np.atleast_2d(np.asarray(vectors[index])), 2, names[index]) for index in there]
    for index, each in zip(there, rows, strict=True):
        if each.shape[1] != rows[0].shape[1]:
            raise InputError(f"{names[index]} has {each.shape[1]} dimensions, {names[there[0]]} {rows[0].shape[1]}")
    return ClipSet(
        rows=np.concatenate(rows) if rows else np.empty((0, 0)),
        owner=np.repeat(np.arange(len(rows)), [len(each) for each in rows]),
        clips=tuple(names[index] for index in there),
        tests=tuple(groups[index] for index in there),
        missing=tuple(name for index, name in enumerate(names) if index not in set(there)),
    )


def frechet(
    *, generated: ClipSet | ArrayLike, reference: ClipSet | ArrayLike, convention: Convention = FD, backbone: str = ""
) -> SetDistance:
    """FAD or FD (`convention`) of a set against its reference; an array is a set of one row a clip.

    None with a reason where a side has fewer than two clips. Raises InputError where the two are not equally wide.
    """
    return _set_distance(generated, reference, frechet_distance, convention, backbone)


def mmd(*, generated: ClipSet | ArrayLike, reference: ClipSet | ArrayLike, backbone: str = "") -> SetDistance:
    """Unbiased kernel distance MMD2 of a set against its reference, on the same embeddings.

    None with the reason `no_spread` where the rows of the reference are equal; otherwise as :func:`frechet`.
    """
    sides = _as_set(generated), _as_set(reference)
    if sides[1].n >= MMD2.minimum and median_distance(sides[1].rows) == 0:
        return _result(*sides, MMD2, backbone, None, "no_spread")
    return _set_distance(*sides, kernel_distance, MMD2, backbone)


def _as_set(given: ClipSet | ArrayLike) -> ClipSet:
    return given if isinstance(given, ClipSet) else clip_set(list(np.asarray(given)))


def _set_distance(
    generated: ClipSet | ArrayLike,
    reference: ClipSet | ArrayLike,
    distance: Distance,
    convention: Convention,
    backbone: str,
) -> SetDistance:
    ours, theirs = _as_set(generated), _as_set(reference)
    if theirs.n < convention.minimum:
        return _result(ours, theirs, convention, backbone, None, f"reference_of_{theirs.n}_clips")
    value = distance(ours.rows, theirs.rows) if ours.n >= convention.minimum else None
    return _result(ours, theirs, convention, backbone, value, "")


def _result(
    ours: ClipSet, theirs: ClipSet, convention: Convention, backbone: str, value: float | None, reason: str
) -> SetDistance:
    measure = convention.measure(value, ours.n, ours.expected, backbone=backbone, reason=reason)
    width = ours.rows.shape[1] or theirs.rows.shape[1]
    return SetDistance(
        column=measure.column,
        value=measure.value,
        n=ours.n,
        expected=ours.expected,
        reason=measure.reason,
        reference_n=theirs.n,
        reference_expected=theirs.expected,
        rows=len(ours.rows),
        reference_rows=len(theirs.rows),
        dimensions=width,
        low_rank=0 < min(len(ours.rows), len(theirs.rows)) <= width,
    )


def distance_floor(
    *,
    reference: ClipSet,
    tests: int | None = None,
    distance: Distance = frechet_distance,
    splits: int = 100,
    seed: int = 0,
) -> Floor:
    """The distance that sampling alone makes at the run's own size (METRICS 5): the mean over random half-splits of the
    reference by test, scaled by 1/n to `tests` (as many as the reference has where not given) against the reference.

    None where the reference has fewer than 4 tests. The unbiased kernel distance has a floor of 0 and needs none.
    """
    names = sorted(set(reference.tests))
    own = len(names) if tests is None else tests
    if len(names) < 4 or own < 1:
        return Floor(None, own, len(names), 0, "fewer_than_4_tests")
    rng = np.random.default_rng(seed)
    half = len(names) // 2
    found = []
    for _ in range(splits):
        order = rng.permutation(len(names))
        sides = ([names[i] for i in order[:half]], [names[i] for i in order[half : 2 * half]])
        found.append(distance(reference.rows_of(sides[0]), reference.rows_of(sides[1])))
    scale = (1 / own + 1 / len(names)) / (2 / half)
    return Floor(float(np.mean(found)) * scale, own, len(names), splits, None)


def without_each_test(*, generated: ClipSet, reference: ClipSet, distance: Distance = frechet_distance) -> list[float]:
    """The distance with each test in turn left out of both sets, for a jackknife (stats.jackknife).

    Tests in sorted order. Empty where fewer than 3 tests, or too few rows, would remain.
    """
    names = sorted(set(generated.tests) | set(reference.tests))
    if len(names) < 3:
        return []
    left = [[side.rows[side.row_tests != name] for side in (generated, reference)] for name in names]
    if min(len(rows) for pair in left for rows in pair) < 2:
        return []
    return [distance(*pair) for pair in left]


def swapped_difference(
    *, a: ClipSet, b: ClipSet, reference: ClipSet, distance: Distance = frechet_distance
) -> tuple[tuple[str, ...], Callable[[NDArray[np.bool_]], float]]:
    """Tests, and the function that a paired swap test of two systems evaluates (stats.swap_test).

    The function takes (tests,) marks of those whose clips change sides, and gives distance(a) - distance(b), both
    against the same reference. Raises InputError where a and b do not have clips of the same tests.
    """
    names = sorted(set(a.tests))
    if names != sorted(set(b.tests)) or len(names) < 2:
        lone = sorted(set(a.tests) ^ set(b.tests))
        raise InputError(
            f"{len(lone)} tests have clips in one of the two only" if lone else f"{len(names)} tests",
            where=", ".join(lone[:5]),
            expected="two systems with clips of the same tests, two at least",
        )
    rows = np.concatenate([a.rows, b.rows])
    place = np.searchsorted(names, np.concatenate([a.row_tests, b.row_tests]))
    of_b = np.repeat([False, True], [len(a.rows), len(b.rows)])

    def difference(swapped: NDArray[np.bool_]) -> float:
        second = of_b ^ swapped[place]
        return distance(rows[~second], reference.rows) - distance(rows[second], reference.rows)

    return tuple(names), difference
