"""Kernel distance: unbiased squared MMD, the companion of FAD and FD that is honest at 144 clips (METRICS 6).

Gaussian kernel exp(-|a - b|^2 / (2 s^2)), s the median distance between rows of the reference, nothing scaled. Two sets
from one law give 0 on average at any size, so the value may be a little below 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from torus_ray.errors import InputError
from torus_ray.metrics.arrays import Array, read_array

_MEDIAN_ROWS = 4_000
"""Rows, evenly spaced, from which the median is taken where the reference has more."""
_BLOCK = 1_000


def kernel_distance(x: ArrayLike, y: ArrayLike, *, bandwidth: float | None = None) -> float:
    """Unbiased squared MMD of rows x (n, d), generated, and y (m, d), reference.

    bandwidth: s; :func:`median_distance` of y where not given. Raises InputError on fewer than 2 rows, widths that
    differ, values that are not finite, or a bandwidth that is not above 0 (a reference without spread).
    """
    first, second = read_array(x, 2, "x"), read_array(y, 2, "y")
    if first.shape[1] != second.shape[1] or min(len(first), len(second)) < 2:
        raise InputError(f"rows x {first.shape} and y {second.shape}", expected="at least 2 rows each, equally wide")
    width = median_distance(second) if bandwidth is None else bandwidth
    if not (np.isfinite(width) and width > 0):
        raise InputError(f"a bandwidth of {width}", expected="a number above 0", mend="the reference has no spread")
    n, m = len(first), len(second)
    # The centre cancels out of every distance; without it, squares lose digits.
    centre = second.mean(axis=0)
    first, second = (first - centre) / width, (second - centre) / width
    within = (_kernel_sum(first, first) - n) / (n * (n - 1)) + (_kernel_sum(second, second) - m) / (m * (m - 1))
    return float(within - 2 * _kernel_sum(first, second) / (n * m))


def median_distance(rows: ArrayLike) -> float:
    """Median Euclidean distance over pairs of `rows` (n, d), n at least 2."""
    values = read_array(rows, 2, "rows")
    if len(values) > _MEDIAN_ROWS:
        values = values[np.linspace(0, len(values) - 1, _MEDIAN_ROWS).astype(int)]
    squares = _squares(values - values.mean(axis=0), values - values.mean(axis=0))
    return float(np.median(np.sqrt(squares[np.triu_indices(len(values), 1)])))


def _squares(x: Array, y: Array) -> Array:
    found: Array = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None, :] - 2 * x @ y.T
    return np.maximum(found, 0.0)


def _kernel_sum(x: Array, y: Array) -> float:
    blocks = (np.exp(-_squares(x[at : at + _BLOCK], y) / 2).sum() for at in range(0, len(x), _BLOCK))
    return float(sum(blocks))
