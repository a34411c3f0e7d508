"""Paired swap tests of two systems on the same tests (STATS 2 and 5): if it made no difference which system a test's
clips or answers came from, exchanging them inside tests would change nothing. Valid without any normality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torus_ray.errors import InputError
from torus_ray.stats.intervals import SEED, numbers

PERMUTATIONS = 999
SIGN_FLIPS = 9_999


@dataclass(frozen=True)
class SwapTest:
    """difference: a minus b. p_value: two-sided. permutations: of which it is made; exact: they are all there are."""

    difference: float
    p_value: float
    tests: int
    permutations: int
    exact: bool


def swap_test(
    statistic: Callable[[NDArray[np.bool_]], float], tests: int, *, permutations: int = PERMUTATIONS, seed: int = SEED
) -> SwapTest:
    """Test of a difference of two set values (FAD, FD): `statistic` takes (tests,) marks of the tests whose clips
    change sides and gives the difference (metrics.sets.swapped_difference).

    All 2^tests exchanges where they are no more than `permutations`, else so many drawn ones.
    Raises InputError for no tests, and for a difference that is not finite.
    """
    marks, exact = _marks(tests, permutations, seed)
    difference = statistic(np.zeros(tests, dtype=bool))
    return _test(difference, np.array([statistic(each) for each in marks]), tests, exact)


def sign_flip(differences: ArrayLike, *, permutations: int = SIGN_FLIPS, seed: int = SEED) -> SwapTest:
    """Test of a mean difference: `differences` (tests,), a minus b for each test (coherence, WER, KL, CM).

    Raises InputError for no tests, or anything not finite.
    """
    gaps = numbers(differences, 1, "differences")
    marks, exact = _marks(len(gaps), permutations, seed)
    means = (np.where(marks, -1.0, 1.0) @ gaps) / len(gaps)
    return _test(float(gaps.mean()), means, len(gaps), exact)


def _marks(tests: int, permutations: int, seed: int) -> tuple[NDArray[np.bool_], bool]:
    if tests < 1 or permutations < 1:
        raise InputError(
            f"{tests} tests and {permutations} permutations", expected="at least one test, one permutation"
        )
    if 2**tests <= permutations:
        every = np.arange(2**tests)[:, None] >> np.arange(tests) & 1
        return every.astype(bool), True
    return np.random.default_rng([seed, tests]).random((permutations, tests)) < 0.5, False


def _test(difference: float, found: NDArray[np.float64], tests: int, exact: bool) -> SwapTest:
    if not (np.isfinite(difference) and np.isfinite(found).all()):
        raise InputError(f"a difference of {difference}", expected="a statistic that is finite for every exchange")
    # Equal up to rounding counts as at least as far: the p-value is never too small.
    reached = int((np.abs(found) >= abs(difference) - 1e-12 * max(abs(difference), 1e-300)).sum())
    p_value = reached / len(found) if exact else (reached + 1) / (len(found) + 1)
    return SwapTest(difference, p_value, tests, len(found), exact)
