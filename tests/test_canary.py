"""The canary bank is a valid bank, and its tokens tell where they come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.canary import Canary, make_canary_bank
from torus_ray.bank.check import check_bank
from torus_ray.bank.load import load_bank
from torus_ray.bank.schema import STAGES


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Canary:
    return make_canary_bank(tmp_path_factory.mktemp("canary"))


def test_it_loads_and_an_author_would_find_no_fault(canary: Canary) -> None:
    bank = load_bank(canary.path)
    assert [test.audio_type for test in bank.tests] == ["speech", "sound", "music"] * 2
    assert check_bank(bank).findings == ()


def test_the_same_seed_writes_the_same_bank(canary: Canary, tmp_path: Path) -> None:
    again = make_canary_bank(tmp_path / "again")
    other = make_canary_bank(tmp_path / "other", seed=1)
    assert load_bank(again.path).hash == load_bank(canary.path).hash
    assert not other.sealed & canary.sealed


def test_no_token_is_in_two_sets(canary: Canary) -> None:
    groups = [canary.sealed, *canary.prompts.values()]
    assert sum(map(len, groups)) == len(frozenset().union(*groups))
    assert not canary.question_tokens() & (canary.sealed | canary.prompt_tokens())
    assert canary.prompt_tokens() == frozenset().union(*(canary.prompt_tokens(stage) for stage in STAGES))


def test_every_sealed_text_and_number_holds_a_token(canary: Canary) -> None:
    def leaves(value: object) -> list[object]:
        if isinstance(value, dict):
            return [leaf for part in value.values() for leaf in leaves(part)]
        return [leaf for part in value for leaf in leaves(part)] if isinstance(value, (list, tuple)) else [value]

    for test in load_bank(canary.path).tests:
        sealed: list[object] = [test.title, *leaves(test.seed.model_dump())]
        for name in STAGES:
            stage = test.stage(name)
            sealed += leaves(stage.spec.model_dump(exclude_none=True))
            sealed += [stage.transcript] if stage.transcript else []
            sealed += [leaf for question in stage.questions for leaf in leaves(question.key.model_dump())]
            assert set(re.findall(r"[a-z]{12}", stage.prompt)) == canary.prompts[test.id, name]
        for leaf in sealed:
            assert set(str(leaf).split()) <= canary.sealed, leaf


def test_quoted_words_of_a_prompt_are_those_of_no_transcript(canary: Canary) -> None:
    for test in load_bank(canary.path).tests:
        for name in STAGES:
            stage = test.stage(name)
            quoted = re.findall(r'"([^"]+)"', stage.prompt)
            assert bool(quoted) == (test.audio_type == "speech") == (stage.transcript is not None)
            assert not set(" ".join(quoted).split()) & set((stage.transcript or "").split())
