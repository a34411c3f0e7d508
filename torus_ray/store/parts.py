"""Parts: immutable Parquet files, one a commit and table, named by (epoch, seq); and their merging.

Part names are the order of time, so a part may replace only the newest ones: a merge takes a run of parts that ends
with the last, and gets the next name. Its footer says from which name on it covers; a crash between its rename and the
deletion of what it covers leaves parts that every reader skips.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from torus_ray.store.errors import ManifestError
from torus_ray.store.files import Put, sha256_of, write_atomic
from torus_ray.store.layout import PARTS_LIST, TABLES_FOLDER, PartName, parse_part, parts_in, table_folder
from torus_ray.store.tables import HISTORY_TABLES, SCHEMAS

COVERS = "torus.covers_from"
MERGE_PARTS = 16
"""So many parts of one size class, its rows a power of this, are merged into one of the next class."""
MERGE_ROWS_MAX = 131_072
"""Merges while a run goes on stay below this many rows, since commits wait for them."""
GROUP_ROWS = 8192

BROKEN = (pa.ArrowException, OSError, ValueError)
"""What reading a damaged Parquet file may raise; :func:`is_damage` tells it from a machine that cannot read now."""


@dataclass(frozen=True)
class Part:
    """A part that counts. covers_from: the oldest name that it replaces, else its own. rows: None when it is broken."""

    name: PartName
    covers_from: PartName
    rows: int | None


def open_part(path: Path) -> pq.ParquetFile:
    """A part open for reading, page checksums on. Raises one of BROKEN."""
    return pq.ParquetFile(path, page_checksum_verification=True)


def is_damage(error: Exception) -> bool:
    """Whether an error of BROKEN speaks of the file itself: pyarrow's own have no errno, those of the system have."""
    return not isinstance(error, OSError) or error.errno in (None, errno.EIO)


def covered_from(file: pq.ParquetFile, name: PartName) -> PartName:
    """From which name on a part replaces what is older than itself."""
    metadata = file.metadata.metadata or {}
    covers = metadata.get(COVERS.encode(), b"").decode()
    return parse_part(covers) or name


def live_parts(folder: Path) -> tuple[list[Part], list[PartName]]:
    """The parts that count, oldest first, and those that a merge has replaced but not yet deleted.

    Raises FileNotFoundError when a part goes between listing and reading (another process merges: list again), and
    other OSErrors of the machine.
    """
    live: list[Part] = []
    covered: list[PartName] = []
    floor: PartName | None = None
    for name in reversed(parts_in(folder)):
        if floor is not None and name >= floor:
            covered.append(name)
            continue
        try:
            with open_part(folder / name.file_name) as file:
                part = Part(name, covered_from(file, name), file.metadata.num_rows)
        except BROKEN as error:
            if not is_damage(error):
                raise
            part = Part(name, name, None)
        floor = part.covers_from if part.covers_from < name else floor
        live.append(part)
    return live[::-1], covered


def part_bytes(rows: pa.Table) -> bytes:
    """A part's content."""
    sink = pa.BufferOutputStream()
    with _writer(sink, rows.schema) as writer:
        writer.write_table(rows, row_group_size=GROUP_ROWS)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def merge_candidates(parts: Sequence[Part], *, everything: bool) -> Sequence[Part]:
    """Which parts at the end of a table are worth merging now; empty when none are.

    Like carrying in a count to the base MERGE_PARTS, so that each row is rewritten about once a size class. A broken
    part, and what is older than it, stays where it is.
    """
    broken = [at for at, part in enumerate(parts) if part.rows is None]
    sizes = [part.rows or 0 for part in parts]
    first = broken[-1] + 1 if broken else 0
    if everything:
        return parts[first:] if len(parts) - first > 1 else ()
    start = len(parts)
    for size_class in range(max(map(_size_class, sizes), default=0) + 1):
        while start > first and _size_class(sizes[start - 1]) <= size_class:
            start -= 1
        same = sum(_size_class(size) == size_class for size in sizes[start:])
        if same >= MERGE_PARTS and sum(sizes[start:]) <= MERGE_ROWS_MAX:
            return parts[start:]
    return ()


