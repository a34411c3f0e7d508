"""The gate with heads as muted solver, repairs that fail, and folders that somebody worked in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.curation.authors import Scripted, role_of
from tests.curation.test_judging import a_test
from tests.curation.test_pipeline import endpoint
from tests.standin.openai_server import Reply, StandIn
from torus_ray.audio import decode
from torus_ray.bank.load import Bank, load_bank
from torus_ray.bank.schema import STAGES, BankCard
from torus_ray.cli import _run
from torus_ray.curation.folders import FLAGS_FILE, rows_folder, write_card, write_test
from torus_ray.curation.judging import Job
from torus_ray.curation.ledger import Ledger, read_rows
from torus_ray.curation.solvers import HeadSolver
from torus_ray.heads import request_from_wire
from torus_ray.protocol.executor import Attempt, Call, Outcome
from torus_ray.systems import System, load_system

CARD = BankCard(name="small", title="small", order_seed=7, licence="none", about="one test")


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STAND_IN_KEY", "k")
    folder = tmp_path / "bank"
    write_card(folder, CARD)
    write_test(folder, a_test())
    return folder


class Recorder:
    """An executor that answers A to everything, a few at once, and keeps what it was asked."""

    def __init__(self, status: str = "ok") -> None:
        self.calls: list[Call] = []
        self.status: Any = status
        self._waiting: list[Call] = []

    def room(self, host: str) -> int:
        return 2 - len(self._waiting)

    def submit(self, calls: Sequence[Call]) -> None:
        self._waiting += calls
        assert len(self._waiting) <= 2
        self.calls += calls

    def collect(self, timeout_s: float) -> list[Outcome]:
        done, self._waiting = self._waiting, []
        return [self._outcome(call) for call in reversed(done)]

    def _outcome(self, call: Call) -> Outcome:
        attempt = Attempt(1, self.status, "w", started_at=1.0, ended_at=1.5)
        reply: Mapping[str, Any] = {"id": call.request["id"], "texts": ["A"] * len(call.request["questions"])}
        if self.status != "ok":
            return Outcome(call, self.status, None, "error", "it broke", [attempt])
        return Outcome(call, "ok", dict(reply), attempts=[attempt])


def jobs(bank: Bank, orders: int) -> list[Job]:
    return [
        Job(test, name, question, bank.card.order_seed, shift)
        for test in bank.tests
        for name in STAGES
        for question in test.stage(name).questions
        for shift in range(orders)
    ]


def simulated() -> System:
    return load_system("simulated")


def test_a_head_hears_a_second_of_silence_and_nothing_sealed(bank: Path, tmp_path: Path) -> None:
    loaded, executor = load_bank(bank), Recorder()
    asked = jobs(loaded, 2)
    with Ledger(tmp_path / "rows") as ledger:
        heard = HeadSolver(simulated(), lambda: executor, ledger).solve(loaded, asked)
        assert [h.reply for h in heard] == ["A"] * 18
        rows = ledger.rows("calls")
    requests = [request_from_wire(call.request) for call in executor.calls]
    assert len(requests) == 6  # three stages, two orders: the questions of a clip are asked in one call
    for each in requests:
        clip = decode(each.clip_bytes)
        assert (clip.duration_s, float(abs(clip.wave).max())) == (1.0, 0.0)
    shown = [question.options for each in requests for question in each.questions]
    assert sorted(shown) == sorted(job.options for job in asked)
    text = json.dumps([q.prompt for each in requests for q in each.questions])
    for stage in STAGES:
        assert loaded.tests[0].stage(stage).prompt not in text
        assert loaded.tests[0].stage(stage).spec.summary not in text
    assert rows.height == 18
    assert set(rows["kind"]) == {"head"}
    assert set(rows["latency_s"]) == {0.5}
    assert rows["model_version"].n_unique() == 1


def test_a_head_is_not_asked_again_and_is_not_even_started(bank: Path, tmp_path: Path) -> None:
    loaded = load_bank(bank)

    def never() -> Any:
        raise AssertionError("nothing has to be asked")

    with Ledger(tmp_path / "rows") as ledger:
        first = HeadSolver(simulated(), Recorder, ledger).solve(loaded, jobs(loaded, 2))
        again = HeadSolver(simulated(), never, ledger).solve(loaded, jobs(loaded, 2))
        assert again == first


def test_a_head_that_fails_is_tried_again_by_the_next_command(bank: Path, tmp_path: Path) -> None:
    loaded = load_bank(bank)
    with Ledger(tmp_path / "rows") as ledger:
        broken = HeadSolver(simulated(), lambda: Recorder("failed"), ledger).solve(loaded, jobs(loaded, 1))
        assert {(h.reply, h.reason) for h in broken} == {(None, "error")}
        mended = HeadSolver(simulated(), Recorder, ledger).solve(loaded, jobs(loaded, 1))
        assert {h.reply for h in mended} == {"A"}


def gate(bank: Path, out: Path, server: StandIn, *more: str) -> list[str]:
    words = ["bank", "gate", str(bank), "--out", str(out), "--quiet", "--orders", "1", *more]
    return [*words, *(word for role in ("author", "ideal") for word in endpoint(role, server))]


def test_a_system_of_the_engine_is_the_muted_solver(bank: Path, tmp_path: Path) -> None:
    out = tmp_path / "gated"
    with StandIn(Scripted()) as server:
        words = gate(bank, out, server, "--muted", "simulated", "--inline", "--no-repair", "--orders", "2")
        assert _run(words) in (0, 1)
        assert len(server.requests) == 18
        rows = read_rows(rows_folder(out), "calls").filter(kind="head")
        assert rows.height == 18
        assert set(rows["status"]) == {"ok"}
        flags = [json.loads(line) for line in (out / FLAGS_FILE).read_text().splitlines()]
        assert {flag["muted"]["kind"] for flag in flags} == {"head, hears 1 s of silence"}
        assert {flag["muted"]["model"] for flag in flags} == {"simulated"}
        assert all(len(flag["muted"]["letters"]) == 2 for flag in flags)
        assert all(flag["ideal"]["posterior"] > 0.9 and not flag["ideal"]["flagged_posterior"] for flag in flags)
        assert _run(words) in (0, 1)
        assert len(server.requests) == 18
        assert read_rows(rows_folder(out), "calls").height == 36
        assert read_rows(rows_folder(out), "verdicts").height == 18


def test_a_repair_that_cannot_be_used_leaves_the_question_and_its_flag(
    bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "gated"
    bad: list[Reply | str] = ["no"] * 3
    script = Scripted({("repair_options", 0): [*bad], ("repair_question", 0): [*bad]})
    with StandIn(script) as server:
        words = gate(bank, out, server, *endpoint("muted", server))
        assert _run(words) == 1
    assert "flagged: take-0.generation.q1: muted" in capsys.readouterr().out
    assert load_bank(out).tests == load_bank(bank).tests
    (flag,) = [flag for line in (out / FLAGS_FILE).read_text().splitlines() if (flag := json.loads(line))["repairs"]]
    assert flag["flagged"] is True
    assert [(r["round"], r["status"], r["reason"]) for r in flag["repairs"]] == [
        (1, "failed", "not_json"),
        (2, "failed", "not_json"),
    ]


def test_a_solver_that_gives_no_reply_leaves_the_question_unjudged(
    bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, out = Scripted(), tmp_path / "gated"
    busy = Reply(status=400, error={"message": "too long", "param": "messages", "code": "context_length_exceeded"})

    def shy(body: dict[str, Any]) -> Reply | str:
        return busy if "How often is the edit stroke" in str(body["messages"][-1]["content"]) else script(body)

    with StandIn(shy) as server:
        assert _run(gate(bank, out, server, "--no-repair", *endpoint("muted", server))) == 1
        assert "not judged: take-0.edit.q1: muted - for" in capsys.readouterr().out
    with StandIn(script) as server:
        # What failed is asked again, and that alone.
        assert _run(gate(bank, out, server, "--no-repair", *endpoint("muted", server))) == 1
        assert len(server.requests) == 2


def test_thinking_that_used_up_the_cap_is_no_wrong_answer(bank: Path, tmp_path: Path) -> None:
    script, out = Scripted(), tmp_path / "gated"

    def thinks_too_long(body: dict[str, Any]) -> Reply | str:
        short = role_of(body) == "ideal" and body["max_completion_tokens"] < 1000
        return Reply("", finish_reason="length") if short else script(body)

    with StandIn(thinks_too_long) as server:
        words = gate(bank, out, server, "--no-repair", *endpoint("muted", server, hears="nothing"))
        assert _run([*words, "--set", "ideal.max_tokens=100"]) == 1
        verdicts = read_rows(rows_folder(out), "verdicts").filter(solver="ideal")
        assert set(verdicts.select("flagged_paper", "reason").rows()) == {(None, "empty_length")}
        asked = len(server.requests)
        assert _run(words) == 1  # the leak is there still
        assert len(server.requests) == asked + 9
    flags = [json.loads(line) for line in (out / FLAGS_FILE).read_text().splitlines()]
    assert [flag["flagged"] for flag in flags].count(None) == 0


def test_a_verification_does_not_outlive_a_repair(tmp_path: Path, bank: Path) -> None:
    document = json.loads((bank / "take-0.json").read_text())
    document["provenance"]["human_verified_by"] = "A. Person"
    (bank / "take-0.json").write_text(json.dumps(document))
    out = tmp_path / "gated"
    with StandIn(Scripted()) as server:
        assert _run(gate(bank, out, server, *endpoint("muted", server))) == 0
    assert load_bank(out).tests[0].provenance.human_verified_by is None


def test_nobody_s_work_is_written_over(bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "gated"
    with StandIn(Scripted()) as server:
        words = gate(bank, out, server, *endpoint("muted", server))
        assert _run(words) == 0
        edited = (out / "take-0.json").read_text().replace("Work in the shed", "Work in a shed")
        (out / "take-0.json").write_text(edited)
        capsys.readouterr()
        assert _run(words) == 2
        assert "take-0.json was changed" in capsys.readouterr().err
        assert (out / "take-0.json").read_text() == edited
        assert _run([*words[:4], str(bank), *words[5:]]) == 2  # into the bank itself
    assert load_bank(bank).tests[0].title == "Work in the shed"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "no muted solver"),
        (["--muted", "nobody"], "no system is called"),
        (["--orders", "7"], "--orders"),
        (["--muted", "simulated", "--orders", "1", "--rule", "posterior"], "no question can reach"),
        (["--rule", "mine"], "--rule"),
    ],
)
def test_wrong_usage_is_told(
    bank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert _run(["bank", "gate", str(bank), "--out", str(tmp_path / "gated"), *words]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "gated.curation").exists()
