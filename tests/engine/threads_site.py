"""A site without Ray: each replica is a thread of this process that holds a real HeadServer, and is placed where there
is room, as Ray would place it. So the executor, the runner and the store are tried in milliseconds."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import ray.exceptions

from torus_ray.engine.hosting import HeadServer, describe_error
from torus_ray.engine.hosts import HostPlan
from torus_ray.engine.ray_executor import RayExecutor
from torus_ray.engine.rooms import Room, Wants, fits
from torus_ray.engine.sites import Sent
from torus_ray.systems import System

PLACED_S = 20.0


class Died(Exception):
    """What a future of a killed replica holds."""


@dataclass
class ThreadCluster:
    """A cluster that is always there."""

    own: bool = True
    address: str | None = None
    lost: str = ""
    dead: bool = False

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def alive(self) -> bool:
        return not self.dead


@dataclass
class ThreadSite:
    """rooms: what there is. loads: how often each host was loaded, in order. slow: seconds to add to each batch of the
    n-th replica of a host, by `host#n`."""

    there: list[Room]
    slow: Mapping[str, float] = field(default_factory=dict)
    loads: list[str] = field(default_factory=list)
    most_at_once: int = 0
    _held: list[Wants] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _made: dict[str, int] = field(default_factory=dict)

    def rooms(self) -> list[Room]:
        return self.there

    def actor(self, plan: HostPlan) -> ThreadActor:
        number = self._made[plan.name] = self._made.get(plan.name, 0) + 1
        return ThreadActor(self, plan, self.slow.get(f"{plan.name}#{number}", 0.0))

    def place(self, wants: Wants, given_up: Callable[[], bool]) -> bool:
        """Wait for room, as a pending actor does."""
        with self._changed:
            placed = self._changed.wait_for(lambda: given_up() or fits([*self._held, wants], self.there), PLACED_S)
            if not placed or given_up():
                return False
            self._held.append(wants)
            self.most_at_once = max(self.most_at_once, len(self._held))
            return True

    def leave(self, wants: Wants | None) -> None:
        with self._changed:
            if wants is not None:
                self._held.remove(wants)
            self._changed.notify_all()


class ThreadActor:
    """One call at a time, or all at once for a model of coroutines."""

    def __init__(self, site: ThreadSite, plan: HostPlan, extra_s: float) -> None:
        self._site, self._plan, self._extra_s = site, plan, extra_s
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._killed = threading.Event()
        self._placed = False
        self._pending: list[Future[Any]] = []
        self._server: HeadServer
        threading.Thread(target=self._live, daemon=True).start()

    def start(self, payload: Mapping[str, Any], place: Mapping[str, Any]) -> Future[Any]:
        return self._call(lambda: self._start({**payload, "background": False}))

    def handle(self, operation: str, wires: Sequence[Any]) -> Sent:
        future = self._call(lambda: self._handle(operation, list(wires)))

        def cancel() -> None:
            if not future.running() and not future.done():
                future.set_exception(ray.exceptions.TaskCancelledError())

        return Sent(future, cancel)

    def stop(self) -> Future[Any]:
        return self._call(lambda: self._server.close())

    def kill(self) -> None:
        self._killed.set()
        self._calls.put(None)
        if self._placed:
            self._placed = False
            self._site.leave(self._plan.wants)
        else:
            self._site.leave(None)
        for future in self._pending:
            if not future.done():
                with suppress(InvalidStateError):  # answered in the same moment
                    future.set_exception(Died("killed"))

    def _call(self, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._pending = [f for f in self._pending if not f.done()] + [future]
        self._calls.put((work, future))
        return future

    def _live(self) -> None:
        self._placed = self._site.place(self._plan.wants, self._killed.is_set)
        while (call := self._calls.get()) is not None and not self._killed.is_set():
            work, future = call
            if future.done():
                continue
            future.set_running_or_notify_cancel()
            try:
                result = work()
            except BaseException as error:
                result = error
            if self._killed.is_set():
                return
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _start(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        self._site.loads.append(self._plan.name)
        try:
            self._server = HeadServer(payload)
            return {"describe": self._server.describe()}
        except BaseException as error:
            return {"error": describe_error(error)}

    def _handle(self, operation: str, wires: list[Any]) -> dict[str, Any]:
        if self._plan.spec.card.style == "async":
            return asyncio.run(self._server.handle_async(operation, wires))
        answer = self._server.handle(operation, wires)
        time.sleep(self._extra_s)
        answer["ended_at"] = time.time()
        return answer


def executor_on(site: ThreadSite, system: System, **options: Any) -> RayExecutor:
    plans = {name: HostPlan(host, str(host.folder), system.card.bits) for name, host in system.hosts.items()}
    return RayExecutor(plans, ThreadCluster(), site=site, **options)  # type: ignore[arg-type]


def runs_on(site: ThreadSite, patch: pytest.MonkeyPatch) -> None:
    """From now on `run_system` brings its hosts up there."""

    @contextmanager
    def opened(system: System, how: Any, tell: Any = print) -> Iterator[RayExecutor]:
        executor = executor_on(site, system, exact=how.exact, tell=tell)
        try:
            yield executor
        finally:
            executor.close()

    patch.setattr("torus_ray.engine.session.open_executor", opened)
