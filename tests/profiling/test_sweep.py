"""The sweep of a host: sizes, rows, faults; with an executor that computes at once and makes up its times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import SIMULATED, canary_bank, gauge, host, system
from torus_ray.audio import encode, silence
from torus_ray.bank.load import Bank
from torus_ray.engine.hosting import HeadServer
from torus_ray.engine.hosts import HostPlan
from torus_ray.profiling.material import Material
from torus_ray.profiling.rows import ProfileRow
from torus_ray.profiling.sweep import Wish, not_possible, profile_host, sizes_of
from torus_ray.protocol.executor import Attempt, Call, EngineStop, HostState, Outcome
from torus_ray.store.local import LocalRunStore
from torus_ray.systems import System

SPARE = encode(silence(1.0))
BATCH_S, EACH_S = 1.0, 0.25


class MadeUp:
    """An executor of one host: a real adapter behind it, a batch taking BATCH_S + EACH_S a request by its own word.

    fails, stops: (operation, size) under which the head fails, or the host's end comes.
    """

    def __init__(
        self, plan: HostPlan, fails: set[tuple[str, int]], stops: set[tuple[str, int]], asked: list[list[Call]]
    ) -> None:
        self._server = HeadServer(plan.payload(folder=str(plan.spec.folder)))
        self._style = plan.spec.card.style
        self._name = plan.name
        self._fails, self._stops, self._asked = fails, stops, asked
        self._waiting: list[Call] = []
        self.most = 0

    def start(self) -> Mapping[str, Mapping[str, Any]]:
        return self.described()

    def described(self) -> Mapping[str, Mapping[str, Any]]:
        return {self._name: {**self._server.describe(), "style": self._style, "max_in_flight": 4}}

    def room(self, host: str) -> int:
        return 100

    def submit(self, calls: Sequence[Call]) -> None:
        self._waiting += calls
        self.most = max(self.most, len(self._waiting))

    def collect(self, timeout_s: float) -> list[Outcome]:
        size = 1 if self._style == "async" else len(self._waiting)
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        self._asked.append(batch)
        spot = (batch[0].operation, size)
        if spot in self._stops:
            self._stops.remove(spot)
            raise EngineStop("host keeps dying")
        answer = self._server.handle(batch[0].operation, [call.request for call in batch])
        attempt: dict[str, Any] = {"worker": f"{self._name}#1", "batch": size, "pid": answer["pid"], "cpu_s": 0.5}
        if spot in self._fails:
            failed = {"kind": "OutOfMemory", "message": f"no room for {size}"}
            attempts = [Attempt(1, "failed", **attempt, **failed), Attempt(2, "ok", **attempt)]
        else:
            at = 1_000.0 * len(self._asked)
            times = (at + 1, at + 2, at + 2 + BATCH_S + EACH_S * size, at + 4 + BATCH_S + EACH_S * size)
            named = dict(zip(("submitted_at", "started_at", "ended_at", "returned_at"), times, strict=True))
            attempts = [Attempt(1, "ok", **attempt, **named)]
        results = answer["results"]
        return [
            Outcome(call, r["status"], r.get("reply"), attempts=attempts)
            for call, r in zip(batch, results, strict=True)
        ]

    def nudge(self) -> None: ...

    def states(self) -> Mapping[str, HostState]:
        return {}

    def halt(self, stop: EngineStop, within_s: float) -> None: ...

    def close(self) -> None: ...


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary_bank(tmp_path_factory.mktemp("bank"), tests=6)


class Bench:
    """Profiles a system's only host with MadeUp executors; remembers what was asked."""

    def __init__(self, folder: Path, bank: Bank, made: System) -> None:
        self.made, self.material = made, Material(made, bank, SPARE)
        (self.host,) = made.hosts.values()
        self.asked: list[list[Call]] = []
        self.opened: list[MadeUp] = []
        self.fails: set[tuple[str, int]] = set()
        self.stops: set[tuple[str, int]] = set()
        self._folder = folder

    def rows(
        self, *operations: str, sizes: tuple[int, ...] | None = None, inline: bool = False, seconds: float = 0.0
    ) -> list[ProfileRow]:
        @contextmanager
        def opened(host: Any) -> Iterator[MadeUp]:
            self.opened.append(MadeUp(HostPlan(host, "", 16), self.fails, self.stops, self.asked))
            yield self.opened[-1]

        wish = Wish(operations, sizes, seconds, inline)
        with LocalRunStore(self._folder / "run") as store:
            return list(profile_host(self.made, self.host, opened, self.material, store, wish))


@pytest.fixture
def batches(tmp_path: Path, bank: Bank) -> Bench:
    settings = {"max_batch": {"generate": 4, "edit": 2}}
    card = host(adapter=f"{SIMULATED}:Simulated", settings=settings)
    return Bench(tmp_path, bank, system(tmp_path / "card", {"sim": card}))


def test_each_size_is_a_row_with_where_its_time_went(batches: Bench) -> None:
    one, two, four = batches.rows("generate")
    assert [row.size for row in (one, two, four)] == [1, 2, 4]
    for row in (one, two, four):
        assert (row.status, row.reason, row.calls, row.units) == ("ok", None, 1, row.size)
        assert row.model_s == pytest.approx(BATCH_S + EACH_S * row.size)
        assert row.transfer_s == pytest.approx(1 + 2)
        assert row.busy_s == row.model_s
        assert row.audio_s == pytest.approx(0.2 * row.size)
        assert row.cpu_s == 0.5
        assert row.store_s is not None
        assert row.warm_up_s is not None
        assert row.memory_gib is not None
        assert (row.latency_p95_s, row.latency_p99_s) == (None, None)  # one call has no such percentile
    assert four.rate == pytest.approx(0.8 / 2.0)


