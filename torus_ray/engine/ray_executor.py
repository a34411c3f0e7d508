"""The Ray form of the executor: pools of actors, driven by events, one thread.

Nothing polls: replies, starts and nudges arrive in one queue. The driver owns retries and deadlines (RAY.md: Ray's
own task retries burn out before a node is declared dead). A cluster of our own that dies is started again and the
calls in flight are sent once more; finished work is durable already.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import psutil
import ray
import ray.exceptions

from torus_ray.engine import dispatch
from torus_ray.engine.cluster import Cluster
from torus_ray.engine.dispatch import Job
from torus_ray.engine.hosts import GIB, HostPlan, replicas_that_fit, unfit
from torus_ray.engine.pools import Batch, Pool, Replica
from torus_ray.protocol.executor import HOST_DOWN, Attempt, Call, EngineStop, HostState, Outcome, head_stop

TICK_S = 0.5
"""How often deadlines and Ray's own processes are looked at while nothing happens."""
MAX_RECOVERIES = 3
MAX_IDLE_DEATHS = 5
"""Processes of one host that may die in a row, under requests not yet suspected of it, without one finished batch: then
it is the host, not the requests."""
MAX_START_DEATHS = 2
"""The same while a host loads, where no request can be to blame."""
MEMORY_SHARE = 0.8
ROOM_OF_NOBODY = 1_000
"""Calls taken at once for a host that is down: they come back as they are."""
STOP_S = 10.0
LAST_REPLIES_S = 30.0
"""How long what is under way is waited for when a head has said that it can serve nothing any more."""
STUCK_S = 60.0

_Event = tuple[int, Pool | None, Replica | None, Batch | None, "Future[Any] | None"]


