"""Every convention by the name of its column: what each metric module declares about itself, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
    """The convention of a column such as ``kl.clip_mean.ref_gen.passt527``. Raises KeyError for another name."""
    names = [name for name in CONVENTIONS if column == name or column.startswith(f"{name}.")]
    if not names:
        raise KeyError(f"no convention starts {column!r}; there are {', '.join(CONVENTIONS)}")
    return CONVENTIONS[max(names, key=len)]
