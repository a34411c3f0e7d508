"""One host asked in batches, or with many in flight, of growing size: what each size takes."""

from __future__ import annotations

import itertools
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import psutil

from torus_ray.audio import StoredClip
from torus_ray.heads import clip_from_wire, request_to_wire
from torus_ray.profiling.material import Item, Material
from torus_ray.profiling.memory import Peak
from torus_ray.profiling.rows import ProfileRow
from torus_ray.protocol.executor import Attempt, Call, EngineStop, Executor, Outcome
from torus_ray.protocol.rows import TABLES
from torus_ray.store.interface import RunStore
from torus_ray.systems import HostSpec, System

WAIT_S = 1.0
P95_CALLS, P99_CALLS = 20, 100
"""Fewer calls have no such percentile: it would be their slowest."""
STORED = 8
"""Calls whose replies are made durable, to see what that takes."""

Open = Callable[[HostSpec], AbstractContextManager[Executor]]
"""An executor for one replica of a host, not started."""


@dataclass(frozen=True)
class Wish:
    """What to profile. operations: of the host. sizes: None: powers of two up to what the class allows. seconds: for
    each size, warm-up apart."""

    operations: tuple[str, ...]
    sizes: tuple[int, ...] | None
    seconds: float
    inline: bool


@dataclass
class _Came:
    """What one size brought. replies: the first of them."""

    warm_up_s: float
    calls: list[tuple[float, Attempt]] = field(default_factory=list)
    units: int = 0
    failed: int = 0
    reason: str | None = None
    replies: list[Mapping[str, Any]] = field(default_factory=list)
    audio_s: float | None = None
    wall_s: float = 0.0


def profile_host(
    system: System, host: HostSpec, open_executor: Open, material: Material, store: RunStore, wish: Wish
) -> Iterator[ProfileRow]:
    """Rows of a host, each as soon as it is known. What it renders is kept in the material, for hosts that hear.

    A host that stops under a size is started again for the next. Raises EngineStop where it cannot be started at all.
    """
    done: set[tuple[str, int]] = set()
    while True:
        try:
            with open_executor(host) as executor:
                yield from _session(system, host, executor, material, store, wish, done)
                return
        except _Ended as end:
            done.add((end.row.operation, end.row.size))
            yield end.row


class _Ended(Exception):
    """The host stopped under a size; the row says so."""

    def __init__(self, row: ProfileRow) -> None:
        super().__init__(row.reason)
        self.row = row


def _session(
    system: System,
    host: HostSpec,
    executor: Executor,
    material: Material,
    store: RunStore,
    wish: Wish,
    done: set[tuple[str, int]],
) -> Iterator[ProfileRow]:
    began = time.time()
    described = executor.start()[host.name]
    start_s = time.time() - began
    asker = _Asker(executor, host)
    pid, process_began = _here(described)
    if wish.inline:
        process_began = began
    with Peak(pid, gpu=str(described["device"]).startswith("cuda")) as peak:
        if "generate" in host.card.heads and not material.has_clips:
            _render(asker, material.items(host, "generate"), material)
        for operation in wish.operations:
            blank = ProfileRow(
                system.name,
                host.name,
                operation,
                host.head_fingerprint(operation),
                host.card.style,
                0,
                "ok",
                start_s=start_s,
                load_s=None if process_began is None else min(start_s, began + start_s - process_began),
                node=str(described["node"]),
                device=str(described["device"]),
                inline=wish.inline,
            )
            items = material.items(host, operation)
            for size in sizes_of(described, operation, wish.sizes):
                if (operation, size) in done:
                    continue
                row = replace(blank, size=size, made_at=time.time())
                why = not_possible(described, operation, size, inline=wish.inline)
                if why:
                    done.add((operation, size))
                    yield replace(row, status="skipped", reason=why)
                    continue
                peak.take()
                try:
                    came = _ask(asker, items, size, wish.seconds, asynchronous=host.card.style == "async")
                except EngineStop as stop:
                    raise _Ended(replace(row, status="failed", reason=stop.message)) from stop
                if pid:
                    peak.pid = next((a.pid for _, a in reversed(came.calls) if a.pid), pid)
                memory, gpu_memory = peak.take()
                store_s = _store(store, operation, came.replies)
                done.add((operation, size))
                yield replace(_row(row, came), memory_gib=memory, gpu_memory_gib=gpu_memory, store_s=store_s)


