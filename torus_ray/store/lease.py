"""One driver a run: a file lock that the kernel drops when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

from torus_ray.store.errors import RunHeld, StoreError, from_os_error
from torus_ray.store.files import fsync_folder, make_folder
from torus_ray.store.layout import LOCK, TABLES_FOLDER, parts_in


class FileLease:
    """flock on ``<run>/lock``. Its content says who holds it, for people; the lock itself is what counts.

    The file stays when the lease is given back: deleting a lock file lets two holders lock two files of one name.
    Children started by exec do not inherit it, so those that outlive a killed driver do not hold the run.
    """

    def __init__(self, path: Path, fd: int, epoch: int) -> None:
        self._path, self._fd, self._epoch = path, fd, epoch

    @property
    def epoch(self) -> int:
        return self._epoch

    def check(self) -> None:
        try:
            ours = self._fd >= 0 and os.path.samestat(os.stat(self._path), os.fstat(self._fd))
        except FileNotFoundError:
            ours = False
        if not ours:
            raise StoreError(
                f"the lock of this run is gone: {self._path} was removed or replaced while the run went on",
                where=str(self._path),
                expected="the lock file that this driver holds",
                mend="see that no other driver writes this folder, then run the same command again",
            )

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def take_lease(run: Path) -> FileLease:
    """Lock a run folder (made if need be) and take the next epoch. Raises RunHeld, naming who holds it."""
    path = run / LOCK
    try:
        make_folder(run)
        fd = _locked(path)
    except OSError as error:
        raise from_os_error(error, path) from error
    try:
        epoch = 1 + max(_read_holder(path).get("epoch", 0), *(_newest_epochs(run)))
        _write_holder(fd, epoch)
        fsync_folder(run)
    except OSError as error:
        os.close(fd)
        raise from_os_error(error, path) from error
    return FileLease(path, fd, epoch)


def _locked(path: Path) -> int:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.stat(path), os.fstat(fd)):
                return fd
        except BlockingIOError as error:
            os.close(fd)
            raise _held(path) from error
        except FileNotFoundError:
            pass  # Somebody removed the file between open and lock: lock the one that has the name now.
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _held(path: Path) -> RunHeld:
    holder = _read_holder(path)
    pid, host = holder.get("pid", "unknown"), holder.get("host", "unknown")
    here = " (this very process)" if pid == os.getpid() and host == socket.gethostname() else ""
    return RunHeld(
        f"this run is being written by process {pid}{here} on {host}, since {holder.get('started', 'an unknown time')}",
        where=str(path.parent),
        expected="one driver a run folder",
        mend=f"wait for it, or end it (kill {pid} on {host}) and run the same command again; another arm, "
        "system or --results folder can run beside it",
    )


def _newest_epochs(run: Path) -> list[int]:
    tables = run / TABLES_FOLDER
    folders = [folder for folder in tables.iterdir() if folder.is_dir()] if tables.is_dir() else []
    return [0, *(part.epoch for folder in folders for part in parts_in(folder))]


def _read_holder(path: Path) -> dict[str, Any]:
    """Who wrote the lock last; empty when it is new, or half-written by one who died or is writing now."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}


def _write_holder(fd: int, epoch: int) -> None:
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "epoch": epoch,
    }
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(holder).encode(), 0)
    os.fsync(fd)
