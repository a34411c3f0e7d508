"""The Ray form of the executor: pools of actors, driven by events, one thread.

Nothing polls: replies, starts and nudges arrive in one queue. The driver owns retries and deadlines (RAY.md: Ray's
own task retries burn out before a node is declared dead). A cluster of our own that dies is started again and the
calls in flight are sent once more; finished work is durable already.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import queue
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import ray.exceptions

from torus_ray.engine import dispatch, leftovers
from torus_ray.engine.cluster import Cluster
from torus_ray.engine.dispatch import Job
from torus_ray.engine.hosts import HostPlan, unfit
from torus_ray.engine.pools import FAMILIES, STOP_S, Batch, Pool, Replica, What, release
from torus_ray.engine.rooms import with_margin
from torus_ray.engine.sites import RaySite, Site
from torus_ray.engine.troubles import Troubles, unfinished
from torus_ray.engine.turns import Turns
from torus_ray.protocol.executor import Attempt, Call, EngineStop, HostState, Outcome, head_stop

TICK_S = 0.5
"""How often deadlines and Ray's own processes are looked at while nothing happens."""
MAX_RECOVERIES = 3
MEMORY_SHARE = 0.8
"""Of the memory that is free on this machine when the run starts, what hosts may be planned for."""
ROOM_OF_NOBODY = 1_000
"""Calls taken at once for a host that is down: they come back as they are."""
LAST_REPLIES_S = 30.0
"""How long what is under way is waited for when a head has said that it can serve nothing any more."""
STUCK_S = 60.0


@dataclass(frozen=True, slots=True)
class _Event:
    """Something has happened to a replica. generation: of the cluster that it was on."""

    generation: int
    pool: Pool
    what: What
    replica: Replica
    batch: Batch | None
    future: Future[Any]


