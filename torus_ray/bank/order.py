"""Option order (METRICS 1b): a digest sort, the same in every process, for every system and in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from torus_ray.bank.schema import LETTERS
from torus_ray.errors import InputError


def option_order(*, seed: int, item: str, options: Sequence[str]) -> list[int]:
    """Indices of `options` in the order shown: ascending sha256 of ``seed|item|option text``.

    item: "test.stage.question". The stored order of the options does not matter. Raises InputError on equal
    options, and on none at all.
    """
    if not options or len(set(options)) != len(options):
        raise InputError(
            "equal options cannot be told apart by letter" if options else "there are no options",
            where=item,
            expected="texts that differ",
            mend="mend the question",
        )
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
    """The letter under which `answer` is shown. Raises InputError where it is not among the options."""
    lettered = tuple(shown)[: len(LETTERS)]
    if answer not in lettered:
        raise InputError(
            f"{answer!r} is not shown", expected=f"one of {lettered}", mend="pass the text of an option as it is shown"
        )
    return LETTERS[lettered.index(answer)]
