"""What it means when a host does not load, dies, hangs or says that it cannot go on: for its calls, for the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torus_ray.engine import dispatch
from torus_ray.engine.dispatch import Job
from torus_ray.engine.nodes import node_lost
from torus_ray.engine.pools import Batch, Pool, Replica, release
from torus_ray.protocol.executor import HOST_DOWN, EngineStop, Outcome, Status

MAX_IDLE_DEATHS = 5
"""Processes of one host that may die in a row, under requests not yet suspected of it, without one finished batch: then
it is the host, not the requests."""
MAX_START_DEATHS = 2
"""The same while a host loads, where no request can be to blame."""
MAX_LOSSES = 100
"""Processes of one host that may go with their nodes in a row, without one finished batch."""

_Judged = tuple[list[Job], list[Outcome]]
_Rule = Callable[[list[Job], str], _Judged]


@dataclass
class Troubles:
    """Shared with the executor: `pools`, `finished` (outcomes to hand back) and `down` (hosts that are not there ->
    why). Only hosts that measure can be done without; any other one's end is the run's, an EngineStop."""

    pools: dict[str, Pool]
    finished: list[Outcome]
    down: dict[str, str]
    tell: Callable[[str], None]
    _idle_deaths: dict[str, int] = field(default_factory=dict)
    _losses: dict[str, int] = field(default_factory=dict)

    def went_well(self, pool: Pool) -> None:
        self._idle_deaths[pool.plan.name] = self._losses[pool.plan.name] = 0

    def nobody(self, job: Job) -> Outcome:
        """How a call ends whose host is not there."""
        job.done = True
        why = self.down[job.call.host]
        return Outcome(job.call, "failed", reason=HOST_DOWN, message=why, attempts=job.attempts)

    def do_without(self, pool: Pool, stop: EngineStop, lost: Sequence[Batch] = ()) -> None:
        """Go on without a host that only measures, or raise `stop`. lost: batches that it held."""
        if not pool.plan.spec.background:
            raise stop
        self.tell(f"{stop.message}; the run goes on without it, {stop.mend}")
        self.down[pool.plan.name] = stop.message
        jobs = [job for batch in lost for job in batch.mine()] + unfinished(pool)
        for replica in list(pool.replicas):
            pool.remove(replica)
        del self.pools[pool.plan.name]
        self.finished += [self.nobody(job) for job in jobs]

    def did_not_load(self, pool: Pool, error: Mapping[str, Any]) -> None:
        tail = error["stderr_tail"].strip().splitlines()[-5:]
        stop = EngineStop(
            f"host {pool.plan.name!r} did not load: {error['kind']}: {error['message']}",
            where=_last_frame(error["traceback"]) + ("; stderr: " + " | ".join(tail) if tail else ""),
            expected=f"{pool.plan.spec.class_name}.load to finish",
            mend="`torus doctor` checks environments and weights; --inline shows the whole traceback",
        )
        self.do_without(pool, stop)

    def raised(self, pool: Pool, batch: Batch, error: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        """The batch came back with an error instead of results. fields: of the attempt."""
        jobs = batch.mine()
        dispatch.record(jobs, "failed", {**fields, **error})
        bad_reply = error["kind"] == "BadReply"
        if bad_reply and len(jobs) > 1:
            size = len(jobs)
            self.tell(f"host {pool.plan.name}: {error['message']}; its batch of {size} is asked again in smaller ones")
        reason = "bad_reply" if bad_reply else "error"
        self._judge(pool, jobs, lambda jobs: dispatch.after_error(jobs, error, reason))

    def died(self, pool: Pool, replica: Replica, error: BaseException) -> None:
        """A process is gone. Its running batch is suspect, what waited behind it is not."""
        message = f"the process of {replica.name} died: {str(error).splitlines()[0]}"
        batches = pool.remove(replica)
        name = pool.plan.name
        if node_lost(error) and self._losses.get(name, 0) < MAX_LOSSES:
            self._losses[name] = self._losses.get(name, 0) + 1
            self.tell(f"{replica.name} is lost with its node")
            self._replace(pool, [], batches, "failed", "NodeLost", message, dispatch.after_death)
            return
        # A request that killed its process before says nothing new about the host.
        if not any(job.suspect for batch in batches[:1] for job in batch.jobs):
            self._idle_deaths[name] = self._idle_deaths.get(name, 0) + 1
        if self._idle_deaths.get(name, 0) > (MAX_IDLE_DEATHS if replica.ready else MAX_START_DEATHS):
            stop = EngineStop(
                f"host {name!r} keeps dying: {str(error)[:1_000]}",
                where=replica.name,
                expected="a process that stays up",
                mend="look at its memory and its stderr; `torus check` runs it alone",
            )
            self.do_without(pool, stop, batches)
            return
        self.tell(message)
        if pool.plan.spec.card.style == "async" and batches:
            # All of them were running: they are suspect together, like a batch.
            together = Batch(batches[0].operation, [], batches[0].submitted_at, batches[0].turn_at)
            together.jobs = [job for batch in batches for job in batch.mine()]
            together.answers_for(together.jobs)
            batches = [together]
        self._replace(pool, batches[:1], batches[1:], "failed", "WorkerDied", message, dispatch.after_death)

    def left(self, pool: Pool, replica: Replica) -> None:
        """A replica has stopped as it was asked to, or will not: its process is ended."""
        for batch in pool.remove(replica):
            self._judge(pool, batch.mine(), lambda jobs: (jobs, []))

    def too_late(self, pool: Pool, replica: Replica, batch: Batch | None) -> None:
        """A replica did not come up or leave in time, or a batch (given) ran past its deadline."""
        if replica.leaving_at is not None:
            self.left(pool, replica)
            return
        if batch is None and any(other.ready for other in pool.replicas):
            self.tell(f"{replica.name} did not come up; the run goes on without it")
            pool.remove(replica)
            return
        if batch is None:
            stop = EngineStop(
                f"host {pool.plan.name!r} was not up after {pool.plan.spec.card.start_deadline_s:.0f} s",
                where=replica.name,
                expected="a host that loads within its start_deadline_s",
                mend="raise start_deadline_s in its card, or see `torus doctor`",
            )
            self.do_without(pool, stop)
            return
        limit = pool.plan.deadline_s(batch.operation) * len(batch.jobs)
        message = f"{batch.operation} on {replica.name} took more than {limit:.0f} s: {batch.jobs[0].call.label}"
        self.tell(message + "; its process is ended and a new one started")
        batches = pool.remove(replica)
        batches.remove(batch)
        self._replace(pool, [batch], batches, "timeout", "Deadline", message, dispatch.after_timeout)

    def _replace(
        self,
        pool: Pool,
        guilty: list[Batch],
        innocent: list[Batch],
        status: Status,
        kind: str,
        message: str,
        rule: _Rule,
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
            jobs = batch.mine()
            dispatch.record(jobs, status, fields)
            self._judge(pool, jobs, lambda jobs: rule(jobs, message))
        for batch in innocent:
            self._judge(pool, batch.mine(), lambda jobs: (jobs, []))

    def _judge(self, pool: Pool, jobs: list[Job], rule: Callable[[list[Job]], _Judged]) -> None:
        """What the rule gives back waits again, the rest has ended."""
        again, outcomes = rule(jobs) if jobs else ([], [])
        for job in jobs:
            release(job)
            job.done = True
        for job in again:
            job.done = False
            pool.queue.add(job, again=True)
        self.finished += outcomes


def unfinished(pool: Pool) -> list[Job]:
    """All jobs that a pool still has to answer for, taken from it."""
    in_flight = [job for replica in pool.replicas for batch in replica.batches for job in batch.mine()]
    for job in in_flight:
        release(job)
    return in_flight + pool.queue.drain()


def _last_frame(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("File ")]
    return lines[-1] if lines else "the host's start"
