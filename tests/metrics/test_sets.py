"""Sets of clips: counts beside each distance, floors, tests left out and swapped, degenerate inputs (METRICS 5, 11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torus_ray.errors import InputError
from torus_ray.metrics.frechet import frechet_distance
from torus_ray.metrics.kernel import kernel_distance
from torus_ray.metrics.sets import (
    FAD,
    FD,
    ClipSet,
    clip_set,
    distance_floor,
    frechet,
    mmd,
    swapped_difference,
    without_each_test,
)
from torus_ray.metrics.table import CONVENTIONS, convention_of
from torus_ray.report.number import HEADINGS

ORACLES = Path(__file__).parents[1] / "oracles"


def a_set(tests: int, *, rows: int = 1, d: int = 4, shift: float = 0.0, seed: int = 0) -> ClipSet:
    """Three clips a test, `rows` rows a clip."""
    rng = np.random.default_rng(seed)
    return clip_set(
        list(rng.normal(size=(3 * tests, rows, d)) + shift), tests=[f"t{index // 3:02d}" for index in range(3 * tests)]
    )


def test_a_distance_stands_beside_its_counts() -> None:
    ours, theirs = a_set(5, rows=10, shift=1), a_set(6, rows=10, seed=1)
    found = frechet(generated=ours, reference=theirs, convention=FAD, backbone="vggish128.preact")
    assert found.value == pytest.approx(frechet_distance(ours.rows, theirs.rows))
    assert (found.column, found.reason) == ("fad.vggish128.preact", None)
    assert (found.n, found.expected, found.reference_n, found.reference_expected) == (15, 15, 18, 18)
    assert (found.rows, found.reference_rows, found.dimensions, found.low_rank) == (150, 180, 4, False)
    found_mmd = mmd(generated=ours, reference=theirs, backbone="vggish128.preact")
    assert found_mmd.column == "mmd2.rbf_median.vggish128.preact"
    assert found_mmd.value == pytest.approx(kernel_distance(ours.rows, theirs.rows))


def test_an_array_is_a_set_of_one_row_a_clip() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 20, 30))
    found = frechet(generated=x, reference=y, convention=FD, backbone="clap512.clip")
    assert (found.value, found.column) == (pytest.approx(frechet_distance(x, y)), "fd.clap512.clip")
    assert found.low_rank


def test_a_clip_weighs_by_its_frames() -> None:
    long, short = np.zeros((9, 1)), np.ones((1, 1))
    assert clip_set([long, short]).rows.mean() == pytest.approx(0.1)


def test_missing_clips_are_left_out_and_counted() -> None:
    ours = clip_set([[1.0, 2.0], None, [3.0, 1.0], np.empty((0, 2))], clips=["a", "b", "c", "d"])
    assert (ours.clips, ours.missing, ours.n, ours.expected) == (("a", "c"), ("b", "d"), 2, 4)
    found = frechet(generated=ours, reference=[[1.0, 2.0], [3.0, 1.0]])
    assert (found.value, found.n, found.expected) == (pytest.approx(0, abs=1e-12), 2, 4)


def test_a_clip_left_out_changes_the_count_beside_the_number() -> None:
    full = a_set(4)
    less = clip_set([None, *full.rows[1:]], tests=[f"t{index // 3:02d}" for index in range(12)])
    before, after = (frechet(generated=one, reference=a_set(4, seed=1)) for one in (full, less))
    assert (before.n, after.n, after.expected) == (12, 11, 12)
    assert before.value != after.value


@pytest.mark.parametrize("measure", [frechet, mmd])
def test_too_little_gives_no_number_and_says_why(measure: Any) -> None:
    enough = a_set(3)
    none, one = clip_set([None, None]), clip_set([enough.rows[:1], None])
    for ours, reason, n in ((none, "no_clips", 0), (one, "fewer_than_2_clips", 1)):
        found = measure(generated=ours, reference=enough)
        assert (found.value, found.reason, found.n, found.expected) == (None, reason, n, 2)
    assert measure(generated=enough, reference=one).reason == "reference_of_1_clips"
    assert measure(generated=none, reference=none).reason == "reference_of_0_clips"


def test_a_reference_without_spread_has_a_frechet_but_no_kernel_distance() -> None:
    flat = clip_set([[1.0, 1.0]] * 4)
    assert frechet(generated=[[1.0, 1.0], [3.0, 1.0]], reference=flat).value == pytest.approx(3)
    found = mmd(generated=[[1.0, 1.0], [3.0, 1.0]], reference=flat)
    assert (found.value, found.reason) == (None, "no_spread")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clip_set([[1.0, np.nan]], clips=["t07/edit"]), "t07/edit holds 1 of 2 values that are NaN"),
        (lambda: clip_set([[1.0, 2.0], [1.0]], clips=["a", "b"]), "b has 1 dimensions, a 2"),
        (lambda: clip_set([[1.0]], tests=["t1", "t2"]), "lengths differ: vectors 1, clips 1, tests 2"),
        (lambda: frechet(generated=[[1.0]] * 2, reference=[[1.0, 2.0]] * 2), "rows x"),
        (lambda: swapped_difference(a=a_set(3), b=a_set(4), reference=a_set(3)), "1 tests have clips in one"),
        (lambda: swapped_difference(a=a_set(1), b=a_set(1), reference=a_set(3)), "1 tests"),
    ],
)
def test_bad_rows_are_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_the_order_of_clips_does_not_matter() -> None:
    ours, theirs = a_set(5), a_set(5, seed=1, shift=0.5)
    order = np.random.default_rng(0).permutation(15)
    moved = clip_set(list(ours.rows[order]), tests=[ours.tests[i] for i in order])
    for measure in (frechet, mmd):
        found, again = (measure(generated=one, reference=theirs) for one in (ours, moved))
        assert again.value == pytest.approx(found.value, abs=1e-12)
    found, again = (without_each_test(generated=one, reference=theirs) for one in (ours, moved))
    assert again == pytest.approx(found, abs=1e-12)


def test_a_frechet_distance_is_symmetric() -> None:
    ours, theirs = a_set(5), a_set(6, seed=1, shift=0.5)
    there, back = frechet(generated=ours, reference=theirs), frechet(generated=theirs, reference=ours)
    assert there.value == pytest.approx(back.value, abs=1e-12)
    assert (there.n, back.n) == (15, 18)


def test_the_native_arm_against_itself_is_zero() -> None:
    ours = a_set(6, rows=3)
    assert frechet(generated=ours, reference=ours).value == pytest.approx(0, abs=1e-12)
    value = mmd(generated=ours, reference=ours).value
    assert value is not None
    # Unbiased for two independent sets; of a set with itself the diagonal is missing on one side only.
    assert value < 0


def test_the_floor_is_what_equal_laws_give_at_the_size_of_the_run() -> None:
    """Many draws of two independent sets of 12 tests, against the floor from one reference alone."""
    rng = np.random.default_rng(0)
    drawn = [frechet_distance(*rng.normal(size=(2, 36, 8))) for _ in range(200)]
    floors = [distance_floor(reference=a_set(12, d=8, seed=seed)).value for seed in range(10)]
    assert np.mean(floors) == pytest.approx(np.mean(drawn), rel=0.25)
    reference = a_set(12, d=8)
    whole, fewer = distance_floor(reference=reference), distance_floor(reference=reference, tests=6)
    assert whole.value is not None
    assert fewer.value == pytest.approx(1.5 * whole.value)
    assert (whole.tests, whole.reference_tests, whole.splits, whole.reason) == (12, 12, 100, None)
    assert distance_floor(reference=reference) == whole
    assert distance_floor(reference=a_set(3)).reason == "fewer_than_4_tests"
    assert distance_floor(reference=a_set(3)).value is None


def test_the_floor_of_clap_like_rows_is_near_that_of_the_oracle() -> None:
    """144 against 144 rows of one 512-d law: 0.064 in the oracle's draw, 0.053 +- 0.007 over other splits of its rows.

    Where rows are fewer than dimensions the distance falls a little slower than 1/n: the floor is somewhat low.
    """
    with np.load(ORACLES / "frechet.npz") as arrays:
        rows = arrays["clap_like_same_distribution.y"]
    reference = clip_set(list(rows), tests=[f"t{index // 3:02d}" for index in range(144)])
    assert distance_floor(reference=reference, splits=10).value == pytest.approx(0.053, rel=0.25)


def test_each_test_in_turn_is_left_out_of_both_sets() -> None:
    ours, theirs = a_set(4), a_set(4, seed=1)
    found = without_each_test(generated=ours, reference=theirs)
    assert len(found) == 4
    assert found[2] == pytest.approx(
        frechet_distance(*(np.delete(one.rows, [6, 7, 8], axis=0) for one in (ours, theirs)))
    )
    assert without_each_test(generated=a_set(2), reference=a_set(2)) == []


def test_swapping_all_tests_turns_the_sign_and_none_changes_nothing() -> None:
    a, b, reference = a_set(4, rows=2), a_set(4, seed=1, shift=0.6), a_set(5, seed=2)
    tests, difference = swapped_difference(a=a, b=b, reference=reference)
    assert tests == ("t00", "t01", "t02", "t03")
    plain = frechet_distance(a.rows, reference.rows) - frechet_distance(b.rows, reference.rows)
    assert difference(np.zeros(4, dtype=bool)) == pytest.approx(plain)
    assert difference(np.ones(4, dtype=bool)) == pytest.approx(-plain)
    only = difference(np.array([False, True, False, False]))
    mixed = [
        np.concatenate([one.rows_of(["t00", "t02", "t03"]), two.rows_of(["t01"])]) for one, two in ((a, b), (b, a))
    ]
    left, right = (frechet_distance(rows, reference.rows) for rows in mixed)
    assert only == pytest.approx(left - right)


def test_every_convention_declares_itself() -> None:
    assert len(CONVENTIONS) == 13
    assert {each.title.split(",")[0] for each in CONVENTIONS.values() if each.headline} == set(HEADINGS)
    for name, each in CONVENTIONS.items():
        assert each.name == name
        assert each.says
        assert each.source.startswith("METRICS ")
        assert each.unit in ("%", "nats", "errors per word", "squared distance")
        low, high = each.bounds
        assert low is None or high is None or low < high
    assert convention_of("kl.clip_mean.ref_gen.yamnet521").name == "kl.clip_mean.ref_gen"
    assert convention_of("fad.vggish128.preact") is FAD
    with pytest.raises(InputError, match="no convention"):
        convention_of("fadtk.vggish")


def test_a_set_without_rows_is_not_of_low_rank() -> None:
    for ours in ([], [[1.0, 2.0]]):
        found = mmd(generated=ours, reference=[])
        assert (found.value, found.reason, found.low_rank) == (None, "reference_of_0_clips", False)
    assert frechet(generated=[[1.0, 2.0]] * 2, reference=[[1.0, 2.0]] * 2).low_rank
