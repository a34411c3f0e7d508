"""Tables of made-up questions for what is counted over a bank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from torus_ray.bank.asked import Asked, Vectors

SIX = ("ab", "cd", "ef", "gh", "ij", "kl")


def table(
    *rows: tuple[str, Sequence[str], int], told: Sequence[str] | None = None, tests: Sequence[int] | None = None
) -> Asked:
    """Rows are (stem, six options, index of the right one); three rows a clip, nine a test where nothing is said."""
    stems, options = [stem for stem, _, _ in rows], [tuple(six) for _, six, _ in rows]
    count = len(rows)
    of = np.array(tests if tests is not None else [row // 9 for row in range(count)])
    return Asked(
        names=[f"t{of[row]}.q{row}" for row in range(count)],
        tests=of,
        stages=np.array([row // 3 % 3 for row in range(count)]),
        stems=stems,
        options=options,
        right=np.array([right for _, _, right in rows]),
        told=list(told or ["nothing"] * count),
        whole=[" ".join((stem, *sorted(six))) for stem, six in zip(stems, options, strict=True)],
    )


def vectors(known: Mapping[str, Sequence[float]], asked: Asked) -> Vectors:
    """The vectors that are named; all other texts of the table point in a direction of their own kind."""
    wanted = [*asked.stems, *asked.told, *asked.whole, *(option for six in asked.options for option in six)]

    def embed(texts: Sequence[str]) -> NDArray[np.float16]:
        found = np.array([known.get(text, (0.0, 0.0, 1.0)) for text in texts], float)
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float16)

    return Vectors(embed, wanted)
