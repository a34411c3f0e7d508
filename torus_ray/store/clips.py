"""Clips as files under their identity: written once, checked when read, linked from one run into another."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from torus_ray.audio import BadClip, StoredClip, identify
from torus_ray.store.errors import ClipDamaged
from torus_ray.store.faults import Fault, no_fault
from torus_ray.store.files import fsync_folder, make_folder, temp_beside, write_atomic
from torus_ray.store.interface import ClipSource, KeptClip, Linked
from torus_ray.store.layout import clip_path

CLIP_THREADS = 8
"""fsync waits for the disk, not for a processor: eight at a time keep 2 KB clips from being the brake."""


class ClipFolder:
    """The clips of one run folder. Files are written on a few threads of its own."""

    def __init__(self, run: Path, *, threads: int = CLIP_THREADS, fault: Fault = no_fault) -> None:
        self._run, self._fault = run, fault
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="torus-clips")

    def start_keep(self, stored: StoredClip) -> Future[KeptClip]:
        """Begin to write a clip; durable only after :meth:`sync` of it. OSError comes out of the future."""
        return self._pool.submit(self._keep, stored)

    def sync(self, clips: Iterable[str]) -> None:
        """Make the names of written clips durable: one fsync a folder."""
        folders = {clip_path(self._run, clip).parent for clip in clips}
        for _ in self._pool.map(fsync_folder, folders):
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
        self._pool.shutdown(wait=True)

    def _keep(self, stored: StoredClip) -> KeptClip:
        path = clip_path(self._run, stored.id)
        data = stored.data
        present = path.read_bytes() if path.exists() else None
        if present is not None and (present == data or _identity(present) == stored.id):
            # Same sound, perhaps from another encoder version: older rows name the sha256 of this file, so it stays.
            data = present
        else:
            make_folder(path.parent)
            write_atomic(path, data, sync_folder=False)
        self._fault("clip_written")
        return _kept(stored.id, data)

    def _link(self, source: ClipSource) -> KeptClip:
        data = read_clip(Path(source.location), source.id, source.sha256)
        path = clip_path(self._run, source.id)
        make_folder(path.parent)
        if path.exists() and _identity(path.read_bytes()) == source.id:
            return _kept(source.id, path.read_bytes())
        temp = temp_beside(path)
        try:
            os.link(clip_path(Path(source.location), source.id), temp)
        except OSError:
            # Another file system, or one without hard links.
            write_atomic(path, data, sync_folder=False)
        else:
            os.replace(temp, path)
        return _kept(source.id, data)


def read_clip(run: Path, clip: str, sha256: str | None = None) -> bytes:
    """A clip's FLAC bytes from a run folder, checked.

    With `sha256` the file is checked against it, else the PCM against the identity. Raises ClipDamaged naming the file.
    """
    path = clip_path(run, clip)
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise _damaged(path, "the clip file is missing") from error
    if sha256 is not None:
        if hashlib.sha256(data).hexdigest() != sha256:
            raise _damaged(path, "the clip file's bytes are not those that were stored (sha256 differs)")
    elif _identity(data) != clip:
        raise _damaged(path, "the clip file's sound is not the one that its name says (PCM sha256 differs)")
    return data


def _damaged(path: Path, what: str) -> ClipDamaged:
    return ClipDamaged(
        f"{what}: {path}",
        where=str(path),
        expected="the FLAC file as the engine wrote it",
        mend="put the file back from a copy, or delete the run folder's rows that need it by running its system anew",
    )


def _identity(data: bytes) -> str | None:
    try:
        return identify(data)
    except BadClip:
        return None


def _kept(clip: str, data: bytes) -> KeptClip:
    return KeptClip(clip, hashlib.sha256(data).hexdigest(), len(data))
