"""How fast replicas are, and what an idle one takes over: tables without Ray, without a clock."""

from __future__ import annotations

import pytest

from torus_ray.engine.paces import COPY_AFTER, COPY_AFTER_S, Paces, Underway, to_take_over


def paces(*batches: tuple[str, float], size: int = 1, operation: str = "edit") -> Paces:
    made = Paces()
    for replica, seconds in batches:
        made.note(replica, operation, size, seconds)
    return made


def test_who_takes_three_times_as_long_is_found_after_three_batches() -> None:
    known = paces(*[("a", 1.0), ("b", 1.1), ("c", 3.0)] * 4)
    assert known.slowness("a") == known.slowness("b") == known.slowness("never seen") == 1.0
    assert 2.5 < known.slowness("c") <= 3.0
    known.forget("c")
    assert known.slowness("c") == 1.0


def test_one_hiccup_is_forgotten_and_nobody_is_judged_by_himself() -> None:
    known = paces(*[("a", 1.0), ("b", 1.0)] * 3, ("a", 60.0), *[("b", 1.0), ("a", 1.0)] * 4)
    assert known.slowness("a") == 1.0
    assert paces(*[("a", 1.0)] * 9, ("a", 9.0)).slowness("a") == 1.0


def test_large_batches_are_not_slow_ones() -> None:
    known = paces(*[("a", 1.0), ("b", 1.0)] * 3)
    for _ in range(6):
        known.note("a", "edit", 8, 5.0)
        known.note("b", "edit", 8, 5.0)
    assert known.slowness("a") == known.slowness("b") == 1.0
    assert (known.typical_s("edit", 1), known.typical_s("edit", 9), known.typical_s("caption", 1)) == (1.0, 5.0, None)


def test_what_a_batch_takes_of_a_size_not_seen_yet() -> None:
    known = paces(("a", 2.0), ("b", 1.0), size=2)
    assert known.typical_s("edit", 2) == 2.0
    assert known.typical_s("edit", 1) == 2.0
    assert known.typical_s("edit", 16) == 16.0


SLOWNESS = {"slow": 3.0}


@pytest.mark.parametrize(
    ("idle", "underway", "chosen"),
    [
        ("idle", [], None),
        # what runs at a replica like the others is left there, until it hangs
        ("idle", [Underway("a", 0, 2.9, 1.0)], None),
        ("idle", [Underway("a", 0, COPY_AFTER + 0.1, 1.0)], 0),
        ("idle", [Underway("a", 0, COPY_AFTER_S - 0.1, 0.01)], None),
        ("idle", [Underway("a", 0, 99.0, None)], None),
        ("idle", [Underway("a", 1, COPY_AFTER_S + 0.1, 0.01)], 0),
        # the longest wait behind another batch first
        ("idle", [Underway("a", 1, 0.5, 1.0), Underway("b", 1, 0.1, 1.0), Underway("c", 0, 9.0, 1.0)], 1),
        ("idle", [Underway("a", 1, 0.1, 1.0), Underway("slow", 1, 0.1, 1.0)], 1),
        ("idle", [Underway("a", 1, 0.0, 0.01)], None),
        ("idle", [Underway("a", 1, COPY_AFTER_S + 0.1, None)], 0),
        # a slow one's batch is done again only while that is quicker
        ("idle", [Underway("slow", 0, 0.5, 1.0)], 0),
        ("idle", [Underway("slow", 0, 2.0, 1.0)], None),
        # a slow one helps nobody who is done sooner
        ("slow", [Underway("a", 1, 0.0, 1.0)], None),
        ("slow", [Underway("a", 0, COPY_AFTER + 0.1, 1.0)], 0),
    ],
)
def test_what_an_idle_replica_takes_over(idle: str, underway: list[Underway], chosen: int | None) -> None:
    assert to_take_over(idle, underway, lambda name: SLOWNESS.get(name, 1.0)) == chosen
