"""Reading a run's rows, also while it is being written: needs no lease."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa

from torus_ray.store.errors import StoreError
from torus_ray.store.layout import table_folder
from torus_ray.store.parts import BROKEN, aligned, is_damage, live_parts, open_part
from torus_ray.store.tables import HISTORY_TABLES, SCHEMAS

logger = logging.getLogger(__name__)

_LISTINGS = 20
"""Times a folder is listed anew when a merge takes parts away between listing and reading."""


@dataclass(frozen=True)
class TableRead:
    """rows: one current row a unit (every row of a history), in the order written. broken: unreadable parts."""

    rows: pl.DataFrame
    broken: tuple[Path, ...]


def read_table(run: Path, table: str, columns: Sequence[str] | None = None) -> TableRead:
    """The current rows of a table, typed also when there are none; only `columns` where given.

    Raises KeyError for an unknown table or column, StoreError where the machine cannot read (no permission).
    """
    schema = SCHEMAS[table]
    wanted = list(columns) if columns is not None else schema.names
    for name in wanted:
        if name not in schema.names:
            raise KeyError(f"{table} has no column {name!r}")
    folder = table_folder(run, table)
    for last in (*[False] * (_LISTINGS - 1), True):
        try:
            return _read(folder, table, wanted)
        except OSError as error:
            if last or not isinstance(error, FileNotFoundError):
                raise StoreError(
                    f"cannot read {error.filename or folder}: {error.strerror or error}",
                    where=str(error.filename or folder),
                    expected="a run folder that can be read",
                    mend="give read permission, or look into the cause; nothing is lost",
                ) from error
    raise AssertionError("the last listing returns or raises")


def current_rows(run: Path, table: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The rows of :func:`read_table`; broken parts are logged as warnings (`torus verify` lists them)."""
    read = read_table(run, table, columns)
    for path in read.broken:
        logger.warning("%s cannot be read and is left out: its units will be run again; see torus verify", path)
    return read.rows


def _read(folder: Path, table: str, wanted: list[str]) -> TableRead:
    history = table in HISTORY_TABLES
    needed = wanted if history or "unit_id" in wanted else [*wanted, "unit_id"]
    tables: list[pa.Table] = [aligned(table, SCHEMAS[table].empty_table(), needed)]
    broken: list[Path] = []
    live, _ = live_parts(folder)
    for part in live:
        path = folder / part.name.file_name
        try:
            with open_part(path) as file:
                tables.append(aligned(table, file.read(columns=needed), needed))
        except BROKEN as error:
            if not is_damage(error):
                raise
            broken.append(path)
    rows = pl.DataFrame(pa.concat_tables(tables))
    if not history:
        # Parts come oldest first, so the last row of a unit is the newest (epoch, seq, position).
        rows = rows.filter(rows["unit_id"].is_last_distinct())
    return TableRead(rows.select(wanted), tuple(broken))
