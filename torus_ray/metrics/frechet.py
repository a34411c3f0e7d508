"""Squared Frechet distance of two sets of embeddings, by singular values (METRICS 5, Numerics; FAD and FD).

    d2 = |mu_x - mu_y|^2 + tr(C_x + C_y - 2 (C_x C_y)^(1/2)),  ddof = 1, no square root of the result

With centred rows X / sqrt(n-1) and Y / sqrt(m-1) the last trace is the sum of the singular values of X Y^T: no matrix
root, no eps, and it holds for fewer rows than dimensions, where the usual routines give negative or complex numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from torus_ray.errors import InputError
from torus_ray.metrics.arrays import Array, read_array

_NOISE = 1e-6


def frechet_distance(x: ArrayLike, y: ArrayLike) -> float:
    """Squared Frechet distance of rows x (n, d) and y (m, d), symmetric, from 0; computed in float64.

    Raises InputError on fewer than 2 rows, widths that differ, or values that are not finite.
    """
    first, second = read_array(x, 2, "x"), read_array(y, 2, "y")
    if first.shape[1] != second.shape[1] or min(len(first), len(second)) < 2:
        raise InputError(
            f"rows x {first.shape} and y {second.shape}",
            expected="at least 2 rows each, equally wide",
            mend="a set distance needs the embeddings of at least two clips from the same head",
        )
    gap = first.mean(axis=0) - second.mean(axis=0)
    return _distance(gap, _factor(first), _factor(second))


def frechet_moments(mean_x: ArrayLike, cov_x: ArrayLike, mean_y: ArrayLike, cov_y: ArrayLike) -> float:
    """The same from means (d,) and covariances (d, d), for statistics that others published without their rows.

    Raises InputError on shapes that do not fit, or a matrix that is no covariance.
    """
    means = read_array(mean_x, 1, "mean_x"), read_array(mean_y, 1, "mean_y")
    covs = read_array(cov_x, 2, "cov_x"), read_array(cov_y, 2, "cov_y")
    width = len(means[0])
    if len(means[1]) != width or any(cov.shape != (width, width) for cov in covs):
        raise InputError(f"means of {width} and {len(means[1])}, covariances {covs[0].shape} and {covs[1].shape}")
    return _distance(means[0] - means[1], _root(covs[0], "cov_x"), _root(covs[1], "cov_y"))


def _factor(rows: Array) -> Array:
    """F (min(n, d), d) with F^T F the covariance of the rows."""
    centred: Array = (rows - rows.mean(axis=0)) / np.sqrt(len(rows) - 1)
    # Far more frames than dimensions: a factor as wide as they are, and ten times as short.
    return _root(centred.T @ centred, "the covariance") if len(rows) > rows.shape[1] else centred


def _root(covariance: Array, what: str) -> Array:
    """F (d, d) with F^T F = covariance, from its eigenvectors."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    largest = float(np.abs(values).max())
    if np.abs(covariance - covariance.T).max() > _NOISE * largest or values.min() < -_NOISE * largest:
        raise InputError(f"{what} is no covariance", expected="a symmetric matrix without negative eigenvalues")
    factor: Array = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    return factor


def _distance(gap: Array, first: Array, second: Array) -> float:
    scale = float(gap @ gap + (first**2).sum() + (second**2).sum())
    value = scale - 2 * float(np.linalg.svd(first @ second.T, compute_uv=False).sum())
    if value < -_NOISE * scale:
        raise ArithmeticError(f"a Frechet distance of {value} at a scale of {scale}: singular values are wrong")
    return max(value, 0.0)
