"""The kernel distance against a plain double sum, and what it promises: 0 on average between equal laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torus_ray.errors import InputError
from torus_ray.metrics import kernel as module
from torus_ray.metrics.kernel import kernel_distance, median_distance


def double_sum(x: np.ndarray, y: np.ndarray) -> float:
    """METRICS 6, written out."""
    pairs = [np.linalg.norm(y[i] - y[j]) for i in range(len(y)) for j in range(i)]
    width = np.median(pairs)

    def k(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.exp(-((a - b) ** 2).sum() / (2 * width**2)))

    n, m = len(x), len(y)
    within_x = sum(k(x[i], x[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    within_y = sum(k(y[i], y[j]) for i in range(m) for j in range(m) if i != j) / (m * (m - 1))
    return within_x + within_y - 2 * sum(k(a, b) for a in x for b in y) / (n * m)


@pytest.mark.parametrize(
    ("n", "m", "d", "shift"), [(2, 2, 1, 0.0), (7, 9, 3, 1.0), (20, 12, 64, 0.2), (5, 30, 2, 40.0)]
)
def test_it_equals_a_plain_double_sum(n: int, m: int, d: int, shift: float) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(n, d)) + shift, rng.normal(size=(m, d)) + 100
    assert kernel_distance(x, y) == pytest.approx(double_sum(x, y), abs=1e-10)


def test_blocks_and_spaced_medians_change_nothing_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(50, 4)), rng.normal(size=(61, 4)) + 0.5
    whole = kernel_distance(x, y)
    monkeypatch.setattr(module, "_BLOCK", 7)
    assert kernel_distance(x, y) == pytest.approx(whole, abs=1e-12)
    monkeypatch.setattr(module, "_MEDIAN_ROWS", 30)
    assert median_distance(y) == pytest.approx(2.7, abs=0.5)


def test_it_has_no_bias_and_a_frechet_distance_has() -> None:
    """Equal laws at 144 clips in 512 dimensions: 0 within its own noise, some of them below."""
    rng = np.random.default_rng(2)
    mix = rng.normal(size=(512, 512)) / np.arange(1, 513) ** 0.5
    found = [kernel_distance(*(rng.normal(size=(2, 144, 512)) @ mix)) for _ in range(30)]
    assert min(found) < 0 < max(found)
    assert abs(np.mean(found)) < 3 * np.std(found) / np.sqrt(30)


def test_order_does_not_matter_and_sides_do_by_bandwidth_alone() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(9, 3)), 2 * rng.normal(size=(11, 3))
    assert kernel_distance(rng.permutation(x), rng.permutation(y)) == pytest.approx(kernel_distance(x, y), abs=1e-12)
    assert kernel_distance(x, y) != pytest.approx(kernel_distance(y, x), abs=1e-3)
    assert kernel_distance(x, y, bandwidth=2) == pytest.approx(kernel_distance(y, x, bandwidth=2), abs=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0]] * 3, "rows x"),
        ([[1.0], [2.0]], [[1.0, 2.0]] * 3, "rows x"),
        ([[1.0, np.nan], [2.0, 1.0]], [[1.0, 2.0]] * 3, "x holds 1 of 4"),
        ([[1.0, 3.0], [2.0, 1.0]], [[1.0, 2.0]] * 3, "a bandwidth of 0"),
    ],
)
def test_what_has_no_distance_is_refused(x: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        kernel_distance(x, y)
