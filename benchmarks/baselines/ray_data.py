"""Baseline (b): Ray Data, a chain of map_batches over tests: generate, edit, counterfactual edit, answers.

    python ray_data.py BANK TESTS FOLDER POOL

Each step is a pool of POOL actors, batches of 32 tests, rows written by write_parquet at the end: nothing is durable
between the steps, there are no keys and no clip files. Needs pandas, which our own engine does not: it runs in an
environment of its own.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
from questions import STAGES, read_tests, tell

CLIP = bytes(600)
BATCH = 32


class Render:
    """One render a row."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def __call__(self, rows: pa.Table) -> pa.Table:
        return rows.append_column(f"{self.stage}_clip", pa.array([CLIP] * rows.num_rows, pa.binary()))


class Answer:
    """The nine answers of a row."""

    def __call__(self, rows: pa.Table) -> pa.Table:
        for stage in STAGES:
            said = [["A"] * len(asked) for asked in rows[f"{stage}_asked"].to_pylist()]
            rows = rows.append_column(f"{stage}_said", pa.array(said))
        return rows


def main() -> None:
    bank, count, folder, pool = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    tests = read_tests(bank, count)
    began = time.time()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=512 << 20)
    ray_up = time.time()
    ray.data.DataContext.get_current().enable_progress_bars = False
    options: dict[str, Any] = {
        "batch_size": BATCH,
        "batch_format": "pyarrow",
        "compute": ray.data.ActorPoolStrategy(size=pool),
        "num_cpus": 0.1,
    }
    rows = ray.data.from_arrow(pa.Table.from_pylist(tests)).repartition(max(2, len(tests) // 500))
    for stage in STAGES:
        rows = rows.map_batches(Render, fn_constructor_args=(stage,), **options)
    rows.map_batches(Answer, **options).write_parquet(str(folder / "rows"))
    ended = time.time()
    tell(units=12 * len(tests), ray_start_s=ray_up - began, start_s=ray_up - began, run_s=ended - ray_up)


if __name__ == "__main__":
    main()
