"""The systems whose released code runs here with tiny random weights, and what a case of one has to have."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from torus_ray.engine.hosting import HeadServer

CASES = {
    "tangoflux": "tangoflux",
    "unified-io-2": "unified_io2",
    "mmedit": "mmedit",
    "ace-step": "ace_step",
    "audio-omni": "audio_omni",
}
"""Card, which is also the name of its environment -> module of this folder."""

Say = Callable[[str], None]


class Case(Protocol):
    """A module of this folder. It is imported inside the system's environment.

    SETTINGS: what is smaller than the card says, by the adapter's own settings.
    MADE_SMALL: what stands for what, in words, for the report.
    BESIDE: files of code that come with the published weights and are not in the repository at its commit.
    """

    SETTINGS: Mapping[str, Any]
    MADE_SMALL: tuple[str, ...]
    BESIDE: tuple[str, ...]

    def weights(self, folder: Path, source: Path) -> Mapping[str, Path]:
        """Tiny random weights as the released loader reads them: name in the card -> path. source: the checkout, a copy
        that may be written to."""
        ...

    def patched(self, adapter: type) -> AbstractContextManager[None]:
        """What has to differ from the released code for it to run here; the sources stay as they are."""
        ...

    def prove(self, server: HeadServer, say: Say, folder: Path) -> None:
        """Ask the head as a host would. folder: of the weights. Raises AssertionError where it does not do what its
        adapter says."""
        ...


def case(card: str) -> Case:
    found: Any = importlib.import_module(f"{__package__}.{CASES[card]}")
    return found  # type: ignore[no-any-return]
