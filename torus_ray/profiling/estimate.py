"""How long a run may take: from profiles of its heads, else from what earlier runs took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from torus_ray.profiling.rows import ProfileRow, advise, read_rows
from torus_ray.profiling.slices import COLUMNS, LOST, slices
from torus_ray.store.layout import find_runs
from torus_ray.store.reader import current_rows

RUNS_READ = 8
"""The newest runs of a system that are looked at."""

Head = tuple[str, str]
"""(host, operation)"""


@dataclass(frozen=True)
class Measured:
    """What a unit of a head took one busy replica, over how many units, and where that was seen."""

    unit_s: float
    units: int
    source: str


@dataclass(frozen=True)
class Estimate:
    """seconds: of the whole run without its start, None where some head was never measured. start_s: of all loads.
    by_head: what it was reckoned from. unknown: heads with units that nothing is known of."""

    seconds: float | None
    start_s: float | None
    by_head: Mapping[Head, Measured]
    unknown: tuple[Head, ...]


def measured_heads(results: Path, system: str, heads: Iterable[Head]) -> dict[Head, Measured]:
    """What is known of heads: the newest profile at the size that it recommends, else the newest runs under
    `results`."""
    profiled = read_rows(results, system)
    wanted = set(heads)
    known = {head: measured for head, measured in _of_profiles(profiled).items() if head in wanted}
    if wanted - known.keys():
        known = {head: m for head, m in _of_runs(results, system).items() if head in wanted} | known
    return known


def estimate(
    units: Mapping[Head, int],
    measured: Mapping[Head, Measured],
    *,
    replicas: Mapping[str, int],
    loads: Mapping[str, int],
    load_s: Mapping[str, float],
    together: bool,
) -> Estimate:
    """units: of each head. Hosts that are there together work at the same time, so the one with most to do counts;
    hosts that take turns add up. Hosts that only measure are left out by the caller where they take nobody's time."""
    unknown = tuple(head for head, count in units.items() if count and head not in measured)
    work: dict[str, float] = defaultdict(float)
    for (host, operation), count in units.items():
        if (host, operation) in measured:
            work[host] += count * measured[host, operation].unit_s / max(1, replicas.get(host, 1))
    total = max(work.values(), default=0.0) if together else sum(work.values())
    starts = [loads.get(host, 1) * load_s[host] for host in work if host in load_s]
    start_s = None if len(starts) < len(work) else (max(starts, default=0.0) if together else sum(starts))
    return Estimate(None if unknown else total, start_s, dict(measured), unknown)


def load_seconds(results: Path, system: str) -> dict[str, float]:
    """Seconds from a host's process to its being up, from the newest profile."""
    return {row.host: row.load_s for row in read_rows(results, system) if row.load_s is not None}


def _of_profiles(rows: Sequence[ProfileRow]) -> dict[Head, Measured]:
    sizes = {(each.host, each.operation): each.size for each in advise(rows)}
    return {
        (row.host, row.operation): Measured(row.unit_s, row.units, f"a profile, {row.size} at once")
        for row in rows
        if row.status == "ok" and row.unit_s is not None and sizes.get((row.host, row.operation)) == row.size
    }


def _of_runs(results: Path, system: str) -> dict[Head, Measured]:
    """Busy seconds and units of earlier runs: those of calls that were answered, each batch once."""
    folders = {run for bank in results.glob("*@*") for run in find_runs(bank / system)}
    newest = sorted(folders, key=lambda run: (run / "run.json").stat().st_mtime, reverse=True)[:RUNS_READ]
    seconds: dict[Head, float] = defaultdict(float)
    counts: Counter[Head] = Counter()
    # Arms of one command share batches: only together is each of them counted once.
    attempts = [current_rows(run, "attempts", COLUMNS) for run in newest]
    for each in slices(pl.concat(attempts)) if attempts else ():
        if each.worker != LOST:
            seconds[each.host, each.operation] += each.seconds
            counts[each.host, each.operation] += len(each.units)
    return {head: Measured(seconds[head] / count, count, "earlier runs") for head, count in counts.items() if count}
