"""Which job goes where, and what a failure means: without Ray, without a clock."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torus_ray.engine import dispatch
from torus_ray.engine.dispatch import SCAN, Job, ReadyQueue
from torus_ray.protocol.executor import Call

NOBODY: frozenset[str] = frozenset()


def job(number: int, priority: int = 0, group: str | None = None, operation: str = "answer", limit: int = 99) -> Job:
    return Job(Call(number, "host", operation, {}, priority=priority, group=group), limit=limit)


def queue_of(*jobs: Job) -> ReadyQueue:
    queue = ReadyQueue()
    for item in jobs:
        queue.add(item)
    return queue


def take(
    queue: ReadyQueue, size: int = 1, replica: str = "r1", idle: bool = True, busy: frozenset[str] = NOBODY
) -> list[int]:
    sizes = dict.fromkeys(("generate", "edit", "caption", "answer"), size)
    return [item.call.id for item in queue.take(replica, sizes, idle=idle, busy=busy)]


# --- order ------------------------------------------------------------------------------------------------------------


def test_highest_priority_first_then_first_come() -> None:
    queue = queue_of(job(1), job(2, priority=3), job(3, priority=3), job(4, priority=1))
    assert [take(queue) for _ in range(5)] == [[2], [3], [4], [1], []]


def test_a_job_that_comes_back_goes_before_new_ones_of_its_priority_only() -> None:
    queue = queue_of(job(1), job(2, priority=3))
    queue.add(job(3), again=True)
    assert [take(queue) for _ in range(3)] == [[2], [3], [1]]


def test_a_batch_is_of_one_operation() -> None:
    queue = queue_of(job(1, 2), job(2, 3, operation="edit"), job(3, 1), job(4, 1, operation="edit"))
    assert take(queue, 8) == [2, 4]
    assert take(queue, 8) == [1, 3]
    assert len(queue) == 0


def test_an_operation_that_says_nothing_of_batches_goes_one_at_a_time() -> None:
    queue = queue_of(job(1), job(2))
    assert [item.call.id for item in queue.take("r1", {}, idle=True, busy=NOBODY)] == [1]


# --- groups -----------------------------------------------------------------------------------------------------------


def test_what_is_about_one_clip_goes_to_the_replica_that_knows_it() -> None:
    queue = queue_of(job(1, group="a"))
    assert take(queue, replica="r1") == [1]
    queue.add(job(2, group="a"))
    queue.add(job(3, group="b"))
    assert take(queue, replica="r2", idle=False) == [3]
    assert take(queue, replica="r2", idle=False) == []
    assert take(queue, replica="r1", idle=False) == [2]


def test_an_idle_replica_takes_what_belongs_elsewhere_rather_than_nothing() -> None:
    queue = queue_of(job(1, group="a"))
    take(queue, replica="r1")
    queue.add(job(2, group="a"))
    assert take(queue, replica="r2", idle=True) == [2]


def test_a_home_without_room_or_that_is_gone_holds_nothing_back() -> None:
    queue = queue_of(job(1, group="a"))
    take(queue, replica="r1")
    queue.add(job(2, group="a"))
    assert take(queue, replica="r2", idle=False, busy=frozenset({"r1"})) == [2]
    queue.add(job(3, group="a"))
    queue.forget("r2")
    assert take(queue, replica="r3", idle=False) == [3]


# --- batches ----------------------------------------------------------------------------------------------------------

jobs = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([None, "a", "b", "c"]),
        st.sampled_from(["edit", "answer"]),
        st.integers(1, 3 * SCAN),
    ),
    max_size=4 * SCAN,
)


@given(
    wanted=jobs, size=st.integers(1, 3 * SCAN), replicas=st.lists(st.sampled_from(["r1", "r2"]), min_size=1, max_size=9)
)
def test_batches_keep_every_limit_and_lose_nothing(
    wanted: list[tuple[int, str | None, str, int]], size: int, replicas: list[str]
) -> None:
    made = [job(i, priority, group, operation, limit) for i, (priority, group, operation, limit) in enumerate(wanted)]
    queue = queue_of(*made)
    taken: list[int] = []
    for turn in range(4 * len(made) + 1):
        batch = queue.take(replicas[turn % len(replicas)], {"edit": size, "answer": size}, idle=True, busy=NOBODY)
        assert bool(batch) == (len(taken) < len(made)), "idle, and something waits: something goes"
        assert len(batch) <= min([size, *(item.limit for item in batch)])
        assert len({item.call.operation for item in batch}) <= 1
        taken += [item.call.id for item in batch]
        assert len(queue) == len(made) - len(taken)
    assert sorted(taken) == list(range(len(made)))


def test_a_limit_beyond_what_is_looked_through_is_kept_too() -> None:
    queue = queue_of(*(job(i) for i in range(SCAN)), job(SCAN, limit=SCAN + 1), job(SCAN + 1))
    assert len(take(queue, 64)) == SCAN + 1


@given(st.integers(1, 5 * SCAN))
def test_a_full_batch_is_as_large_as_the_head_takes(size: int) -> None:
    queue = queue_of(*(job(i) for i in range(3 * SCAN)))
    assert len(take(queue, size)) == min(size, 3 * SCAN)


def test_drain_takes_all_out() -> None:
    queue = queue_of(job(1), job(2, operation="edit"))
    assert sorted(item.call.id for item in queue.drain()) == [1, 2]
    assert len(queue) == 0
    assert take(queue) == []


# --- what went wrong --------------------------------------------------------------------------------------------------

ERROR = {"kind": "RuntimeError", "message": "no"}


@settings(deadline=None)
@given(size=st.integers(1, 70), data=st.data())
def test_batches_that_raise_are_halved_until_the_guilty_are_alone(size: int, data: st.DataObject) -> None:
    guilty = data.draw(st.sets(st.integers(0, size - 1), max_size=4))
    queue = queue_of(*(job(i) for i in range(size)))
    tried: Counter[int] = Counter()
    done, failed = set(), set()
    while batch := queue.take("r1", {"answer": size}, idle=True, busy=NOBODY):
        ids = {item.call.id for item in batch}
        tried.update(ids)
        if not ids & guilty:
            done |= ids
            continue
        again, outcomes = dispatch.after_error(batch, ERROR)
        for item in again:
            queue.add(item, again=True)
        failed |= {outcome.call.id for outcome in outcomes}
    assert failed == guilty
    assert done == set(range(size)) - guilty
    # halvings of a batch, and two tries alone
    assert max(tried.values()) <= size.bit_length() + dispatch.MAX_ERRORS


@pytest.mark.parametrize(
    ("rule", "tries", "status", "reason"),
    [
        (lambda jobs: dispatch.after_error(jobs, ERROR), dispatch.MAX_ERRORS, "failed", "error"),
        (lambda jobs: dispatch.after_error(jobs, ERROR, "bad_reply"), dispatch.MAX_ERRORS, "failed", "bad_reply"),
        (lambda jobs: dispatch.after_death(jobs, "it died"), dispatch.MAX_DEATHS, "failed", "worker_died"),
        (lambda jobs: dispatch.after_timeout(jobs, "late"), dispatch.MAX_TIMEOUTS, "timeout", "deadline"),
    ],
)
def test_tries_of_one_request_are_bounded(rule, tries: int, status: str, reason: str) -> None:  # type: ignore[no-untyped-def]
    item = job(1)
    for _ in range(tries - 1):
        dispatch.record([item], status, {"worker": "r1"})  # type: ignore[arg-type]
        assert rule([item]) == ([item], [])
    dispatch.record([item], status, {"worker": "r1"})  # type: ignore[arg-type]
    again, (outcome,) = rule([item])
    assert again == []
    assert (outcome.status, outcome.reason, outcome.call.id) == (status, reason, 1)
    assert [attempt.number for attempt in outcome.attempts] == list(range(1, tries + 1))


def test_being_in_a_bad_batch_is_held_against_nobody() -> None:
    pair = [job(1), job(2)]
    for rule in (lambda: dispatch.after_death(pair, ""), lambda: dispatch.after_timeout(pair, "")):
        again, outcomes = rule()
        assert (again, outcomes) == (pair, [])
    assert [(item.deaths, item.timeouts, item.limit) for item in pair] == [(0, 0, 1)] * 2


def test_outcomes_are_in_the_order_of_their_requests() -> None:
    results = [
        {"status": "ok", "reply": {"id": "1"}},
        {"status": "failed", "reason": "empty", "message": "no samples"},
        {"status": "refused", "reason": "too_hard"},
    ]
    first, second, third = dispatch.outcomes_of([job(1), job(2), job(3)], results)
    assert (first.call.id, first.status, first.reply) == (1, "ok", {"id": "1"})
    assert (second.status, second.reason, second.message) == ("failed", "empty", "no samples")
    assert (third.status, third.reason, third.reply) == ("refused", "too_hard", None)
