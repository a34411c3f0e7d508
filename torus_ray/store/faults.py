"""A seam for tests: named points of the write path at which a test may end the process. Does nothing otherwise."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable

Fault = Callable[[str], None]

POINTS = ("clip_written", "part_written", "part_renamed", "compaction_written", "compaction_renamed")
"""After a clip's rename, before its part; a part before and after its rename; the same of a compaction."""


def no_fault(point: str) -> None:
    """The fault of ordinary use: none."""


def fault_from_environment() -> Fault:
    """A test seam: TORUS_FAULT=point:count makes a process SIGKILL itself on passing `point` the count-th time."""
    setting = os.environ.get("TORUS_FAULT")
    if not setting:
        return no_fault
    wanted, _, count = setting.partition(":")
    # next() of itertools.count is one step under the GIL: points are passed on several threads.
    passed = itertools.count(1)

    def kill_at(point: str) -> None:
        if point == wanted and next(passed) == int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)

    return kill_at
