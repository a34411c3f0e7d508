"""Python 3.11 refuses a dataclass whose field defaults to an unhashable instance, which code written for 3.10 has."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, Iterator


@contextlib.contextmanager
def hashable_dataclasses() -> Iterator[None]:
    """Dataclasses defined inside hash by their fields, so that instances of them may be defaults. For the import of the
    model's own modules and nothing else: what is imported for the first time inside is changed with them."""
    original = dataclasses.dataclass

    def dataclass(cls: Any = None, /, **keywords: Any) -> Any:
        def decorate(decorated: Any) -> Any:
            own = "__hash__" in decorated.__dict__
            return original(decorated, **(keywords if own else {"unsafe_hash": True, **keywords}))

        return decorate if cls is None else decorate(cls)

    dataclasses.dataclass = dataclass
    try:
        yield
    finally:
        dataclasses.dataclass = original
