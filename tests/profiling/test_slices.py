"""Attempts as slices: a batch is one, whoever asked; what nobody answered stands apart; lanes never overlap."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.profiling.attempts import call, frame
from torus_ray.errors import InputError
from torus_ray.profiling.slices import LOST, lanes, slices, slices_of
from torus_ray.store.local import LocalRunStore


def test_a_batch_is_one_slice_and_its_cpu_seconds_are_added_up() -> None:
    (made,) = slices(frame(call("g#1", 10, 14, "a", "b", "c", operation="generate")))
    assert (made.host, made.worker, made.operation, made.batch) == ("g", "g#1", "generate", 3)
    assert made.units == ("a", "b", "c")
    assert made.statuses == {"ok": 3}
    assert (made.begin, made.end, made.seconds) == (10, 14, 4)
    assert made.cpu_s == pytest.approx(0.75)
    assert (made.ready_at, made.submitted_at, made.returned_at, made.committed_at) == (7, 9, 15, 16)


def test_slices_come_in_the_order_of_their_begin_whatever_order_the_rows_have() -> None:
    rows = [call("g#1", at, at + 1, f"u{at}") for at in (30, 10, 20)]
    assert [made.begin for made in slices(frame(*rows))] == [10, 20, 30]


def test_a_call_that_nobody_answered_belongs_to_no_worker() -> None:
    lost = {"started_at": None, "ended_at": None, "pid": 0, "status": "failed", "cpu_s": None}
    (made,) = slices(frame(call("", 10, 14, "a", **lost, message="the process of g#1 died")))
    assert (made.host, made.worker) == (LOST, LOST)
    assert (made.begin, made.end) == (9, 15)  # sent and given up
    assert made.cpu_s is None
    assert made.message == "the process of g#1 died"


def test_a_clock_that_was_set_back_makes_no_negative_time() -> None:
    (made,) = slices(frame(call("g#1", 100, 40, "a")))
    assert made.seconds == 0


def test_an_attempt_that_was_never_sent_has_no_slice() -> None:
    never = dict.fromkeys(("submitted_at", "started_at", "ended_at", "returned_at"))
    assert list(slices(frame(call("g#1", 1, 2, "a", **never)))) == []


def test_one_call_at_a_time_stays_on_one_lane_and_many_at_once_never_overlap() -> None:
    one = list(slices(frame(*[call("g#1", at, at + 1, f"u{at}") for at in range(5)])))
    assert lanes(one) == [0] * 5
    draw = random.Random(1)
    begins = sorted(draw.uniform(0, 10) for _ in range(200))
    many = list(slices(frame(*[call("u#1", at, at + draw.uniform(0, 2), f"u{at}") for at in begins])))
    free: dict[int, float] = {}
    for made, lane in zip(many, lanes(many), strict=True):
        assert free.get(lane, 0.0) <= made.begin
        free[lane] = made.end
    at_once = max(sum(other.begin <= made.begin < other.end for other in many) for made in many)
    assert len(free) == at_once  # no more lanes than calls at once


def test_arms_that_ran_together_are_read_as_one(tmp_path: Path) -> None:
    shared = call("g#1", 10, 14, "s/native/a", "s/self-caption/a")
    for name, row in zip(("native", "self-caption"), shared, strict=True):
        with LocalRunStore(tmp_path / name) as store:
            store.append("renders", [{"unit_id": row["unit_id"], "status": "ok"}], attempts=[row])
    (made,) = slices_of([tmp_path / "native", tmp_path / "self-caption"])
    assert len(made.units) == 2
    with LocalRunStore(tmp_path / "empty"):
        pass
    with pytest.raises(InputError, match="no attempt of its own"):
        slices_of([tmp_path / "empty"])
