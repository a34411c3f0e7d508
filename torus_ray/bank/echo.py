"""The echo rate: how often the right option is the one that the prompts up to its stage say almost in its own words.

A listener that remembers its prompt could answer such a question without hearing its clip.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from torus_ray.bank.asked import Asked, Vectors
from torus_ray.bank.deaf import closeness, shared_words
from torus_ray.bank.rates import ECHO_LIMIT, Rate, credits

WORDS = "most words in common with the prompts"
MEANING = "the nearest to the prompts in meaning"


def echo_words(table: Asked) -> NDArray[np.float64]:
    """(n, 6) how many of an option's words the prompts have."""
    return shared_words(table, table.told_words)


def echo_meaning(table: Asked, vectors: Vectors) -> NDArray[np.float64]:
    """(n, 6) how near each option is to the prompts."""
    return closeness(table, vectors, lambda rows: vectors(table.told[rows]))


def echo_rates(table: Asked, vectors: Vectors | None) -> Iterator[Rate]:
    """By words, and where there are vectors by meaning."""
    yield Rate(WORDS, ECHO_LIMIT, credits(echo_words(table), table.right), below=True)
    if vectors:
        yield Rate(MEANING, ECHO_LIMIT, credits(echo_meaning(table, vectors), table.right), below=True)
