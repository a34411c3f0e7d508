"""Intervals over whole tests (METRICS 2, STATS 1): a drawn test brings all its questions or clips.

A statistic here is a ratio sum(values) / sum(totals) over tests: right answers / questions, errors / words, summed KL /
clips. Arrays are (n_tests,) for one such ratio or (n_tests, k) for k of them over the same number of tests.
Sources: METRICS `ci.cluster_percentile` (the paper's column); STATS 1 for bootstrap-t; Wilson 1927.

A resample says how often each test is drawn. Among very many tests with small counts most are alike (7 of 9 right, 8 of
9): how often each kind is drawn is multinomial, which is the same law for a fraction of the draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torus_ray.errors import InputError

RESAMPLES = 10_000
SEED = 0
LEVEL = 0.95
CHUNK_CELLS = 2_000_000
MANY_TESTS = 1_000
"""From so many tests on, kinds of tests are drawn where there are few of them."""
MAX_KINDS = 4_096
"""Values times totals that are looked through for kinds."""

Array = NDArray[np.float64]
Method = Literal["percentile", "bootstrap_t", "wilson", "jackknife"]


@dataclass(frozen=True)
class Interval:
    """Limits in the unit of the statistic."""

    lo: float
    hi: float
    method: Method

    @property
    def half_width(self) -> float:
        """The number printed behind +-."""
        return (self.hi - self.lo) / 2

    def scaled(self, factor: float) -> Interval:
        return Interval(self.lo * factor, self.hi * factor, self.method)


@dataclass(frozen=True)
class Estimate:
    """A ratio with the paper's interval (percentile) and the recommended one. None: undefined."""

    value: float
    tests: int
    percentile: Interval | None
    recommended: Interval | None


def estimate(values: ArrayLike, totals: ArrayLike, *, bounds: tuple[float, float] | None = None) -> Estimate:
    """One ratio over tests: `values`, `totals` (n_tests,). See :func:`estimates`."""
    v, m = numbers(values, 1, "values"), numbers(totals, 1, "totals")
    return estimates(v[:, None], m[:, None], bounds=bounds)[0]


def estimates(
    values: ArrayLike,
    totals: ArrayLike,
    *,
    bounds: tuple[float, float] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    level: float = LEVEL,
) -> list[Estimate]:
    """k ratios over equally many tests: `values`, `totals` (n_tests, k). Below MANY_TESTS all share the same resamples.

    bounds: the least and largest possible ratio: bootstrap-t limits are cut there. Where the tests do not vary, a
    proportion (bounds 0 and 1) gets Wilson's interval with n = tests, anything else none. One test: no interval at all.
    Raises InputError on no tests, totals that are not above 0, anything not finite, or a ratio outside the bounds.
    """
    v, m = numbers(values, 2, "values"), numbers(totals, 2, "totals")
    if v.shape != m.shape or not len(v):
        raise InputError(
            f"values {v.shape} and totals {m.shape}", expected="(n_tests, k) both, or (n_tests,), with n_tests above 0"
        )
    if not (m > 0).all():
        raise InputError("a total is not above 0", expected="totals that are finite and above 0 for every test")
    check_level(level)
    if resamples < 1:
        raise InputError(f"{resamples} resamples", expected="at least 1")
    n = len(v)
    ratio = v.sum(axis=0) / m.sum(axis=0)
    for value in ratio:
        check_bounds(float(value), bounds or (None, None))
    if n == 1:
        return [Estimate(float(value), 1, None, None) for value in ratio]
    residual = v - ratio * m
    # Tests that all have one ratio leave rounding noise here, never a spread.
    steady = np.abs(residual).max(axis=0) <= 1e-12 * np.maximum(np.abs(v).max(axis=0), 1e-300)
    shift, t = _resampled(v, residual, m, resamples, seed)
    low, high = _ranks(resamples, level)
    for replicates in (shift, t):
        replicates.partition((low, high), axis=1)
    error = np.sqrt(n / (n - 1) * (residual**2).sum(axis=0)) / m.sum(axis=0)
    made = []
    for j, value in enumerate(map(float, ratio)):
        if steady[j]:
            wilson = wilson_interval(min(max(value, 0.0), 1.0), n, level) if bounds == (0, 1) else None
            made.append(Estimate(value, n, Interval(value, value, "percentile"), wilson))
            continue
        percentile = Interval(value + float(shift[j, low]), value + float(shift[j, high]), "percentile")
        limits = value - float(t[j, high] * error[j]), value - float(t[j, low] * error[j])
        made.append(Estimate(value, n, percentile, _within(limits, bounds)))
    return made


