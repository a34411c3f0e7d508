"""A run's figures as metrics of Ray, which its node agents give to Prometheus (docs/profiling.md).

The one place for ray.util.metrics. They are pushed by the driver at a tick, never per unit; hosts know nothing of them.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torus_ray.protocol.executor import HostState, Outcome

TICK_S = 2.0
OBSERVED = 32
"""Calls of one host and operation whose seconds go into the histogram at a tick: the first so many, so that fast heads
cost no more than slow ones. Real models stay below it."""
SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
EXPORTED_PREFIX = "ray_"
"""What Ray puts before the name of every metric that it exports."""


@dataclass(frozen=True)
class Metric:
    """A metric as it is declared."""

    kind: Literal["counter", "gauge", "histogram"]
    about: str
    tags: tuple[str, ...]


_HOST = ("system", "host")
METRICS: Mapping[str, Metric] = {
    "torus_units_total": Metric("counter", "Units that have a durable row.", ("system", "arm", "operation", "status")),
    "torus_unit_seconds": Metric("histogram", "Seconds of a worker for one unit.", (*_HOST, "operation")),
    "torus_in_flight": Metric("gauge", "Requests sent to a host and not back.", _HOST),
    "torus_waiting": Metric("gauge", "Requests ready for a host and not sent.", _HOST),
    "torus_replicas": Metric("gauge", "Replicas of a host that are up.", _HOST),
}


class Telemetry:
    """The metrics of one system's run. Where this process has no Ray (`--inline`), nothing is done and Ray is not
    loaded."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._metrics: Mapping[str, Any] | None = None
        self._next = 0.0
        self._told: Counter[tuple[str, str, str]] = Counter()
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)

    def take(
        self,
        states: Mapping[str, HostState],
        outcomes: Iterable[Outcome],
        units: Mapping[tuple[str, str, str], int],
        *,
        last: bool = False,
    ) -> None:
        """states: of the hosts now. outcomes: since the last call. units: (arm, operation, status) -> rows made by this
        command until now. last: no tick follows."""
        if not _on_ray():
            return
        for outcome in outcomes:
            seconds = self._seconds[outcome.call.host, outcome.call.operation]
            if len(seconds) < OBSERVED and (each := unit_seconds(outcome)) is not None:
                seconds.append(each)
        now = time.monotonic()
        if last or now >= self._next:
            self._next = now + TICK_S
            self._push(states, units)

    def _push(self, states: Mapping[str, HostState], units: Mapping[tuple[str, str, str], int]) -> None:
        if self._metrics is None:
            self._metrics = {name: _made(name, metric) for name, metric in METRICS.items()}
        for (arm, operation, status), count in units.items():
            new = count - self._told[arm, operation, status]
            if new > 0:
                tags = {"system": self._system, "arm": arm, "operation": operation, "status": status}
                self._metrics["torus_units_total"].inc(new, tags)
        self._told = Counter(units)
        for (host, operation), seconds in self._seconds.items():
            for each in seconds:
                tags = {"system": self._system, "host": host, "operation": operation}
                self._metrics["torus_unit_seconds"].observe(each, tags)
            seconds.clear()
        for host, state in states.items():
            tags = {"system": self._system, "host": host}
            self._metrics["torus_in_flight"].set(state.in_flight, tags)
            self._metrics["torus_waiting"].set(state.waiting, tags)
            self._metrics["torus_replicas"].set(state.replicas, tags)


def unit_seconds(outcome: Outcome) -> float | None:
    """What one unit of a call took its worker: the last try's time, shared out over its batch and its questions."""
    last = outcome.attempts[-1] if outcome.attempts else None
    if last is None or last.started_at is None or last.ended_at is None:
        return None
    questions = len(outcome.call.request.get("questions", ())) or 1
    return max(0.0, last.ended_at - last.started_at) / (max(1, last.batch) * questions)


def _on_ray() -> bool:
    ray = sys.modules.get("ray")
    return bool(ray is not None and ray.is_initialized())


def _made(name: str, metric: Metric) -> Any:
    from ray.util import metrics

    if metric.kind == "histogram":
        return metrics.Histogram(name, metric.about, boundaries=list(SECONDS), tag_keys=metric.tags)
    kinds = {"counter": metrics.Counter, "gauge": metrics.Gauge}
    return kinds[metric.kind](name, metric.about, tag_keys=metric.tags)
