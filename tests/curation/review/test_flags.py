"""What the gate left beside the bank, read as it is written, and whatever else may lie there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.curation.review.sample import FIRST, Caller, desk_served, make_bank
from torus_ray.bank.digest import question_hash
from torus_ray.bank.load import load_bank
from torus_ray.curation import folders
from torus_ray.curation.gate import GateResult, Repair
from torus_ray.curation.judging import Heard, Job, Solver, verdict
from torus_ray.curation.review.flags import FLAGS_FILE, gate_flags, read_gate


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return make_bank(tmp_path / "bank", tests=2)


def gate_records(path: Path, rule: Any) -> list[dict[str, Any]]:
    """Records of two questions by the gate's own code: on q1 both solvers fail, on q2 one gives no reply."""
    bank = load_bank(path)
    test = bank.tests[0]
    verdicts = {}
    for question, said in zip(test.stages.edit.questions, ("key", None), strict=False):
        found = {}
        for role in ("muted", "ideal"):
            solver: Solver = role  # type: ignore[assignment]
            jobs = [Job(test, "edit", question, bank.card.order_seed, shift) for shift in range(6)]
            letters = ["ABCDEF"[job.options.index(question.answer)] if role == "muted" else "" for job in jobs]
            heard = [Heard(letter if said else None, None if said else "cut connection") for letter in letters]
            found[solver] = verdict(jobs, heard, round_=0, solver=solver, kind="chat", model="m-1", threshold=0.9)
        verdicts[test.id, "edit", question.id] = found
    repairs = {(test.id, "edit", test.stages.edit.questions[0].id): [Repair(1, "ok"), Repair(2, "ok")]}
    return GateResult(bank, verdicts, verdicts, repairs, rule).flags()  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", ["paper", "posterior"])
def test_the_gate_in_words(bank: Path, rule: str) -> None:
    assert FLAGS_FILE == folders.FLAGS_FILE
    records = gate_records(bank, rule)
    (bank / FLAGS_FILE).write_text("".join(json.dumps(record) + "\n" for record in records))
    test = load_bank(bank).tests[0]
    one, other = gate_flags(test, read_gate(bank)[FIRST])
    question = test.stages.edit.questions[0].id
    assert (one.source, one.stage, one.question, one.current) == ("gate", "edit", question, True)
    muted = "right without hearing anything (6 of 6 right, m-1)"
    ideal = "wrong with the stage's spec before it (0 of 6 right, m-1)"
    assert one.message == f"{muted}; {ideal}; sent back 2 times"
    assert "the muted solver gave no verdict (cut connection)" in other.message


def test_flags_on_the_page_and_after_an_edit(bank: Path) -> None:
    records = gate_records(bank, "paper")[:1]
    (bank / FLAGS_FILE).write_text("".join(json.dumps(record) + "\n" for record in records))
    with desk_served(bank) as address:
        caller = Caller(address)
        before = caller.get("/api/bank").json["tests"][0]["flagged"]
        told = caller.test(FIRST)
        assert told["flags"][0]["source"] == "gate"
        told["test"]["stages"]["edit"]["questions"][0]["key"]["attribute"] = "something else"
        got = caller.judge(FIRST, decision="edit", reviewer="Ann", version=told["version"], test=told["test"]).json
        assert got["flags"][0]["message"].startswith("an earlier wording was ")
        assert got["flagged"] == before - 1


def test_questions_that_passed_are_no_flags(bank: Path) -> None:
    records = [{**record, "flagged": False} for record in gate_records(bank, "paper")]
    (bank / FLAGS_FILE).write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read_gate(bank) == {}
    (bank / FLAGS_FILE).unlink()
    assert read_gate(bank) == {}


def test_lines_that_are_none_are_logged_and_the_others_read(bank: Path, caplog: pytest.LogCaptureFixture) -> None:
    test = load_bank(bank).tests[0]
    question = test.stages.edit.questions[0]
    least = {"test": FIRST, "stage": "edit", "question": question.id, "question_hash": question_hash(question)}
    lines = [b"{", b"\xff", b"[]", b'{"test": 7}', json.dumps({**least, "future": [1], "muted": "odd"}).encode()]
    (bank / FLAGS_FILE).write_bytes(b"\n".join(lines))
    (flag,) = gate_flags(test, read_gate(bank)[FIRST])
    assert (flag.message, flag.current) == ("flagged", True)
    assert [record.getMessage().split(":")[1].split()[0] for record in caplog.records] == ["1", "2", "3", "4"]
