"""Keys and seeds as they stand in runs on people's disks: another key for the same request would compute it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import system
from torus_ray.bank import schema
from torus_ray.bank.digest import canonical_json, question_hash, sha256_of, test_hash
from torus_ray.bank.load import Bank
from torus_ray.protocol.graph import Arm, build_graph
from torus_ray.protocol.requests import Plan, Protocol
from torus_ray.protocol.rows import make_row, reply_outcome

CLIP = "c" * 64
ROW = {"status": "ok", "reason": None, "clip": CLIP, "text": 'A voice says "good day", then café {noise}.'}
DOCUMENT: dict[str, Any] = {
    "id": "speech-01",
    "audio_type": "speech",
    "title": "A title",
    "seed": dict.fromkeys(
        ("scene", "intervention", "acoustic_outcome", "altered_attribute", "counterfactual_outcome"), "x"
    ),
    "stages": {
        stage: {
            "prompt": f'Say "hello {stage}" – ünïcode.',
            "spec": {
                "summary": "s",
                "duration_s": 5.0,
                "room": "r",
                "sources": [{"what": "w", "onset_s": 0.0, "duration_s": 1.0, "level": "l", "place": "p"}],
            },
            "transcript": "hello",
            "questions": [
                {
                    "id": f"q{number}",
                    "family": "expression",
                    "text": f'What "is" it, {stage} {number}?',
                    "options": [f"option {letter} \\ {number}" for letter in "uvwxyz"],
                    "answer": f"option u \\ {number}",
                    "key": {"attribute": "a", "value": "v"},
                }
                for number in (1, 2, 3)
            ],
        }
        for stage in ("generation", "edit", "counterfactual")
    },
    "provenance": {"author": "a", "written": "2026-01-01"},
}


def made() -> Bank:
    card = schema.BankCard(name="pinned", title="t", order_seed=7, licence="CC0", about="a")
    return Bank(card, (schema.Test.model_validate_json(canonical_json(DOCUMENT)),))


def found(folder: Path, monkeypatch: pytest.MonkeyPatch, arm: Arm, **card: Any) -> dict[str, tuple[str, int]]:
    monkeypatch.setattr(Protocol, "fingerprint", lambda self, host, operation: f"{host.name}.{operation}")
    bank = made()
    protocol = Protocol(system(folder, **card), bank)
    asks = {}
    for node in build_graph(system="toy", bank=bank, tests=bank.tests, arms=[arm]):
        plan = protocol.resolve(node, [ROW] * len(node.parents))
        assert isinstance(plan, Plan)
        asks.update({ask.unit.id: (ask.key, ask.content["seed"]) for ask in plan.asks})
    return asks


@pytest.mark.parametrize(
    ("arm", "seeds", "digest"),
    [
        (Arm("native"), "fixed", "9047bd2589ca0dc6"),
        (Arm("native"), "derived", "e9929c6e7c55af8e"),
        (Arm("self-caption", 2), "derived", "d1c9146636399608"),
        (Arm("native", control="muted"), "derived", "5608ef217394efa3"),
    ],
)
def test_keys_and_seeds_stay_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arm: Arm, seeds: str, digest: str
) -> None:
    asks = found(tmp_path, monkeypatch, arm, seeds=seeds)
    assert sha256_of({unit: list(ask) for unit, ask in asks.items()})[:16] == digest


def test_hashes_of_tests_and_questions_stay_what_they_are() -> None:
    (test,) = made().tests
    assert test_hash(test)[:16] == "fc77cd5771a918e9"
    assert question_hash(test.stages.edit.questions[1])[:16] == "8a56c0e2e957f5bf"


def test_who_has_verified_a_test_is_not_in_its_hash() -> None:
    (test,) = made().tests
    by = test.provenance.model_copy(update={"human_verified_by": 'N. "N"'})
    assert test_hash(test.model_copy(update={"provenance": by})) == test_hash(test)


def test_an_answers_row_shows_the_options_that_were_sent(tmp_path: Path) -> None:
    bank = made()
    protocol = Protocol(system(tmp_path), bank)
    for node in build_graph(system="toy", bank=bank, tests=bank.tests, arms=[Arm("native")]):
        if node.kind != "answer":
            continue
        plan = protocol.resolve(node, [ROW])
        assert isinstance(plan, Plan)
        for at, ask in enumerate(plan.asks):
            reply = {"texts": ["B", "b", " F "], "notes": ""}
            row = make_row(protocol, node, ask.unit, plan, ask, reply_outcome("answer", reply, at))
            shown = protocol.shown(node, ask.unit)
            assert tuple(row[f"option_{letter}"] for letter in "abcdef") == shown
            assert (row["letter"], row["rule"]) == ("BBF"[at], "R1")
            assert row["correct"] == (shown["ABCDEF".index(row["letter"])] == ask.unit.question.answer)  # type: ignore[union-attr]
