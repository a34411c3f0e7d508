"""Where a run's files become durable: the writer's only way to a disk or to a bucket.

Everything is read in a folder: the run folder itself, or the mirror of the run in a bucket.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from torus_ray.audio import BadClip, identify
from torus_ray.store.bucket_lease import take_bucket_lease
from torus_ray.store.errors import from_os_error
from torus_ray.store.files import (
    Content,
    fsync_folder,
    make_folder,
    temp_beside,
    temps_under,
    write_atomic,
    written_beside,
)
from torus_ray.store.layout import CLIPS_FOLDER, clip_path
from torus_ray.store.lease import take_lease
from torus_ray.store.mirror import Mirror, mirror_of, write_mirrored

if TYPE_CHECKING:
    from torus_ray.store.interface import Lease

CLIP_THREADS = 8
"""fsync waits for the disk, not for a processor: eight at a time keep 2 KB clips from being the brake."""
PUT_THREADS = 16
BUCKET_GROUP_S = 2.0
"""A PUT costs time and money: rows that nobody waits for gather for longer."""
MIRRORED_CLIP_BYTES = 4 << 30
"""Clips of a run in a bucket that its driver keeps at hand, the newest: each is heard several times."""


class FolderPlace:
    """One run's files in a folder, on a disk or on a network share that keeps to POSIX.

    group_s: seconds that rows gather where nothing waits for them; None for the writer's own.
    """

    group_s: float | None = None
    clip_threads = CLIP_THREADS

    def __init__(self, run: Path) -> None:
        self._run = run

    def take_lease(self) -> Lease:
        """The right to write, and the folder in order: nothing half-done, the rows that there are. Raises RunHeld."""
        lease = take_lease(self._run)
        try:
            for temp in temps_under(self._run):
                temp.unlink()
        except OSError as error:
            lease.release()
            raise from_os_error(error, self._run) from error
        return lease

    def put(self, path: Path, content: Content, *, before_rename: Callable[[], None] | None = None) -> None:
        """See files.Put. before_rename: called when all is ready and nothing yet to be seen."""
        write_atomic(path, content, before_rename=before_rename)

    def delete(self, paths: Sequence[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)

    def keep_clip(self, clip: str, data: bytes, source: Path | None = None) -> bytes:
        """Write a clip, durable after :meth:`sync`; the file's bytes, perhaps those of one that was there.

        source: a run folder that has this very file.
        """
        path = clip_path(self._run, clip)
        present = path.read_bytes() if path.exists() else None
        if present is not None and (present == data or is_clip(present, clip)):
            # Same sound, perhaps from another encoder version: older rows name the sha256 of this file, so it stays.
            return present
        make_folder(path.parent)
        if source is None or not _linked(clip_path(source, clip), path):
            write_atomic(path, data, sync_folder=False)
        return data

    def sync(self, folder: Path) -> None:
        """Make the names of the clips in a folder durable."""
        fsync_folder(folder)

    def has_clip(self, clip: str) -> bool:
        return clip_path(self._run, clip).is_file()


class BucketPlace:
    """A run in a bucket: a file is durable with its PUT, and then put into the mirror, where it is read."""

    group_s: float | None = BUCKET_GROUP_S
    clip_threads = PUT_THREADS

    def __init__(self, mirror: Mirror, run: Path) -> None:
        self._mirror, self._run = mirror, run
        self._lease: Lease | None = None
        self._clips: set[str] | None = None
        self._at_hand: deque[tuple[Path, int]] = deque()
        self._at_hand_bytes = 0

    def take_lease(self) -> Lease:
        with ExitStack() as stack:
            self._lease = take_bucket_lease(self._mirror.bucket, self._mirror.key(self._run))
            stack.callback(self._lease.release)
            self._mirror.bring(self._run)
            stack.pop_all()
        return self._lease

    def put(self, path: Path, content: Content, *, before_rename: Callable[[], None] | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_beside(path, content, sync=False) as temp:
            if before_rename is not None:
                before_rename()
            self._mirror.bucket.put(self._mirror.key(path), temp)
            os.replace(temp, path)
        if self._lease is not None:
            # The PUT may have hung for longer than a lease lasts: then another driver goes on without these rows.
            self._lease.check()

    def delete(self, paths: Sequence[Path]) -> None:
        self._mirror.bucket.delete([self._mirror.key(path) for path in paths])
        for path in paths:
            path.unlink(missing_ok=True)

    def keep_clip(self, clip: str, data: bytes, source: Path | None = None) -> bytes:
        path = clip_path(self._run, clip)
        key, bucket = self._mirror.key(path), self._mirror.bucket
        if bucket.put_if(key, data, None) is None:
            present = bucket.get(key)
            if present == data or is_clip(present, clip):
                data = present
            else:
                bucket.put(key, data)
        if self._clips is not None:
            self._clips.add(clip)
        self._keep_at_hand(path, data)
        return data

    def sync(self, folder: Path) -> None:
        """Nothing is left to do: a PUT that has returned is durable."""

    def has_clip(self, clip: str) -> bool:
        if self._clips is None:
            self._clips = {
                Path(key).stem for key in self._mirror.bucket.objects(self._mirror.key(self._run / CLIPS_FOLDER))
            }
        return clip in self._clips

    def _keep_at_hand(self, path: Path, data: bytes) -> None:
        write_mirrored(path, data)
        self._at_hand.append((path, len(data)))
        self._at_hand_bytes += len(data)
        while self._at_hand_bytes > MIRRORED_CLIP_BYTES:
            oldest, size = self._at_hand.popleft()
            self._at_hand_bytes -= size
            oldest.unlink(missing_ok=True)


Place = FolderPlace | BucketPlace


def place_of(run: Path) -> Place:
    """Where the files of a run folder, or of one above it, become durable: in the bucket that it mirrors, or in it."""
    mirror = mirror_of(run.absolute())
    return FolderPlace(run) if mirror is None else BucketPlace(mirror, run.absolute())


def _linked(source: Path, path: Path) -> bool:
    """Whether a file could be put there as a hard link: not on another file system, or one without them."""
    temp = temp_beside(path)
    try:
        os.link(source, temp)
    except OSError:
        return False
    os.replace(temp, path)
    return True


def is_clip(data: bytes, clip: str) -> bool:
    """Whether bytes are a FLAC file of this very sound."""
    try:
        return identify(data) == clip
    except BadClip:
        return False
