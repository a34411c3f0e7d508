"""What somebody may have meant by a name that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

ALIKE = 0.6


def near_names(word: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The names that are most like `word`, nearest first; case and leading zeros of numbers do not count."""
    matcher = difflib.SequenceMatcher(b=_plain(word))
    found: list[tuple[float, str]] = []
    for name in names:
        matcher.set_seq1(_plain(name))
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= ALIKE and matcher.ratio() >= ALIKE:
            found.append((-matcher.ratio(), name))
    return [name for _, name in sorted(found)[:most]]


def _plain(name: str) -> str:
    return re.sub(r"(?<![0-9])0+(?=[0-9])", "", name.casefold())
