"""A pool: one host's replicas, each with a bounded window in flight."""

from __future__ import annotations

import itertools
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

from torus_ray.engine.dispatch import Job, ReadyQueue
from torus_ray.engine.hosts import HostPlan, Limits
from torus_ray.engine.paces import Paces, Underway, to_take_over
from torus_ray.engine.residency import SEEN
from torus_ray.engine.sites import Actor, Site

STOP_S = 10.0
"""How long a model may take to give back what it holds."""
FAMILIES = 256
"""Hosts that were ended without a word, whose children the next ones look for."""

What = Literal["started", "returned", "stopped"]


@dataclass(eq=False)
class Batch:
    """Jobs on their way to one replica. turn_at: when the replica came free for it (seconds since the epoch). open:
    jobs that it answers for and that are not done. elsewhere: an idle replica does it too."""

    operation: str
    jobs: list[Job]
    submitted_at: float
    turn_at: float
    open: int = 0
    elsewhere: bool = False
    cancel: Callable[[], None] = lambda: None

    def answers_for(self, jobs: Sequence[Job]) -> None:
        """From now on what goes wrong with these jobs goes wrong here."""
        for job in jobs:
            release(job)
            job.batch = self
        self.open += len(jobs)

    def mine(self) -> list[Job]:
        """The jobs that it has to answer for still."""
        return [job for job in self.jobs if job.batch is self and not job.done]


def release(job: Job) -> None:
    """The job is no batch's any more: it is done, or it waits again."""
    if job.batch is not None:
        job.batch.open -= 1
        job.batch = None


@dataclass(eq=False)
class Replica:
    """One actor. ready: its model has loaded. batches: in flight, oldest first. leaving_at: when it was asked to
    stop. family: the mark of its children."""

    name: str
    actor: Actor
    started_at: float
    ready: bool = False
    leaving_at: float | None = None
    described: Mapping[str, Any] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    family: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def idle(self) -> bool:
        return self.ready and self.leaving_at is None and not self.batches


Done = Callable[[What, Replica, Batch | None, "Future[Any]"], None]


