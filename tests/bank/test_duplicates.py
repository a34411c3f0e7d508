"""Near-duplicates: the quick search finds exactly what comparing every pair finds."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from tests.canary import make_canary_bank
from torus_ray.bank import alike
from torus_ray.bank.alike import Group, alike_in_letters, alike_in_meaning
from torus_ray.bank.check import check_bank
from torus_ray.bank.findings import Finding
from torus_ray.bank.load import load_bank


def components(pairs: list[tuple[int, int]]) -> set[tuple[int, ...]]:
    groups: list[set[int]] = []
    for pair in pairs:
        touching = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touching] + [set(pair).union(*touching)]
    return {tuple(sorted(group)) for group in groups}


def members(groups: list[Group]) -> set[tuple[int, ...]]:
    return {tuple(sorted(group.members)) for group in groups}


def edited(rng: random.Random, text: str, edits: int) -> str:
    for _ in range(edits):
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(["", "x", "qq", " "]) + text[at + rng.randrange(2) :]
    return text


def varied(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    words = ["bell", "horn", "drum", "water", "loud", "soft", "steps", "door", "rain", "voice"]
    first = [" ".join(rng.choices(words, k=rng.randint(3, 25))) for _ in range(count)]
    return [*first, *(edited(rng, text, rng.randint(0, 1 + len(text) // 8)) for text in first)]


@pytest.mark.parametrize("seed", range(4))
def test_edit_similarity_finds_what_every_pair_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "BLOCK", 32)  # many blocks, and the vectors shortened
    monkeypatch.setattr(alike, "LETTER_DIMENSIONS", 8)
    monkeypatch.setattr(alike, "PAIRS", 7)
    texts = list(dict.fromkeys(varied(seed, 80)))
    pairs = [
        (one, other)
        for one in range(len(texts))
        for other in range(one)
        if Levenshtein.normalized_similarity(texts[one], texts[other]) > 0.9
    ]
    assert len(pairs) > 10
    found = alike_in_letters(texts, np.arange(len(texts)), 0.9)
    assert members(found) == components(pairs)
    for group in found:
        if len(group.members) == 2:
            one, other = group.members
            assert group.least == pytest.approx(Levenshtein.normalized_similarity(texts[one], texts[other]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet="ab c\u00e9\U0001f600", max_size=30), min_size=1, max_size=12, unique=True))
def test_edit_similarity_of_any_texts(texts: list[str]) -> None:
    pairs = [
        (one, other)
        for one in range(len(texts))
        for other in range(one)
        if Levenshtein.normalized_similarity(texts[one], texts[other]) > 0.9
    ]
    assert members(alike_in_letters(texts, np.arange(len(texts)), 0.9)) == components(pairs)


@pytest.mark.parametrize("dimensions", [4, 16, 200])
def test_cosine_finds_what_every_pair_finds(dimensions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike, "BLOCK", 32)
    monkeypatch.setattr(alike, "MEANING_DIMENSIONS", dimensions)
    rng = np.random.default_rng(0)
    first = rng.normal(size=(120, 64))
    vectors = np.vstack([first, first + rng.normal(size=first.shape) * rng.uniform(0.1, 1, (120, 1))]).astype(
        np.float32
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    products = vectors @ vectors.T
    pairs = [(int(one), int(other)) for one, other in np.argwhere(products > 0.92) if one > other]
    assert len(pairs) > 10
    assert members(alike_in_meaning(vectors, np.arange(240), 0.92)) == components(pairs)


def test_texts_of_one_owner_are_not_compared() -> None:
    texts = ["the same long text again", "the same long text agaim", "the same long text agaix"]
    assert alike_in_letters(texts, np.array([1, 1, 1]), 0.9) == []
    assert members(alike_in_letters(texts, np.array([1, 1, 2]), 0.9)) == {(0, 1, 2)}


def test_a_thousand_copies_are_one_group() -> None:
    texts = [f"what comes directly after the second of the bells, number {number:04d}?" for number in range(1000)]
    (group,) = alike_in_letters(texts, np.arange(1000), 0.9)
    assert len(group.members) == 1000


# --- in a bank --------------------------------------------------------------------------------------------------------


def copied(folder: Path, *, stage: str, what: str, change: str = "") -> list[Finding]:
    """Findings on likeness of a canary bank in which the second test has something of the first."""
    make_canary_bank(folder, tests=4)
    one, other = (folder / f"canary-00{number}.json" for number in (0, 1))
    content, source = json.loads(other.read_text()), json.loads(one.read_text())
    if what == "seed":
        long = {name: f"{text} and so on and on, until nobody listens" for name, text in source["seed"].items()}
        source["seed"], content["seed"] = long, {**long, "scene": long["scene"] + change}
        one.write_text(json.dumps(source))
    elif what == "prompt":
        content["stages"][stage]["prompt"] = source["stages"][stage]["prompt"] + change
    else:
        mine, theirs = content["stages"][stage]["questions"], source["stages"][stage]["questions"]
        mine[2] = {**theirs[2], "id": mine[2]["id"], "text": theirs[2]["text"] + change}
        mine[2]["options"] = mine[2]["options"][::-1]
    other.write_text(json.dumps(content))
    return [finding for finding in check_bank(load_bank(folder)).findings if "nearly the same" in finding.message]


@pytest.mark.parametrize(
    ("what", "change", "message", "names"),
    [
        ("question", "", "2 questions are nearly the same (edit similarity 1.00)", "{}.generation.q3"),
        ("question", " x", "2 questions are nearly the same (edit similarity 0.9", "{}.generation.q3"),
        ("prompt", " x", "2 prompts are nearly the same (edit similarity 0.9", "{}.generation"),
        ("seed", " x", "2 scenes are nearly the same (edit similarity 0.9", "{}"),
    ],
)
def test_what_two_tests_share_is_named(what: str, change: str, message: str, names: str, tmp_path: Path) -> None:
    (found,) = copied(tmp_path, stage="generation", what=what, change=change)
    assert found.message.startswith(message)
    assert found.questions == tuple(names.format(test) for test in ("canary-000", "canary-001"))
    assert names.format("canary-001") in found.render()


def test_a_question_that_a_test_asks_twice_is_meant(tmp_path: Path) -> None:
    make_canary_bank(tmp_path, tests=4)
    assert not [f for f in check_bank(load_bank(tmp_path)).findings if "nearly the same" in f.message]