class RayExecutor:
    """See protocol.executor.Executor. `tell` gets one line for people whenever something went wrong and was mended.

    down: hosts that cannot be brought up -> why; only such as work in the background. site: where replicas live.
    """

    def __init__(
        self,
        plans: Mapping[str, HostPlan],
        cluster: Cluster,
        *,
        exact: bool = False,
        down: Mapping[str, str] | None = None,
        tell: Callable[[str], None] = lambda line: None,
        site: Site | None = None,
    ) -> None:
        self._plans = plans
        self._cluster = cluster
        self._site = site or RaySite()
        self._exact = exact
        self._tell = tell
        self._events: queue.SimpleQueue[_Event | None] = queue.SimpleQueue()
        self._pools: dict[str, Pool] = {}
        self._ended: deque[str] = deque(maxlen=FAMILIES)
        self._finished: list[Outcome] = []
        self._troubles = Troubles(self._pools, self._finished, dict(down or {}), tell)
        self._turns: Turns
        self._halt: tuple[EngineStop, float] | None = None
        self._described: dict[str, Mapping[str, Any]] = {}
        self._generation = 0
        self._recoveries = 0
        self._checked_at = 0.0

    # --- the interface --------------------------------------------------------------------------------------------

    def start(self) -> Mapping[str, Mapping[str, Any]]:
        self._cluster.start()
        self._start_pools()
        while not self._up():
            event, _ = self._next_event(TICK_S)
            self._handle(event)
            self._look_around()
        return self.described()

    def described(self) -> Mapping[str, Mapping[str, Any]]:
        return dict(self._described)

    def room(self, host: str) -> int:
        if self._halt:
            return 0
        return self._pools[host].room() if host in self._pools else ROOM_OF_NOBODY

    def submit(self, calls: Sequence[Call]) -> None:
        for call in calls:
            if call.host in self._pools:
                self._pools[call.host].queue.add(Job(call))
            else:
                self._finished.append(self._troubles.nobody(Job(call)))
        for host in dict.fromkeys(call.host for call in calls if call.host in self._pools):
            self._pump(self._pools[host])

    def collect(self, timeout_s: float, *, settled: bool = True) -> list[Outcome]:
        if not self._halt:
            # What is finished and not handed back yet may lead to more.
            self._turns.decide(settled=settled and not self._finished)
            for pool in self._pools.values():
                pool.pump()
        end = time.monotonic() + timeout_s
        while not self._finished:
            self._raise_when_quiet()
            left = end - time.monotonic()
            event, nudged = self._next_event(min(TICK_S, max(0.0, left)))
            self._handle(event)
            if nudged or left <= 0:
                break
            self._look_around()
        with contextlib.suppress(queue.Empty):
            while True:
                self._handle(self._events.get_nowait())
        self._look_around()
        finished = list(self._finished)
        self._finished.clear()
        return finished

    def nudge(self) -> None:
        self._events.put(None)

    def states(self) -> Mapping[str, HostState]:
        return {
            name: HostState(sum(r.ready for r in pool.replicas), pool.in_flight(), len(pool.queue), _note(pool))
            for name, pool in self._pools.items()
        }

    def halt(self, stop: EngineStop, within_s: float) -> None:
        if self._halt is None:
            self._halt = (stop, time.monotonic() + within_s)
            for pool in self._pools.values():
                pool.queue.drain()

    def close(self) -> None:
        """Let the models give back what they hold, then end every process and what it left."""
        try:
            if self._cluster.alive():
                replicas = [(pool, replica) for pool in self._pools.values() for replica in pool.replicas]
                stops = [replica.actor.stop() for _, replica in replicas if replica.idle]
                concurrent.futures.wait(stops, STOP_S)
                for pool, replica in replicas:
                    pool.remove(replica)
                leftovers.end_families(self._ended)
        finally:
            self._pools.clear()
            self._cluster.stop()

    # --- events ---------------------------------------------------------------------------------------------------

    def _next_event(self, timeout_s: float) -> tuple[_Event | None, bool]:
        """The next one, and whether it is a nudge."""
        try:
            event = self._events.get(timeout=timeout_s) if timeout_s > 0 else self._events.get_nowait()
        except queue.Empty:
            return None, False
        return event, event is None

    def _handle(self, event: _Event | None) -> None:
        if event is None or event.generation != self._generation:
            return
        pool, replica, batch = event.pool, event.replica, event.batch
        if replica not in pool.replicas or (batch is not None and batch not in replica.batches):
            return  # ended by its deadline, its jobs have been sent elsewhere; or answered already
        if event.what == "stopped":
            self._troubles.left(pool, replica)
            self._turns.has_left()
            return
        error = event.future.exception()
        if error is not None:
            self._failed(pool, replica, batch, error)
        elif batch is None:
            self._started(pool, replica, event.future.result())
        else:
            self._returned(pool, replica, batch, event.future.result())
            self._pump(pool)

    def _failed(self, pool: Pool, replica: Replica, batch: Batch | None, error: BaseException) -> None:
        if batch is not None and isinstance(error, ray.exceptions.TaskCancelledError):
            pool.finish(replica, batch, time.time())  # it was done elsewhere
        elif not self._cluster.alive():
            return  # seen to by _look_around
        elif replica.leaving_at is None:
            self._troubles.died(pool, replica, error)
        self._pump(pool)

    def _started(self, pool: Pool, replica: Replica, answer: Mapping[str, Any]) -> None:
        if "describe" not in answer:
            self._troubles.did_not_load(pool, answer["error"])
            return
        pool.is_ready(replica, answer["describe"])
        self._described.setdefault(pool.plan.name, dict(answer["describe"]))
        self.nudge()  # there is more room than before

    def _returned(self, pool: Pool, replica: Replica, batch: Batch, answer: Mapping[str, Any]) -> None:
        now = time.time()
        pool.finish(replica, batch, now)
        error = answer.get("error")
        fields = {
            "worker": replica.name,
            "node": str(replica.described.get("node", "")),
            "device": str(replica.described.get("device", "")),
            "pid": int(answer["pid"]),
            "submitted_at": batch.submitted_at,
            "started_at": answer["started_at"],
            "ended_at": answer["ended_at"],
            "returned_at": now,
            "cpu_s": answer["cpu_s"] / len(batch.jobs),
        }
        if "stop" in answer:
            stop = head_stop(pool.plan.name, answer["stop"])
            if pool.plan.spec.background:
                self._troubles.do_without(pool, stop, [batch])
            else:
                self.halt(stop, LAST_REPLIES_S)
            return
        if error is not None:
            self._troubles.raised(pool, batch, error, fields)
            return
        self._troubles.went_well(pool)
        pool.took(replica, batch, answer["ended_at"] - answer["started_at"])
        answered = [(job, result) for job, result in zip(batch.jobs, answer["results"], strict=True) if not job.done]
        for job, result in answered:
            release(job)
            job.done = True
            told = {name: result.get(name) for name in ("kind", "message")}
            job.attempts.append(
                Attempt(len(job.attempts) + 1, result["status"], batch=len(batch.jobs), **fields, **told)
            )
        self._finished += dispatch.outcomes_of([job for job, _ in answered], [result for _, result in answered])

    def _raise_when_quiet(self) -> None:
        if self._halt is None:
            return
        stop, ends_at = self._halt
        under_way = any(pool.in_flight() for pool in self._pools.values() if not pool.plan.spec.background)
        if not under_way or time.monotonic() > ends_at:
            raise stop

    # --- deadlines and the cluster --------------------------------------------------------------------------------

    def _look_around(self) -> None:
        now = time.time()
        if abs(now - self._checked_at) < TICK_S:
            return
        self._checked_at = now
        if not self._cluster.alive():
            self._recover()
            return
        for pool in list(self._pools.values()):
            for replica, batch in pool.overdue(now):
                if replica in pool.replicas:
                    self._troubles.too_late(pool, replica, batch)
                    self._turns.has_left()
            self._pump(pool)

    def _pump(self, pool: Pool) -> None:
        if not self._halt:  # then what waits, or waits again, stays
            pool.pump()

    def _up(self) -> bool:
        """Whether all that the run cannot do without, and that does not wait for its turn, is there."""
        waited = [pool for pool in self._pools.values() if not pool.plan.spec.background] or self._pools.values()
        return all(any(r.ready for r in pool.replicas) for pool in waited if pool.replicas)

    def _start_pools(self) -> None:
        self._generation += 1
        generation = self._generation
        down = self._troubles.down
        rooms = self._site.rooms()
        for name, plan in self._plans.items():
            stop = unfit(plan, rooms)
            if stop and not plan.spec.background:
                raise stop
            if stop and name not in down:
                self._tell(f"{stop.message}; the run goes on without it")
                down[name] = stop.message
        plans = {name: plan for name, plan in self._plans.items() if name not in down}
        for name, plan in plans.items():
            pool = Pool(
                plan,
                self._site,
                exact=self._exact,
                done=lambda *happened, n=name: self._put(generation, n, *happened),
                ended=self._ended,
            )
            self._pools[name] = pool
        if self._cluster.own:  # other programs of this machine grow too
            rooms = with_margin(rooms, MEMORY_SHARE, [plan.wants for plan in plans.values()])
        self._turns = Turns.of(self._pools, rooms, self._tell)
        self._turns.begin()

    def _put(
        self, generation: int, name: str, what: What, replica: Replica, batch: Batch | None, future: Future[Any]
    ) -> None:
        """From a thread of Ray's."""
        pool = self._pools.get(name)
        if pool is not None:
            self._events.put(_Event(generation, pool, what, replica, batch, future))

    def _recover(self) -> None:
        """Our cluster died: start it again and send what was in flight once more."""
        self._recoveries += 1
        if not self._cluster.own or self._recoveries > MAX_RECOVERIES:
            raise EngineStop(
                f"the Ray cluster is lost{': ' if self._cluster.lost else ''}{self._cluster.lost}",
                where=self._cluster.address or "this machine",
                expected="a cluster that stays up",
                mend="the same command goes on from what is durable",
            )
        self._tell("Ray died; starting it again")
        waiting = {name: unfinished(pool) for name, pool in self._pools.items()}
        self._pools.clear()
        self._cluster.stop()
        self._cluster.start()
        self._start_pools()
        for name, jobs in waiting.items():
            for job in jobs:
                if name in self._pools:
                    self._pools[name].queue.add(job)
                else:
                    self._finished.append(self._troubles.nobody(job))


def _note(pool: Pool) -> str:
    """What has been going on for suspiciously long."""
    now = time.time()
    turns = [(batch.turn_at, replica, batch) for replica in pool.replicas for batch in replica.batches[:1]]
    if not turns:
        return ""
    since, replica, batch = min(turns, key=lambda turn: turn[0])
    if now - since < STUCK_S:
        return ""
    return f"{replica.name} has been at {batch.jobs[0].call.label} for {now - since:.0f} s"