class Pool:
    """The replicas of one host; none while it waits for its turn. What they answer arrives by callback, from any
    thread: `done(what, replica, batch, future)`.

    The pool sends and forgets; what a failure means is decided in troubles.py, how many replicas there are in
    residency.py. ended: families of hosts that were killed.
    """

    def __init__(self, plan: HostPlan, site: Site, *, exact: bool, done: Done, ended: deque[str]) -> None:
        self.plan = plan
        self.queue = ReadyQueue()
        self.replicas: list[Replica] = []
        self.limits = Limits({}, 1)
        self.load_s = 0.0
        self._asynchronous = plan.spec.card.style == "async"
        self._paces = Paces()
        self._site = site
        self._exact = exact
        self._done = done
        self._ended = ended
        self._numbers = itertools.count(1)

    # --- replicas -----------------------------------------------------------------------------------------------------

    def add_replica(self) -> Replica:
        """Start one more actor; its start is reported by `done`."""
        replica = Replica(f"{self.plan.name}#{next(self._numbers)}", self._site.actor(self.plan), time.time())
        self.replicas.append(replica)
        place = {
            "family": replica.family,
            "ended": list(self._ended),
            "gpu_memory_gib": self.plan.spec.card.gpu_memory_gb,
        }
        self._watch(replica.actor.start(self.plan.payload(), place), "started", replica, None)
        return replica

    def is_ready(self, replica: Replica, described: Mapping[str, Any]) -> None:
        replica.ready = True
        replica.described = described
        self.limits = Limits.of(described, exact=self._exact)
        self.load_s = time.time() - replica.started_at

    def retire(self, replica: Replica) -> None:
        """Ask the model to give back what it holds; `done` reports it, then the replica is to be removed."""
        replica.leaving_at = time.time()
        self._watch(replica.actor.stop(), "stopped", replica, None)

    def remove(self, replica: Replica) -> list[Batch]:
        """Take a replica out and end its process; its batches, which nobody will answer."""
        if replica in self.replicas:
            self.replicas.remove(replica)
        self.queue.forget(replica.name)
        self._paces.forget(replica.name)
        self._ended.append(replica.family)
        replica.actor.kill()
        batches, replica.batches = replica.batches, []
        return batches

    @property
    def staying(self) -> list[Replica]:
        return [replica for replica in self.replicas if replica.leaving_at is None]

    # --- calls --------------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Send what waits to the replicas that have room, to the one that will be done first; what nobody waits for
        any more, idle ones take over from others."""
        while self.queue and self._send_one():
            pass
        if not self.queue:
            for replica in self.replicas:
                if replica.idle:
                    self._take_over(replica)

    def room(self) -> int:
        """Calls worth handing over now: what the windows take, and as much again waiting."""
        ready = sum(replica.ready for replica in self.staying)
        held = 2 * max(1, ready) * self.limits.room()
        return max(0, (held if ready else max(SEEN, held)) - len(self.queue) - self.in_flight())

    def in_flight(self) -> int:
        return sum(batch.open for replica in self.replicas for batch in replica.batches)

    def finish(self, replica: Replica, batch: Batch, now: float) -> None:
        """A batch came back: the next one's turn begins."""
        replica.batches.remove(batch)
        if replica.batches and not self._asynchronous:
            replica.batches[0].turn_at = now

    def took(self, replica: Replica, batch: Batch, seconds: float) -> None:
        """How long the model was at a batch."""
        self._paces.note(replica.name, batch.operation, len(batch.jobs), seconds)

    def overdue(self, now: float) -> list[tuple[Replica, Batch | None]]:
        """Replicas that have not started, or not stopped, in time (no batch), and batches past their deadline."""
        late: list[tuple[Replica, Batch | None]] = []
        for replica in self.replicas:
            if replica.leaving_at is not None:
                if now - replica.leaving_at > STOP_S:
                    late.append((replica, None))
                continue
            if not replica.ready:
                if now - replica.started_at > self.plan.spec.card.start_deadline_s:
                    late.append((replica, None))
                continue
            for batch in replica.batches if self._asynchronous else replica.batches[:1]:
                if now - batch.turn_at > self.plan.deadline_s(batch.operation) * len(batch.jobs):
                    late.append((replica, batch))
                    break
        return late

    def _send_one(self) -> bool:
        """One batch more on its way; False where nothing can go now."""
        able = [replica for replica in self.replicas if self._has_room(replica)]
        busy = frozenset(replica.name for replica in self.replicas if replica not in able)
        slowness = {replica.name: self._paces.slowness(replica.name) for replica in able}
        weights = sum(1 / slow for slow in slowness.values())
        for replica in sorted(able, key=lambda r: (len(r.batches) + 1) * slowness[r.name]):
            jobs = self.queue.take(
                replica.name,
                self.limits.max_batch,
                idle=not replica.batches,
                busy=busy,
                beside=len(replica.batches) if self._asynchronous else 0,
                share=1 / (slowness[replica.name] * weights),
            )
            if jobs:
                self._send(replica, jobs).answers_for(jobs)
                return True
        return False

    def _take_over(self, replica: Replica) -> None:
        """Have an idle replica do what another one would come to later, or is slow at: the first answer counts."""
        now = time.time()
        others = [
            (other, place, batch)
            for other in self.replicas
            for place, batch in enumerate(other.batches)
            if not batch.elsewhere and batch.open == len(batch.jobs) and all(job.trusted for job in batch.jobs)
        ]
        underway = [
            Underway(
                other.name,
                0 if self._asynchronous else place,
                now - (batch if self._asynchronous else other.batches[0]).turn_at,
                self._paces.typical_s(batch.operation, len(batch.jobs)),
            )
            for other, place, batch in others
        ]
        chosen = to_take_over(replica.name, underway, self._paces.slowness)
        if chosen is None:
            return
        _, _, batch = others[chosen]
        batch.elsewhere = True
        copy = self._send(replica, batch.jobs)
        copy.elsewhere = True
        if underway[chosen].place:
            copy.answers_for(batch.jobs)
            batch.cancel()

    def _has_room(self, replica: Replica) -> bool:
        if not replica.ready or replica.leaving_at is not None:
            return False
        slowness = self._paces.slowness(replica.name)
        window = max(1, int(self.limits.window / slowness))
        if self._asynchronous:
            window = min([window, *(job.limit for batch in replica.batches for job in batch.jobs)])
        return len(replica.batches) < window

    def _send(self, replica: Replica, jobs: list[Job]) -> Batch:
        now = time.time()
        batch = Batch(jobs[0].call.operation, jobs, now, now)
        replica.batches.append(batch)
        sent = replica.actor.handle(batch.operation, [job.call.request for job in jobs])
        batch.cancel = sent.cancel
        self._watch(sent.future, "returned", replica, batch)
        return batch

    def _watch(self, future: Future[Any], what: What, replica: Replica, batch: Batch | None) -> None:
        future.add_done_callback(lambda done: self._done(what, replica, batch, done))
