"""Clips as files under their identity: written once, checked when read, linked from one run into another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from torus_ray.audio import StoredClip
from torus_ray.store.errors import ClipDamaged
from torus_ray.store.faults import Fault, no_fault
from torus_ray.store.interface import ClipSource, KeptClip, Linked
from torus_ray.store.layout import clip_path
from torus_ray.store.mirror import mirror_of, named
from torus_ray.store.place import Place, is_clip


class ClipFolder:
    """The clips of one run. Files are written on a few threads of its own."""

    def __init__(self, run: Path, place: Place, *, fault: Fault = no_fault) -> None:
        self._run, self._place, self._fault = run, place, fault
        self._pool = ThreadPoolExecutor(place.clip_threads, thread_name_prefix="torus-clips")

    def start_keep(self, stored: StoredClip) -> Future[KeptClip]:
        """Begin to write a clip; durable only after :meth:`sync` of it. OSError comes out of the future."""
        return self._pool.submit(self._keep, stored)

    def sync(self, clips: Iterable[str]) -> None:
        """Make the names of written clips durable: one fsync a folder."""
        folders = {clip_path(self._run, clip).parent for clip in clips}
        for _ in self._pool.map(self._place.sync, folders):
            pass

    def link(self, sources: Iterable[ClipSource]) -> Linked:
        """Take over clips of other runs: hard links where the file system has them, else copies."""
        kept: dict[str, KeptClip] = {}
        damaged: dict[str, str] = {}
        tasks = [(source, self._pool.submit(self._link, source)) for source in sources]
        for source, task in tasks:
            try:
                kept[source.id] = task.result()
            except ClipDamaged as error:
                damaged[source.id] = str(error)
        self.sync(kept)
        return Linked(kept, damaged)

    def close(self) -> None:
        # What has not begun when the store has failed is not waited for.
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _keep(self, stored: StoredClip) -> KeptClip:
        data = self._place.keep_clip(stored.id, stored.data)
        self._fault("clip_written")
        return _kept(stored.id, data)

    def _link(self, source: ClipSource) -> KeptClip:
        run = Path(source.location)
        data = read_clip(run, source.id, source.sha256)
        return _kept(source.id, self._place.keep_clip(source.id, data, run))


def read_clip(run: Path, clip: str, sha256: str | None = None) -> bytes:
    """A clip's FLAC bytes from a run folder, checked.

    With `sha256` the file is checked against it, else the PCM against the identity. Raises ClipDamaged naming the file.
    """
    wrong = "the clip file is missing"
    for data in _copies(clip_path(run, clip)):
        if sha256 is not None:
            if hashlib.sha256(data).hexdigest() == sha256:
                return data
            wrong = "the clip file's bytes are not those that were stored (sha256 differs)"
        elif is_clip(data, clip):
            return data
        else:
            wrong = "the clip file's sound is not the one that its name says (PCM sha256 differs)"
    raise _damaged(run, clip, wrong)


def stored_bytes(run: Path, clip: str) -> bytes:
    """What lies under a clip's name in the run folder or in the bucket, unchecked. Raises FileNotFoundError."""
    path = clip_path(run, clip)
    mirror = mirror_of(run)
    return path.read_bytes() if mirror is None else mirror.bucket.get(mirror.key(path))


def _copies(path: Path) -> Iterator[bytes]:
    """The file, and where it lies in a mirror and is not good enough, what the bucket has."""
    with suppress(FileNotFoundError):
        yield path.read_bytes()
    mirror = mirror_of(path)
    if mirror is not None:
        with suppress(FileNotFoundError):
            yield mirror.bucket.get(mirror.key(path))


def _damaged(run: Path, clip: str, what: str) -> ClipDamaged:
    path = named(clip_path(run, clip))
    return ClipDamaged(
        f"{what}: {path}",
        where=path,
        expected="the FLAC file as the engine wrote it",
        mend="put the file back from a copy, or delete the run folder's rows that need it by running its system anew",
    )


def _kept(clip: str, data: bytes) -> KeptClip:
    return KeptClip(clip, hashlib.sha256(data).hexdigest(), len(data))
