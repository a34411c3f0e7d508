"""Delete-one-test jackknife: the interval of a number that belongs to a whole set, such as FAD and FD (STATS 5).

A bootstrap of such a distance is biased upward, as repeated clips lower the rank of a set; leaving tests out is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from torus_ray.stats.intervals import LEVEL, Interval, check_bounds, check_level, numbers


@dataclass(frozen=True)
class Jackknife:
    """bias: how far the value lies above what more tests would give, to first order; corrected: value - bias.

    interval: value +- t(tests - 1) standard errors, cut at `bounds`. None where tests do not vary.
    """

    value: float
    tests: int
    bias: float
    corrected: float
    standard_error: float
    interval: Interval | None


def jackknife(
    value: float, without: ArrayLike, *, bounds: tuple[float | None, float | None] = (None, None), level: float = LEVEL
) -> Jackknife | None:
    """From the value of all tests and its values `without` each test in turn, (tests,).

    bounds: the least and largest possible value. None for fewer than 3 tests. Raises InputError on anything not finite
    and a value outside the bounds.
    """
    left = numbers(without, 1, "values without each test")
    value = float(numbers([value], 1, "the value")[0])
    check_bounds(value, bounds)
    check_level(level)
    n = len(left)
    if n < 3:
        return None
    mean = float(left.mean())
    bias = (n - 1) * (mean - value)
    error = float(np.sqrt((n - 1) / n * ((left - mean) ** 2).sum()))
    # What is left of rounding where all tests weigh alike is no spread.
    steady = error <= 1e-9 * max(abs(value), 1e-300)
    reach = float(stdtrit(n - 1, 0.5 + level / 2)) * error
    low, high = (limit if limit is not None else endless for limit, endless in zip(bounds, _ENDLESS, strict=True))
    interval = None if steady else Interval(max(value - reach, low), min(value + reach, high), "jackknife")
    return Jackknife(value, n, bias, value - bias, error, interval)


_ENDLESS = (-np.inf, np.inf)
