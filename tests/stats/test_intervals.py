"""Intervals against the oracle's exact limits, and what must hold for any counts."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torus_ray.errors import InputError
from torus_ray.stats.intervals import Estimate, dependence, estimate, estimates, wilson_interval

ORACLE: dict[str, Any] = json.loads((Path(__file__).parents[1] / "oracles" / "bootstrap.json").read_text())


def counts(case: dict[str, Any]) -> tuple[list[int], list[int]]:
    return [row.count("1") for row in case["table"]], [len(row) for row in case["table"]]


@pytest.mark.parametrize("case", ORACLE["accuracy_cases"], ids=lambda case: str(case["name"]))
def test_percentile_limits_of_the_oracle(case: dict[str, Any]) -> None:
    found = estimate(*counts(case), bounds=(0, 1))
    assert found.percentile
    assert 100 * found.value == pytest.approx(case["accuracy_pct"])
    limits = [100 * found.percentile.lo, 100 * found.percentile.hi]
    assert limits == pytest.approx(case["exact_percentile_pct"], abs=case["tolerance_pct"])


@pytest.mark.parametrize("case", ORACLE["accuracy_cases"], ids=lambda case: str(case["name"]))
def test_correlation_of_the_oracle(case: dict[str, Any]) -> None:
    found = dependence(*counts(case))
    assert found.icc == (None if case["icc_anova"] is None else pytest.approx(case["icc_anova"]))
    if found.icc is not None:
        assert found.design_effect == pytest.approx(1 + (case["per_test"] - 1) * found.icc)
        assert found.effective_n == pytest.approx(case["total"] / found.design_effect)


def test_a_pooled_error_rate_of_the_oracle() -> None:
    (case,) = ORACLE["ratio_cases"]
    found = estimate(case["errors"], case["words"])
    assert found.percentile
    assert found.value == pytest.approx(case["point"])
    assert [found.percentile.lo, found.percentile.hi] == pytest.approx(case["mc_100k"], abs=case["tolerance"])


def test_a_mean_over_clips_of_the_oracle() -> None:
    (case,) = ORACLE["mean_cases"]
    clips = np.array(case["per_test"])
    found = estimate(clips.sum(axis=1), [clips.shape[1]] * len(clips))
    assert found.percentile
    assert found.value == pytest.approx(case["point"])
    assert [found.percentile.lo, found.percentile.hi] == pytest.approx(case["mc_100k"], abs=case["tolerance"])


def test_bootstrap_t_equals_a_plain_loop() -> None:
    rng = np.random.default_rng(5)
    totals = rng.integers(3, 10, 12).astype(float)
    right = rng.binomial(totals.astype(int), 0.4).astype(float)

    def ratio_and_error(c: Any, m: Any) -> tuple[float, float]:
        ratio = c.sum() / m.sum()
        return ratio, float(np.sqrt(len(c) / (len(c) - 1) * ((c - ratio * m) ** 2).sum()) / m.sum())

    ratio, error = ratio_and_error(right, totals)
    ts = []
    for _ in range(20_000):
        drawn = rng.integers(0, 12, 12)
        again, spread = ratio_and_error(right[drawn], totals[drawn])
        ts.append((again - ratio) / spread)
    low, high = np.percentile(ts, [2.5, 97.5])
    found = estimate(right, totals, bounds=(0, 1)).recommended
    assert found
    assert found.method == "bootstrap_t"
    assert [found.lo, found.hi] == pytest.approx([ratio - high * error, ratio - low * error], abs=0.01)


def test_bootstrap_t_holds_what_it_promises_with_few_tests() -> None:
    """STATS 1: 16 tests of 9 questions, p 0.5, correlation 0.15: coverage about 95%, the percentile interval's less."""
    rng = np.random.default_rng(3)
    share = rng.beta(0.5 * (1 / 0.15 - 1), 0.5 * (1 / 0.15 - 1), size=(16, 400))
    found = estimates(rng.binomial(9, share), np.full((16, 400), 9.0), bounds=(0, 1), resamples=2000)
    covered = {
        method: np.mean([each.lo <= 0.5 <= each.hi for one in found if (each := getattr(one, method))])
        for method in ("percentile", "recommended")
    }
    assert 0.92 <= covered["recommended"] <= 0.985
    assert covered["percentile"] < covered["recommended"]


