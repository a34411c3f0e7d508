"""What the adapter wants of a kind of model."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, Callable, Mapping, Tuple

from torus_ray.audio import Clip

UNLIMITED = 1 << 30
"""Tokens that a text encoder without a limit takes."""


class Kind(ABC):
    """A loaded model, made from (torch, folder, dtype of the weights, device)."""

    @abstractmethod
    def length(self, text: str, settings: Mapping[str, Any]) -> Tuple[int, int]:
        """Tokens of a text, and how many the model takes."""

    @abstractmethod
    def generate(self, text: str, seed: int, settings: Mapping[str, Any]) -> Tuple[Clip, bool]:
        """A clip, and whether it ends only because it hit its length limit."""

    @abstractmethod
    def check(self, settings: Mapping[str, Any]) -> None:
        """Raises ValueError for a setting that the call does not have."""

    def edit(self, text: str, clip: Clip, seed: int, settings: Mapping[str, Any]) -> Tuple[Clip, bool]:
        raise TypeError(f"{type(self).__name__} takes no clip: take the head edit out of the card")

    def check_edit(self, settings: Mapping[str, Any]) -> None:
        self.check(settings)


def known(call: Callable[..., Any], settings: Mapping[str, Any], ours: Tuple[str, ...] = ()) -> None:
    """Raises ValueError where a setting is neither a keyword of the call nor ours."""
    taken = (*inspect.signature(call).parameters, *ours)
    unknown = [name for name in settings if name not in taken]
    if unknown:
        raise ValueError(
            f"settings that the model does not take: {', '.join(unknown)}; it takes "
            + ", ".join(taken).replace("self, ", "")
        )


def tokens_of(tokenizer: Any, text: str) -> int:
    # Not verbose: a text beyond the limit is what is looked for.
    return len(tokenizer(text, verbose=False).input_ids)
