"""Rows are durable when they are acknowledged, whole and in order, through merges and kills of the writer."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from torus_ray.curation.ledger import Ledger, read_rows
from torus_ray.store.errors import RunHeld
from torus_ray.store.layout import parts_in, table_folder

WRITER = """
import asyncio, sys
from pathlib import Path
from torus_ray.curation.ledger import Ledger

async def main(ledger):
    async def one(number):
        await ledger.add("calls", {"key": f"k{number}", "reply": "x" * 1000})
        print(number, flush=True)
    for start in range(0, 10_000_000, 8):
        await asyncio.gather(*(one(start + i) for i in range(8)))

asyncio.run(main(Ledger(Path(sys.argv[1]))))
"""


def test_rows_that_come_together_are_one_part_and_merging_keeps_them_all(tmp_path: Path) -> None:
    async def many(ledger: Ledger, start: int) -> None:
        await asyncio.gather(*(ledger.add("calls", {"key": str(start + i)}) for i in range(10)))

    with Ledger(tmp_path) as ledger:
        asyncio.run(many(ledger, 0))
        assert len(parts_in(table_folder(tmp_path, "calls"))) == 1
        for start in range(10, 500, 10):
            asyncio.run(many(ledger, start))
        assert len(parts_in(table_folder(tmp_path, "calls"))) < 20
        assert read_rows(tmp_path, "calls")["key"].to_list() == [str(i) for i in range(500)]
    assert len(parts_in(table_folder(tmp_path, "calls"))) == 1
    with Ledger(tmp_path) as ledger:
        ledger.add_now("calls", [{"key": "500", "cost": 0.5}])
    rows = read_rows(tmp_path, "calls", ["key", "cost"])
    assert rows["key"].to_list() == [str(i) for i in range(501)]
    assert rows["cost"].drop_nulls().to_list() == [0.5]


def test_a_killed_writer_leaves_every_row_that_it_was_told_of(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = {process.stdout.readline().strip() for _ in range(100)}
        os.kill(process.pid, signal.SIGKILL)
        told |= {line.strip() for line in process.stdout if line.endswith("\n")}
    rows = read_rows(tmp_path, "calls")
    assert {f"k{number}" for number in told} <= set(rows["key"])
    assert rows["reply"].str.len_chars().unique().to_list() == [1000]
    with Ledger(tmp_path) as ledger:  # the lock died with its holder, and what was half-written is gone
        assert ledger.rows("calls").equals(rows)
        assert not list(tmp_path.rglob(".tmp-*"))


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with Ledger(tmp_path), pytest.raises(RunHeld):
        Ledger(tmp_path)


def test_an_unknown_column_is_found_where_it_is_made(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger, pytest.raises(ValueError, match="coast"):
        ledger.add_now("calls", [{"key": "1", "coast": 1.0}])


def test_a_damaged_part_is_left_out_and_not_fatal(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.add_now("calls", [{"key": "1"}])
    (part,) = table_folder(tmp_path, "calls").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    assert read_rows(tmp_path, "calls").height == 0
    with Ledger(tmp_path) as ledger:
        ledger.add_now("calls", [{"key": "2"}])
    assert read_rows(tmp_path, "calls")["key"].to_list() == ["2"]
