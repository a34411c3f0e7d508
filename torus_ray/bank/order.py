"""Option order (METRICS 1b): a digest sort, the same in every process, for every system and in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from torus_ray.bank.schema import LETTERS


def option_order(*, seed: int, item: str, options: Sequence[str]) -> list[int]:
    """Indices of `options` in the order shown: ascending sha256 of ``seed|item|option text``.

    item: "test.stage.question". The stored order of the options does not matter. Raises ValueError on equal options.
    """
    if len(set(options)) != len(options):
        raise ValueError(f"{item}: equal options cannot be told apart by letter")
    digests = [hashlib.sha256(f"{seed}|{item}|{text}".encode()).hexdigest() for text in options]
    return sorted(range(len(options)), key=digests.__getitem__)


def shown_options(*, seed: int, item: str, options: Sequence[str], shift: int = 0) -> tuple[str, ...]:
    """The option texts as shown, A first; `shift` rotates them by so many letters (the circular control; 0
    elsewhere)."""
    order = option_order(seed=seed, item=item, options=options)
    turn = shift % len(order)
    order = order[-turn:] + order[:-turn] if turn else order
    return tuple(options[i] for i in order)


def letter_of(answer: str, shown: Sequence[str]) -> str:
    """The letter under which `answer` is shown."""
    return LETTERS[tuple(shown).index(answer)]
