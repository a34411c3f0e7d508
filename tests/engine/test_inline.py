"""The inline executor: one process, one request at a time; what goes wrong in an adapter is an outcome."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import TOY, host, system
from torus_ray.engine.hosts import HostPlan
from torus_ray.engine.inline import InlineExecutor
from torus_ray.heads import GenerateRequest, request_to_wire
from torus_ray.protocol.executor import Call, EngineStop, Outcome

WAIT_S = 20.0


@contextmanager
def executor(folder: Path, adapter: str = "Toy", **fields: Any) -> Iterator[InlineExecutor]:
    style = "async" if adapter == "ToyAsync" else "batch"
    made = system(folder, {"toy": host(adapter=f"{TOY}:{adapter}", style=style, **fields)})
    started = InlineExecutor({name: HostPlan(spec, str(spec.folder), 16) for name, spec in made.hosts.items()})
    try:
        yield started
    finally:
        started.close()


def call(number: int, prompt: str, priority: int = 0) -> Call:
    request = request_to_wire(GenerateRequest(str(number), prompt, "sound", 0))
    return Call(number, "toy", "generate", request, label=f"unit {number}", priority=priority)


def outcome_of(folder: Path, fault: str, adapter: str = "Toy", **fields: Any) -> Outcome:
    settings = {"faults": {"a dog": fault}, "flaky": str(folder)}
    with executor(folder, adapter, settings=settings, **fields) as started:
        started.start()
        started.submit([call(1, "a dog")])
        (found,) = started.collect(WAIT_S)
        return found


def test_highest_priority_first(tmp_path: Path) -> None:
    with executor(tmp_path) as started:
        assert started.start()["toy"]["operations"] == ["generate", "edit", "caption", "answer", "measure"]
        started.submit([call(1, "a"), call(2, "b", priority=2), call(3, "c", priority=2)])
        assert started.states()["toy"].waiting == 3
        assert [started.collect(WAIT_S)[0].call.id for _ in range(3)] == [2, 3, 1]


@pytest.mark.parametrize("adapter", ["Toy", "ToyAsync"])
@pytest.mark.parametrize(
    ("fault", "status", "reason", "tries"),
    [
        ("", "ok", None, 1),
        ("raise", "failed", "error", 2),
        ("exit", "failed", "error", 2),
        ("once_raise", "ok", None, 2),
        ("few", "failed", "bad_reply", 2),
        ("text", "failed", "bad_reply", 2),
        ("nan", "failed", "not_finite", 1),
        ("empty", "failed", "empty", 1),
        ("refuse", "refused", "too_hard", 1),
    ],
)
def test_outcomes(tmp_path: Path, adapter: str, fault: str, status: str, reason: str | None, tries: int) -> None:
    if (adapter, fault) == ("ToyAsync", "few"):
        pytest.skip("one request a call cannot have too few replies")
    found = outcome_of(tmp_path, fault or "none", adapter)
    assert (found.status, found.reason, len(found.attempts)) == (status, reason, tries)
    assert (found.reply is not None) == (status == "ok")
    assert [attempt.number for attempt in found.attempts] == list(range(1, tries + 1))
    if fault in ("raise", "once_raise"):
        assert "a toy fault" in (found.attempts[0].traceback or "")


@pytest.mark.parametrize("adapter", ["Toy", "ToyAsync"])
def test_a_deadline_interrupts_and_the_next_request_is_served(tmp_path: Path, adapter: str) -> None:
    settings = {"faults": {"a dog": "hang"}}
    with executor(tmp_path, adapter, settings=settings, heads={"generate": {"deadline_s": 0.2}}) as started:
        started.start()
        began = time.monotonic()
        started.submit([call(1, "a dog", priority=1), call(2, "a cat")])
        (late,), (fine,) = started.collect(WAIT_S), started.collect(WAIT_S)
        assert time.monotonic() - began < WAIT_S
        assert (late.status, late.reason, len(late.attempts)) == ("timeout", "deadline", 2)
        assert "unit 1" in (late.message or "")
        assert fine.status == "ok"


def test_an_async_model_keeps_one_event_loop(tmp_path: Path) -> None:
    """Clients of servers are bound to the loop in which they were first used."""
    (tmp_path / "net.py").write_text(
        "import asyncio\nfrom torus_ray.heads import Model\n"
        "class Net(Model):\n"
        "    style = 'async'\n"
        "    loop = None\n"
        "    async def caption(self, request):\n"
        "        self.loop = self.loop or asyncio.get_running_loop()\n"
        "        return request.reply(str(self.loop is asyncio.get_running_loop()))\n"
    )
    from torus_ray.heads import CaptionRequest

    made = system(tmp_path, {"toy": host("caption", adapter="net.py:Net", style="async")})
    started = InlineExecutor({name: HostPlan(spec, str(spec.folder), 16) for name, spec in made.hosts.items()})
    started.start()
    wire = request_to_wire(CaptionRequest("1", "Describe.", b"", 0))
    started.submit([Call(number, "toy", "caption", wire) for number in (1, 2)])
    found = [started.collect(WAIT_S)[0].reply for _ in range(2)]
    started.close()
    assert found == [{"id": "1", "text": "True", "notes": ""}] * 2


@pytest.mark.parametrize(("fault", "cause"), [("raise", "no weights at /nowhere"), ("exit", "wants to leave")])
def test_a_model_that_does_not_load_stops_with_its_cause(tmp_path: Path, fault: str, cause: str) -> None:
    with executor(tmp_path, settings={"load_fault": fault}) as started:
        with pytest.raises(EngineStop, match=cause) as caught:
            started.start()
        assert caught.value.exit_code == 3


def test_collect_waits_for_no_longer_than_told_or_a_nudge(tmp_path: Path) -> None:
    with executor(tmp_path) as started:
        started.start()
        assert started.collect(0.01) == []
        started.nudge()
        began = time.monotonic()
        assert started.collect(WAIT_S) == []
        assert time.monotonic() - began < WAIT_S