def _ranks(resamples: int, level: float) -> tuple[int, int]:
    """Places of the lower and upper limit among sorted replicates: order statistics, so limits stay on the grid."""
    tail = (1 - level) / 2
    low = max(int(np.floor(tail * (resamples - 1))), 0)
    return low, resamples - 1 - low


def _within(limits: tuple[float, float], bounds: tuple[float, float] | None) -> Interval | None:
    low, high = map(float, limits)
    if bounds:
        low, high = max(low, float(bounds[0])), min(high, float(bounds[1]))
    return Interval(low, high, "bootstrap_t") if np.isfinite(low) and np.isfinite(high) else None


def _resampled(values: Array, residual: Array, totals: Array, resamples: int, seed: int) -> tuple[Array, Array]:
    """Shift of the ratio and its studentised form in each resample, both (k, resamples).

    With e = v - r m the shift is sum(e*) / sum(m*), and its squared error n/(n-1) sum((e* - shift m*)^2) / sum(m*)^2.
    """
    n, k = residual.shape
    shifts, ts = np.empty((k, resamples)), np.empty((k, resamples))
    floor = 1e-12 * (residual**2).sum(axis=0)
    drawn_whole = []
    for j in range(k):
        found = _kinds(values[:, j], totals[:, j]) if n >= MANY_TESTS else None
        if found is None:
            drawn_whole.append(j)
            continue
        first, counts = found
        weights = np.random.default_rng([seed, n]).multinomial(n, counts / n, size=resamples).astype(np.float64)
        parts = _parts(residual[first, j, None], totals[first, j, None])
        shifts[j : j + 1], ts[j : j + 1] = _studentised(weights @ parts, n, floor[j : j + 1])
    if drawn_whole:
        parts = _parts(residual[:, drawn_whole], totals[:, drawn_whole])
        for start, weights in _weights(n, resamples, seed):
            at = np.ix_(drawn_whole, range(start, start + len(weights)))
            shifts[at], ts[at] = _studentised(weights @ parts, n, floor[drawn_whole])
    return shifts, ts


def _parts(residual: Array, totals: Array) -> Array:
    """What is summed over a resample: e, m, e^2, e m, m^2, side by side."""
    return np.hstack([residual, totals, residual**2, residual * totals, totals**2])


def _studentised(sums: Array, n: int, floor: Array) -> tuple[Array, Array]:
    """Shift and studentised shift (k, resamples), from the sums of _parts (resamples, 5 k)."""
    e, m, ee, em, mm = np.split(sums.T, 5)
    shift = e / m
    spread = ee - 2 * shift * em + shift**2 * mm
    # A resample whose tests are all alike has no error of its own: its t is 0 or without limit.
    spread = np.where(spread > floor[:, None], spread, 0.0)
    error = np.sqrt(n / (n - 1) * spread) / m
    still = np.where(np.abs(e) <= 1e-9 * np.sqrt(ee), 0.0, np.copysign(np.inf, e))
    return shift, np.where(error > 0, shift / np.where(error > 0, error, 1.0), still)


