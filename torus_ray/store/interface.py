"""What the engine asks of a store, whatever it stands on (`place`): a folder, or a bucket of an object store.

In a bucket a part is one PUT, which is the commit; a clip is one PUT under its identity; the lease is an object renewed
by a heartbeat; epochs come from a conditional PUT. Both keep the same promises:

- `on_durable` is called only when the rows, and every clip given with them, survive a kill and a power cut;
- a reader sees, for each unit, the row of the newest (epoch, part, position): never two, never half a part;
- one driver writes a run; a driver whose lease is gone writes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

from torus_ray.audio import StoredClip
from torus_ray.store.errors import StoreError
from torus_ray.store.manifest import RunManifest
from torus_ray.store.tables import Row

OnDurable = Callable[[float, Sequence[Row]], None]
"""Called once with the time of the commit (epoch seconds) and the rows as they were written, what the store knows of
clips' files in them; on the store's own thread: hand over and return at once."""
OnFailure = Callable[[StoreError], None]
"""Called once when the store cannot go on, on its own thread: rows not yet acknowledged never will be."""


@dataclass(frozen=True)
class KeptClip:
    """A clip in the store. sha256 and size (bytes) are of the FLAC file; id is of the PCM (audio.StoredClip)."""

    id: str
    sha256: str
    size: int


@dataclass(frozen=True)
class ClipSource:
    """A clip to take over from another run: where it lies, and the file's sha256 in that run's row."""

    id: str
    location: str
    sha256: str


@dataclass(frozen=True)
class Linked:
    """What came of taking over clips: those now here, and for each other why not."""

    kept: Mapping[str, KeptClip] = field(default_factory=dict)
    damaged: Mapping[str, str] = field(default_factory=dict)


class Lease(Protocol):
    """The right to write a run. epoch: 1 + the largest ever handed out for it."""

    @property
    def epoch(self) -> int: ...

    def check(self) -> None:
        """Raises StoreError when the lease is no longer ours; called before every commit."""

    def release(self) -> None:
        """Give it back; harmless when called twice."""


class RunStore(Protocol):
    """One run, open for writing by the one driver that holds its lease."""

    @property
    def location(self) -> str:
        """Where it can be read: the run folder, or its mirror."""

    @property
    def name(self) -> str:
        """What to call it before people: the run folder, or its URI."""

    @property
    def epoch(self) -> int: ...

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
        """Hand over rows of one table, all or none of which become durable, after the clips that they name.

        clips: kept under their identities first; clip_sha256 and clip_bytes of rows that name them are filled in.
        attempts: rows of `attempts` about these units; their committed_at becomes the time of this commit, and they
        follow it a little later. urgent: something waits for these rows, so commit as soon as the writer is free.
        Blocks while too much waits to be written. Raises StoreError once the store has failed.
        """

    def flush(self) -> None:
        """Return when all that was appended is durable. Raises StoreError."""

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The current durable rows, typed also when there are none; `columns` reads only those."""

    def get_clip(self, clip: str, sha256: str | None = None) -> bytes:
        """A clip's FLAC bytes, checked against the file's sha256 or, without it, the identity. Raises ClipDamaged."""

    def has_clip(self, clip: str) -> bool:
        """Whether a file lies under this clip's name."""

    def link_clips(self, sources: Sequence[ClipSource]) -> Linked:
        """Take over clips of other runs, checked, durable on return; what is damaged there is named and left."""

    def read_manifest(self) -> RunManifest | None: ...

    def write_manifest(self, manifest: RunManifest) -> None:
        """Replace run.json in one step."""

    def close(self, *, compact: bool = True) -> None:
        """Flush, merge parts, give back the lease. Raises StoreError when something could not be written."""