def test_one_test_has_no_interval() -> None:
    assert estimate([4], [9], bounds=(0, 1)) == Estimate(4 / 9, 1, None, None)
    assert dependence([4], [9]).icc is None


def test_tests_that_do_not_vary_get_wilson_with_n_tests() -> None:
    found = estimate([9] * 16, [9] * 16, bounds=(0, 1))
    assert found.recommended == wilson_interval(1, 16)
    assert found.recommended.hi == 1
    assert found.recommended.lo == pytest.approx(0.8064, abs=1e-4)
    level = estimate([3, 3, 3], [9, 9, 9], bounds=(0, 1))
    assert level.recommended == wilson_interval(1 / 3, 3)
    assert level.percentile
    assert level.percentile.half_width == 0


def test_a_difference_that_does_not_vary_has_no_recommended_interval() -> None:
    assert estimate([1, 1, 1], [9, 9, 9], bounds=(-1, 1)).recommended is None


def test_wilson_of_known_counts() -> None:
    for right, low, high in ((30, 59.8, 85.8), (19, 32.9, 62.5)):
        found = wilson_interval(right / 40, 40).scaled(100)
        assert (round(found.lo, 1), round(found.hi, 1)) == (low, high)


@pytest.mark.parametrize(
    ("values", "totals", "bounds"),
    [
        ([], [], None),
        ([1], [0], None),
        ([1, 2], [3, 0], None),
        ([1, float("nan")], [3, 3], None),
        ([1, 2], [3, 3, 3], None),
        (["one"], [1], None),
        ([1, 2], [1, 1], (0, 1)),
        ([-1, -1], [1, 1], (0, 1)),
    ],
)
def test_what_cannot_be_estimated_is_refused(
    values: list[Any], totals: list[float], bounds: tuple[float, float] | None
) -> None:
    with pytest.raises(InputError, match=r"n_tests|finite|above 0|outside of the bounds"):
        estimate(values, totals, bounds=bounds)


def test_rounding_takes_no_share_out_of_its_bounds() -> None:
    found = estimate([0.1 + 0.2, 0.3], [0.3, 0.3], bounds=(0, 1))
    assert found.recommended
    assert found.recommended.hi == 1


@pytest.mark.parametrize(
    ("share", "n", "level"), [(1.5, 10, 0.95), (float("nan"), 3, 0.95), (0.5, 0, 0.95), (0.5, -2, 0.95), (0.5, 9, 1)]
)
def test_a_share_that_is_none_has_no_interval(share: float, n: float, level: float) -> None:
    with pytest.raises(InputError, match=r"a share of|a level of"):
        wilson_interval(share, n, level)


COUNTS = st.lists(st.tuples(st.integers(0, 9), st.integers(9, 12)), min_size=2, max_size=20)


@settings(max_examples=25)
@given(COUNTS)
def test_limits_lie_in_order_around_the_value_and_in_bounds(tests: list[tuple[int, int]]) -> None:
    values, totals = zip(*tests, strict=True)
    found = estimate(values, totals, bounds=(0, 1))
    assert found.percentile
    assert found.recommended
    for each in (found.percentile, found.recommended):
        assert -1e-12 <= each.lo <= each.hi <= 1 + 1e-12
    assert found.recommended.lo - 1e-9 <= found.value <= found.recommended.hi + 1e-9


