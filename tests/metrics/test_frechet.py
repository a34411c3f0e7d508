"""The Frechet distance against the oracle, closed forms, and what breaks other routes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torus_ray.errors import InputError
from torus_ray.metrics.frechet import frechet_distance, frechet_moments

ORACLES = Path(__file__).parents[1] / "oracles"
ORACLE: dict[str, Any] = json.loads((ORACLES / "frechet.json").read_text())


@pytest.mark.parametrize("case", ORACLE["cases"], ids=lambda case: str(case["name"]))
def test_rows_of_the_oracle(case: dict[str, Any]) -> None:
    with np.load(ORACLES / "frechet.npz") as arrays:
        x, y = arrays[f"{case['name']}.x"], arrays[f"{case['name']}.y"]
    assert x.shape == (case["n"], case["dim"])
    found = frechet_distance(x, y)
    assert found == pytest.approx(case["expected"], abs=case["tolerance_abs"])
    assert found >= 0
    if case["closed_form"] is not None:
        assert found == pytest.approx(case["closed_form"], abs=case["tolerance_abs"])
    assert frechet_distance(y, x) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("case", [case for case in ORACLE["cases"] if case["dim"] < 512], ids=lambda case: case["name"])
def test_moments_give_what_rows_give(case: dict[str, Any]) -> None:
    with np.load(ORACLES / "frechet.npz") as arrays:
        x, y = (arrays[f"{case['name']}.{side}"].astype(np.float64) for side in "xy")
    moments = [part for rows in (x, y) for part in (rows.mean(axis=0), np.atleast_2d(np.cov(rows.T)))]
    # Eigenvalues of a rank-deficient covariance are noise near 1e-16, and their roots are not.
    assert frechet_moments(*moments) == pytest.approx(frechet_distance(x, y), abs=1e-5)


@pytest.mark.parametrize("case", ORACLE["moment_cases"], ids=lambda case: str(case["name"]))
def test_moments_of_the_oracle(case: dict[str, Any]) -> None:
    found = frechet_moments(case["mu1"], case["cov1"], case["mu2"], case["cov2"])
    assert found == pytest.approx(case["expected"], abs=case["tolerance_abs"])


def test_a_set_against_itself_is_zero_also_with_few_rows() -> None:
    rng = np.random.default_rng(0)
    for shape in ((2, 1), (2, 512), (144, 512), (1000, 16)):
        rows = rng.normal(size=shape)
        assert 0 <= frechet_distance(rows, rows) < 1e-9
    assert frechet_distance(np.ones((5, 3)), np.ones((4, 3))) == 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(2, 12), st.integers(1, 9))
def test_it_is_finite_symmetric_and_blind_to_order_shift_and_rotation(seed: int, n: int, m: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), 3 + rng.normal(size=(m, d)) @ rng.normal(size=(d, d))
    found = frechet_distance(x, y)
    assert np.isfinite(found)
    assert found >= 0
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    for other in (
        frechet_distance(y, x),
        frechet_distance(rng.permutation(x), rng.permutation(y)),
        frechet_distance(x + 5, y + 5),
        frechet_distance(x @ turn, y @ turn),
    ):
        assert other == pytest.approx(found, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0]] * 3, "rows x"),
        (np.empty((0, 2)), [[1.0, 2.0]] * 3, "x has the shape"),
        ([[1.0], [2.0]], [[1.0, 2.0]] * 3, "rows x"),
        ([[1.0, np.nan], [2.0, 1.0]], [[1.0, 2.0]] * 3, "x holds 1 of 4"),
        ([[1.0, 2.0]] * 3, [[1.0, np.inf], [2.0, 1.0]], "y holds 1 of 4"),
        ([1.0, 2.0], [[1.0, 2.0]] * 3, "x has the shape"),
        ("loud", [[1.0, 2.0]] * 3, "x is no array"),
        ([[1e200], [-1e200]], [[1.0], [2.0]], "x holds values beyond 1e"),
    ],
)
def test_what_has_no_distance_is_refused(x: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        frechet_distance(x, y)


def test_a_matrix_that_is_no_covariance_is_refused() -> None:
    for bad in ([[1.0, 2.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]):
        with pytest.raises(InputError, match="cov_x is no covariance"):
            frechet_moments([0.0, 0.0], bad, [0.0, 0.0], np.eye(2))
    with pytest.raises(InputError, match="means of 2 and 3"):
        frechet_moments([0.0, 0.0], np.eye(2), [0.0, 0.0, 0.0], np.eye(2))
