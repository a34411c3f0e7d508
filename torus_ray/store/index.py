"""What has been computed before: finished outcomes by key, of this run and of every run under the results root."""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from torus_ray.store.errors import ManifestError
from torus_ray.store.layout import find_runs
from torus_ray.store.manifest import read_manifest
from torus_ray.store.mirror import mirror_of
from torus_ray.store.reader import current_rows
from torus_ray.store.tables import FINAL_STATUSES, OUTCOMES, Row

logger = logging.getLogger(__name__)

_SETTLE = 4096
"""New rows are kept as dicts up to this number, then moved into the columns: 120,000 dicts would not be lean."""
_HASH_DIGITS = 15
"""Hex digits of a key that fit a signed 64-bit number; the whole key is compared afterwards."""


@dataclass(frozen=True)
class Found:
    """An outcome with an equal key. outcome: the columns of tables.OUTCOMES. run: the folder that it lies in."""

    outcome: Row
    unit_id: str
    run: Path


class ReuseIndex:
    """Finished outcomes (ok, unparsed, refused: failures are tried again) by key. For one thread.

    results: the results root. fingerprints: of the heads now in use: only runs that share one are read, and of those
    only such rows and outcome columns. here: the run being written, looked into first, whatever its run.json says.
    """

    def __init__(
        self,
        results: Path,
        fingerprints: Collection[str],
        *,
        here: Sequence[Path] = (),
        tables: Collection[str] = tuple(OUTCOMES),
    ) -> None:
        wanted = frozenset(fingerprints)
        others = [run for run in find_runs(results) if run not in here and _shares_head(run, wanted)]
        if (mirror := mirror_of(results)) is not None:
            for run in others:
                mirror.bring(run)
        self._runs = [*here, *others]
        self._tables = {table: _Outcomes(table, self._runs, wanted) for table in tables}

    @property
    def runs(self) -> Sequence[Path]:
        """The run folders that were looked into."""
        return tuple(self._runs)

    def find(self, table: str, key: str) -> Found | None:
        """The finished outcome with this key, from the first run that has one."""
        found = self._tables[table].find(key)
        if found is None:
            return None
        outcome = {name: found[name] for name in OUTCOMES[table]}
        return Found(outcome, found["unit_id"], self._runs[found["run"]])

    def add(self, table: str, rows: Sequence[Row], run: Path) -> None:
        """Take in rows that have just become durable in `run`; those not finished are left out."""
        if run not in self._runs:
            self._runs.append(run)
        self._tables[table].add(rows, self._runs.index(run))

    def __len__(self) -> int:
        return sum(map(len, self._tables.values()))


class _Outcomes:
    """One table: levels of columns sorted by a hash of the key, oldest and largest first, and the newest rows as
    dicts."""

    def __init__(self, table: str, runs: Sequence[Path], fingerprints: Collection[str]) -> None:
        self._columns = ["key", "unit_id", *OUTCOMES[table]]
        self._new: dict[str, tuple[Row, int]] = {}
        self._levels: list[_Level] = []
        frames = []
        for number, run in enumerate(runs):
            rows = current_rows(run, table, [*self._columns, "fingerprint"])
            kept = rows.filter(
                pl.col("status").is_in(list(FINAL_STATUSES))
                & pl.col("key").is_not_null()
                & pl.col("fingerprint").is_in(list(fingerprints))
            )
            frames.append(kept.select(*self._columns, pl.lit(number, pl.Int32).alias("run")))
        if frames:
            self._levels.append(_Level(pl.concat(frames)))

    def find(self, key: str) -> dict[str, Any] | None:
        if key in self._new:
            row, run = self._new[key]
            return {**{name: row.get(name) for name in self._columns}, "run": run}
        return next((found for level in self._levels if (found := level.find(key)) is not None), None)

    def add(self, rows: Sequence[Row], run: int) -> None:
        for row in rows:
            if row.get("key") and row["status"] in FINAL_STATUSES:
                self._new.setdefault(row["key"], (row, run))
        if len(self._new) >= _SETTLE and self._levels:
            columns = {name: [row.get(name) for row, _ in self._new.values()] for name in self._columns}
            columns["run"] = [run for _, run in self._new.values()]
            self._levels.append(_Level(pl.DataFrame(columns, schema=self._levels[0].rows.schema)))
            self._new = {}
            # As in a count to the base two, each row is sorted again about once for every doubling of all.
            while len(self._levels) > 1 and self._levels[-2].rows.height <= self._levels[-1].rows.height:
                newest = self._levels.pop().rows
                self._levels[-1] = _Level(pl.concat([self._levels[-1].rows, newest]))

    def __len__(self) -> int:
        return len(self._new) + sum(level.rows.height for level in self._levels)


class _Level:
    """Rows sorted by a hash of their keys, the first of each key."""

    def __init__(self, rows: pl.DataFrame) -> None:
        rows = rows.unique("key", keep="first", maintain_order=True)
        hashes = rows["key"].str.slice(0, _HASH_DIGITS).str.to_integer(base=16, dtype=pl.Int64).alias("hash")
        order = hashes.arg_sort()
        self.rows = rows[order]
        # Looked up by plain bisection: numpy's gives the interpreter away, which another thread may hold for long.
        self._hashes = array("q", hashes[order].to_numpy().tobytes())

    def find(self, key: str) -> dict[str, Any] | None:
        wanted = int(key[:_HASH_DIGITS], 16)
        at = bisect_left(self._hashes, wanted)
        while at < len(self._hashes) and self._hashes[at] == wanted:
            row = self.rows.row(at, named=True)
            if row["key"] == key:
                return row
            at += 1
        return None


def _shares_head(run: Path, fingerprints: frozenset[str]) -> bool:
    try:
        manifest = read_manifest(run)
    except ManifestError as error:
        logger.warning("%s is not looked into for re-use: %s", run, error.message)
        return False
    return manifest is not None and any(head.fingerprint in fingerprints for head in manifest.heads.values())
