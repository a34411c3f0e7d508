"""Solvers that hear nothing and ask no model: how far the questions and options alone give the answers away.

Each solver takes the table of questions (:mod:`asked`), and those that compare meanings the texts' vectors, and gives
scores (n, 6); its answer is the highest. What it may see is what a muted listener sees: stems, options, the other
questions, and, for the most frequent answer, the right answers of other tests, as somebody has who knows the bank.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from torus_ray.bank.asked import Asked, Floats, Vectors
from torus_ray.bank.rates import DEAF_LIMIT, Rate, credits

Scores = NDArray[np.float64]
ROWS = 4096


# --- by words and letters ---------------------------------------------------------------------------------------------


def longest(table: Asked) -> Scores:
    """The option with most characters."""
    return np.array([[len(option) for option in six] for six in table.options], float)


def shortest(table: Asked) -> Scores:
    """The option with fewest characters."""
    return -longest(table)


def odd_shape(table: Asked) -> Scores:
    """The option that differs from most others in number of words, first and last word, digits and inner marks."""
    pairs = zip(table.options, table.folded, strict=True)
    return np.array([_oddness(six, folded) for six, folded in pairs], float)


_MARK = re.compile(r"[^\w\s]")


def _oddness(six: tuple[str, ...], folded: tuple[str, ...]) -> list[float]:
    words = [option.split() or [""] for option in folded]
    features = zip(
        *(
            (len(split), split[0], split[-1], any(map(str.isdigit, option)), bool(_MARK.search(option)))
            for split, option in zip(words, six, strict=True)
        ),
        strict=True,
    )
    odd = [0.0] * len(six)
    for values in features:
        count = Counter(values)
        odd = [so_far + len(six) - count[value] for so_far, value in zip(odd, values, strict=True)]
    return odd


def stem_words(table: Asked) -> Scores:
    """The option that shares most words with the question."""
    return shared_words(table, table.stem_words)


def shared_words(table: Asked, texts: list[frozenset[str]]) -> Scores:
    """(n, 6) how many words each option shares with its row of `texts`."""
    pairs = zip(texts, table.folded, strict=True)
    return np.array([[len(table.words(option) & words) for option in six] for words, six in pairs], float)


def other_words(table: Asked) -> Scores:
    """The option that shares most words with the test's other questions and their options."""
    scores = np.zeros((len(table), 6))
    for rows in table.of_test:
        words = [table.stem_words[row].union(*(table.words(option) for option in table.folded[row])) for row in rows]
        asked_in = Counter(word for each in words for word in each)
        for row in rows:
            # a word of the option is in its own question too: elsewhere means in at least two questions of the test
            scores[row] = [sum(asked_in[word] > 1 for word in table.words(option)) for option in table.folded[row]]
    return scores


def frequent_elsewhere(table: Asked) -> Scores:
    """The option that is most often right in other tests: each test is answered from all the others."""
    answers = [six[right] for six, right in zip(table.folded, table.right, strict=True)]
    everywhere = Counter(answers)
    scores = np.zeros((len(table), 6))
    for rows in table.of_test:
        here = Counter(answers[row] for row in rows)
        for row in rows:
            scores[row] = [everywhere[option] - here[option] for option in table.folded[row]]
    return scores


# --- by meaning -------------------------------------------------------------------------------------------------------


def closeness(table: Asked, vectors: Vectors, to: Callable[[slice], Floats]) -> Scores:
    """(n, 6) cosine-like closeness of each option to the vectors (rows, d) that `to` gives for a slice of rows."""
    scores = np.zeros((len(table), 6))
    for start in range(0, len(table), ROWS):
        rows = slice(start, min(start + ROWS, len(table)))
        options = _options(table, vectors, rows)
        scores[rows] = np.einsum("nkd,nd->nk", options, to(rows))
    return scores


def _options(table: Asked, vectors: Vectors, rows: slice) -> Floats:
    flat = [option for six in table.options[rows] for option in six]
    return vectors(flat).reshape(rows.stop - rows.start, 6, -1)


def odd_meaning(table: Asked, vectors: Vectors) -> Scores:
    """The option whose meaning is farthest from that of the other five together."""
    scores = np.zeros((len(table), 6))
    for start in range(0, len(table), ROWS):
        rows = slice(start, min(start + ROWS, len(table)))
        options = _options(table, vectors, rows)
        own = np.einsum("nkd,nkd->nk", options, options)
        scores[rows] = own - np.einsum("nkd,nd->nk", options, options.sum(axis=1))
    return scores


def stem_meaning(table: Asked, vectors: Vectors) -> Scores:
    """The option nearest to the question."""
    return closeness(table, vectors, lambda rows: vectors(table.stems[rows]))


def clip_meaning(table: Asked, vectors: Vectors) -> Scores:
    """The option nearest to the other two questions of the clip with their options."""
    return closeness(table, vectors, _others(table, vectors, table.tests * 3 + table.stages))


def test_meaning(table: Asked, vectors: Vectors) -> Scores:
    """The option nearest to the other eight questions of the test with their options."""
    return closeness(table, vectors, _others(table, vectors, table.tests))


test_meaning.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it


def _others(table: Asked, vectors: Vectors, group: NDArray[np.int64]) -> Callable[[slice], Floats]:
    """For a slice of rows the summed vectors of the other questions in each row's group; rows of one lie together."""

    def summed(rows: slice) -> Floats:
        first, last = np.searchsorted(group, group[rows.start]), np.searchsorted(group, group[rows.stop - 1], "right")
        own = vectors(table.whole[first:last])
        members = group[first:last]
        starts = np.flatnonzero(np.diff(members, prepend=members[0] - 1))
        sums = np.add.reduceat(own, starts, axis=0)
        others: Floats = sums[np.searchsorted(members[starts], members)] - own
        return others[rows.start - first : rows.stop - first]

    return summed


BY_WORDS: Mapping[str, Callable[[Asked], Scores]] = {
    "the longest option": longest,
    "the shortest option": shortest,
    "the odd one out in shape": odd_shape,
    "most words in common with the question": stem_words,
    "most words in common with the test's other questions": other_words,
    "the most frequent right option of other tests": frequent_elsewhere,
}
BY_MEANING: Mapping[str, Callable[[Asked, Vectors], Scores]] = {
    "the odd one out in meaning": odd_meaning,
    "the nearest to the question in meaning": stem_meaning,
    "the nearest to the clip's other questions in meaning": clip_meaning,
    "the nearest to the test's other questions in meaning": test_meaning,
}


def deaf_rates(table: Asked, vectors: Vectors | None) -> Iterator[Rate]:
    """The rate of every solver; without `vectors` of those by words only."""
    for rule, solver in BY_WORDS.items():
        yield Rate(rule, DEAF_LIMIT, credits(solver(table), table.right))
    if vectors:
        for rule, comparing in BY_MEANING.items():
            yield Rate(rule, DEAF_LIMIT, credits(comparing(table, vectors), table.right))
