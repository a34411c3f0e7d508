"""Content hashes: the same content has the same hash on every machine, whatever the order of files, keys or fields."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from torus_ray.bank.schema import BankCard, Question, Test

_UNVERIFIED = b'"human_verified_by":null,'
UNHASHED_CARD_FIELDS = frozenset({"title", "about"})


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(obj: Any) -> bytes:
    """`obj` (dicts with str keys, lists, str, numbers, None) as UTF-8 JSON: sorted keys, no spaces.

    Raises ValueError on NaN, infinity and lone surrogates, TypeError on anything else that JSON does not have.
    """
    return _CANONICAL.encode(obj).encode("utf-8")


def sha256_of(obj: Any) -> str:
    """Hex sha256 of :func:`canonical_json`."""
    return hashlib.sha256(canonical_json(obj)).hexdigest()


def question_hash(question: Question) -> str:
    """Over everything a question holds, key and author's order of options included."""
    return sha256_of({**vars(question), "key": vars(question.key)})


def test_hash(test: Test) -> str:
    """Over everything a test holds, but who has verified it: a review must not end the identity of runs."""
    content = canonical_json(test.model_dump())
    # Quotes inside of texts are escaped, so this can only be the field; one that is null need not be written twice.
    if test.provenance.human_verified_by is None:
        return hashlib.sha256(content.replace(_UNVERIFIED, b"", 1)).hexdigest()
    return sha256_of(test.model_dump(exclude={"provenance": {"human_verified_by"}}))


test_hash.__test__ = False  # type: ignore[attr-defined]  # its name would make pytest collect it


def bank_hash(card: BankCard, tests: Iterable[Test]) -> str:
    """Over the card, its title and its description apart, and every test; the order of the tests does not matter."""
    return sha256_of(
        {
            "card": card.model_dump(exclude=set(UNHASHED_CARD_FIELDS)),
            "tests": {test.id: test_hash(test) for test in tests},
        }
    )