def sizes_of(described: Mapping[str, Any], operation: str, asked: Sequence[int] | None) -> list[int]:
    """The sizes to try: those asked for, else powers of two up to what the class allows, and that."""
    if asked is not None:
        return sorted(set(asked))
    most = _most(described, operation)
    return sorted({*(2**power for power in range(int(math.log2(most)) + 1)), most})


def not_possible(described: Mapping[str, Any], operation: str, size: int, *, inline: bool) -> str | None:
    """Why a size cannot be tried; None where it can."""
    if inline and size > 1:
        return "--inline asks one at a time"
    most = _most(described, operation)
    name = "max_in_flight" if described["style"] == "async" else f"max_batch of {operation}"
    return f"the class takes {most} at most ({name})" if size > most else None


def _most(described: Mapping[str, Any], operation: str) -> int:
    most = described["max_in_flight"] if described["style"] == "async" else described["max_batch"].get(operation, 1)
    return max(1, int(most))


def _here(described: Mapping[str, Any]) -> tuple[int | None, float | None]:
    """The host's process and when it began, where it is one of this machine's."""
    pid = int(described["pid"])
    if described["node"] != platform.node():
        return None, None
    try:
        return pid, psutil.Process(pid).create_time()
    except psutil.Error:
        return None, None


class _Asker:
    """Hands over items and gives back what came, each with the time it was handed over."""

    def __init__(self, executor: Executor, host: HostSpec) -> None:
        self._executor, self._host = executor, host
        self._numbers = itertools.count(1)
        self._handed: dict[int, tuple[float, Item]] = {}

    def pending(self) -> bool:
        return bool(self._handed)

    def submit(self, items: Sequence[Item]) -> None:
        calls = []
        for item in items:
            number = next(self._numbers)
            wire = request_to_wire(replace(item.request, id=str(number)))
            calls.append(Call(number, self._host.name, item.request.operation, wire, "torus profile"))
        now = time.time()
        self._handed |= {call.id: (now, item) for call, item in zip(calls, items, strict=True)}
        self._executor.submit(calls)

    def collect(self) -> list[tuple[float, Item, Outcome]]:
        return [(*self._handed.pop(outcome.call.id), outcome) for outcome in self._executor.collect(WAIT_S)]


def _render(asker: _Asker, items: Iterator[Item], material: Material) -> None:
    """A clip of each audio type, for the heads that hear."""
    one_of_each: dict[str, Item] = {}
    for item in itertools.islice(items, 64):
        one_of_each.setdefault(item.audio_type, item)
    for item in one_of_each.values():
        asker.submit([item])
        while asker.pending():
            for _, asked, outcome in asker.collect():
                if outcome.reply is not None:
                    material.keep(asked.audio_type, clip_from_wire(outcome.reply["clip"]))


def _ask(asker: _Asker, items: Iterator[Item], size: int, seconds: float, *, asynchronous: bool) -> _Came:
    """Ask for `seconds`: batch after batch, or with `size` in flight all the time. What comes first is the warm-up."""
    began = time.monotonic()
    asker.submit(list(itertools.islice(items, size)))
    while asker.pending():
        asker.collect()
    came = _Came(warm_up_s=time.monotonic() - began)
    began = time.monotonic()
    asker.submit(list(itertools.islice(items, size)))
    while asker.pending():
        for handed_at, item, outcome in asker.collect():
            _take(came, handed_at, item, outcome)
            if asynchronous and not came.failed and time.monotonic() - began < seconds:
                asker.submit([next(items)])
        came.wall_s = time.monotonic() - began
        if not asynchronous and not asker.pending() and not came.failed and came.wall_s < seconds:
            asker.submit(list(itertools.islice(items, size)))
    return came


