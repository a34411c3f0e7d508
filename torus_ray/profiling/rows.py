"""What a profile leaves: one row a host, operation and size, as Parquet; and what follows from the rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from torus_ray.errors import InputError
from torus_ray.store.files import make_folder

FOLDER = "profiles"
WORTH = 0.95
"""The smallest size that gives so much of the best rate is recommended: beyond it only memory and latency grow."""
MEMORY_SHARE = 0.8
"""Of a machine's memory, what replicas may take."""


@dataclass(frozen=True)
class ProfileRow:
    """How one head served requests of one size: a batch, or so many in flight at once (style async).

    Times are seconds: means for a call (a batch is one call), percentiles over `calls`; p95 needs 20 of them and p99
    100, else null. busy_s: the time that `units` and `audio_s` took one replica: its own where it takes lists, by the
    clock where it keeps many in flight. cpu_s: of a unit. Memory: the highest while this size was asked, GiB; null
    where the host is on another node. start_s: until the host was up, Ray's own start included; load_s: of that, since
    its process began. made_at: epoch seconds.
    """

    system: str
    host: str
    operation: str
    fingerprint: str
    style: str
    size: int
    status: Literal["ok", "failed", "skipped"]
    reason: str | None = None
    calls: int = 0
    units: int = 0
    failed: int = 0
    busy_s: float | None = None
    audio_s: float | None = None
    latency_p50_s: float | None = None
    latency_p95_s: float | None = None
    latency_p99_s: float | None = None
    queue_s: float | None = None
    transfer_s: float | None = None
    model_s: float | None = None
    store_s: float | None = None
    cpu_s: float | None = None
    warm_up_s: float | None = None
    start_s: float | None = None
    load_s: float | None = None
    memory_gib: float | None = None
    gpu_memory_gib: float | None = None
    node: str = ""
    device: str = ""
    inline: bool = False
    made_at: float = 0.0

    @property
    def unit_s(self) -> float | None:
        """Seconds of one busy replica for a unit."""
        return self.busy_s / self.units if self.busy_s is not None and self.units else None

    @property
    def rate(self) -> float | None:
        """Seconds of audio rendered in a second; for other heads units (answers, captions, measures) a second."""
        if not self.busy_s:
            return None
        return (self.audio_s if self.audio_s is not None else self.units) / self.busy_s


_TYPES = {"int": pl.Int64, "float": pl.Float64, "bool": pl.Boolean}
SCHEMA = {
    field.name: _TYPES.get(str(field.type).removesuffix(" | None"), pl.String)
    for field in dataclasses.fields(ProfileRow)
}


def write_rows(rows: Sequence[ProfileRow], path: Path) -> None:
    """Write rows as one Parquet file, the folder made. Raises InputError where that cannot be."""
    try:
        make_folder(path.parent)
        pl.DataFrame([dataclasses.asdict(row) for row in rows], SCHEMA).write_parquet(path)
    except OSError as error:
        raise InputError(
            f"the profile cannot be written: {error.strerror or error}",
            where=str(path),
            expected="a folder that can be written",
            mend="choose another with --results",
        ) from error


def read_rows(results: Path, system: str) -> list[ProfileRow]:
    """All rows of a system's profiles under a results folder, oldest first; files that are no profile are left out."""
    found: list[ProfileRow] = []
    for path in sorted((results / FOLDER / system).glob("*/*.parquet")):
        try:
            frame = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError):
            continue
        if set(frame.columns) == set(SCHEMA):
            found += [ProfileRow(**row) for row in frame.iter_rows(named=True)]
    return sorted(found, key=lambda row: row.made_at)


@dataclass(frozen=True)
class Advice:
    """What to take for a head, and why."""

    host: str
    operation: str
    size: int
    why: str


def advise(rows: Sequence[ProfileRow]) -> list[Advice]:
    """The smallest size of each head that gives nearly its best rate (WORTH); heads without any that went well have
    none."""
    heads: dict[tuple[str, str], dict[int, ProfileRow]] = {}
    for row in rows:
        if row.status == "ok" and row.rate:
            heads.setdefault((row.host, row.operation), {})[row.size] = row
    return [_advice(host, operation, list(by_size.values())) for (host, operation), by_size in heads.items()]


def _advice(host: str, operation: str, rows: Sequence[ProfileRow]) -> Advice:
    rates = {row.size: row.rate or 0.0 for row in rows}
    best = max(rates.values())
    size = min(size for size, rate in rates.items() if rate >= WORTH * best)
    smallest, largest = min(rates), max(rates)
    word = "in flight" if rows[0].style == "async" else "a batch"
    parts = []
    if size != smallest:
        parts.append(f"{rates[size] / rates[smallest]:.2f} times the rate of {smallest}")
    if size != largest:
        parts.append(f"{largest} gives {100 * (rates[largest] / rates[size] - 1):+.0f}%")
    calls = next(row.calls for row in rows if row.size == size)
    why = ", ".join(parts) or "the only size that went well"
    return Advice(host, operation, size, f"{size} {word} ({calls} calls): {why}")


def replicas_advised(
    rows: Sequence[ProfileRow], needs: Mapping[str, float], machine: Mapping[str, float]
) -> tuple[int, str]:
    """Replicas of a host that a machine holds, and what limits them. rows: the host's.

    needs: of one replica, as its card says: cpus, gpus, memory_gib. machine: the same of all that is there. The memory
    seen counts where it is more than the card says.
    """
    seen = max((row.memory_gib for row in rows if row.memory_gib is not None), default=0.0)
    memory = max(seen, needs["memory_gib"])
    limits = {
        "CPUs": machine["cpus"] / needs["cpus"],
        "memory": MEMORY_SHARE * machine["memory_gib"] / memory,
    }
    if needs["gpus"]:
        limits["GPUs"] = machine["gpus"] / needs["gpus"]
    name = min(limits, key=lambda limit: limits[limit])
    told = {
        "CPUs": f"{machine['cpus']:g} CPUs, {needs['cpus']:g} a replica",
        "memory": f"{MEMORY_SHARE:.0%} of {machine['memory_gib']:.1f} GiB, {memory:.1f} GiB a replica",
        "GPUs": f"{machine['gpus']:g} GPUs, {needs['gpus']:g} a replica",
    }
    count = int(limits[name] + 1e-9)
    if seen > needs["memory_gib"]:
        told[name] += f"; its card says {needs['memory_gib']:g} GiB, {seen:.1f} GiB were seen"
    return count, f"{count} replica(s) on this machine: {told[name]}"
