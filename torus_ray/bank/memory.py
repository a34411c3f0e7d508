"""What lets a bank of 10,000 tests be read in seconds and a few hundred megabytes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from pydantic import BaseModel

from torus_ray.bank.schema import model_in


@contextmanager
def no_collections() -> Iterator[None]:
    """Nothing of a bank is garbage while it is read or checked, and looking for some takes longer than the work."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def set_aside() -> Iterator[None]:
    """What is there now, a bank above all, is no garbage while this lasts: looking through 10,000 tests for some takes
    seconds each time. What is made meanwhile is looked through as ever."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@cache
def _one_set(names: frozenset[str]) -> set[str]:
    return set(names)


@cache
def _models_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The fields of a model that hold models."""
    return tuple(name for name, field in model.model_fields.items() if model_in(field.annotation))


def share_field_sets(document: BaseModel) -> int:
    """Let frozen models with the same fields given share one set of their names: half of a bank's memory otherwise.

    Returns how many fields were given, in all models together.
    """
    given = document.__pydantic_fields_set__
    object.__setattr__(document, "__pydantic_fields_set__", _one_set(frozenset(given)))
    count, values = len(given), document.__dict__
    for name in _models_of(type(document)):
        value = values[name]
        if type(value) is tuple:
            for inner in value:
                count += share_field_sets(inner)
        elif value is not None:
            count += share_field_sets(value)
    return count
