"""One driver a run in a bucket: an object renewed by a heartbeat, changed only under the condition that it is ours.

No local clock is compared with another: the age of a lease is told by the store's own times, waiting by a clock that
only runs forward, also through a suspended machine.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from pathlib import Path
from typing import Any

from torus_ray.store.bucket import Bucket, Versioned
from torus_ray.store.errors import RunHeld, StoreError
from torus_ray.store.layout import LOCK, TABLES_FOLDER, parse_part

logger = logging.getLogger(__name__)

LEASE_S = 30.0
"""A lease that has not been renewed for so long is anybody's."""
RENEW_S = 8.0
_LOOK_S = 1.0
_ROUNDING_S = 1.0
"""Stores tell times in whole seconds."""


class BucketLease:
    """``<run>/lock`` in a bucket, held. It is renewed on a thread of its own until it is given back."""

    def __init__(self, bucket: Bucket, key: str, told: dict[str, Any], tag: str, taken: float) -> None:
        self._bucket, self._key, self._told, self._tag = bucket, key, told, tag
        self._renewed = taken
        self._lost: str | None = None
        self._writing = threading.Lock()
        self._end = threading.Event()
        self._beat = threading.Thread(target=self._heartbeat, name="torus-lease", daemon=True)
        self._beat.start()

    @property
    def epoch(self) -> int:
        return int(self._told["epoch"])

    def check(self) -> None:
        # Between heartbeats no request is needed; after a pause of this process the store is asked.
        if self._lost is None and _clock() - self._renewed > LEASE_S / 2:
            self._renew()
        if self._lost is not None or self._end.is_set():
            raise StoreError(
                f"the lease of this run is gone: {self._lost or 'it was given back'}",
                where=self._bucket.uri(self._key),
                expected="the lease that this driver holds; it lasts while it is renewed",
                mend="see that no other driver writes this run, then run the same command again",
            )

    def release(self) -> None:
        """Give it back; where the store cannot be reached it ends by itself."""
        if self._end.is_set():
            return
        self._end.set()
        with self._writing:
            if self._lost is None:
                try:
                    self._bucket.put_if(self._key, _content(self._told | {"released": True}), self._tag)
                except StoreError as error:
                    logger.warning("the lease could not be given back, it ends by itself: %s", error.message)

    def _heartbeat(self) -> None:
        while not self._end.wait(RENEW_S) and self._lost is None:
            try:
                self._renew()
            except StoreError as error:
                logger.warning("the lease could not be renewed, trying again: %s", error.message)

    def _renew(self) -> None:
        with self._writing:
            if self._end.is_set():
                return
            begun = _clock()
            told = self._told | {"beat": self._told["beat"] + 1}
            tag = self._bucket.put_if(self._key, _content(told), self._tag)
            if tag is None:
                # Somebody else's now, or our own write arrived and only its reply was lost.
                found = self._bucket.get_versioned(self._key)
                holder = _holder(found)
                if found is None or holder.get("token") != told["token"]:
                    self._lost = f"{_who(holder)} has taken it" if holder else "its object was removed"
                    return
                told, tag = holder, found.tag
            self._told, self._tag, self._renewed = told, tag, begun


def take_bucket_lease(bucket: Bucket, run: str) -> BucketLease:
    """Take the lease of the run with this key, and the next epoch.

    Waits, LEASE_S at most, to see whether a holder that has not given it back is alive. Raises RunHeld, naming it.
    """
    key = f"{run}/{LOCK}"
    found = _when_free(bucket, key)
    newest = [part.epoch for at in bucket.objects(f"{run}/{TABLES_FOLDER}") if (part := parse_part(Path(at).name))]
    told = {
        "token": secrets.token_hex(16),
        "beat": 0,
        "epoch": 1 + max(_holder(found).get("epoch", 0), *newest, 0),
        "lease_s": LEASE_S,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        **_process(os.getpid()),
    }
    taken = _clock()
    tag = bucket.put_if(key, _content(told), found.tag if found else None)
    if tag is None:
        now = bucket.get_versioned(key)
        if now is None or _holder(now).get("token") != told["token"]:
            raise _held(bucket, key, _holder(now))
        tag = now.tag
    return BucketLease(bucket, key, told, tag, taken)


def _when_free(bucket: Bucket, key: str) -> Versioned | None:
    """The lock as it lies there when nobody holds it any more."""
    first: Versioned | None = None
    until = left_s = 0.0
    while True:
        found = bucket.get_versioned(key)
        holder = _holder(found)
        if found is None or holder.get("released") or not holder:
            return found
        here = _process(int(holder.get("pid", 0)))
        of_here = bool(here) and here["machine"] == holder.get("machine")
        if of_here and here["born"] != holder.get("born"):
            return found  # A process of this very machine, and it is gone.
        if first is None:
            first = found
            age = bucket.now(key) - found.modified
            left_s = float(holder.get("lease_s", LEASE_S)) + _ROUNDING_S - age
            until = _clock() + left_s
        if found.tag != first.tag or (of_here and left_s > 0):
            raise _held(bucket, key, holder)
        if _clock() >= until:
            return found
        time.sleep(_LOOK_S)


def _held(bucket: Bucket, key: str, holder: dict[str, Any]) -> RunHeld:
    return RunHeld(
        f"this run is being written by {_who(holder)}, since {holder.get('started', 'an unknown time')}",
        where=bucket.uri(key),
        expected="one driver a run",
        mend=f"wait for it, or end it (kill {holder.get('pid', 'it')} on {holder.get('host', 'its machine')}) and run "
        "the same command again; another arm, system or --results can run beside it",
    )


def _who(holder: dict[str, Any]) -> str:
    here = " (this very process)" if holder.get("machine") and _process(os.getpid()).items() <= holder.items() else ""
    return f"process {holder.get('pid', 'unknown')}{here} on {holder.get('host', 'unknown')}"


def _holder(found: Versioned | None) -> dict[str, Any]:
    try:
        told = json.loads(found.data) if found else {}
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _content(told: dict[str, Any]) -> bytes:
    return json.dumps(told, indent=1).encode()


def _process(pid: int) -> dict[str, Any]:
    """What tells a process from all others: its machine since boot and process namespace, and when it began (in ticks
    since boot; None when it is gone). Empty where the system does not say."""
    proc = Path("/proc")
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
        machine = f"{boot}/{os.stat(proc / 'self/ns/pid').st_ino}"
    except OSError:
        return {}
    try:
        stat = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        stat = ["X"]
    born = None if stat[0] in "XZ" else stat[19]
    return {"machine": machine, "born": born}


def _clock() -> float:
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
