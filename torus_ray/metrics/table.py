"""Every convention by the name of its column: what each metric module declares about itself, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from torus_ray.errors import InputError
from torus_ray.metrics import kl, modality, sets, wer
from torus_ray.metrics.convention import Convention

CONVENTIONS: Mapping[str, Convention] = MappingProxyType(
    {
        each.name: each
        for declared in (modality.CONVENTIONS, wer.CONVENTIONS, kl.CONVENTIONS, sets.CONVENTIONS)
        for each in declared
    }
)


def convention_of(column: str) -> Convention:
    """The convention of a column such as ``kl.clip_mean.ref_gen.passt527``. Raises InputError for another
    name."""
    names = [name for name in CONVENTIONS if column == name or column.startswith(f"{name}.")]
    if not names:
        raise InputError(
            f"no convention starts {column!r}",
            expected=f"one of {', '.join(CONVENTIONS)}, with its backbone behind it",
            mend="take the name from a table's column, or from CONVENTIONS",
        )
    return CONVENTIONS[max(names, key=len)]
