from __future__ import annotations

import errno
import time
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.store.sample import answer
from torus_ray.store import LocalRunStore, StoreError, current_rows
from torus_ray.store.layout import table_folder
from torus_ray.store.parts import part_bytes
from torus_ray.store.tables import SCHEMAS, TABLES, to_arrow


def test_no_rows_are_typed_like_rows(tmp_path: Path) -> None:
    for table in TABLES:
        empty = current_rows(tmp_path, table)
        assert empty.columns == SCHEMAS[table].names
    schema = current_rows(tmp_path, "answers").schema
    assert (schema["correct"], schema["seed"], schema["reply"]) == (pl.Boolean, pl.Int64, pl.String)
    with LocalRunStore(tmp_path) as store:
        store.append("answers", [answer("t1", "q1", None)])
    assert current_rows(tmp_path, "answers").schema == schema


def test_only_the_columns_asked_for_are_given(tmp_path: Path) -> None:
    with LocalRunStore(tmp_path) as store:
        store.append("answers", [answer("t1", "q1", None), answer("t1", "q1", None, reply="C")])
    assert current_rows(tmp_path, "answers", ["reply", "letter"]).rows() == [("C", "B")]
    with pytest.raises(KeyError, match="colour"):
        current_rows(tmp_path, "answers", ["colour"])


def test_a_part_from_before_a_column_was_added_reads_as_null(tmp_path: Path) -> None:
    folder = table_folder(tmp_path, "answers")
    folder.mkdir(parents=True)
    old = to_arrow("answers", [answer("t1", "q1", None)]).drop_columns(["rule", "correct_strict"])
    pq.write_table(old, folder / "000001-000001.parquet")
    row = current_rows(tmp_path, "answers").row(0, named=True)
    assert (row["reply"], row["rule"], row["correct_strict"]) == ("B", None, None)


def test_a_machine_that_cannot_read_now_does_not_make_a_part_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalRunStore(tmp_path) as store:
        store.append("answers", [answer("t1", "q1", None)])

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(pq, "ParquetFile", refuse)
    with pytest.raises(StoreError, match="Too many open files"):
        current_rows(tmp_path, "answers")


def test_a_hundred_thousand_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = table_folder(tmp_path, "answers")
    folder.mkdir(parents=True)
    rows = [answer(f"t{number // 9}", f"q{number % 9}", "c" * 64) for number in range(10_000)]
    for seq in range(10):
        part = [row | {"unit_id": f"{seq}/{row['unit_id']}"} for row in rows]
        (folder / f"000001-{seq + 1:06d}.parquet").write_bytes(part_bytes(to_arrow("answers", part)))
    started = time.perf_counter()
    assert current_rows(tmp_path, "answers").height == 100_000
    whole = time.perf_counter() - started
    started = time.perf_counter()
    assert current_rows(tmp_path, "answers", ["unit_id", "status"]).height == 100_000
    with capsys.disabled():
        print(f"\n100,000 answers read in {whole:.2f} s; two columns in {time.perf_counter() - started:.2f} s")
