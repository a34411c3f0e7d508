"""Rows of `attempts` as the engine leaves them."""

from __future__ import annotations

from typing import Any

import polars as pl

from torus_ray.profiling.slices import COLUMNS
from torus_ray.store.tables import to_arrow


def call(
    worker: str, begin: float, end: float, *units: str, operation: str = "answer", **more: Any
) -> list[dict[str, Any]]:
    """The rows of one call, a row a unit, with everything that a call has."""
    row = {
        "operation": operation,
        "attempt": 1,
        "status": "ok",
        "worker": worker,
        "node": "n1",
        "pid": 100 + sum(map(ord, worker)),
        "device": "cpu",
        "batch": len(units),
        "ready_at": begin - 3,
        "submitted_at": begin - 1,
        "started_at": begin,
        "ended_at": end,
        "returned_at": end + 1,
        "committed_at": end + 2,
        "cpu_s": 0.25,
        **more,
    }
    return [{**row, "unit_id": unit} for unit in units]


def frame(*calls: list[dict[str, Any]]) -> pl.DataFrame:
    rows = [row for rows in calls for row in rows]
    table = pl.from_arrow(to_arrow("attempts", rows))
    assert isinstance(table, pl.DataFrame)
    return table.select(COLUMNS)
