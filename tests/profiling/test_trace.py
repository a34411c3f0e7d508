"""The trace keeps the Trace Event Format: its fields, its order, no overlap on a track; written as it comes."""

from __future__ import annotations

import io
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.profiling.attempts import call, frame
from torus_ray.profiling.gantt import draw_gantt
from torus_ray.profiling.slices import Slice, slices
from torus_ray.profiling.trace import UNITS_SHOWN, trace_events, write_trace

FIELDS = {
    "X": {"name": str, "cat": str, "ph": str, "ts": int, "dur": int, "pid": int, "tid": int, "args": dict},
    "C": {"name": str, "ph": str, "ts": int, "pid": int, "tid": int, "args": dict},
    "M": {"name": str, "ph": str, "pid": int, "tid": int, "args": dict},
}
"""What the Trace Event Format wants of complete events, counters and names (its sections on event phases)."""
NAMES = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}


@pytest.fixture
def run() -> list[Slice]:
    """Two replicas that take batches, one that has many in flight, one call that nobody answered."""
    draw = random.Random(0)
    calls = []
    for worker in ("g#1", "g#2"):
        at = 1_000_000.25
        for number in range(40):
            took = draw.uniform(0.01, 2)
            calls.append(
                call(worker, at, at + took, *(f"{worker}.{number}.{n}" for n in range(3)), operation="generate")
            )
            at += took + draw.choice([0, 1e-7, 0.5])
    for number in range(60):
        at = 1_000_000 + draw.uniform(0, 20)
        calls.append(call("u#1", at, at + draw.uniform(0, 5), f"u.{number}", pid=7))
    lost = {"started_at": None, "ended_at": None, "status": "failed", "message": "died"}
    calls.append(call("", 1_000_005, 1_000_006, "lost", **lost))
    return list(slices(frame(*calls)))


def written(run: list[Slice]) -> list[dict[str, Any]]:
    file = io.StringIO()
    count = write_trace(trace_events(run), file)
    told = json.loads(file.getvalue())
    assert told["displayTimeUnit"] in ("ms", "ns")
    assert len(told["traceEvents"]) == count
    events: list[dict[str, Any]] = told["traceEvents"]
    return events


def test_every_event_has_the_fields_of_its_phase(run: list[Slice]) -> None:
    for event in written(run):
        wanted = FIELDS[event["ph"]]
        assert event.keys() == wanted.keys()
        assert all(type(event[name]) is kind for name, kind in wanted.items())
        if event["ph"] == "M":
            assert event["args"].keys() == {NAMES[event["name"]]}
        if event["ph"] == "C":
            assert all(isinstance(value, int) and value >= 0 for value in event["args"].values())


def test_events_come_in_the_order_of_time_after_the_names(run: list[Slice]) -> None:
    events = written(run)
    phases = [event["ph"] for event in events]
    named = phases.count("M")
    assert phases[:named] == ["M"] * named
    times = [event["ts"] for event in events[named:]]
    assert times == sorted(times)
    assert times[0] == 0
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def test_every_track_has_a_name_and_nothing_on_it_overlaps(run: list[Slice]) -> None:
    events = written(run)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {e["pid"] for e in events if e["name"] == "process_name"} == {pid for pid, _ in named}
    ends: dict[tuple[int, int], int] = defaultdict(int)
    for event in events:
        if event["ph"] == "X":
            track = (event["pid"], event["tid"])
            assert track in named
            assert event["ts"] >= ends[track]
            ends[track] = event["ts"] + event["dur"]


def test_a_batch_is_one_slice_with_its_units_and_its_waiting(run: list[Slice]) -> None:
    events = [e for e in written(run) if e["ph"] == "X"]
    batches = [e for e in events if e["name"] == "generate"]
    assert len(batches) == 80
    args = batches[0]["args"]
    assert len(args["units"]) == args["batch"] == 3
    assert args["waits_for_a_window_s"] == pytest.approx(2)
    assert args["waits_at_the_worker_s"] == pytest.approx(1)
    assert args["becomes_durable_s"] == pytest.approx(1)
    (lost,) = [e for e in events if e["args"]["units"] == ["lost"]]
    assert (lost["cat"], lost["args"]["message"]) == ("failed", "died")


def test_the_counter_is_what_was_in_flight(run: list[Slice]) -> None:
    events = written(run)
    hosts = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    levels = [e["args"]["requests"] for e in events if e["ph"] == "C" and e["pid"] == hosts["u"]]
    assert levels[-1] == 0
    of_u = [s for s in run if s.host == "u"]
    assert max(levels) == max(
        sum((o.submitted_at or 0) <= (s.submitted_at or 0) < (o.returned_at or 0) for o in of_u) for s in of_u
    )


def test_a_large_batch_names_some_of_its_units() -> None:
    (made,) = slices(frame(call("g#1", 1, 2, *(f"u{n}" for n in range(500)))))
    (event,) = [e for e in written([made]) if e["ph"] == "X"]
    assert len(event["args"]["units"]) == UNITS_SHOWN
    assert event["args"]["units_left_out"] == 500 - UNITS_SHOWN


def test_events_are_written_as_they_come() -> None:
    file = io.StringIO()

    def events() -> Iterator[dict[str, Any]]:
        for number in range(3):
            assert file.getvalue().count('"number"') == number
            yield {"number": number}

    assert write_trace(events(), file) == 3
    assert list(trace_events([])) == []


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_picture_is_a_picture(run: list[Slice], tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    draw_gantt(run, path, "a run")
    begins = {"png": b"\x89PNG", "svg": b"<?xml"}
    data = path.read_bytes()
    assert data.startswith(begins[suffix])
    if suffix == "svg":
        assert b"<svg" in data
