"""Rows of calls, outcomes and verdicts: durable before anything goes on from them, by the store's own parts.

A folder of its own beside the bank that is made: ``lock`` and ``tables/<table>/<epoch>-<seq>.parquet``. One writer at a
time; a kill at any moment loses no row that was acknowledged and leaves no half one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from torus_ray.store.errors import from_os_error
from torus_ray.store.files import make_folder, temps_under, write_atomic
from torus_ray.store.layout import PartName, parts_in, table_folder
from torus_ray.store.lease import take_lease
from torus_ray.store.parts import BROKEN, COVERS, Part, is_damage, live_parts, merge_candidates, open_part, part_bytes

logger = logging.getLogger(__name__)

Row = Mapping[str, Any]

MERGE_ROWS_MAX = 20_000
"""Merges stay below this many rows, since they are made in memory and a call's row holds all that was sent."""
LISTINGS = 20
"""Times a folder is listed anew when parts go away between listing and reading."""

_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("attempt", "round", "asks", "right", "unparsed", "failed", "max_tokens"), pa.int64()),
    **dict.fromkeys(("prompt_tokens", "completion_tokens", "reasoning_tokens", "total_tokens"), pa.int64()),
    **dict.fromkeys(("cost", "latency_s", "posterior", "threshold"), pa.float64()),
    **dict.fromkeys(("started_at", "ended_at", "at"), pa.float64()),
    **dict.fromkeys(("flagged_paper", "flagged_posterior"), pa.bool_()),
}
_COLUMNS = {
    "calls": """key role unit prompt_version kind base_url model model_version response_id request_id request max_tokens
        status reason message reply refusal finish_reason attempt prompt_tokens completion_tokens reasoning_tokens
        total_tokens cost latency_s started_at ended_at""",
    "outcomes": "unit step key status reason message document asks at",
    "verdicts": """unit test stage question question_hash round solver kind model model_version asks right unparsed
        failed letters right_letters flagged_paper posterior threshold flagged_posterior reason at""",
}
SCHEMAS: Mapping[str, pa.Schema] = {
    table: pa.schema([(name, _TYPES.get(name, pa.string())) for name in columns.split()])
    for table, columns in _COLUMNS.items()
}
"""calls: one try at one call (kind: chat or head). outcomes: one step of one unit, ok or failed with its reason.
verdicts: one solver on one question in one round. Times are epoch seconds; unknown is null."""