def test_the_warm_up_is_no_part_of_what_is_counted(batches: Bench) -> None:
    batches.rows("caption", sizes=(1,))
    asked = [batch for batch in batches.asked if batch[0].operation == "caption"]
    assert len(asked) == 2


def test_sizes_that_the_class_does_not_take_are_rows_too(batches: Bench) -> None:
    rows = batches.rows("generate", "edit", sizes=(2, 4))
    told = {(row.operation, row.size): (row.status, row.reason) for row in rows}
    assert told["edit", 4] == ("skipped", "the class takes 2 at most (max_batch of edit)")
    assert [status for spot, (status, _) in told.items() if spot != ("edit", 4)] == ["ok", "ok", "ok"]


def test_a_head_that_fails_at_a_size_has_a_row_that_says_so_and_the_sweep_goes_on(batches: Bench) -> None:
    batches.fails = {("generate", 2)}
    one, two, four, edit, *_ = batches.rows("generate", "edit")
    assert (two.status, two.reason, two.failed, two.busy_s) == ("failed", "OutOfMemory: no room for 2", 2, None)
    assert [row.status for row in (one, four, edit)] == ["ok", "ok", "ok"]


def test_a_host_that_ends_under_a_size_is_started_again_for_the_next(batches: Bench) -> None:
    batches.stops = {("generate", 2)}
    rows = batches.rows("generate", "edit")
    assert [(row.operation, row.size, row.status) for row in rows] == [
        ("generate", 1, "ok"),
        ("generate", 2, "failed"),
        ("generate", 4, "ok"),
        ("edit", 1, "ok"),
        ("edit", 2, "ok"),
    ]
    assert rows[1].reason == "host keeps dying"
    assert len(batches.opened) == 2


def test_a_host_that_cannot_be_started_ends_it(batches: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(self: MadeUp) -> Mapping[str, Mapping[str, Any]]:
        raise EngineStop("did not load")

    monkeypatch.setattr(MadeUp, "start", cannot)
    with pytest.raises(EngineStop, match="did not load"):
        batches.rows("generate")


def test_heads_that_hear_are_asked_about_what_the_system_rendered(batches: Bench) -> None:
    (row,) = batches.rows("answer")
    asked = [batch for batch in batches.asked if batch[0].operation == "answer"]
    rendered = [batch for batch in batches.asked if batch[0].operation == "generate"]
    assert len(rendered) == 3  # one of each audio type, though only answers are profiled
    heard = {call.request["clip_bytes"] for batch in asked for call in batch}
    assert SPARE.data not in heard
    assert len(asked[0][0].request["questions"]) == 3
    assert (row.units, row.audio_s) == (3, None)
    assert row.unit_s == pytest.approx((BATCH_S + EACH_S) / 3)


def test_a_system_that_renders_nothing_hears_the_spare_clip(tmp_path: Path, bank: Bank) -> None:
    made = system(tmp_path / "card", {"ears": host("answer", adapter=f"{SIMULATED}:Simulated")})
    bench = Bench(tmp_path, bank, made)
    (row,) = bench.rows("answer")
    assert row.status == "ok"
    assert {call.request["clip_bytes"] for batch in bench.asked for call in batch} == {SPARE.data}


def test_a_system_that_only_measures(tmp_path: Path, bank: Bank) -> None:
    bench = Bench(tmp_path, bank, gauge(tmp_path / "card"))
    (row,) = bench.rows("measure", sizes=(1,))
    assert (row.status, row.units) == ("ok", 1)


def test_many_in_flight_stay_many_and_the_clock_counts(tmp_path: Path, bank: Bank) -> None:
    card = host(adapter=f"{SIMULATED}:SimulatedAsync", style="async")
    bench = Bench(tmp_path, bank, system(tmp_path / "card", {"sim": card}))

    class Quick(MadeUp):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self._server.model = self._server.model._inner

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "MadeUp", Quick)
        rows = bench.rows("caption", seconds=0.05)
    assert [row.size for row in rows] == [1, 2, 4]
    assert bench.opened[0].most == 4
    for row in rows:
        assert (row.status, row.style) == ("ok", "async")
        assert row.calls >= row.size
        assert row.busy_s is not None
        assert 0.05 <= row.busy_s < 5
    assert len({call.id for batch in bench.asked for call in batch}) == sum(map(len, bench.asked))


@pytest.mark.parametrize(
    ("asked", "most", "sizes"),
    [(None, 1, [1]), (None, 8, [1, 2, 4, 8]), (None, 6, [1, 2, 4, 6]), ((4, 1, 4, 9), 6, [1, 4, 9])],
)
def test_the_sizes_that_are_tried(asked: tuple[int, ...] | None, most: int, sizes: list[int]) -> None:
    described = {"style": "batch", "max_batch": {"generate": most}, "max_in_flight": 8}
    assert sizes_of(described, "generate", asked) == sizes
    assert sizes_of({**described, "style": "async"}, "generate", None) == [1, 2, 4, 8]


def test_inline_asks_one_at_a_time() -> None:
    described = {"style": "batch", "max_batch": {"generate": 4}, "max_in_flight": 8}
    assert not_possible(described, "generate", 1, inline=True) is None
    assert not_possible(described, "generate", 2, inline=True) == "--inline asks one at a time"
    assert not_possible(described, "generate", 4, inline=False) is None
