"""Reading the arrays that a caller gives: float64, right shape, finite, or an error that names the clip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torus_ray.errors import InputError

Array = NDArray[np.float64]
_LARGEST = 1e150


def read_array(values: ArrayLike, dimensions: int, what: str) -> Array:
    """`values` as a finite float64 array of so many dimensions. Raises InputError naming `what`."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is no array of numbers: {error}", expected=f"{dimensions} dimensions") from error
    if array.ndim != dimensions or 0 in array.shape:
        raise InputError(
            f"{what} has the shape {array.shape}",
            expected=f"{dimensions} dimensions, none of them empty",
            mend="pass None for a clip that is missing",
        )
    if not np.isfinite(array).all():
        bad = int(array.size - np.isfinite(array).sum())
        raise InputError(
            f"{what} holds {bad} of {array.size} values that are NaN or infinite",
            expected="finite numbers",
            mend="pass None for a clip that could not be measured",
        )
    if np.abs(array).max() > _LARGEST:
        raise InputError(f"{what} holds values beyond {_LARGEST:.0e}", expected="numbers whose squares fit in float64")
    return array


def same_length(**sides: Sequence[object]) -> int:
    """The common length of sequences. Raises InputError naming those that differ: pairs are never cut short."""
    lengths = {name: len(side) for name, side in sides.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"lengths differ: {told}", expected="one entry a clip in each, None where a clip is missing")
    return next(iter(lengths.values()))
