"""The inline form of the executor: this process, no Ray, one request at a time.

The debugger of adapter authors (a breakpoint in an adapter just works), and the oracle of the Ray form: both must
leave the same rows. A deadline interrupts what runs in Python; a call that hangs inside a C library it cannot end.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from torus_ray.engine.dispatch import MAX_ERRORS
from torus_ray.engine.hosting import HeadServer, describe_error
from torus_ray.engine.hosts import HostPlan
from torus_ray.protocol.executor import HOST_DOWN, Attempt, Call, EngineStop, HostState, Outcome, head_stop

CANCEL_AGAIN_S = 0.5


class _Overdue(BaseException):
    """Raised inside an adapter whose time is up; a BaseException, so that its own `except Exception` does not swallow
    it."""


class InlineExecutor:
    """See protocol.executor.Executor. down, tell: as RayExecutor has them."""

    def __init__(
        self,
        plans: Mapping[str, HostPlan],
        *,
        down: Mapping[str, str] | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._plans = plans
        self._down = dict(down or {})
        self._tell = tell
        self._servers: dict[str, HeadServer] = {}
        self._waiting: list[tuple[int, int, Call]] = []
        self._order = itertools.count()
        self._nudges: queue.SimpleQueue[None] = queue.SimpleQueue()
        # One loop for all calls: clients of servers are bound to the loop in which they were first used.
        self._loop = asyncio.Runner()
        self._halt: EngineStop | None = None

    def start(self) -> Mapping[str, Mapping[str, Any]]:
        for name, plan in self._plans.items():
            try:
                self._servers[name] = HeadServer(plan.payload())
            except (Exception, SystemExit) as error:
                told = describe_error(error)
                message = f"host {name!r} did not load: {told['kind']}: {told['message']}"
                if plan.spec.background:
                    self._tell(f"{message}; the run goes on without it")
                    self._down[name] = message
                    continue
                raise EngineStop(
                    message,
                    where=told["traceback"],
                    expected=f"{plan.spec.class_name}.load to finish",
                    mend="the traceback above names the line",
                ) from error
        return self.described()

    def described(self) -> Mapping[str, Mapping[str, Any]]:
        return {name: server.describe() for name, server in self._servers.items()}

    def room(self, host: str) -> int:
        return max(0, 2 - len(self._waiting))

    def submit(self, calls: Sequence[Call]) -> None:
        for call in calls:
            heapq.heappush(self._waiting, (-call.priority, next(self._order), call))

    def collect(self, timeout_s: float, *, settled: bool = True) -> list[Outcome]:
        if self._halt is not None:
            raise self._halt
        if not self._waiting:
            with suppress(queue.Empty):
                self._nudges.get(timeout=timeout_s)
            return []
        return [self._run(heapq.heappop(self._waiting)[2])]

    def nudge(self) -> None:
        self._nudges.put(None)

    def states(self) -> Mapping[str, HostState]:
        return {name: HostState(1, 0, sum(c.host == name for _, _, c in self._waiting)) for name in self._servers}

    def halt(self, stop: EngineStop, within_s: float) -> None:
        self._halt = stop  # between two calls nothing is under way

    def close(self) -> None:
        for server in self._servers.values():
            server.close()
        self._servers = {}
        self._loop.close()

    def _run(self, call: Call) -> Outcome:
        if call.host in self._down:
            return Outcome(call, "failed", reason=HOST_DOWN, message=self._down[call.host])
        outcome = Outcome(call, "failed")
        for number in range(1, MAX_ERRORS + 1):
            plan = self._plans[call.host]
            submitted = time.time()
            attempt = Attempt(number, "failed", worker=f"{call.host}#inline", submitted_at=submitted)
            outcome.attempts.append(attempt)
            try:
                with _deadline(plan.deadline_s(call.operation)):
                    answer = self._handle(call)
            except _Overdue:
                if plan.spec.card.style == "async":
                    self._cancel_what_is_left()
                attempt.status, attempt.kind, attempt.returned_at = "timeout", "Deadline", time.time()
                limit = plan.deadline_s(call.operation)
                outcome.status, outcome.reason = "timeout", "deadline"
                outcome.message = f"{call.operation} took more than {limit:.0f} s: {call.label}"
                continue
            for name in ("started_at", "ended_at", "cpu_s", "pid"):
                setattr(attempt, name, answer[name])
            attempt.returned_at = time.time()
            if "stop" in answer:
                stop = head_stop(call.host, answer["stop"])
                if not plan.spec.background:
                    raise stop
                self._tell(f"{stop.message}; the run goes on without it, {stop.mend}")
                self._down[call.host] = stop.message
                return self._run(call)
            if "error" in answer:
                error = answer["error"]
                for name in ("kind", "message", "traceback", "stderr_tail"):
                    setattr(attempt, name, error[name])
                outcome.status = "failed"
                outcome.reason = "bad_reply" if error["kind"] == "BadReply" else "error"
                outcome.message = f"{error['kind']}: {error['message']}"
                continue
            (result,) = answer["results"]
            attempt.status, attempt.kind, attempt.message = result["status"], result.get("kind"), result.get("message")
            outcome.status, outcome.reply = result["status"], result.get("reply")
            outcome.reason, outcome.message = result.get("reason"), result.get("message")
            break
        return outcome

    def _handle(self, call: Call) -> dict[str, Any]:
        server = self._servers[call.host]
        if self._plans[call.host].spec.card.style == "async":
            return self._loop.run(server.handle_async(call.operation, [call.request]))
        return server.handle(call.operation, [call.request])

    def _cancel_what_is_left(self) -> None:
        """End the coroutine that a deadline interrupted; the loop goes on without it."""

        async def cancel() -> None:
            # Once is not enough: a client that is just connecting can take a cancellation for one of its own.
            while left := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in left:
                    task.cancel()
                await asyncio.wait(left, timeout=CANCEL_AGAIN_S)

        self._loop.run(cancel())


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Interrupt the block after `seconds`; only the main thread of a process can be."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(signum: int, frame: FrameType | None) -> None:
        raise _Overdue

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
