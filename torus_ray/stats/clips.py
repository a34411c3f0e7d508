"""Intervals of numbers that stand for clips: a drawn test brings all its clips (METRICS 2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from torus_ray.errors import InputError
from torus_ray.stats.intervals import Estimate, estimate, numbers


def estimate_clips(
    values: ArrayLike, totals: ArrayLike, tests: Sequence[str], *, bounds: tuple[float, float] | None = None
) -> Estimate | None:
    """sum(values) / sum(totals) with both intervals, from one entry a clip and the test that it belongs to.

    Pooled WER: errors and words; a mean over clips (KL, CM as 0 and 1): values and ones. bounds: see
    intervals.estimates. None without clips. Raises InputError on lengths that differ, values that are not finite.
    """
    v, m = numbers(values, 1, "values"), numbers(totals, 1, "totals")
    if not v.shape == m.shape == (len(tests),):
        raise InputError(
            f"one value, total and test a clip, got {v.shape}, {m.shape} and {len(tests)}",
            expected="lengths that are equal",
            mend="leave out all three of a clip that is missing",
        )
    if not len(tests):
        return None
    names, place = np.unique(np.asarray(tests, dtype=np.str_), return_inverse=True)
    summed = (np.bincount(place, weights=each, minlength=len(names)) for each in (v, m))
    return estimate(*summed, bounds=bounds)
