"""Content hashes."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.canary import make_canary_bank
from torus_ray.bank.digest import bank_hash, canonical_json, question_hash, sha256_of, test_hash
from torus_ray.bank.load import Bank, load_bank


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return load_bank(make_canary_bank(tmp_path_factory.mktemp("bank"), tests=3).path)


def test_canonical_json_sorts_keys_and_keeps_characters() -> None:
    assert canonical_json({"b": [1, None], "a": "é"}) == '{"a":"é","b":[1,null]}'.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"not JSON compliant|surrogates"):
        canonical_json({"a": value})


@given(st.dictionaries(st.text(alphabet="abcd", max_size=3), st.integers() | st.text(alphabet="xyz"), max_size=6))
def test_key_order_does_not_matter(content: dict[str, object]) -> None:
    assert sha256_of(dict(reversed(content.items()))) == sha256_of(content)


def test_the_bank_hash_is_blind_to_order_title_and_description(bank: Bank) -> None:
    renamed = bank.card.model_copy(update={"title": "Another", "about": "Else"})
    assert bank_hash(renamed, reversed(bank.tests)) == bank.hash


def test_the_bank_hash_sees_the_order_seed_and_every_test(bank: Bank) -> None:
    reseeded = bank.card.model_copy(update={"order_seed": bank.card.order_seed + 1})
    assert bank_hash(reseeded, bank.tests) != bank.hash
    assert bank_hash(bank.card, bank.tests[1:]) != bank.hash


def test_one_changed_question_changes_its_own_hash_and_its_tests(bank: Bank) -> None:
    test = bank.tests[0]
    first, second, _ = test.stages.edit.questions
    changed = first.model_copy(update={"text": "What else?"})
    stage = test.stages.edit.model_copy(update={"questions": (changed, *test.stages.edit.questions[1:])})
    edited = test.model_copy(update={"stages": test.stages.model_copy(update={"edit": stage})})
    assert question_hash(changed) != question_hash(first)
    assert question_hash(edited.stages.edit.questions[1]) == question_hash(second)
    assert test_hash(edited) != test_hash(test)


def test_hashes_of_known_content_never_change() -> None:
    assert sha256_of({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    mixed = '{"a":["\u00e9",null],"b":1.5}'.encode()
    assert sha256_of({"b": 1.5, "a": ["\u00e9", None]}) == hashlib.sha256(mixed).hexdigest()