def _take(came: _Came, handed_at: float, item: Item, outcome: Outcome) -> None:
    came.calls += [(handed_at, attempt) for attempt in outcome.attempts]
    bad = [attempt for attempt in outcome.attempts if attempt.status in ("failed", "timeout")]
    if bad:
        came.failed += item.units
        came.reason = came.reason or f"{bad[0].kind or bad[0].status}: {bad[0].message or outcome.message or ''}"
    elif outcome.reply is None:
        came.reason = came.reason or f"{outcome.status}: {outcome.reason}"
    came.units += item.units
    if outcome.reply is not None and len(came.replies) < STORED:
        came.replies.append(outcome.reply)
    if outcome.reply is not None and "clip" in outcome.reply:
        clip = outcome.reply["clip"]
        came.audio_s = (came.audio_s or 0.0) + clip["frames"] / clip["rate_hz"]


def _row(row: ProfileRow, came: _Came) -> ProfileRow:
    """The row of a size. Attempts of one batch share worker and times: they are one call."""
    calls = {(a.worker, a.started_at, a.returned_at): (handed, a) for handed, a in came.calls}
    times = [_Times.of(handed, attempt) for handed, attempt in calls.values()]
    known = [time for time in times if time is not None]
    failed = bool(came.failed)
    row = replace(
        row,
        status="failed" if failed else "ok",
        reason=came.reason,
        calls=len(calls),
        units=came.units,
        failed=came.failed,
        warm_up_s=came.warm_up_s,
    )
    if failed or not known:
        return row
    largest = max(attempt.batch for _, attempt in came.calls)
    if row.style == "batch" and largest < row.size:
        row = replace(row, reason=f"the engine sent batches of {largest} at most")
    latency = sorted(time.latency for time in known)
    cpu = [attempt.cpu_s for _, attempt in came.calls if attempt.cpu_s is not None]
    return replace(
        row,
        busy_s=came.wall_s if row.style == "async" else sum(time.model for time in known),
        audio_s=came.audio_s,
        latency_p50_s=_percentile(latency, 0.5),
        latency_p95_s=_percentile(latency, 0.95) if len(latency) >= P95_CALLS else None,
        latency_p99_s=_percentile(latency, 0.99) if len(latency) >= P99_CALLS else None,
        queue_s=statistics.fmean(time.queue for time in known),
        transfer_s=statistics.fmean(time.transfer for time in known),
        model_s=statistics.fmean(time.model for time in known),
        cpu_s=sum(cpu) / came.units if cpu else None,
    )


@dataclass(frozen=True)
class _Times:
    """Where the time of one call went, seconds."""

    latency: float
    queue: float
    transfer: float
    model: float

    @classmethod
    def of(cls, handed_at: float, attempt: Attempt) -> _Times | None:
        sent, started, ended, back = attempt.submitted_at, attempt.started_at, attempt.ended_at, attempt.returned_at
        if sent is None or started is None or ended is None or back is None:
            return None
        return cls(back - handed_at, sent - handed_at, (started - sent) + (back - ended), ended - started)


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that so large a share does not exceed."""
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def _store(store: RunStore, operation: str, replies: Sequence[Mapping[str, Any]]) -> float | None:
    """Seconds until a reply is durable, mean of some, one after the other. Raises StoreError."""
    table = TABLES[{"generate": "render", "edit": "render"}.get(operation, operation)]
    taken = []
    for number, reply in enumerate(replies):
        clips: list[StoredClip] = [clip_from_wire(reply["clip"])] if "clip" in reply else []
        row = {"unit_id": f"profile/{operation}/{number}", "status": "ok"} | ({"clip": clips[0].id} if clips else {})
        began = time.monotonic()
        store.append(table, [row], clips=clips, urgent=True)
        store.flush()
        taken.append(time.monotonic() - began)
    return statistics.fmean(taken) if taken else None
