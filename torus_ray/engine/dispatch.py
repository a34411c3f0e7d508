"""Which job goes next to which replica, and what becomes of it when it goes wrong. Pure: no Ray, no clock of its
own."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torus_ray.protocol.executor import Attempt, Call, Outcome, Status

SCAN = 16
"""How deep a queue is looked through, at least, for jobs whose clip a replica already knows and that are alike."""
SLACK = 1e-9
GROUPS_REMEMBERED = 4_096

MAX_ERRORS = 2
"""Exceptions of one request alone: a second try tells a passing fault from a bad request."""
MAX_DEATHS = 3
"""Processes that one request, sent alone, may take with it."""
MAX_TIMEOUTS = 2


_Entry = tuple[int, int, "Job"]


@dataclass(slots=True, eq=False)
class Job:
    """A call on its way. limit: the largest batch it may still join, or how many may run beside it (halved when a
    batch fails, to find the guilty one). suspect: a process died under it. batch: the one that answers for it; a copy
    elsewhere may be quicker. done: answered, whoever did it: what comes later is dropped."""

    call: Call
    limit: int = 1_000_000
    attempts: list[Attempt] = field(default_factory=list)
    errors: int = 0
    deaths: int = 0
    timeouts: int = 0
    suspect: bool = False
    batch: Any = None
    done: bool = False

    @property
    def length(self) -> int:
        """What the time of a request grows with: bytes of its clip, or characters of its prompt."""
        request = self.call.request
        return len(request.get("clip_bytes") or request.get("prompt") or "")

    @property
    def trusted(self) -> bool:
        """Nothing has gone wrong with it so far: a copy of it endangers nobody."""
        return not (self.errors or self.deaths or self.timeouts or self.suspect)


class ReadyQueue:
    """Jobs of one host that wait: highest priority first, those of one group to the replica that got the first of
    them."""

    def __init__(self) -> None:
        self._heaps: dict[str, list[_Entry]] = {}
        self._order = itertools.count()
        self._homes: OrderedDict[str, str] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, job: Job, *, again: bool = False) -> None:
        """again: a job that comes back goes before new ones of its priority."""
        place = -next(self._order) if again else next(self._order)
        heapq.heappush(self._heaps.setdefault(job.call.operation, []), (-job.call.priority, place, job))
        self._size += 1

    def chain(self) -> int:
        """The highest priority of what waits; 0 for nothing."""
        return max((-heap[0][0] for heap in self._heaps.values() if heap), default=0)

    def take(
        self,
        replica: str,
        max_batch: Mapping[str, int],
        *,
        idle: bool,
        busy: frozenset[str],
        beside: int = 0,
        share: float = 1.0,
    ) -> list[Job]:
        """A batch for `replica`: jobs of one operation, as many as the head and each of them allow, of one priority
        those nearest in length to the first; [] when there is none.

        idle: the replica has nothing at all to do, so it takes a job whose home is elsewhere rather than none, and a
        part of a batch; behind a running one only a whole batch is worth its place.
        busy: replicas without room; a job waits for its home only while that one has room.
        beside: jobs that the replica runs at the same time: to a job's limit they are of its batch.
        share: of what waits, this replica's part, so that a few jobs spread over idle replicas.
        """
        for operation in sorted(
            (op for op, heap in self._heaps.items() if heap), key=lambda op: self._heaps[op][0][:2]
        ):
            heap = self._heaps[operation]
            most = max_batch.get(operation, 1)
            looked = self._look(heap, max(SCAN, 2 * most))
            part = min(most, math.ceil(share * (len(looked) + len(heap)) - SLACK))
            batch = self._choose(looked, replica, part, idle, busy, beside)
            if len(batch) < most and not idle and not beside and all(job.limit >= most for job in batch):
                batch = []
            chosen = {id(job) for job in batch}
            for entry in looked:
                if id(entry[2]) not in chosen:
                    heapq.heappush(heap, entry)
            if batch:
                self._size -= len(batch)
                for job in batch:
                    self._settle(job.call.group, replica)
                return batch
        return []

    def _look(self, heap: list[_Entry], count: int) -> list[_Entry]:
        """The first of a heap, taken out; those that were answered by a copy meanwhile are dropped."""
        looked: list[_Entry] = []
        while heap and len(looked) < count:
            entry = heapq.heappop(heap)
            if entry[2].done:
                self._size -= 1
            else:
                looked.append(entry)
        return looked

    def _choose(
        self, looked: list[_Entry], replica: str, room: int, idle: bool, busy: frozenset[str], beside: int
    ) -> list[Job]:
        able = [entry for entry in looked if self._may_go(entry[2].call.group, replica, busy)]
        if not able and idle:
            able = looked[:1]
        if len(able) > room > 1:
            length = able[0][2].length
            able[1:] = sorted(able[1:], key=lambda entry: (entry[0], abs(entry[2].length - length), entry[1]))
        batch: list[Job] = []
        for _, _, job in able:
            if len(batch) < room and len(batch) + beside < job.limit:
                batch.append(job)
                room = min(room, job.limit)
        return batch

    def drain(self) -> list[Job]:
        """All that waits, taken out."""
        jobs = [entry[2] for heap in self._heaps.values() for entry in heap if not entry[2].done]
        self._heaps.clear()
        self._size = 0
        return jobs

    def forget(self, replica: str) -> None:
        """A replica is gone: its groups are free."""
        for group in [g for g, home in self._homes.items() if home == replica]:
            del self._homes[group]

    def _may_go(self, group: str | None, replica: str, busy: frozenset[str]) -> bool:
        home = self._homes.get(group) if group else None
        return home is None or home == replica or home in busy

    def _settle(self, group: str | None, replica: str) -> None:
        if group is None:
            return
        self._homes[group] = replica
        self._homes.move_to_end(group)
        while len(self._homes) > GROUPS_REMEMBERED:
            self._homes.popitem(last=False)


# --- what a failed batch means for each of its jobs -------------------------------------------------------------------


def record(jobs: list[Job], status: Status, fields: Mapping[str, Any]) -> None:
    """One more attempt for each job of a batch."""
    for job in jobs:
        job.attempts.append(Attempt(number=len(job.attempts) + 1, status=status, batch=len(jobs), **fields))


def after_error(jobs: list[Job], error: Mapping[str, Any], reason: str = "error") -> tuple[list[Job], list[Outcome]]:
    """The batch raised: (jobs to try again, outcomes). A batch of several is halved; one alone gets a second try."""
    if len(jobs) > 1:
        return _halve(jobs), []
    (job,) = jobs
    job.errors += 1
    if job.errors < MAX_ERRORS:
        return [job], []
    message = f"{error['kind']}: {error['message']}"
    return [], [Outcome(job.call, "failed", reason=reason, message=message, attempts=job.attempts)]


def after_death(jobs: list[Job], message: str) -> tuple[list[Job], list[Outcome]]:
    """The process died under the batch. A batch of several is halved, so that only the guilty one is tried to the
    end."""
    for job in jobs:
        job.suspect = True
    if len(jobs) > 1:
        return _halve(jobs), []
    (job,) = jobs
    job.deaths += 1
    if job.deaths < MAX_DEATHS:
        return [job], []
    return [], [Outcome(job.call, "failed", reason="worker_died", message=message, attempts=job.attempts)]


def after_timeout(jobs: list[Job], message: str) -> tuple[list[Job], list[Outcome]]:
    """The batch outran its deadline and its process was ended."""
    if len(jobs) > 1:
        return _halve(jobs), []
    (job,) = jobs
    job.timeouts += 1
    if job.timeouts < MAX_TIMEOUTS:
        return [job], []
    return [], [Outcome(job.call, "timeout", reason="deadline", message=message, attempts=job.attempts)]


def _halve(jobs: list[Job]) -> list[Job]:
    limit = (len(jobs) + 1) // 2
    for job in jobs:
        job.limit = min(job.limit, limit)
    return jobs


def outcomes_of(jobs: list[Job], results: list[Mapping[str, Any]]) -> list[Outcome]:
    """The outcomes of a batch that came back whole, in order."""
    return [
        Outcome(
            job.call,
            result["status"],
            reply=result.get("reply"),
            reason=result.get("reason"),
            message=result.get("message"),
            attempts=job.attempts,
        )
        for job, result in zip(jobs, results, strict=True)
    ]
