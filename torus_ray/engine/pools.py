"""A pool: one host's replicas as Ray actors, each with a bounded window in flight."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import ray

from torus_ray.engine.actor import AsyncHost, BatchHost
from torus_ray.engine.dispatch import Job, ReadyQueue
from torus_ray.engine.hosts import GIB, HostPlan, Limits

ASYNC_CONCURRENCY = 1_000


@dataclass(eq=False)
class Batch:
    """Jobs on their way to one replica. turn_at: when the replica came free for it (seconds since the epoch)."""

    operation: str
    jobs: list[Job]
    submitted_at: float
    turn_at: float


@dataclass(eq=False)
class Replica:
    """One actor. ready: its model has loaded. batches: in flight, oldest first."""

    name: str
    actor: Any
    started_at: float
    ready: bool = False
    described: Mapping[str, Any] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)


Done = Callable[[Replica, Batch | None, "Future[Any]"], None]


class Pool:
    """The replicas of one host. Replies arrive by callback, from a thread of Ray's: `done(replica, batch, future)`.

    A start has no batch. The pool sends and forgets; what a failure means is the executor's business.
    """

    def __init__(self, plan: HostPlan, *, exact: bool, done: Done) -> None:
        self.plan = plan
        self.queue = ReadyQueue()
        self.replicas: list[Replica] = []
        self.limits = Limits({}, 1)
        self._exact = exact
        self._done = done
        self._numbers = itertools.count(1)

    def add_replica(self) -> Replica:
        """Start one more actor; its start is reported by `done`."""
        card = self.plan.spec.card
        asynchronous = card.style == "async"
        actor_class: Any = ray.remote(AsyncHost if asynchronous else BatchHost)
        options: dict[str, Any] = {
            "num_cpus": self.plan.ray_cpus,
            "num_gpus": card.num_gpus,
            "memory": int(card.memory_gb * GIB),
            "max_restarts": 0,
            "max_task_retries": 0,
            "runtime_env": self.plan.actor_environment(),
        }
        if asynchronous:
            options["max_concurrency"] = ASYNC_CONCURRENCY
        actor = actor_class.options(**options).remote()
        replica = Replica(f"{self.plan.name}#{next(self._numbers)}", actor, time.time())
        self.replicas.append(replica)
        self._watch(actor.start.remote(self.plan.payload()), replica, None)
        return replica

    def is_ready(self, replica: Replica, described: Mapping[str, Any]) -> None:
        replica.ready = True
        replica.described = described
        self.limits = Limits.of(described, exact=self._exact)

    def pump(self) -> None:
        """Send what waits to the replicas that have room, the emptiest first."""
        sent = True
        while sent and self.queue:
            sent = False
            busy = frozenset(r.name for r in self.replicas if not self._has_room(r))
            for replica in sorted(self.replicas, key=lambda r: len(r.batches)):
                if not self._has_room(replica):
                    continue
                jobs = self.queue.take(
                    replica.name,
                    self.limits.max_batch,
                    idle=not replica.batches,
                    busy=busy,
                    beside=len(replica.batches) if self.plan.spec.card.style == "async" else 0,
                )
                if jobs:
                    self._send(replica, jobs)
                    sent = True

    def room(self) -> int:
        """Calls worth handing over now: what the windows take, and as much again waiting."""
        ready = sum(replica.ready for replica in self.replicas)
        return max(0, 2 * max(1, ready) * self.limits.room() - len(self.queue) - self.in_flight())

    def in_flight(self) -> int:
        return sum(len(batch.jobs) for replica in self.replicas for batch in replica.batches)

    def remove(self, replica: Replica) -> list[Batch]:
        """Take a replica out and end its process; its batches, which nobody will answer."""
        if replica in self.replicas:
            self.replicas.remove(replica)
        self.queue.forget(replica.name)
        ray.kill(replica.actor, no_restart=True)
        batches, replica.batches = replica.batches, []
        return batches

    def overdue(self, now: float) -> list[tuple[Replica, Batch | None]]:
        """Replicas that have not started in time (no batch), and batches past their deadline."""
        late: list[tuple[Replica, Batch | None]] = []
        for replica in self.replicas:
            if not replica.ready:
                if now - replica.started_at > self.plan.spec.card.start_deadline_s:
                    late.append((replica, None))
                continue
            turns = replica.batches if self.plan.spec.card.style == "async" else replica.batches[:1]
            for batch in turns:
                if now - batch.turn_at > self.plan.deadline_s(batch.operation) * len(batch.jobs):
                    late.append((replica, batch))
                    break
        return late

    def finish(self, replica: Replica, batch: Batch, now: float) -> None:
        """A batch came back: the next one's turn begins."""
        replica.batches.remove(batch)
        if replica.batches and self.plan.spec.card.style == "batch":
            replica.batches[0].turn_at = now

    def _has_room(self, replica: Replica) -> bool:
        window = self.limits.window
        if self.plan.spec.card.style == "async":
            window = min([window, *(job.limit for batch in replica.batches for job in batch.jobs)])
        return replica.ready and len(replica.batches) < window

    def _send(self, replica: Replica, jobs: list[Job]) -> None:
        now = time.time()
        batch = Batch(jobs[0].call.operation, jobs, now, now)
        replica.batches.append(batch)
        reference = replica.actor.handle.remote(batch.operation, [job.call.request for job in jobs])
        self._watch(reference, replica, batch)

    def _watch(self, reference: Any, replica: Replica, batch: Batch | None) -> None:
        reference.future().add_done_callback(lambda future: self._done(replica, batch, future))
