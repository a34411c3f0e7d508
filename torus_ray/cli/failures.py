"""What did not go well in a run, in a few lines: kinds of failure, how many, and how to look at one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

KINDS_TOLD = 5
MESSAGE_LENGTH = 100
_COLUMNS = ["unit_id", "status", "reason", "message"]


def failure_lines(folders: Iterable[Path]) -> list[str]:
    """A line for each kind of `failed` and `timeout` among the current rows, the most frequent first."""
    from torus_ray.store.mirror import named
    from torus_ray.store.reader import current_rows

    frames = [
        current_rows(folder, table, _COLUMNS).with_columns(run=pl.lit(named(folder)))
        for folder in folders
        for table in ("renders", "captions", "answers", "measures")
    ]
    if not frames:
        return []
    bad = pl.concat(frames).filter(pl.col("status").is_in(["failed", "timeout"]))
    kinds = (
        bad.group_by("status", "reason", "message", maintain_order=True)
        .agg(pl.len(), pl.first("unit_id"), pl.first("run"))
        .sort("len", descending=True, maintain_order=True)
    )
    lines = []
    for kind in kinds.head(KINDS_TOLD).iter_rows(named=True):
        message = (kind["message"] or "").splitlines()[:1]
        why = f": {message[0][:MESSAGE_LENGTH]}" if message else ""
        lines.append(f"{kind['len']} {kind['status']} ({kind['reason']}){why}")
        lines.append(f"  see: torus show {kind['run']} {kind['unit_id']}")
    if kinds.height > KINDS_TOLD:
        lines.append(f"and {kinds.height - KINDS_TOLD} other kinds of failure")
    return lines
