"""The few file operations that durability stands on: a file appears whole, by rename, once its bytes are on disk."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

TEMP_PREFIX = ".tmp-"
"""Names that readers ignore and the next lease holder removes."""


Content = bytes | Callable[[BinaryIO], None]
"""The bytes of a file, or a function that writes them."""


class Put(Protocol):
    """How a file appears, durable and whole: :func:`write_atomic`, or what does the same in a bucket."""

    def __call__(self, path: Path, content: Content, *, before_rename: Callable[[], None] | None = None) -> None: ...


def temp_beside(path: Path) -> Path:
    """An unused temporary name in the folder of `path`."""
    return path.with_name(f"{TEMP_PREFIX}{secrets.token_hex(6)}-{path.name}")


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_folder(folder: Path) -> None:
    """Create a folder and what is missing above it, durably."""
    missing: list[Path] = []
    at = folder
    while not at.exists():
        missing.append(at)
        at = at.parent
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        fsync_folder(path.parent)


def write_atomic(
    path: Path,
    content: Content,
    *,
    sync_folder: bool = True,
    before_rename: Callable[[], None] | None = None,
) -> None:
    """Write `path` so that at any moment either the old or the whole new content is there; durable when it returns.

    sync_folder: False where the caller makes the name durable later
    with :func:`fsync_folder`. Nothing is left behind when it fails.
    """
    with written_beside(path, content) as temp:
        if before_rename is not None:
            before_rename()
        os.replace(temp, path)
    if sync_folder:
        fsync_folder(path.parent)


@contextmanager
def written_beside(path: Path, content: Content, *, sync: bool = True) -> Iterator[Path]:
    """A temporary file with this content in the folder of `path`, to be renamed; gone at the end where it was not.

    sync: whether its bytes survive a power cut.
    """
    temp = temp_beside(path)
    try:
        with open(temp, "wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        yield temp
    finally:
        temp.unlink(missing_ok=True)


def temps_under(folder: Path) -> Iterator[Path]:
    """Left-over temporary files anywhere under a folder."""
    for base, _, names in os.walk(folder):
        yield from (Path(base, name) for name in names if name.startswith(TEMP_PREFIX))


def sha256_of(path: Path) -> str:
    """sha256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