def merge(
    table: str,
    folder: Path,
    parts: Sequence[Part],
    name: PartName,
    *,
    written: Callable[[], None] = lambda: None,
    put: Put = write_atomic,
) -> Part:
    """Write one part with the current rows of `parts` (a run that ends with the newest); the caller deletes those.

    Memory: a row group or two, and the unit ids. written: called before the rename. put: how files become durable
    there. Raises one of BROKEN.
    """
    # With nothing left before them, they stand for all that ever was: a part that somebody lost is no gap any more.
    whole = parts[0].name == next(iter(parts_in(folder)), None)
    oldest = PartName(0, 0) if whole else min(part.covers_from for part in parts)
    rows = 0

    def content(file: BinaryIO) -> None:
        nonlocal rows
        with _writer(file, SCHEMAS[table]) as writer:
            writer.add_key_value_metadata({COVERS: oldest.file_name})
            for group in _regrouped(_current(table, folder, parts)):
                writer.write_table(group)
                rows += group.num_rows

    put(folder / name.file_name, content, before_rename=written)
    return Part(name, oldest, rows)


def unreadable(folder: Path, parts: Sequence[Part]) -> list[Part]:
    """Those of `parts` whose content cannot be read."""
    return [part for part in parts if not _readable(folder / part.name.file_name)]


def aligned(table: str, rows: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows with exactly the columns of today's schema: one that an older part lacks is null."""
    schema = SCHEMAS[table]
    fields = [schema.field(name) for name in (columns or schema.names)]
    arrays = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in fields
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def read_parts_list(run: Path) -> dict[str, dict[str, str]]:
    """The sha256 of each part by table and file name, as of the last merge or close; empty before the first.

    Raises ManifestError where it cannot be read.
    """
    path = run / TABLES_FOLDER / PARTS_LIST
    if not path.exists():
        return {}
    try:
        listed: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ManifestError(
            f"{path} cannot be read: {error}",
            where=str(path),
            expected="the list of parts as the engine wrote it",
            mend="delete it: it is written anew, and until then a lost part shows only by a gap or by its units",
        ) from error
    return listed


def write_parts_list(run: Path, parts: Mapping[str, Sequence[Part]], *, put: Put = write_atomic) -> None:
    """Record which parts there are, so that one which goes missing can be named. Hashes only those not yet listed."""
    known = read_parts_list(run)
    listed: dict[str, dict[str, str]] = {}
    for table, of_table in parts.items():
        listed[table] = {}
        for part in of_table:
            file = part.name.file_name
            digest = known.get(table, {}).get(file)
            if digest is None and part.rows is not None:
                digest = sha256_of(table_folder(run, table) / file)
            if digest is not None:
                listed[table][file] = digest
    put(run / TABLES_FOLDER / PARTS_LIST, json.dumps(listed, indent=1).encode())


def _readable(path: Path) -> bool:
    try:
        with open_part(path) as file:
            for group in range(file.num_row_groups):
                file.read_row_group(group)
    except BROKEN as error:
        if not is_damage(error):
            raise
        return False
    return True


def _writer(sink: BinaryIO | pa.BufferOutputStream, schema: pa.Schema) -> pq.ParquetWriter:
    # Most parts hold a few rows: without statistics and Arrow's own copy of the schema they are half as large.
    return pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        compression_level=1,
        write_page_checksum=True,
        write_statistics=False,
        store_schema=False,
    )


def _size_class(rows: int) -> int:
    size = 0
    while rows >= MERGE_PARTS:
        rows //= MERGE_PARTS
        size += 1
    return size


def _current(table: str, folder: Path, parts: Sequence[Part]) -> Iterator[pa.Table]:
    """The rows of each row group that no later one replaces."""
    paths = [folder / part.name.file_name for part in parts]
    newest = None if table in HISTORY_TABLES else _newest(paths)
    for at, path in enumerate(paths):
        with open_part(path) as file:
            offset = 0
            for group in range(file.num_row_groups):
                rows = aligned(table, file.read_row_group(group))
                count = rows.num_rows
                yield rows if newest is None else rows.filter(newest[at].slice(offset, count))
                offset += count


def _newest(paths: Sequence[Path]) -> list[pa.Array[Any]]:
    """For each part, which of its rows are the last of their unit."""
    units = []
    for path in paths:
        with open_part(path) as file:
            units.append(pl.Series("unit_id", file.read(["unit_id"])["unit_id"]))
    last = pl.concat(units).is_last_distinct()
    masks, offset = [], 0
    for series in units:
        masks.append(last.slice(offset, len(series)).rechunk().to_arrow())
        offset += len(series)
    return masks


def _regrouped(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of about GROUP_ROWS."""
    waiting: list[pa.Table] = []
    for rows in tables:
        waiting.append(rows)
        if sum(t.num_rows for t in waiting) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
