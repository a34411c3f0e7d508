"""A run open for writing, by its folder: one on a disk, or the mirror of one in a bucket (`mirror.local_folder`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import polars as pl

from torus_ray.audio import StoredClip
from torus_ray.store.clips import ClipFolder, read_clip
from torus_ray.store.errors import StoreError, from_os_error
from torus_ray.store.faults import Fault, fault_from_environment
from torus_ray.store.interface import ClipSource, Linked, OnDurable, OnFailure
from torus_ray.store.manifest import RunManifest, read_manifest, write_manifest
from torus_ray.store.mirror import named
from torus_ray.store.place import place_of
from torus_ray.store.reader import current_rows
from torus_ray.store.tables import Row
from torus_ray.store.writer import Writer


class LocalRunStore:
    """A :class:`~torus_ray.store.interface.RunStore` by its folder; open while it exists, a context manager::

        with LocalRunStore(run, on_failure=events.put) as store:
            store.append("renders", [row], clips=[stored], on_durable=lambda at, rows: events.put(unit), urgent=True)

    Raises RunHeld where another driver writes the run, StoreError where it cannot be written. Opening removes what a
    killed driver left half-done. Where the folder mirrors a bucket, everything is durable there. fault: a test seam.
    """

    def __init__(self, run: Path, *, on_failure: OnFailure | None = None, fault: Fault | None = None) -> None:
        self._run = run
        self._place = place_of(run)
        self._lease = self._place.take_lease()
        fault = fault if fault is not None else fault_from_environment()
        self._clips = ClipFolder(run, self._place, fault=fault)
        try:
            self._writer = Writer(run, self._place, self._lease, self._clips, fault=fault, on_failure=on_failure)
        except OSError as error:
            self._give_back()
            raise from_os_error(error, run) from error
        except BaseException:
            self._give_back()
            raise

    @property
    def location(self) -> str:
        return str(self._run)

    @property
    def name(self) -> str:
        return named(self._run)

    @property
    def epoch(self) -> int:
        return self._lease.epoch

    def append(
        self,
        table: str,
        rows: Sequence[Row],
        *,
        clips: Sequence[StoredClip] = (),
        attempts: Sequence[Row] = (),
        on_durable: OnDurable | None = None,
        urgent: bool = False,
    ) -> None:
        self._writer.append(table, rows, clips=clips, attempts=attempts, on_durable=on_durable, urgent=urgent)

    def flush(self) -> None:
        self._writer.flush()

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        return current_rows(self._run, table, columns)

    def get_clip(self, clip: str, sha256: str | None = None) -> bytes:
        return read_clip(self._run, clip, sha256)

    def has_clip(self, clip: str) -> bool:
        return self._place.has_clip(clip)

    def link_clips(self, sources: Sequence[ClipSource]) -> Linked:
        self._lease.check()
        try:
            return self._clips.link(sources)
        except OSError as error:
            raise from_os_error(error, self._run) from error

    def read_manifest(self) -> RunManifest | None:
        return read_manifest(self._run)

    def write_manifest(self, manifest: RunManifest) -> None:
        self._lease.check()
        write_manifest(self._run, manifest, put=self._place.put)

    def close(self, *, compact: bool = True) -> None:
        try:
            self._writer.close(compact=compact)
        finally:
            self._give_back()

    def __enter__(self) -> LocalRunStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # After an error or Ctrl-C what waits is still written, but nobody is kept waiting for a merge.
            self.close(compact=error is None)
        except StoreError as failure:
            if error is None or error is failure:
                raise
            error.add_note(f"and the store had stopped: {failure}")

    def _give_back(self) -> None:
        self._clips.close()
        self._lease.release()
