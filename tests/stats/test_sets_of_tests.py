"""Jackknife over tests, paired swap tests, and clips summed inside tests."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from torus_ray.errors import InputError
from torus_ray.stats.clips import estimate_clips
from torus_ray.stats.intervals import estimate
from torus_ray.stats.jackknife import jackknife
from torus_ray.stats.swap import sign_flip, swap_test


def means_without(values: np.ndarray) -> list[float]:
    return [float(np.delete(values, i).mean()) for i in range(len(values))]


def test_the_jackknife_of_a_mean_is_its_t_interval() -> None:
    values = np.random.default_rng(0).normal(size=20)
    found = jackknife(values.mean(), means_without(values))
    assert found
    assert found.interval
    error = values.std(ddof=1) / np.sqrt(20)
    assert (found.bias, found.corrected) == (pytest.approx(0, abs=1e-12), pytest.approx(values.mean()))
    assert found.standard_error == pytest.approx(error)
    assert found.interval.half_width == pytest.approx(2.0930 * error, rel=1e-4)
    assert (found.interval.method, found.tests) == ("jackknife", 20)


def test_the_jackknife_takes_a_bias_of_one_over_n_away() -> None:
    values = np.random.default_rng(1).normal(size=15)
    without = [float(np.delete(values, i).var()) for i in range(15)]
    found = jackknife(float(values.var()), without)
    assert found
    assert found.corrected == pytest.approx(values.var(ddof=1))


def test_limits_stay_inside_the_bounds_and_few_or_equal_tests_have_none() -> None:
    found = jackknife(0.1, [0.0, 0.3, 0.0], bounds=(0, None))
    assert found
    assert found.interval
    assert found.interval.lo == 0
    assert found.interval.hi > 0.1
    assert jackknife(0.1, [0.1, 0.2]) is None
    level = jackknife(0.5, [0.5, 0.5, 0.5])
    assert level
    assert level.interval is None
    with pytest.raises(InputError, match="NaN or infinite"):
        jackknife(0.5, [0.5, np.nan, 0.1])
    with pytest.raises(InputError, match="outside of the bounds"):
        jackknife(-0.5, [0.5, 0.3, 0.1], bounds=(0, None))


def test_sign_flips_of_few_tests_are_exact() -> None:
    found = sign_flip([1.0, 1.0, 1.0, 1.0, 1.0])
    assert (found.difference, found.p_value, found.permutations, found.exact) == (1, 2 / 32, 32, True)
    assert sign_flip([0.0, 0.0, 0.0]).p_value == 1
    assert sign_flip([1.0]).p_value == 1


def test_sign_flips_of_many_tests_are_near_the_normal_law() -> None:
    gaps = np.random.default_rng(2).normal(loc=0.3, size=48)
    found = sign_flip(gaps)
    z = gaps.sum() / np.sqrt((gaps**2).sum())
    normal = 2 * (1 - 0.5 * (1 + np.tanh(z * np.sqrt(2 / np.pi) * (1 + 0.044715 * z**2))))
    assert not found.exact
    assert found.p_value == pytest.approx(normal, abs=0.02)
    assert found == sign_flip(gaps)
    assert found.p_value == sign_flip(-gaps).p_value


def test_a_swap_test_of_a_mean_is_a_sign_flip() -> None:
    a, b = np.random.default_rng(3).normal(size=(2, 8))

    def difference(swapped: np.ndarray) -> float:
        return float(np.where(swapped, b - a, a - b).mean())

    found, flipped = swap_test(difference, 8), sign_flip(a - b)
    assert found.exact
    assert (found.difference, found.p_value) == (pytest.approx(flipped.difference), pytest.approx(flipped.p_value))
    drawn = swap_test(lambda swapped: difference(swapped[:8]), 48, permutations=400)
    assert not drawn.exact
    assert drawn.p_value == pytest.approx(flipped.p_value, abs=0.08)


def test_the_p_value_is_never_zero_and_holds_its_level() -> None:
    assert sign_flip(np.ones(48)).p_value == pytest.approx(1e-4)
    rng = np.random.default_rng(4)
    level = np.mean([sign_flip(rng.normal(size=20), permutations=199).p_value <= 0.05 for _ in range(600)])
    assert level < 0.08


@pytest.mark.parametrize("gaps", [[], [[1.0]], [np.nan]])
def test_what_cannot_be_tested_is_refused(gaps: list[float]) -> None:
    with pytest.raises(InputError, match=r"at least one test|finite numbers"):
        sign_flip(gaps)


def test_a_statistic_without_a_value_is_refused() -> None:
    with pytest.raises(InputError, match="finite for every exchange"):
        swap_test(lambda marks: np.nan, 4)


def test_clips_are_summed_inside_their_tests() -> None:
    tests = ["b", "a", "a", "c", "b", "a"]
    errors, words = np.array([1, 0, 2, 3, 1, 0]), np.array([4, 5, 6, 3, 2, 1])
    found = estimate_clips(errors, words, tests)
    assert found == estimate([2, 2, 3], [12, 6, 3])
    order = np.random.default_rng(0).permutation(6)
    assert estimate_clips(errors[order], words[order], [tests[i] for i in order]) == found
    assert estimate_clips([], [], []) is None
    with pytest.raises(InputError, match="one value, total and test a clip"):
        estimate_clips([1], [1, 2], ["a"])
    assert all(left <= right for left, right in pairwise(sorted(tests)))
