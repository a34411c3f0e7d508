"""A run that is to end before it is done: a deadline draws near, or somebody sends SIGTERM (a batch system, a
preemption, `ray job stop`).

Nothing new is begun then, what is under way is waited for a while, and EngineStop ends the run: what is durable stays.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from types import FrameType
from typing import Any

from torus_ray.engine.jobs import in_job, job_stop_wait_s
from torus_ray.protocol.executor import Call, EngineStop, Executor, HostState, Outcome

MARGIN_S = 90.0
"""How long before a deadline nothing new is begun."""
GRACE_S = 60.0
"""How much of that what is under way may take; the rest is for ending hosts and writing."""
TERM_GRACE_S = 15.0
"""The same after SIGTERM: batch systems and Kubernetes kill 30 s later."""
LAST_STEPS_S = 2.5
"""What ending takes at least, where even less time is given (3 s by `ray job stop`)."""


class _Curfew:
    """An executor that ends in time. deadline: seconds since the epoch, or None."""

    def __init__(self, inner: Executor, deadline: float | None) -> None:
        self._inner = inner
        self._deadline = deadline
        self._begins_at = None if deadline is None else deadline - min(MARGIN_S, (deadline - time.time()) / 2)
        self._told_to = False
        self._halted = False
        self.up = False

    def end_now(self) -> None:
        self._told_to = True

    def start(self) -> Mapping[str, Mapping[str, Any]]:
        with _interrupted_at(self._begins_at, self._stop()):
            described = self._inner.start()
        self.up = True
        return described

    def collect(self, timeout_s: float, *, settled: bool = True) -> list[Outcome]:
        if not self._halted and (self._told_to or (self._begins_at is not None and time.time() >= self._begins_at)):
            self._halted = True
            self._inner.halt(self._stop(), self._grace_s())
        return self._inner.collect(timeout_s, settled=settled)

    def _grace_s(self) -> float:
        if not self._told_to and self._deadline is not None:
            return max(0.0, min(GRACE_S, (self._deadline - time.time()) * GRACE_S / MARGIN_S))
        return max(0.0, min(TERM_GRACE_S, job_stop_wait_s() - LAST_STEPS_S)) if in_job() else TERM_GRACE_S

    def _stop(self) -> EngineStop:
        if self._told_to or self._deadline is None:
            what, where = "the run was told to stop (SIGTERM)", "this process"
        else:
            what = "the deadline is near, nothing new is begun"
            where = "--deadline " + datetime.fromtimestamp(self._deadline).isoformat(sep=" ", timespec="seconds")
        return EngineStop(what, where=where, mend="what is done is kept, the same command goes on from there")

    # --- as the other is ---

    def described(self) -> Mapping[str, Mapping[str, Any]]:
        return self._inner.described()

    def room(self, host: str) -> int:
        return self._inner.room(host)

    def submit(self, calls: Sequence[Call]) -> None:
        self._inner.submit(calls)

    def nudge(self) -> None:
        self._inner.nudge()

    def states(self) -> Mapping[str, HostState]:
        return self._inner.states()

    def halt(self, stop: EngineStop, within_s: float) -> None:
        self._halted = True
        self._inner.halt(stop, within_s)

    def close(self) -> None:
        self._inner.close()


@contextmanager
def ending_in_time(executor: Executor, deadline: float | None) -> Iterator[Executor]:
    """The executor, halted when the deadline (seconds since the epoch) is near or at the first SIGTERM; the second
    one, or one that comes while hosts still load, ends like Ctrl-C."""
    curfew = _Curfew(executor, deadline)

    def told(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if not curfew.up:
            raise KeyboardInterrupt
        curfew.end_now()

    if threading.current_thread() is not threading.main_thread():  # only there can signals be taken
        yield curfew
        return
    before = signal.signal(signal.SIGTERM, told)
    try:
        yield curfew
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _interrupted_at(when: float | None, stop: EngineStop) -> Iterator[None]:
    """Raise `stop` inside the block at a time (seconds since the epoch): loading waits for nobody's deadline."""
    if when is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise stop

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, when - time.time()))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        with suppress(TypeError):  # a handler that was not set from Python cannot be put back
            signal.signal(signal.SIGALRM, before)
