"""Groups of texts that are nearly the same, found without comparing every pair one by one.

Pairs are first looked for by a product of short vectors, in blocks: an upper bound on how alike two texts can be, so
that no pair is missed. Those above the limit are then compared exactly, and joined into groups.

- Cosine: the vectors are turned so that a few of their numbers hold most of their length; what is left of each counts
  as if it all pointed the same way (Cauchy-Schwarz).
- Edit similarity 1 - d / L (Levenshtein distance d, L characters in the longer text): an edit spoils at most two pairs
  of neighbouring characters, so texts with d <= 0.1 L share at least 0.8 L - 1 of them; the sum of the smaller of two
  counts is at most the sum of the roots of their products, which is a product of vectors again. It spoils at most three
  runs of three characters, so at most 0.3 L of those in one text are missing from the other: counted in bit sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Compare = Callable[[Ints, Ints], NDArray[np.float32]]

BLOCK = 2048
PAIRS = 20_000
MEANING_DIMENSIONS, LETTER_DIMENSIONS = 96, 192
BUCKETS = 512
BITS = 1024
ROUNDING = 2e-3


@dataclass(frozen=True)
class Group:
    """Texts of which each is alike to another of the group. least: the lowest similarity that joined two of them."""

    members: tuple[int, ...]
    least: float


def alike_in_meaning(vectors: Floats, owners: Ints, limit: float) -> list[Group]:
    """Groups among n texts whose unit vectors (n, d) have a cosine above `limit`.

    owners: (n,); two texts of the same owner are never compared.
    """

    def cosine(left: Ints, right: Ints) -> NDArray[np.float32]:
        found: NDArray[np.float32] = np.einsum("nd,nd->n", vectors[left], vectors[right])
        return found

    everywhere = np.full(len(vectors), len(vectors))
    return _groups(_shortened(vectors, MEANING_DIMENSIONS), limit - ROUNDING, everywhere, owners, cosine, limit)


def alike_in_letters(texts: Sequence[str], owners: Ints, limit: float) -> list[Group]:
    """Groups among n folded texts with an edit similarity above `limit`; owners as for meaning."""
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    ordered = [texts[row] for row in order]
    lengths = np.array([len(text) for text in ordered])
    # alike texts are nearly of one length, so only a window of the sorted ones can be
    reach = np.searchsorted(lengths * limit, lengths, "right")

    runs = _run_bits(ordered)

    def similarity(left: Ints, right: Ints) -> NDArray[np.float32]:
        spoiled = 3 * (1 - limit) * lengths[right]
        one, other = runs[left], runs[right]
        missing = np.maximum(_count(one & ~other), _count(other & ~one))
        close = np.flatnonzero(missing <= spoiled + ROUNDING)
        pairs = [ordered[row] for row in left[close]], [ordered[row] for row in right[close]]
        values = np.zeros(len(left), np.float32)
        scorer = Levenshtein.normalized_similarity
        values[close] = cpdist(*pairs, scorer=scorer, score_cutoff=limit)
        return values

    shared = 1 - 2 * (1 - limit)
    bound = shared - (1 - shared) / max(int(lengths[0]) - 1, 1)
    short = _shortened(_letter_pairs(ordered), LETTER_DIMENSIONS)
    found = _groups(short, bound - ROUNDING, reach, owners[order], similarity, limit)
    return [Group(tuple(sorted(order[row] for row in group.members)), group.least) for group in found]


def _hashes(text: str, run: int) -> NDArray[np.uint64]:
    """A number for each run of so many neighbouring characters."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.uint64)
    mixed = np.zeros(max(len(codes) - run + 1, 0), np.uint64)
    for at in range(run if len(mixed) else 0):
        mixed = mixed * np.uint64(1_000_003) + codes[at : at + len(mixed)]
    mixed *= np.uint64(0x9E37_79B9_7F4A_7C15)
    return mixed >> np.uint64(40)


def _letter_pairs(texts: Sequence[str]) -> Floats:
    """(n, BUCKETS) roots of how often each pair of neighbouring characters occurs, by a fixed hash, as unit vectors."""
    roots = np.zeros((len(texts), BUCKETS), np.float32)
    for row, text in enumerate(texts):
        buckets = (_hashes(text, 2) % np.uint64(BUCKETS)).astype(np.int64)
        roots[row] = np.bincount(buckets, minlength=BUCKETS)
    np.sqrt(roots, out=roots)
    return _unit(roots)


def _run_bits(texts: Sequence[str]) -> NDArray[np.uint64]:
    """(n, BITS / 64) which runs of three characters occur, by a fixed hash."""
    bits = np.zeros((len(texts), BITS // 8), np.uint8)
    for row, text in enumerate(texts):
        there = np.zeros(BITS, bool)
        there[(_hashes(text, 3) % np.uint64(BITS)).astype(np.int64)] = True
        bits[row] = np.packbits(there)
    return bits.view(np.uint64)


def _count(bits: NDArray[np.uint64]) -> Ints:
    counts: Ints = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return counts


def _unit(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = vectors / np.maximum(length, np.float32(1e-12))
    return unit


def _shortened(vectors: Floats, dimensions: int) -> Floats:
    """(n, dimensions + 1) vectors whose products are nowhere below those of the unit `vectors` (n, d)."""
    if len(vectors) <= BLOCK or vectors.shape[1] <= dimensions:
        return vectors  # so few that turning them takes longer
    _, directions = np.linalg.eigh(vectors.T @ vectors)
    main = vectors @ directions[:, -dimensions:]
    rest = np.sqrt(np.maximum(np.square(vectors).sum(axis=1) - np.square(main).sum(axis=1), 0))
    return np.hstack([main, rest[:, None]]).astype(np.float32)


def _candidates(short: Floats, bound: float, reach: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Pairs (left < right) of rows whose product is above `bound`, block by block; reach: (n,) where rows end that a
    row can go with, never falling."""
    for top in range(0, len(short), BLOCK):
        last = min(top + BLOCK, len(short))
        for start in range(top, int(reach[last - 1]), BLOCK):
            products = short[top:last] @ short[start : start + BLOCK].T
            flat = np.flatnonzero(products > bound)
            if len(flat):
                left, right = np.divmod(flat, products.shape[1])
                later = left + top < right + start
                yield left[later] + top, right[later] + start


def _groups(short: Floats, bound: float, reach: Ints, owners: Ints, compare: Compare, limit: float) -> list[Group]:
    parent = np.arange(len(short))
    least: dict[int, float] = {}
    for left, right in _candidates(short, bound, reach):
        others = owners[left] != owners[right]
        left, right = left[others], right[others]
        for start in range(0, len(left), PAIRS):
            some, more = left[start : start + PAIRS], right[start : start + PAIRS]
            # what hangs together already is not compared again: a thousand copies cost a thousand looks, not a million
            apart = parent[some] != parent[more]
            some, more = some[apart], more[apart]
            values = compare(some, more)
            for row in np.flatnonzero(values > limit):
                one, other = _root(parent, int(some[row])), _root(parent, int(more[row]))
                if one != other:
                    parent[other] = one
                    lower = min(least.pop(one, 1.0), least.pop(other, 1.0), float(values[row]))
                    least[one] = lower
            while (parent[parent] != parent).any():
                parent = parent[parent]
    members: dict[int, list[int]] = {root: [] for root in least}
    for row in np.flatnonzero(np.isin(parent, list(least))):
        members[int(parent[row])].append(int(row))
    return [Group(tuple(rows), least[root]) for root, rows in members.items()]


def _root(parent: Ints, row: int) -> int:
    while parent[row] != row:
        row = int(parent[row])
    return row