class Ledger:
    """The rows of one draft or one gate, open for writing. Raises RunHeld where another process writes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lease = take_lease(folder)
        self._waiting: list[tuple[str, Row, asyncio.Future[None]]] = []
        self._parts: dict[str, list[Part]] = {}
        try:
            for temp in temps_under(folder):
                temp.unlink()
            for table in SCHEMAS:
                place = table_folder(folder, table)
                make_folder(place)
                self._parts[table], covered = live_parts(place)
                for name in covered:
                    (place / name.file_name).unlink()
        except OSError as error:
            self._lease.release()
            raise from_os_error(error, folder) from error

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Every durable row of a table, oldest first."""
        return read_rows(self.folder, table, columns)

    def add_now(self, table: str, rows: Sequence[Row]) -> None:
        """Make rows durable; on return they are. Raises StoreError."""
        if not rows:
            return
        schema = SCHEMAS[table]
        unknown = {name for row in rows for name in row} - set(schema.names)
        if unknown:
            raise ValueError(f"{table} has no column {sorted(unknown)}")
        content = pa.Table.from_pylist([dict(row) for row in rows], schema)
        try:
            self._write(table, len(rows), part_bytes(content))
            self._merge(table, everything=False)
        except OSError as error:
            raise from_os_error(error, self.folder) from error

    async def add(self, table: str, row: Row) -> None:
        """Make a row durable, together with all that came while the last ones were written."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._flush)
        self._waiting.append((table, row, done))
        await done

    def close(self) -> None:
        """Write what waits, merge the parts, give back the folder."""
        try:
            self._flush()
            for table in SCHEMAS:
                self._merge(table, everything=True)
        except OSError as error:
            raise from_os_error(error, self.folder) from error
        finally:
            self._lease.release()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for table in dict.fromkeys(table for table, _, _ in waiting):
            mine = [(row, done) for name, row, done in waiting if name == table]
            try:
                self.add_now(table, [row for row, _ in mine])
            except Exception as error:  # handed to everyone who waits for these rows
                for _, done in mine:
                    if not done.done():
                        done.set_exception(error)
                continue
            for _, done in mine:
                if not done.done():
                    done.set_result(None)

    def _write(self, table: str, rows: int, content: bytes | Callable[[BinaryIO], None]) -> PartName:
        self._lease.check()
        newest = self._parts[table][-1].name if self._parts[table] else PartName(0, 0)
        name = PartName(self._lease.epoch, newest.seq + 1 if newest.epoch == self._lease.epoch else 1)
        write_atomic(table_folder(self.folder, table) / name.file_name, content)
        self._parts[table].append(Part(name, name, rows))
        return name

    def _merge(self, table: str, *, everything: bool) -> None:
        """Many small parts become one, which says in its footer what it covers."""
        chosen = merge_candidates(self._parts[table], everything=everything)
        if not chosen or sum(part.rows or 0 for part in chosen) > MERGE_ROWS_MAX:
            return
        place, kept = table_folder(self.folder, table), len(self._parts[table]) - len(chosen)
        try:
            names = SCHEMAS[table].names
            rows = pa.concat_tables([_aligned(table, place / part.name.file_name, names) for part in chosen])
        except BROKEN as error:
            if not is_damage(error):
                raise
            logger.warning("parts of %s are not merged: %s", place, error)
            return
        oldest = PartName(0, 0) if chosen[0].name == parts_in(place)[0] else chosen[0].covers_from

        def content(file: BinaryIO) -> None:
            with pq.ParquetWriter(
                file, rows.schema, compression="zstd", compression_level=1, write_page_checksum=True
            ) as writer:
                writer.add_key_value_metadata({COVERS: oldest.file_name})
                writer.write_table(rows)

        name = self._write(table, rows.num_rows, content)
        self._parts[table] = [*self._parts[table][:kept], Part(name, oldest, rows.num_rows)]
        for part in chosen:
            (place / part.name.file_name).unlink(missing_ok=True)


def read_rows(folder: Path, table: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Every durable row of a table, oldest first, typed also when there are none. A broken part is left out, said in
    the log: what it held is asked again."""
    wanted = list(columns) if columns is not None else SCHEMAS[table].names
    for _ in range(LISTINGS):
        try:
            return _read(table, table_folder(folder, table), wanted)
        except FileNotFoundError:
            continue  # a writer merged parts between listing and reading
    return _read(table, table_folder(folder, table), wanted)


def _read(table: str, place: Path, wanted: Sequence[str]) -> pl.DataFrame:
    read = [SCHEMAS[table].empty_table().select(wanted)]
    for part in live_parts(place)[0]:
        try:
            read.append(_aligned(table, place / part.name.file_name, wanted))
        except BROKEN as error:
            if not is_damage(error):
                raise
            logger.warning("%s cannot be read and is left out", place / part.name.file_name)
    return pl.DataFrame(pa.concat_tables(read))


def _aligned(table: str, path: Path, wanted: Sequence[str]) -> pa.Table:
    fields = [SCHEMAS[table].field(name) for name in wanted]
    with open_part(path) as file:
        there = set(file.schema_arrow.names)
        rows = file.read(columns=[name for name in wanted if name in there])
        count = file.metadata.num_rows
    arrays = [rows[f.name].cast(f.type) if f.name in there else pa.nulls(count, f.type) for f in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
