"""Rows of `attempts` as slices of time: one for each call of a worker, however many units it held."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from torus_ray.errors import InputError
from torus_ray.store.reader import current_rows

COLUMNS = (
    *("unit_id", "operation", "status", "kind", "message", "worker", "node", "pid", "device", "batch", "cpu_s"),
    *("ready_at", "submitted_at", "started_at", "ended_at", "returned_at", "committed_at"),
)
LOST = "no worker"
"""Stands for the worker of calls that nobody answered: their process died or was ended."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One call: a batch that a worker computed, or that nobody answered (worker LOST; begin and end are then when it
    was sent and when it was given up).

    Times are epoch seconds, None where unknown. ready_at: of its last unit; committed_at: of its last row. batch:
    requests in the call. statuses: how many of its units ended in which way. cpu_s: of the whole call.
    """

    host: str
    worker: str
    node: str
    pid: int
    device: str
    operation: str
    begin: float
    end: float
    ready_at: float | None
    submitted_at: float | None
    returned_at: float | None
    committed_at: float | None
    batch: int
    cpu_s: float | None
    units: tuple[str, ...]
    statuses: Mapping[str, int]
    message: str | None

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def slices_of(runs: Sequence[Path]) -> list[Slice]:
    """The slices of runs that went on together, in the order of their begin. Raises InputError where there are none."""
    attempts = pl.concat([current_rows(run, "attempts", COLUMNS) for run in runs])
    made = list(slices(attempts))
    if not made:
        raise InputError(
            "the run has no attempt of its own",
            where=", ".join(map(str, runs)),
            expected="a run that asked a head for something",
            mend="what was taken over from other runs is seen in their traces",
        )
    return made


def slices(attempts: pl.DataFrame) -> Iterator[Slice]:
    """Slices of rows of `attempts` (COLUMNS), in the order of their begin.

    Rows of one call share worker, process and times: a batch is one slice. Where the wall clock was set back under a
    call, it ends where it begins.
    """
    timed = attempts.with_columns(
        begin=pl.coalesce("started_at", "submitted_at"),
        end=pl.coalesce("ended_at", "returned_at", "started_at", "submitted_at"),
    ).filter(pl.col("begin").is_not_null())
    call = ["worker", "node", "pid", "device", "operation", "begin", "end", "submitted_at"]
    calls = timed.group_by(call, maintain_order=True).agg(
        pl.col("unit_id"),
        pl.col("status"),
        pl.col("message").drop_nulls().first(),
        *(pl.col(name).max() for name in ("ready_at", "returned_at", "committed_at", "batch")),
        pl.col("cpu_s").sum(),
        timeless=pl.col("cpu_s").is_null().all(),
    )
    for row in calls.sort("begin", "worker").iter_rows(named=True):
        worker = row["worker"] or LOST
        yield Slice(
            host=worker.rpartition("#")[0] or worker,
            worker=worker,
            node=row["node"] or "",
            pid=row["pid"] or 0,
            device=row["device"] or "",
            operation=row["operation"],
            begin=row["begin"],
            end=max(row["begin"], row["end"]),
            ready_at=row["ready_at"],
            submitted_at=row["submitted_at"],
            returned_at=row["returned_at"],
            committed_at=row["committed_at"],
            batch=row["batch"] or 1,
            cpu_s=None if row["timeless"] else row["cpu_s"],
            units=tuple(dict.fromkeys(row["unit_id"])),
            statuses={status: row["status"].count(status) for status in dict.fromkeys(row["status"])},
            message=row["message"],
        )


def lanes(ordered: Iterable[Slice]) -> list[int]:
    """For each slice, in the order of their begin, the lane of its worker in which it overlaps no other: 0 for all of a
    worker that does one call at a time."""
    free: dict[tuple[str, int], list[int]] = {}
    busy: dict[tuple[str, int], list[tuple[float, int]]] = {}
    made: list[int] = []
    for each in ordered:
        key = (each.worker, each.pid)
        idle, running = free.setdefault(key, []), busy.setdefault(key, [])
        while running and running[0][0] <= each.begin:
            heapq.heappush(idle, heapq.heappop(running)[1])
        lane = heapq.heappop(idle) if idle else len(running)
        heapq.heappush(running, (each.end, lane))
        made.append(lane)
    return made
