"""Who is up, and with how many replicas: tables without Ray."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torus_ray.engine.residency import HOLD_S, SEEN, Counts, Residency, Standing
from torus_ray.engine.rooms import Room, Wants, fits, with_margin

ONE_GPU = [Room(cpus=16, gpus=1, memory_gb=64)]
GPUS = [Room(cpus=64, gpus=8, memory_gb=512)]
G, U, M = "G", "U", "M"


def host(gpus: float = 1.0, memory_gb: float = 1.0, cpus: float = 1.0, **fields: Any) -> Standing:
    return Standing(Wants(cpus, gpus, memory_gb), **fields)


def measuring(gpus: float = 1.0, **fields: Any) -> Standing:
    return host(gpus, cpus=0.0, background=True, **fields)


def gpus(*shares: float) -> list[Wants]:
    return [Wants(gpus=share) for share in shares]


# --- rooms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "cards", "fit"),
    [
        ([0.5, 0.5], 1, True),
        ([0.6, 0.6], 1, False),
        ([0.6, 0.6], 2, True),
        ([0.6, 0.6, 0.6], 2, False),  # 1.8 of 2, but no card has 0.6 left
        ([0.4, 0.3, 0.3, 1.0], 2, True),
        ([0.1] * 10, 1, True),
        ([1.0, 0.1], 1, False),
        ([2.0], 2, True),
        ([2.0, 0.5], 2, False),
        ([], 0, True),
    ],
)
def test_shares_lie_on_one_card_and_whole_cards_are_whole(wanted: list[float], cards: int, fit: bool) -> None:
    assert fits(gpus(*wanted), [Room(0, cards)]) is fit


def test_a_replica_lies_on_one_node() -> None:
    nodes = [Room(4, 1, 10, "a"), Room(4, 1, 10, "b")]
    assert not fits(gpus(2), nodes)
    assert fits([Wants(3, 1, 8), Wants(3, 1, 8)], nodes)
    assert not fits([Wants(3, 1, 8), Wants(3, 0, 8), Wants(3, 0, 8)], nodes)
    assert fits([Wants(1, 1, 1, avoid=("a",))], nodes)
    assert not fits([Wants(1, 1, 1, avoid=("a",)), Wants(1, 1, 1, avoid=("a",))], nodes)


def test_a_margin_of_memory_keeps_nobody_out_alone() -> None:
    (room,) = with_margin([Room(4, 0, 10)], 0.8, [Wants(memory_gb=3)])
    assert room.memory_gb == 8
    (room,) = with_margin([Room(4, 0, 10)], 0.8, [Wants(memory_gb=9)])
    assert room.memory_gb == 9


# --- who is steady ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "rooms", "steady"),
    [
        ({G: host()}, ONE_GPU, {G}),
        ({G: host(), U: host()}, ONE_GPU, set()),
        ({G: host(0.5), U: host(0.5)}, ONE_GPU, {G, U}),
        ({G: host(), U: host(0.0)}, ONE_GPU, {G, U}),  # a listener behind an API takes no GPU
        ({G: host(0.7), "E": host(0.7), U: host(0.3)}, ONE_GPU, {U}),
        ({G: host(0.0, 40), U: host(0.0, 40)}, ONE_GPU, set()),  # memory excludes as well
        ({G: host(), U: host(), M: measuring(0.0)}, ONE_GPU, {M}),
        ({G: host(0.5), U: host(0.5), M: measuring(0.5)}, ONE_GPU, {G, U}),
        ({G: host(0.5), U: host(0.5), M: measuring(0.5)}, GPUS, {G, U, M}),
        ({G: host(0.4), U: host(), M: measuring(0.5)}, ONE_GPU, set()),
        ({M: measuring()}, ONE_GPU, {M}),
        ({f"h{i}": host(2) for i in range(5)}, GPUS, set()),
        ({f"h{i}": host(2) for i in range(4)}, GPUS, {f"h{i}" for i in range(4)}),
    ],
)
def test_steady_are_those_that_keep_nobody_out(hosts: dict[str, Standing], rooms: list[Room], steady: set[str]) -> None:
    assert set(Residency.of(hosts, rooms).steady) == steady


# --- loads ------------------------------------------------------------------------------------------------------------


def loads_of(hosts: dict[str, Standing], visits: list[str]) -> int:
    """How often a host is loaded where work comes up for one after the other, each drained before the next."""
    residency = Residency.of(hosts, ONE_GPU)
    up = dict.fromkeys(hosts, 0) | residency.first_counts(hosts)
    loads = sum(map(bool, up.values()))
    for visited in visits:
        now = {name: replace(host, replicas=up[name], waiting=name == visited) for name, host in hosts.items()}
        then = residency.next_counts(now, settled=True)
        loads += sum(bool(then[name]) and not up[name] for name in hosts)
        up = then
    return loads


NATIVE = [G, U, M]
SELF_CAPTION = [G, U, G, U, G, U, M]


@pytest.mark.parametrize(
    ("hosts", "visits", "loads"),
    [
        ({G: host()}, [G], 1),
        ({G: host(0.5), U: host(0.5)}, SELF_CAPTION[:-1], 2),
        ({G: host(), U: host()}, NATIVE[:-1], 2),
        ({G: host(), U: host()}, SELF_CAPTION[:-1], 6),
        ({G: host(), U: host(), M: measuring()}, NATIVE, 3),
        ({G: host(), U: host(), M: measuring()}, SELF_CAPTION, 7),
        ({G: host(), U: host(), M: measuring(0.0)}, SELF_CAPTION, 7),
        ({G: host(0.5), U: host(0.5), M: measuring()}, SELF_CAPTION, 3),
        ({G: host(), U: host()}, [U], 1),  # only answers are missing
    ],
)
def test_loads_on_one_gpu(hosts: dict[str, Standing], visits: list[str], loads: int) -> None:
    assert loads_of(hosts, visits) == loads


# --- whose turn it is -------------------------------------------------------------------------------------------------


def up(host: Standing, **fields: Any) -> Standing:
    return replace(host, replicas=1, **fields)


TWO = {G: host(), U: host()}
THREE = {**TWO, M: measuring()}


@pytest.mark.parametrize(
    ("changed", "settled", "counts"),
    [
        # nothing to do, nothing is loaded
        ({}, True, {G: 0, U: 0, M: 0}),
        ({G: replace(TWO[G], waiting=1)}, False, {G: 1, U: 0, M: 0}),
        # answers do not hurry: G has work, or may get some
        ({G: up(TWO[G], waiting=1), U: replace(TWO[U], waiting=SEEN)}, True, {G: 1, U: 0, M: 0}),
        ({G: up(TWO[G], in_flight=1), U: replace(TWO[U], waiting=SEEN)}, True, {G: 1, U: 0, M: 0}),
        ({G: up(TWO[G]), U: replace(TWO[U], waiting=SEEN)}, False, {G: 1, U: 0, M: 0}),
        # drained for good
        ({G: up(TWO[G]), U: replace(TWO[U], waiting=1)}, True, {G: 0, U: 1, M: 0}),
        # drained, but nobody wants its room
        ({G: up(TWO[G])}, True, {G: 1, U: 0, M: 0}),
        # measuring waits for the end of everything else
        ({G: up(TWO[G], in_flight=1), M: replace(THREE[M], waiting=5)}, True, {G: 1, U: 0, M: 0}),
        ({G: up(TWO[G]), U: replace(TWO[U], waiting=1), M: replace(THREE[M], waiting=5)}, True, {G: 0, U: 1, M: 0}),
        ({G: up(TWO[G]), M: replace(THREE[M], waiting=5)}, False, {G: 1, U: 0, M: 0}),
        ({G: up(TWO[G]), M: replace(THREE[M], waiting=5)}, True, {G: 0, U: 0, M: 1}),
    ],
)
def test_turns_of_two_hosts_and_one_that_measures(changed: dict[str, Standing], settled: bool, counts: Counts) -> None:
    hosts = {**THREE, **changed}
    assert Residency.of(hosts, ONE_GPU).next_counts(hosts, settled=settled) == counts


def test_most_work_goes_first_and_of_equals_the_longest_chain() -> None:
    hosts = {
        G: up(host()),
        "few": host(waiting=2, chain=9),
        "answers": host(waiting=40, chain=1),
        "edits": host(waiting=SEEN, chain=4),
    }
    counts = Residency.of(hosts, ONE_GPU).next_counts(hosts, settled=True)
    assert counts == {G: 0, "few": 0, "answers": 0, "edits": 1}


def test_only_as_many_leave_as_make_room() -> None:
    hosts = {"a": up(host(0.5)), "b": up(host(0.5)), "c": host(0.5, waiting=1)}
    assert Residency.of(hosts, ONE_GPU).next_counts(hosts, settled=True) == {"a": 0, "b": 1, "c": 1}
    hosts["a"] = up(host(0.5), in_flight=1)
    assert Residency.of(hosts, ONE_GPU).next_counts(hosts, settled=True) == {"a": 1, "b": 0, "c": 1}
    hosts["c"] = host(1.0, waiting=1)
    assert Residency.of(hosts, ONE_GPU).next_counts(hosts, settled=True) == {"a": 1, "b": 1, "c": 0}


def test_a_host_whose_turn_it_is_takes_all_the_room() -> None:
    hosts = {G: up(host(8)), U: host(2, waiting=1)}
    assert Residency.of(hosts, GPUS).next_counts(hosts, settled=True) == {G: 0, U: 4}
    hosts[U] = replace(hosts[U], most=3)
    assert Residency.of(hosts, GPUS).next_counts(hosts, settled=True) == {G: 0, U: 3}


# --- replicas ---------------------------------------------------------------------------------------------------------


def first(hosts: dict[str, Standing], *rooms: Room) -> Counts:
    return Residency.of(hosts, rooms).first_counts(hosts)


def test_replicas_grow_in_turn_until_something_is_used_up() -> None:
    cpus = {G: host(0.0), U: host(0.0, most=1)}
    assert first(cpus, Room(4, 0, 100)) == {G: 3, U: 1}
    assert first(cpus, Room(4, 0, 3)) == {G: 2, U: 1}
    assert first({G: host(0.5), U: host(0.5)}, Room(64, 2, 100)) == {G: 2, U: 2}
    assert first({G: host(1), U: host(0.5)}, *GPUS) == {G: 5, U: 6}


def test_what_only_measures_takes_what_is_left_of_the_rest() -> None:
    hosts = {M: measuring(0.0, most=4), G: host(0.0), "one": measuring(0.0)}
    assert first(hosts, Room(2, 0, 100)) == {M: 4, G: 2, "one": 1}
    assert first(hosts, Room(2, 0, 4)) == {M: 1, G: 2, "one": 1}


def test_steady_hosts_leave_room_for_those_that_take_turns() -> None:
    hosts = {G: host(1.0), "E": host(1.0), U: host(0.0)}
    assert first(hosts, Room(8, 1, 100)) == {U: 7}
    assert first({G: host(), U: host()}, *ONE_GPU) == {}


def busy(replicas: int, **fields: Any) -> Standing:
    return host(replicas=replicas, one_holds=2, waiting=2 * replicas, in_flight=2 * replicas, **fields)


def idle(replicas: int, **fields: Any) -> Standing:
    return host(replicas=replicas, one_holds=2, idle=replicas, **fields)


@pytest.mark.parametrize(
    ("hosts", "counts"),
    [
        # both for long enough: as many as the queue would fill, and one stays
        ({G: idle(4, idle_s=HOLD_S), U: busy(4, short_s=HOLD_S)}, {G: 1, U: 7}),
        ({G: idle(6, idle_s=HOLD_S), U: busy(2, short_s=HOLD_S)}, {G: 4, U: 4}),
        ({G: idle(4, idle_s=HOLD_S), U: busy(4, short_s=HOLD_S, most=5)}, {G: 3, U: 5}),
        # one of them only just
        ({G: idle(4, idle_s=HOLD_S - 1), U: busy(4, short_s=HOLD_S)}, {G: 4, U: 4}),
        ({G: idle(4, idle_s=HOLD_S), U: busy(4, short_s=HOLD_S - 1)}, {G: 4, U: 4}),
        # a load of a minute is not begun for ten seconds of want
        ({G: idle(4, idle_s=60), U: busy(4, short_s=60, load_s=60)}, {G: 4, U: 4}),
        ({G: idle(4, idle_s=120), U: busy(4, short_s=120, load_s=60)}, {G: 1, U: 7}),
        # only what is idle is given
        ({G: replace(busy(4, idle_s=HOLD_S), idle=1), U: busy(4, short_s=HOLD_S)}, {G: 3, U: 5}),
        # free room needs no donor
        ({G: busy(2), U: busy(4, short_s=HOLD_S)}, {G: 2, U: 6}),
        ({G: idle(1, idle_s=HOLD_S), U: busy(7, short_s=HOLD_S)}, {G: 1, U: 7}),
    ],
)
def test_a_pool_without_work_gives_to_one_that_has_plenty(hosts: dict[str, Standing], counts: Counts) -> None:
    assert Residency.of(hosts, GPUS).next_counts(hosts, settled=False) == counts


@settings(deadline=None, max_examples=60)
@given(
    wants=st.lists(st.tuples(st.sampled_from([0.0, 0.3, 0.5, 1.0, 2.0]), st.booleans()), min_size=1, max_size=5),
    cards=st.integers(2, 4),
    data=st.data(),
)
def test_whatever_is_decided_fits_and_never_takes_what_is_at_work(
    wants: list[tuple[float, bool]], cards: int, data: st.DataObject
) -> None:
    rooms = [Room(cpus=8, gpus=cards, memory_gb=100)]
    bare = {f"h{i}": host(share, background=background) for i, (share, background) in enumerate(wants)}
    residency = Residency.of(bare, rooms)
    counts = dict.fromkeys(bare, 0) | residency.first_counts(bare)
    for _ in range(4):
        hosts = {}
        for name, one in bare.items():
            waiting, in_flight = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 1)) if counts[name] else 0
            spare = counts[name] if not waiting and not in_flight else 0
            hosts[name] = replace(
                one,
                replicas=counts[name],
                waiting=waiting,
                in_flight=in_flight,
                idle=spare,
                idle_s=99.0 if spare else 0.0,
                short_s=99.0 * bool(waiting),
            )
        settled = data.draw(st.booleans())
        counts = residency.next_counts(hosts, settled=settled)
        assert residency.fit(counts)
        for name, now in hosts.items():
            if counts[name] < now.replicas:
                assert now.drained
                assert counts[name] or settled
        # never a standstill: who waits is up, or somebody else who is not drained keeps it out
        if settled and any(h.waiting for h in hosts.values()):
            assert any(counts[name] for name, h in hosts.items() if not h.drained)