class RayExecutor:
    """See protocol.executor.Executor. `tell` gets one line for people whenever something went wrong and was mended.

    down: hosts that cannot be brought up -> why; only such as work in the background.
    """

    def __init__(
        self,
        plans: Mapping[str, HostPlan],
        cluster: Cluster,
        *,
        exact: bool = False,
        down: Mapping[str, str] | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._plans = plans
        self._cluster = cluster
        self._exact = exact
        self._tell = tell
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._pools: dict[str, Pool] = {}
        self._finished: list[Outcome] = []
        self._down: dict[str, str] = dict(down or {})
        self._halt: tuple[EngineStop, float] | None = None
        self._described: dict[str, Mapping[str, Any]] = {}
        self._idle_deaths: dict[str, int] = {}
        self._generation = 0
        self._recoveries = 0
        self._checked_at = 0.0

    # --- the interface --------------------------------------------------------------------------------------------

    def start(self) -> Mapping[str, Mapping[str, Any]]:
        self._cluster.start()
        self._start_pools()
        while not self._up():
            self._handle(self._next_event(TICK_S))
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
                self._finished.append(self._nobody(Job(call)))
        for host in dict.fromkeys(call.host for call in calls if call.host in self._pools):
            self._pools[host].pump()

    def collect(self, timeout_s: float) -> list[Outcome]:
        end = time.monotonic() + timeout_s
        while not self._finished:
            self._raise_when_quiet()
            left = end - time.monotonic()
            event = self._next_event(min(TICK_S, max(0.0, left)))
            self._handle(event)
            nudged = event is not None and event[1] is None
            if nudged or left <= 0:
                break
            self._look_around()
        with contextlib.suppress(queue.Empty):
            while True:
                self._handle(self._events.get_nowait())
        self._look_around()
        finished, self._finished = self._finished, []
        return finished

    def nudge(self) -> None:
        self._events.put((self._generation, None, None, None, None))

    def states(self) -> Mapping[str, HostState]:
        return {
            name: HostState(sum(r.ready for r in pool.replicas), pool.in_flight(), len(pool.queue), self._note(pool))
            for name, pool in self._pools.items()
        }

    def close(self) -> None:
        """Let the models give back what they hold, then end every process."""
        try:
            if self._cluster.alive():
                stops = [
                    r.actor.stop.remote()
                    for pool in self._pools.values()
                    for r in pool.replicas
                    if r.ready and not r.batches
                ]
                ray.wait(stops, num_returns=len(stops), timeout=STOP_S) if stops else None
                for pool in self._pools.values():
                    for replica in list(pool.replicas):
                        pool.remove(replica)
        finally:
            self._pools = {}
            self._cluster.stop()

    # --- hosts that the run can do without ---

    def _up(self) -> bool:
        """Whether all that the run cannot do without is there."""
        waited = [pool for pool in self._pools.values() if not pool.plan.spec.background] or self._pools.values()
        return all(any(r.ready for r in pool.replicas) for pool in waited)

    def _do_without(self, pool: Pool, stop: EngineStop, lost: Sequence[Batch] = ()) -> None:
        """Go on without a host that only measures; any other one's end is the run's. lost: batches it held."""
        if not pool.plan.spec.background:
            raise stop
        self._tell(f"{stop.message}; the run goes on without it, {stop.mend}")
        self._down[pool.plan.name] = stop.message
        jobs = [job for batch in lost for job in batch.jobs] + self._unfinished(pool)
        for replica in list(pool.replicas):
            pool.remove(replica)
        del self._pools[pool.plan.name]
        self._finished += [self._nobody(job) for job in jobs]

    def _nobody(self, job: Job) -> Outcome:
        why = self._down[job.call.host]
        return Outcome(job.call, "failed", reason=HOST_DOWN, message=why, attempts=job.attempts)

    def _halted(self, pool: Pool, stop: EngineStop, batch: Batch) -> None:
        """A head can serve nothing any more: nothing new begins, and the run ends when what is under way is back."""
        if pool.plan.spec.background:
            self._do_without(pool, stop, [batch])
        elif self._halt is None:
            self._halt = (stop, time.monotonic() + LAST_REPLIES_S)
            for each in self._pools.values():
                each.queue.drain()

    def _raise_when_quiet(self) -> None:
        if self._halt is None:
            return
        stop, ends_at = self._halt
        under_way = any(pool.in_flight() for pool in self._pools.values() if not pool.plan.spec.background)
        if not under_way or time.monotonic() > ends_at:
            raise stop

    # --- events ---------------------------------------------------------------------------------------------------

    def _next_event(self, timeout_s: float) -> _Event | None:
        try:
            return self._events.get(timeout=timeout_s) if timeout_s > 0 else self._events.get_nowait()
        except queue.Empty:
            return None

    def _handle(self, event: _Event | None) -> None:
        if event is None:
            return
        generation, pool, replica, batch, future = event
        if generation != self._generation or pool is None or replica is None or future is None:
            return
        if replica not in pool.replicas:
            return  # ended by its deadline; its jobs have been sent elsewhere
        error = future.exception()
        if error is not None:
            if self._cluster.alive():
                self._died(pool, replica, error)
            return  # a dead cluster is seen to by _look_around
        if batch is None:
            self._started(pool, replica, future.result())
        else:
            self._returned(pool, replica, batch, future.result())
        pool.pump()

    def _started(self, pool: Pool, replica: Replica, answer: Mapping[str, Any]) -> None:
        if "describe" in answer:
            pool.is_ready(replica, answer["describe"])
            self._described.setdefault(pool.plan.name, dict(answer["describe"]))
            return
        error = answer["error"]
        tail = error["stderr_tail"].strip().splitlines()[-5:]
        stop = EngineStop(
            f"host {pool.plan.name!r} did not load: {error['kind']}: {error['message']}",
            where=_last_frame(error["traceback"]) + ("; stderr: " + " | ".join(tail) if tail else ""),
            expected=f"{pool.plan.spec.class_name}.load to finish",
            mend="`torus doctor` checks environments and weights; --inline shows the whole traceback",
        )
        self._do_without(pool, stop)

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
        if error is None:
            self._idle_deaths[pool.plan.name] = 0
            for job, result in zip(batch.jobs, answer["results"], strict=True):
                told = {name: result.get(name) for name in ("kind", "message")}
                job.attempts.append(
                    Attempt(len(job.attempts) + 1, result["status"], batch=len(batch.jobs), **fields, **told)
                )
            self._finished += dispatch.outcomes_of(batch.jobs, answer["results"])
            return
        if "stop" in answer:
            self._halted(pool, head_stop(pool.plan.name, answer["stop"]), batch)
            return
        dispatch.record(batch.jobs, "failed", {**fields, **error})
        if error["kind"] == "BadReply" and len(batch.jobs) > 1:
            size = len(batch.jobs)
            self._tell(f"host {pool.plan.name}: {error['message']}; its batch of {size} is asked again in smaller ones")
        reason = "bad_reply" if error["kind"] == "BadReply" else "error"
        self._again(pool, dispatch.after_error(batch.jobs, error, reason))

    def _died(self, pool: Pool, replica: Replica, error: BaseException) -> None:
        """A process is gone. Its running batch is suspect, what waited behind it is not."""
        message = f"the process of {replica.name} died: {str(error).splitlines()[0]}"
        batches = pool.remove(replica)
        name = pool.plan.name
        # A request that killed its process before says nothing new about the host.
        if not any(job.suspect for batch in batches[:1] for job in batch.jobs):
            self._idle_deaths[name] = self._idle_deaths.get(name, 0) + 1
        if self._idle_deaths[name] > (MAX_IDLE_DEATHS if replica.ready else MAX_START_DEATHS):
            stop = EngineStop(
                f"host {name!r} keeps dying: {str(error)[:1_000]}",
                where=replica.name,
                expected="a process that stays up",
                mend="look at its memory and its stderr; `torus check` runs it alone",
            )
            self._do_without(pool, stop, batches)
            return
        self._tell(message)
        if pool.plan.spec.card.style == "async" and batches:
            # All of them were running: they are suspect together, like a batch.
            together = [job for batch in batches for job in batch.jobs]
            batches = [Batch(batches[0].operation, together, batches[0].submitted_at, batches[0].turn_at)]
        self._replace(pool, batches[:1], batches[1:], "failed", "WorkerDied", message, dispatch.after_death)

    def _too_late(self, pool: Pool, replica: Replica, batch: Batch | None) -> None:
        if batch is None and any(other.ready for other in pool.replicas):
            self._tell(f"{replica.name} did not come up; the run goes on without it")
            pool.remove(replica)
            return
        if batch is None:
            stop = EngineStop(
                f"host {pool.plan.name!r} was not up after {pool.plan.spec.card.start_deadline_s:.0f} s",
                where=replica.name,
                expected="a host that loads within its start_deadline_s",
                mend="raise start_deadline_s in its card, or see `torus doctor`",
            )
            self._do_without(pool, stop)
            return
        limit = pool.plan.deadline_s(batch.operation) * len(batch.jobs)
        message = f"{batch.operation} on {replica.name} took more than {limit:.0f} s: {batch.jobs[0].call.label}"
        self._tell(message + "; its process is ended and a new one started")
        batches = pool.remove(replica)
        batches.remove(batch)
        self._replace(pool, [batch], batches, "timeout", "Deadline", message, dispatch.after_timeout)

    def _replace(
        self, pool: Pool, guilty: list[Batch], innocent: list[Batch], status: Any, kind: str, message: str, rule: Any
    ) -> None:
        """A new replica; guilty batches are judged by `rule`, the others go back as they were."""
        pool.add_replica()
        for batch in guilty:
            fields = {
                "worker": "",
                "kind": kind,
                "message": message,
                "submitted_at": batch.submitted_at,
                "returned_at": time.time(),
            }
            dispatch.record(batch.jobs, status, fields)
            self._again(pool, rule(batch.jobs, message))
        for batch in innocent:
            self._again(pool, (batch.jobs, []))

    def _again(self, pool: Pool, judged: tuple[list[Job], list[Outcome]]) -> None:
        jobs, outcomes = judged
        for job in jobs:
            pool.queue.add(job, again=True)
        self._finished += outcomes

    # --- deadlines and the cluster --------------------------------------------------------------------------------

    def _look_around(self) -> None:
        now = time.time()
        if now - self._checked_at < TICK_S:
            return
        self._checked_at = now
        if not self._cluster.alive():
            self._recover()
            return
        for pool in list(self._pools.values()):
            for replica, batch in pool.overdue(now):
                if replica in pool.replicas:
                    self._too_late(pool, replica, batch)

    def _start_pools(self) -> None:
        self._generation += 1
        generation = self._generation
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        if self._cluster.own:
            memory_gb = psutil.virtual_memory().available / GIB * MEMORY_SHARE
        else:
            memory_gb = resources.get("memory", 0.0) / GIB
        plans = {name: plan for name, plan in self._plans.items() if name not in self._down}
        for name, plan in list(plans.items()):
            stop = unfit(plan, resources)
            if stop and not plan.spec.background:
                raise stop
            if stop:
                self._tell(f"{stop.message}; the run goes on without it")
                self._down[name] = stop.message
                del plans[name]
        counts = replicas_that_fit(
            plans, cpus=resources.get("CPU", 0.0), gpus=resources.get("GPU", 0.0), memory_gb=memory_gb
        )
        for name, plan in plans.items():
            pool = Pool(plan, exact=self._exact, done=lambda *what, n=name: self._put(generation, n, *what))
            self._pools[name] = pool
        for name, pool in self._pools.items():
            for _ in range(counts[name]):
                pool.add_replica()

    def _put(self, generation: int, name: str, replica: Replica, batch: Batch | None, future: Future[Any]) -> None:
        """From a thread of Ray's."""
        pool = self._pools.get(name)
        if pool is not None:
            self._events.put((generation, pool, replica, batch, future))

    def _recover(self) -> None:
        """Our cluster died: start it again and send what was in flight once more."""
        self._recoveries += 1
        if not self._cluster.own or self._recoveries > MAX_RECOVERIES:
            raise EngineStop(
                "the Ray cluster is lost",
                where=self._cluster.address or "this machine",
                expected="a cluster that stays up",
                mend="the same command goes on from what is durable",
            )
        self._tell("Ray died; starting it again")
        waiting = {name: self._unfinished(pool) for name, pool in self._pools.items()}
        self._cluster.stop()
        self._cluster.start()
        self._pools = {}
        self._start_pools()
        for name, jobs in waiting.items():
            for job in jobs:
                if name in self._pools:
                    self._pools[name].queue.add(job)
                else:
                    self._finished.append(self._nobody(job))

    def _unfinished(self, pool: Pool) -> list[Job]:
        in_flight = [job for replica in pool.replicas for batch in replica.batches for job in batch.jobs]
        return in_flight + pool.queue.drain()

    def _note(self, pool: Pool) -> str:
        """What has been going on for suspiciously long."""
        now = time.time()
        turns = [(batch.turn_at, replica, batch) for replica in pool.replicas for batch in replica.batches[:1]]
        if not turns:
            return ""
        since, replica, batch = min(turns, key=lambda turn: turn[0])
        if now - since < STUCK_S:
            return ""
        return f"{replica.name} has been at {batch.jobs[0].call.label} for {now - since:.0f} s"


def _last_frame(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("File ")]
    return lines[-1] if lines else "the host's start"