def _kinds(values: Array, totals: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """The first test of each kind (equal value, equal total) and how many there are; None for no small whole counts,
    or where kinds are many."""
    width = int(totals.max()) + 1
    if values.min() < 0 or (values.max() + 1) * width > MAX_KINDS:
        return None
    codes = values.astype(np.int64) * width + totals.astype(np.int64)
    if (codes != values * width + totals).any():
        return None
    counts = np.bincount(codes)
    kinds = np.flatnonzero(counts)
    first = np.empty(len(counts), dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return (first[kinds], counts[kinds]) if len(kinds) * 8 <= len(values) else None


def _weights(n: int, resamples: int, seed: int) -> Iterator[tuple[int, Array]]:
    """(first row, how often each of n tests is drawn (rows, n)) in blocks that keep memory small for any n."""
    rng = np.random.default_rng([seed, n])
    rows = max(1, CHUNK_CELLS // n)
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        drawn = rng.integers(0, n, size=(count, n), dtype=np.int64)
        drawn += n * np.arange(count)[:, None]
        yield start, np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)


def wilson_interval(share: float, n: float, level: float = LEVEL) -> Interval:
    """Wilson's score interval of a proportion `share`, from 0 to 1, among `n`, above 0. Raises InputError."""
    if not (0 <= share <= 1 and 0 < n < np.inf):
        raise InputError(f"a share of {share} among {n}", expected="a share from 0 to 1 among a number above 0")
    check_level(level)
    z2 = NormalDist().inv_cdf(0.5 + level / 2) ** 2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 / n * (share * (1 - share) + z2 / (4 * n))) / (1 + z2 / n)
    # At 0 and 1 one limit is the share itself; rounding must not put it beyond.
    low, high = float(min(centre - half, share)), float(max(centre + half, share))
    return Interval(max(low, 0.0), min(high, 1.0), "wilson")


@dataclass(frozen=True)
class Dependence:
    """How alike the answers of a test are. None: undefined (one test, one question a test, or no variation)."""

    icc: float | None
    design_effect: float | None
    effective_n: float | None


def dependence(correct: ArrayLike, totals: ArrayLike) -> Dependence:
    """Intra-test correlation (one-way ANOVA), design effect 1 + (m - 1) icc and questions / design effect.

    correct, totals: (n_tests,) counts. m is Kish's mean cluster size sum(m^2) / sum(m).
    """
    c, m = np.asarray(correct, float), np.asarray(totals, float)
    k, total = len(c), float(m.sum())
    if k < 2 or total <= k:
        return Dependence(None, None, None)
    share = c.sum() / total
    between = float((m * (c / m - share) ** 2).sum()) / (k - 1)
    within = float((c * (1 - c / m)).sum()) / (total - k)
    size = (total - float((m**2).sum()) / total) / (k - 1)
    whole = between + (size - 1) * within
    if whole <= 0:
        return Dependence(None, None, None)
    icc = (between - within) / whole
    effect = 1 + (float((m**2).sum()) / total - 1) * icc
    return Dependence(icc, effect, total / effect) if effect > 1e-9 else Dependence(icc, None, None)


# --- what is given ----------------------------------------------------------------------------------------------------


def numbers(values: ArrayLike, dimensions: int, what: str) -> Array:
    """`values` as a float64 array of so many dimensions, maybe empty. Raises InputError naming `what`."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} are no array of numbers: {error}", expected="finite numbers") from error
    if array.ndim != dimensions or not np.isfinite(array).all():
        raise InputError(
            f"{what} of the shape {array.shape} with {int((~np.isfinite(array)).sum())} that are NaN or infinite",
            expected=f"finite numbers in {dimensions} dimension{'s' * (dimensions > 1)}",
            mend="leave out what is missing",
        )
    return array


def check_bounds(value: float, bounds: tuple[float | None, float | None]) -> None:
    """Raise InputError for a value that cannot be, rounding apart; None: no limit on that side."""
    low, high = bounds
    if (low is not None and value < low - _rounding(low)) or (high is not None and value > high + _rounding(high)):
        raise InputError(
            f"the value {value:g} lies outside of the bounds {low} and {high}",
            expected="the least and the largest possible value",
            mend="mend the bounds, or what the value is made of",
        )


def _rounding(bound: float) -> float:
    return 1e-9 * max(1.0, abs(bound)) if np.isfinite(bound) else 0.0


def check_level(level: float) -> None:
    """Raise InputError for a level of confidence that is none."""
    if not 0 < level < 1:
        raise InputError(f"a level of {level}", expected="above 0 and below 1, e.g. 0.95")
