"""The verdict log: reviews.jsonl in the bank's folder, only ever appended to, durable record by record."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from torus_ray.curation.review.verdicts import Verdict, from_line, to_line
from torus_ray.errors import InputError
from torus_ray.store.files import fsync_folder

LOG_FILE = "reviews.jsonl"


def read_log(bank: Path) -> list[Verdict]:
    """Every verdict on the bank in this folder, oldest first; none where there is no log. Raises InputError."""
    path = bank / LOG_FILE
    return _parse(path, path.read_bytes()) if path.exists() else []


class VerdictLog:
    """The log, open for writing by one process at a time. verdicts: all of them, oldest first."""

    def __init__(self, bank: Path) -> None:
        """Open and lock it, making it where there is none. Raises InputError: held by another, damaged, no right."""
        self._path = bank / LOG_FILE
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(
                f"the verdict log cannot be written: {error.strerror}",
                where=str(self._path),
                expected="a bank in a folder that you may write to",
                mend="copy the bank to a folder of your own and review it there",
            ) from error
        with contextlib.ExitStack() as held:
            held.callback(self.close)
            self._lock()
            data = self._path.read_bytes()
            self.verdicts = _parse(self._path, data)
            # What a killed writer left behind its last newline was never called saved.
            self._cut(data.rfind(b"\n") + 1)
            fsync_folder(bank)
            held.pop_all()

    def append(self, verdict: Verdict, carry_out: Callable[[], None]) -> None:
        """Make the verdict durable, then do what it says. If either fails with OSError, the log is as it was before."""
        size = os.fstat(self._fd).st_size
        try:
            line = to_line(verdict)
            while line:
                line = line[os.write(self._fd, line) :]
            os.fsync(self._fd)
            carry_out()
        except OSError:
            self._cut(size)
            raise
        self.verdicts.append(verdict)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> VerdictLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                "this bank is being reviewed by another `torus bank review`",
                where=str(self._path),
                expected="one server a bank; any number of reviewers may use its page at once",
                mend="open the page of the one that runs, or end it first",
            ) from error

    def _cut(self, size: int) -> None:
        if os.fstat(self._fd).st_size != size:
            os.ftruncate(self._fd, size)
            os.fsync(self._fd)


def _parse(path: Path, data: bytes) -> list[Verdict]:
    verdicts = []
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
        try:
            verdicts.append(from_line(line))
        except ValueError as error:
            raise InputError(
                f"line {number} of the verdict log cannot be understood: {error}",
                where=f"{path}:{number}",
                expected="the log as `torus bank review` wrote it",
                mend="put the file back from a copy; nothing was changed",
            ) from error
    return verdicts
