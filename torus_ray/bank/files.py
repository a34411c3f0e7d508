"""Reading a bank's files: plain files of a size that a person can have written, looked at before they are opened."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST_BYTES = 1_000_000
"""Most bytes of one test's file, and of bank.json: the project's tests have some 20 KB each, and every check of a text
takes time that grows with it, so that a file of another kind is told at once and not after minutes."""
READABLE = f"a readable regular file of at most {LARGEST_BYTES / 1e6:g} MB"


def too_large(path: Path | str) -> OSError:
    """What is raised for more than LARGEST_BYTES."""
    return OSError(errno.EFBIG, f"larger than {LARGEST_BYTES / 1e6:g} MB", str(path))


def read_document(path: Path) -> bytes:
    """The bytes of a test's file or of bank.json, links followed.

    Raises OSError, its strerror for people: also for a device, a pipe or a folder, which are never opened, and for more
    than LARGEST_BYTES.
    """
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if found.st_size > LARGEST_BYTES:
        raise too_large(path)
    with open(path, "rb") as file:
        data = file.read(found.st_size + 1)
        if len(data) > found.st_size:  # it has grown since
            data += file.read(LARGEST_BYTES + 1 - len(data))
    if len(data) > LARGEST_BYTES:
        raise too_large(path)
    return data
