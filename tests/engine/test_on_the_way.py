"""Rows that gather on their way to the store, clips that are kept at hand, and the rows of attempts."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import canary_bank, system
from torus_ray.bank.memory import set_aside
from torus_ray.engine.on_the_way import Asked, RecentClips, attempt_rows
from torus_ray.engine.runner import GATHERED_ROWS, Runner
from torus_ray.protocol.executor import Attempt, Call, HostState, Outcome
from torus_ray.protocol.graph import Arm, build_graph
from torus_ray.protocol.requests import Plan, Protocol
from torus_ray.store.index import ReuseIndex

ARM = Arm("native", control="muted")


class Answering:
    """An executor that answers A, all that is there at once."""

    def __init__(self, room: int = 1_000) -> None:
        self.calls: list[Call] = []
        self._room = room

    def room(self, host: str) -> int:
        return self._room - len(self.calls)

    def submit(self, calls: Sequence[Call]) -> None:
        self.calls += calls

    def collect(self, timeout_s: float, *, settled: bool = True) -> list[Outcome]:
        done, self.calls = self.calls, []
        texts = [["A"] * len(call.request["questions"]) for call in done]
        return [Outcome(call, "ok", reply={"texts": said, "notes": ""}) for call, said in zip(done, texts, strict=True)]

    def nudge(self) -> None: ...

    def states(self) -> dict[str, HostState]:
        return {}


class Store:
    """A store that keeps what it is given in memory, durable at once."""

    location = "/nowhere"

    def __init__(self) -> None:
        self.appends: list[tuple[str, int, bool]] = []

    def append(self, table: str, rows: Sequence[Any], *, on_durable: Any, urgent: bool, **given: Any) -> None:
        self.appends.append((table, len(rows), urgent))
        on_durable(0.0, rows)


def runner(folder: Path, *, tests: int, room: int = 1_000) -> tuple[Runner, Store]:
    bank = canary_bank(folder / "bank", tests=tests)
    made = system(folder / "card")
    store = Store()
    protocol = Protocol(made, bank)
    graph = build_graph(system="toy", bank=bank, tests=bank.tests, arms=[ARM])
    reuse = ReuseIndex(folder / "results", protocol.fingerprints)
    return Runner(protocol, graph, {ARM.name: store}, Answering(room), reuse, {}), store  # type: ignore[arg-type, dict-item]


def test_rows_that_come_back_together_are_handed_over_together(tmp_path: Path) -> None:
    made, store = runner(tmp_path, tests=6)
    assert made.prime() == 54
    made.run()
    assert [(table, rows) for table, rows, _ in store.appends] == [("answers", 54)]
    assert dict(made.by_status) == {"ok": 54}


def test_what_nothing_follows_does_not_wait_for_company(tmp_path: Path) -> None:
    made, store = runner(tmp_path, tests=6, room=6)
    made.prime()
    made.run()
    # Answers have nobody behind them; only the last of them all are to be written at once.
    assert [urgent for _, _, urgent in store.appends] == [False, False, True]


def test_very_many_rows_are_handed_over_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torus_ray.engine.runner.GATHERED_ROWS", 10)
    made, store = runner(tmp_path, tests=6)
    made.prime()
    made.run()
    assert [rows for _, rows, _ in store.appends] == [12, 12, 12, 12, 6]
    assert GATHERED_ROWS == 1024


def test_what_has_gathered_is_handed_over_when_the_loop_is_stopped(tmp_path: Path) -> None:
    made, store = runner(tmp_path, tests=6)
    made.prime()
    finish, finished = made._finish, []

    def stopped(outcome: Outcome) -> None:
        if len(finished) == 4:
            raise KeyboardInterrupt
        finished.append(outcome)
        finish(outcome)

    made._finish = stopped  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert store.appends == [("answers", 12, False)]


def test_attempts_of_a_call_are_a_row_for_each_unit(tmp_path: Path) -> None:
    bank = canary_bank(tmp_path / "bank", tests=1)
    protocol = Protocol(system(tmp_path / "card"), bank)
    (node, *_) = build_graph(system="toy", bank=bank, tests=bank.tests, arms=[ARM])
    plan = protocol.resolve(node, [])
    assert isinstance(plan, Plan)
    earlier = Attempt(1, "failed", "toy#1", kind="ValueError", cpu_s=3.0)
    tried = Attempt(1, "ok", "toy#2", batch=4, submitted_at=2.0, returned_at=5.0)
    call = Call(1, "toy", "answer", {})
    rows = attempt_rows(Asked(node, plan, plan.asks, 1.5, (earlier,)), Outcome(call, "ok", attempts=[tried]))
    assert [(row["attempt"], row["unit_id"], row["status"]) for row in rows] == [
        (number, ask.unit.id, status) for number, status in ((1, "failed"), (2, "ok")) for ask in plan.asks
    ]
    assert {(row["operation"], row["ready_at"]) for row in rows} == {("answer", 1.5)}
    assert [row["cpu_s"] for row in rows] == [1.0] * 3 + [None] * 3
    assert all("number" not in row and row["returned_at"] == 5.0 for row in rows[3:])


def test_clips_at_hand_are_those_used_last() -> None:
    clips = RecentClips(most=25)
    for name in "abc":
        clips.add(name, name.encode() * 10)
    assert (clips.get("a"), clips.get("b"), clips.get("c")) == (None, b"b" * 10, b"c" * 10)
    clips.get("b")
    clips.add("d", b"d" * 10)
    assert (clips.get("c"), clips.get("b"), clips.get("d")) == (None, b"b" * 10, b"d" * 10)
    clips.add("huge", bytes(100))
    assert clips.get("huge") is None


def test_what_is_set_aside_is_looked_through_again_afterwards() -> None:
    with set_aside():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