@settings(max_examples=10)
@given(COUNTS)
def test_a_ratio_has_the_same_interval_alone_and_in_company(tests: list[tuple[int, int]]) -> None:
    values, totals = (np.array(column, float) for column in zip(*tests, strict=True))
    company = estimates(np.column_stack([totals - values, values]), np.column_stack([totals, totals]), bounds=(0, 1))
    alone = estimate(values, totals, bounds=(0, 1))
    for one, other in ((alone.percentile, company[1].percentile), (alone.recommended, company[1].recommended)):
        assert one
        assert other
        assert (one.lo, one.hi) == pytest.approx((other.lo, other.hi), abs=1e-9)


def test_seven_systems_on_many_tests_take_a_fraction_of_a_second() -> None:
    values = np.random.default_rng(0).integers(0, 10, (432, 7))
    start = time.process_time()
    estimates(values, np.full((432, 7), 9.0), bounds=(0, 1))
    assert time.process_time() - start < 0.5


# --- very many tests --------------------------------------------------------------------------------------------------


def test_kinds_of_tests_give_the_intervals_of_whole_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same law, drawn otherwise: limits differ by what any two seeds differ by."""
    rng = np.random.default_rng(4)
    totals = rng.integers(2, 10, size=(1_200, 2)).astype(float)
    right = rng.binomial(totals.astype(int), rng.beta(2, 3, size=(1_200, 1))).astype(float)
    by_kind = estimates(right, totals, bounds=(0, 1), resamples=4_000)
    monkeypatch.setattr("torus_ray.stats.intervals.MANY_TESTS", 10_000)
    whole = estimates(right, totals, bounds=(0, 1), resamples=4_000)
    other = estimates(right, totals, bounds=(0, 1), resamples=4_000, seed=1)
    assert by_kind != whole
    for found, wanted, seeded in zip(by_kind, whole, other, strict=True):
        assert found.value == wanted.value
        for method in ("percentile", "recommended"):
            a, b, c = (getattr(each, method) for each in (found, wanted, seeded))
            spread = 0.1 * b.half_width
            assert abs(a.lo - b.lo) < spread
            assert abs(a.hi - b.hi) < spread
            assert abs(c.lo - b.lo) < spread, "so much do two seeds differ"


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(0, 1, 1_500),
        np.arange(1_500.0) % 1_400,
        np.where(np.arange(1_500) % 2, -1.0, 1.0),
        np.where(np.arange(1_500) % 2, 0.5, 1.0),
    ],
    ids=["no whole numbers", "as many kinds as tests", "below 0", "halves"],
)
def test_where_kinds_are_none_or_many_whole_resamples_are_drawn(values: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = estimates(values[:, None], np.full((1_500, 1), 2_000.0), resamples=200)
    monkeypatch.setattr("torus_ray.stats.intervals.MANY_TESTS", 10_000)
    assert estimates(values[:, None], np.full((1_500, 1), 2_000.0), resamples=200) == found


def test_columns_with_kinds_and_without_stand_side_by_side() -> None:
    rng = np.random.default_rng(6)
    few, many = rng.integers(0, 4, 1_200).astype(float), rng.normal(5, 1, 1_200)
    totals = np.full((1_200, 2), 9.0)
    both = estimates(np.column_stack([few, many]), totals, resamples=300)
    alone = [estimates(each[:, None], totals[:, :1], resamples=300)[0] for each in (few, many)]
    for found, wanted in zip(both, alone, strict=True):
        for method in ("percentile", "recommended"):
            a, b = getattr(found, method), getattr(wanted, method)
            assert (a.lo, a.hi) == pytest.approx((b.lo, b.hi), rel=1e-9)


def test_one_test_in_very_many_that_differs_has_limits_in_bounds() -> None:
    right = np.full(5_000, 9.0)
    right[17] = 8
    found = estimate(right, np.full(5_000, 9.0), bounds=(0, 1))
    assert found.percentile
    assert 1 - 5 / 45_000 <= found.percentile.lo < found.value < found.percentile.hi <= 1 + 1e-12
