"""How busy hosts are: from what came back, while a run goes on and after it."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torus_ray.profiling.slices import LOST, Slice
from torus_ray.protocol.executor import HostState, Outcome

WINDOW_S = 10.0
"""The busy share of a live line is that of the last so many seconds."""
KEPT_S = 600.0
"""How long single intervals are kept; what ended earlier is only a sum."""


class Busy:
    """The time in which at least one of some intervals runs: their union, however they overlap."""

    def __init__(self) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []
        self._settled = 0.0
        self._horizon = -math.inf

    def add(self, begin: float, end: float) -> None:
        """An interval in seconds; what lies before all that was settled counts no more."""
        begin = max(begin, self._horizon)
        if end <= begin:
            return
        first, last = bisect_left(self._ends, begin), bisect_right(self._begins, end)
        if first < last:
            begin, end = min(begin, self._begins[first]), max(end, self._ends[last - 1])
        self._begins[first:last], self._ends[first:last] = [begin], [end]

    def settle(self, before: float) -> None:
        """Keep only the sum of what ended before."""
        count = bisect_right(self._ends, before)
        self._settled += sum(self._ends[:count]) - sum(self._begins[:count])
        self._horizon = max(self._horizon, *self._ends[:count], -math.inf) if count else self._horizon
        del self._begins[:count], self._ends[:count]

    def seconds(self, since: float = -math.inf, until: float = math.inf) -> float:
        """The length of the union; of a part of it, as far as that is not settled."""
        pairs = zip(self._begins, self._ends, strict=True)
        open_s = sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in pairs)
        return open_s + (self._settled if since == -math.inf else 0.0)


@dataclass(frozen=True)
class HostUse:
    """What a host did: units that came back, the seconds its workers were busy with them, and the share of their time.

    busy_share: of the seconds that its workers were there, from the first call on; None where they were not there.
    """

    host: str
    workers: int
    units: int
    busy_s: float
    busy_share: float | None

    @property
    def unit_s(self) -> float | None:
        """Seconds of a busy worker for one unit."""
        return self.busy_s / self.units if self.units else None

    def __str__(self) -> str:
        share = "busy share unknown" if self.busy_share is None else f"busy {self.busy_share:.0%}"
        each = "" if self.unit_s is None else f", {_short(self.unit_s)} a unit"
        return f"host {self.host}: {self.units} units, {self.workers} worker(s), {share}{each}"


def use_of(ordered: Sequence[Slice]) -> list[HostUse]:
    """How much each host of a run did, from its first call to its last; calls that nobody answered are no work."""
    found: dict[str, dict[tuple[str, int], Busy]] = {}
    units: dict[str, int] = {}
    spans: dict[tuple[str, int], tuple[float, float]] = {}
    answered = [each for each in ordered if each.worker != LOST]
    for each in answered:
        worker = (each.worker, each.pid)
        found.setdefault(each.host, {}).setdefault(worker, Busy()).add(each.begin, each.end)
        units[each.host] = units.get(each.host, 0) + len(each.units)
        begin, end = spans.get(worker, (each.begin, each.end))
        spans[worker] = (min(begin, each.begin), max(end, each.end))
    made = []
    for host, workers in found.items():
        busy_s = sum(busy.seconds() for busy in workers.values())
        there_s = sum(spans[worker][1] - spans[worker][0] for worker in workers)
        made.append(HostUse(host, len(workers), units[host], busy_s, busy_s / there_s if there_s else None))
    return sorted(made, key=lambda use: use.host)


@dataclass
class _Live:
    """One host while a run goes on. levels: (since, share of its workers with something in flight). batch: a running
    mean."""

    workers: dict[str, Busy] = field(default_factory=dict)
    levels: deque[tuple[float, float]] = field(default_factory=deque)
    units: int = 0
    batch: float = 0.0
    there_s: float = 0.0
    replicas: int = 0
    most: int = 0


class LiveUse:
    """How busy the hosts of a run are, told from what comes back and what is in flight at each tick.

    What came back proves its seconds; of a call that still runs nothing is proven, so workers with something in flight
    count as busy too. The larger of both is the share.
    """

    def __init__(self) -> None:
        self._hosts: dict[str, _Live] = {}
        self._at: float | None = None

    def take(self, now: float, states: Mapping[str, HostState], outcomes: Iterable[Outcome]) -> None:
        """now: epoch seconds. outcomes: those that came back since the last time."""
        for outcome in outcomes:
            self._came_back(outcome)
        elapsed = max(0.0, now - self._at) if self._at is not None else 0.0
        self._at = now
        for name, state in states.items():
            live = self._hosts.setdefault(name, _Live())
            live.there_s += live.replicas * elapsed
            live.replicas, live.most = state.replicas, max(live.most, state.replicas)
            working = min(state.replicas, math.ceil(state.in_flight / max(1, round(live.batch))))
            live.levels.append((now, working / state.replicas if state.replicas else 0.0))
            while len(live.levels) > 1 and live.levels[1][0] <= now - WINDOW_S:
                live.levels.popleft()
            for busy in live.workers.values():
                busy.settle(now - KEPT_S)

    def share(self, host: str) -> float | None:
        """The busy share of a host's workers over the last WINDOW_S; None before there is any."""
        live, now = self._hosts.get(host), self._at
        if live is None or now is None or not live.replicas:
            return None
        since = max(now - WINDOW_S, live.levels[0][0])
        if now <= since:
            return None
        times = [at for at, _ in live.levels] + [now]
        levels = zip(times, times[1:], live.levels, strict=False)
        in_flight = sum(level * max(0.0, end - max(begin, since)) for begin, end, (_, level) in levels)
        proven = sum(busy.seconds(since, now) for busy in live.workers.values()) / live.replicas
        return min(1.0, max(in_flight, proven) / (now - since))

    def summary(self) -> list[HostUse]:
        """What each host did until now."""
        return [
            HostUse(
                name,
                live.most,
                live.units,
                busy_s := sum(busy.seconds() for busy in live.workers.values()),
                min(1.0, busy_s / live.there_s) if live.there_s else None,
            )
            for name, live in sorted(self._hosts.items())
        ]

    def _came_back(self, outcome: Outcome) -> None:
        live = self._hosts.setdefault(outcome.call.host, _Live())
        live.units += units_of(outcome)
        for attempt in outcome.attempts:
            if attempt.started_at is not None and attempt.ended_at is not None:
                live.workers.setdefault(attempt.worker, Busy()).add(attempt.started_at, attempt.ended_at)
                live.batch += (attempt.batch - live.batch) / (8 if live.batch else 1)


def units_of(outcome: Outcome) -> int:
    """Units that a call held: its questions, else one."""
    return len(outcome.call.request.get("questions", ())) or 1


def _short(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
