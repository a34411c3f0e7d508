"""Group commit on one thread: rows gather while the thread is busy, and go to disk together as soon as it is free.

Per table: at once when something waits for a row, else at GROUP_ROWS rows or GROUP_S seconds. Clips begin to be written
when they are handed over, on their own threads, so that they are mostly on disk when their rows' turn comes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from torus_ray.audio import StoredClip
from torus_ray.store.clips import ClipFolder
from torus_ray.store.errors import StoreError, from_os_error
from torus_ray.store.faults import Fault
from torus_ray.store.files import make_folder
from torus_ray.store.interface import KeptClip, Lease, OnDurable, OnFailure
from torus_ray.store.layout import PartName, table_folder
from torus_ray.store.parts import (
    BROKEN,
    Part,
    live_parts,
    merge,
    merge_candidates,
    part_bytes,
    read_parts_list,
    unreadable,
    write_parts_list,
)
from torus_ray.store.place import Place
from torus_ray.store.tables import SCHEMAS, TABLES, Row, check_names, to_arrow

GROUP_ROWS = 1024
GROUP_S = 1.0
MAX_WAITING_BYTES = 256 << 20
MAX_WAITING_ROWS = 8 * GROUP_ROWS


@dataclass(frozen=True)
class _Entry:
    """What one append brought: committed whole or not at all. size: bytes of its clips."""

    rows: Sequence[Row]
    clips: Sequence[Future[KeptClip]] = ()
    attempts: Sequence[Row] = ()
    on_durable: OnDurable | None = None
    size: int = 0


@dataclass
class _Queue:
    """What waits for one table."""

    entries: deque[_Entry] = field(default_factory=deque)
    rows: int = 0
    urgent: bool = False
    since: float = 0.0

    def due(self, group_s: float) -> float:
        """When this should be written, by time.monotonic()."""
        return self.since if self.urgent or self.rows >= GROUP_ROWS else self.since + group_s


class Writer:
    """Writes the tables of one run folder. Its public methods may be called from any thread but its own."""

    def __init__(
        self, run: Path, place: Place, lease: Lease, clips: ClipFolder, *, fault: Fault, on_failure: OnFailure | None
    ) -> None:
        self._run, self._place, self._lease, self._clips = run, place, lease, clips
        self._fault, self._on_failure = fault, on_failure
        self._group_s = GROUP_S if place.group_s is None else place.group_s
        self._parts: dict[str, list[Part]] = {}
        self._seq = dict.fromkeys(TABLES, 0)
        read_parts_list(run)  # That it cannot be read is said now, not at the first merge.
        for table in TABLES:
            folder = table_folder(run, table)
            make_folder(folder)
            self._parts[table], covered = live_parts(folder)
            # What a merge that was cut short had replaced.
            place.delete([folder / name.file_name for name in covered])
        self._change = threading.Condition()
        self._queues = {table: _Queue() for table in TABLES}
        self._waiting_bytes = self._waiting_rows = 0
        self._busy = self._closing = False
        self._flushing = 0
        self._compact = True
        self._failure: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="torus-writer", daemon=True)
        self._thread.start()

    def append(
        self,
        table: str,
        rows: Sequence[Row],
        *,
        clips: Sequence[StoredClip],
        attempts: Sequence[Row],
        on_durable: OnDurable | None,
        urgent: bool,
    ) -> None:
        """See interface.RunStore.append."""
        check_names(table, rows)
        check_names("attempts", attempts)
        size = sum(len(clip.data) for clip in clips)
        with self._change:
            if threading.current_thread() is self._thread:
                raise RuntimeError("on_durable must hand over and return: appending there would block the writer")
            self._change.wait_for(lambda: self._stopped() or self._has_room(size, len(rows)))
            self._raise_if_stopped()
            entry = _Entry(rows, [self._clips.start_keep(clip) for clip in clips], attempts, on_durable, size)
            self._enqueue(table, entry, urgent)
            self._change.notify_all()

    def flush(self) -> None:
        """See interface.RunStore.flush."""
        with self._change:
            self._flushing += 1
            self._change.notify_all()
            try:
                self._change.wait_for(lambda: self._stopped() or self._idle())
            finally:
                self._flushing -= 1
            self._raise_if_stopped()

    def close(self, *, compact: bool) -> None:
        """Write what waits, merge, end the thread. Raises the StoreError that stopped it, if one did."""
        with self._change:
            self._closing, self._compact = True, compact
            self._change.notify_all()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    # --- under the lock ---

    def _has_room(self, size: int, rows: int) -> bool:
        # What alone is larger than the bound still passes, when nothing else waits.
        bytes_fit = self._waiting_bytes == 0 or self._waiting_bytes + size <= MAX_WAITING_BYTES
        rows_fit = self._waiting_rows == 0 or self._waiting_rows + rows <= MAX_WAITING_ROWS
        return bytes_fit and rows_fit

    def _idle(self) -> bool:
        return not self._busy and all(not queue.entries for queue in self._queues.values())

    def _stopped(self) -> bool:
        return self._failure is not None or not self._thread.is_alive()

    def _raise_if_stopped(self) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._thread.is_alive() or self._closing:
            raise RuntimeError("the store is closed")

    def _enqueue(self, table: str, entry: _Entry, urgent: bool) -> None:
        queue = self._queues[table]
        if not queue.entries:
            queue.since = time.monotonic()
        queue.entries.append(entry)
        queue.rows += len(entry.rows)
        queue.urgent |= urgent
        self._waiting_bytes += entry.size
        self._waiting_rows += len(entry.rows)

    def _next(self) -> dict[str, list[_Entry]] | None:
        """What is due, by table; waits for it. None when the store closes and nothing is left."""
        with self._change:
            self._busy = False
            self._change.notify_all()
            while True:
                now = time.monotonic()
                at_once = self._closing or self._flushing > 0
                filled = {table: queue for table, queue in self._queues.items() if queue.entries}
                due = {table: queue for table, queue in filled.items() if at_once or queue.due(self._group_s) <= now}
                if due:
                    self._busy = True
                    for table in due:
                        self._queues[table] = _Queue()
                    return {table: list(queue.entries) for table, queue in due.items()}
                if self._closing:
                    return None
                self._change.wait(min((queue.due(self._group_s) - now for queue in filled.values()), default=None))

    # --- on the writer's thread ---

    def _work(self) -> None:
        try:
            while (batch := self._next()) is not None:
                for table, entries in batch.items():
                    self._commit(table, entries)
                for table in batch:
                    self._merge(table, everything=False)
            if self._compact:
                for table in TABLES:
                    self._merge(table, everything=True)
            self._lease.check()
            write_parts_list(self._run, self._parts, put=self._place.put)
        except Exception as error:
            self._fail(error)

    def _commit(self, table: str, entries: Sequence[_Entry]) -> None:
        self._lease.check()
        kept = {clip.id: clip for entry in entries for clip in (task.result() for task in entry.clips)}
        self._clips.sync(kept)
        written = [[_with_file(table, row, kept) for row in entry.rows] for entry in entries]
        rows = [row for entry in written for row in entry]
        name = PartName(self._lease.epoch, self._seq[table] + 1)
        self._place.put(
            table_folder(self._run, table) / name.file_name,
            part_bytes(to_arrow(table, rows)),
            before_rename=lambda: self._fault("part_written"),
        )
        self._fault("part_renamed")
        committed_at = time.time()
        self._seq[table] = name.seq
        self._parts[table].append(Part(name, name, len(rows)))
        with self._change:
            self._waiting_bytes -= sum(entry.size for entry in entries)
            self._waiting_rows -= len(rows)
            attempts = [{**row, "committed_at": committed_at} for entry in entries for row in entry.attempts]
            if attempts:
                self._enqueue("attempts", _Entry(attempts), urgent=False)
            self._change.notify_all()
        for entry, its_rows in zip(entries, written, strict=True):
            if entry.on_durable is not None:
                entry.on_durable(committed_at, its_rows)

    def _merge(self, table: str, *, everything: bool) -> None:
        chosen = merge_candidates(self._parts[table], everything=everything)
        if not chosen:
            return
        self._lease.check()
        folder = table_folder(self._run, table)
        name = PartName(self._lease.epoch, self._seq[table] + 1)
        try:
            merged = merge(
                table, folder, chosen, name, written=lambda: self._fault("compaction_written"), put=self._place.put
            )
        except BROKEN:
            damaged = unreadable(folder, chosen)
            if not damaged:
                raise
            # Left as it lies for `torus verify` to name; what it held is missing and will be run again.
            self._parts[table] = [
                Part(part.name, part.covers_from, None) if part in damaged else part for part in self._parts[table]
            ]
            return
        self._fault("compaction_renamed")
        self._seq[table] = name.seq
        self._parts[table] = [*self._parts[table][: -len(chosen)], merged]
        write_parts_list(self._run, self._parts, put=self._place.put)
        self._place.delete([folder / part.name.file_name for part in chosen])

    def _fail(self, error: Exception) -> None:
        failure = _as_store_error(error, self._run)
        with self._change:
            self._failure = failure
            self._queues = {table: _Queue() for table in TABLES}
            self._change.notify_all()
        if self._on_failure is not None:
            self._on_failure(failure)


def _with_file(table: str, row: Row, kept: Mapping[str, KeptClip]) -> Row:
    """The row with what the store knows of its clip's file."""
    clip = kept.get(row.get("clip") or "")
    if clip is None or "clip_sha256" not in SCHEMAS[table].names:
        return row
    return {**row, "clip_sha256": clip.sha256, "clip_bytes": clip.size}


def _as_store_error(error: Exception, run: Path) -> StoreError:
    if isinstance(error, StoreError):
        return error
    if isinstance(error, OSError):
        failure = from_os_error(error, run)
    else:
        failure = StoreError(
            f"a row cannot be stored: {error}",
            where=str(run),
            expected="rows that fit the tables of store/tables.py",
            mend="this is a mistake in torus-ray: report it; the same command goes on from what is stored",
        )
    failure.__cause__ = error
    return failure
