"""What can go wrong with a run folder, each with its file, cause and mend."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import ClassVar

from torus_ray.errors import InputError, TorusError


class StoreError(TorusError):
    """The store cannot go on (disk full, no permission, lease lost). What was acknowledged before stays."""

    exit_code: ClassVar[int] = 3


class RunHeld(InputError):
    """Another driver holds the run folder."""


class ManifestError(InputError):
    """A run.json that is not one, or is of another version."""


class ClipDamaged(TorusError):
    """A clip file that is missing or is not what its row says."""

    exit_code: ClassVar[int] = 3


_AGAIN = "and run the same command again: nothing already written is lost"
_MENDS = {
    errno.ENOSPC: f"free space on that disk (or choose another with --results) {_AGAIN}",
    errno.EDQUOT: f"raise the quota or free space {_AGAIN}",
    errno.EACCES: f"give write permission to the folder {_AGAIN}",
    errno.EPERM: f"give write permission to the folder {_AGAIN}",
    errno.EROFS: f"mount the file system writable {_AGAIN}",
    errno.EMFILE: f"raise the limit of open files (ulimit -n) {_AGAIN}",
    errno.ENOENT: f"do not move or delete a run folder while it runs; put it back {_AGAIN}",
    errno.EIO: f"check the disk {_AGAIN}",
}


def from_os_error(error: OSError, path: Path | str) -> StoreError:
    """The StoreError for a failed write at `path`."""
    where = str(error.filename or path)
    cause = error.strerror or str(error)
    return StoreError(
        f"cannot write {where}: {cause}",
        where=where,
        expected="a run folder that can be written",
        mend=_MENDS.get(error.errno or 0, f"look into the cause {_AGAIN}"),
    )
