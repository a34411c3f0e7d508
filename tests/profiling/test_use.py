"""How busy hosts are: unions of intervals, shares while a run goes on and after it."""

from __future__ import annotations

import random

import pytest

from tests.profiling.attempts import call, frame
from torus_ray.profiling.slices import slices
from torus_ray.profiling.use import KEPT_S, WINDOW_S, Busy, LiveUse, use_of
from torus_ray.protocol.executor import Attempt, Call, HostState, Outcome


def outcome(host: str, worker: str, began: float, ended: float, *, batch: int = 1, questions: int = 0) -> Outcome:
    request = {"questions": [{}] * questions} if questions else {}
    attempt = Attempt(1, "ok", worker, batch=batch, started_at=began, ended_at=ended)
    return Outcome(Call(1, host, "answer", request), "ok", attempts=[attempt])


@pytest.mark.parametrize("seed", range(100))
def test_the_union_is_what_counting_second_by_second_gives(seed: int) -> None:
    draw = random.Random(seed)
    intervals = [(draw.randint(0, 60), draw.randint(0, 20)) for _ in range(draw.randint(0, 25))]
    since, length = draw.randint(0, 80), draw.randint(0, 40)
    busy = Busy()
    for begin, took in intervals:
        busy.add(begin, begin + took)
    seconds = {second for begin, took in intervals for second in range(begin, begin + took)}
    assert busy.seconds() == len(seconds)
    assert busy.seconds(since, since + length) == len(seconds & set(range(since, since + length)))


def test_what_is_settled_is_kept_as_a_sum_and_counted_once() -> None:
    busy = Busy()
    for at in (0, 10, 20):
        busy.add(at, at + 4)
    busy.settle(15)
    assert busy.seconds() == 12
    busy.add(2, 24)  # came back late: what is settled is not counted twice
    assert busy.seconds() == 12 + 10 - 4
    assert busy.seconds(16, 30) == 8
    busy.settle(15)
    assert busy.seconds() == 18


def test_a_run_that_is_over() -> None:
    run = slices(
        frame(
            call("g#1", 0, 4, "a", "b"),
            call("g#1", 6, 10, "c"),
            call("g#2", 0, 10, "d"),
            call("u#1", 0, 5, "e"),
            call("u#1", 2, 10, "f"),
            call("", 0, 10, "lost", started_at=None, ended_at=None),
        )
    )
    g, u = use_of(list(run))
    assert (g.host, g.workers, g.units, g.busy_s, g.busy_share) == ("g", 2, 4, 18, 0.9)
    assert g.unit_s == 4.5
    assert (u.units, u.busy_s, u.busy_share) == (2, 10, 1.0)
    assert str(g) == "host g: 4 units, 2 worker(s), busy 90%, 4.50 s a unit"


def test_calls_that_are_under_way_count_as_busy_though_nothing_has_come_back() -> None:
    use = LiveUse()
    assert use.share("g") is None
    for now in range(100, 131):
        use.take(now, {"g": HostState(replicas=4, in_flight=2, waiting=0)}, [])
    assert use.share("g") == pytest.approx(0.5)
    for now in range(131, 136):
        use.take(now, {"g": HostState(replicas=4, in_flight=0, waiting=0)}, [])
    assert use.share("g") == pytest.approx(0.5 * 6 / WINDOW_S)


def test_one_batch_keeps_one_replica_busy() -> None:
    use = LiveUse()
    states = {"g": HostState(replicas=2, in_flight=8, waiting=0)}
    use.take(99, states, [outcome("g", "g#1", 90, 99, batch=8) for _ in range(64)])
    for now in range(110, 131):
        use.take(now, states, [])
    assert use.share("g") == pytest.approx(0.5, abs=0.01)


def test_what_came_back_proves_its_seconds_where_nothing_is_ever_in_flight() -> None:
    """The inline executor computes between two looks."""
    use = LiveUse()
    states = {"toy": HostState(replicas=1, in_flight=0, waiting=3)}
    use.take(100, states, [])
    for now in range(101, 121):
        use.take(now, states, [outcome("toy", "toy#inline", now - 0.75, now, questions=3)])
    assert use.share("toy") == pytest.approx(0.75)
    (told,) = use.summary()
    assert (told.units, told.busy_s) == (60, 15)
    assert told.busy_share == pytest.approx(0.75)
    assert told.unit_s == pytest.approx(0.25)


def test_a_long_run_keeps_few_intervals() -> None:
    use = LiveUse()
    states = {"toy": HostState(replicas=1, in_flight=0, waiting=0)}
    for number in range(5_000):
        use.take(2.0 * number, states, [outcome("toy", "toy#1", 2 * number - 1, 2 * number)])
    (told,) = use.summary()
    assert told.busy_s == 5_000
    (live,) = use._hosts.values()
    assert len(live.workers["toy#1"]._begins) <= KEPT_S / 2 + 1
    assert len(live.levels) <= WINDOW_S


def test_a_host_that_is_not_up_has_no_share() -> None:
    use = LiveUse()
    for now in (100, 105, 110):
        use.take(now, {"late": HostState(0, 0, 7)}, [])
    assert use.share("late") is None
    (told,) = use.summary()
    assert told.busy_share is None
    assert str(told) == "host late: 0 units, 0 worker(s), busy share unknown"
