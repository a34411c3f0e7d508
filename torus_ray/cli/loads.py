"""Replicas and loads of a run before it starts: its graph played through with the engine's own decisions (DESIGN 5)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from torus_ray.engine.hosts import HostPlan, unfit
from torus_ray.engine.residency import Residency, Standing
from torus_ray.engine.rooms import Room
from torus_ray.protocol.graph import Node
from torus_ray.protocol.requests import Protocol


@dataclass(frozen=True)
class Loads:
    """Of each host with work. loads: times that it is brought up. replicas: the most that are up at once. never: hosts
    that fit nowhere alone. together: all others are up from the start to the end."""

    loads: Mapping[str, int]
    replicas: Mapping[str, int]
    never: tuple[str, ...]
    together: bool


def loads_of(graph: Sequence[Node], protocol: Protocol, rooms: Sequence[Room]) -> Loads:
    """graph: parents before children. What a host does takes no time here: only what is ready counts."""
    system = protocol.system
    work = Counter(host.name for node in graph if (host := protocol.host(node)) is not None)
    plans = {name: HostPlan(host, "", system.card.bits) for name, host in system.hosts.items() if work[name]}
    never = tuple(name for name, plan in plans.items() if unfit(plan, rooms))
    hosts = {
        name: Standing(plan.wants, plan.spec.background, plan.spec.card.replicas)
        for name, plan in plans.items()
        if name not in never
    }
    residency = Residency.of(hosts, rooms)
    up: Mapping[str, int] = {**dict.fromkeys(hosts, 0), **residency.first_counts(hosts)}
    loads, replicas = {name: int(up[name] > 0) for name in hosts}, dict(up)
    ready = _Ready(graph, protocol, hosts)
    while any(ready.queues.values()):
        ready.drain(name for name in hosts if up[name])
        now = {
            name: replace(host, replicas=up[name], waiting=len(ready.queues[name]), chain=ready.chain(name))
            for name, host in hosts.items()
        }
        then = residency.next_counts(now, settled=True)
        fresh = [name for name in hosts if then.get(name, 0) and not up[name]]
        if not fresh:
            break
        for name in fresh:
            loads[name] += 1
            replicas[name] = max(replicas[name], then[name])
        up = {name: then.get(name, 0) for name in hosts}
    return Loads(loads, replicas, never, together=set(residency.steady) == set(hosts))


class _Ready:
    """Which nodes wait for which host; one that nobody serves is over as soon as it is ready."""

    def __init__(self, graph: Sequence[Node], protocol: Protocol, hosts: Mapping[str, Standing]) -> None:
        served = ((node, protocol.host(node)) for node in graph)
        self._host = {node: host.name for node, host in served if host is not None and host.name in hosts}
        self._blocked = {node: len(node.parents) for node in graph}
        self.queues: dict[str, deque[Node]] = {name: deque() for name in hosts}
        for node in graph:
            if not node.parents:
                self._make_ready(node)

    def drain(self, up: Iterable[str]) -> None:
        """Do all that hosts which are up can do, what becomes ready by it too."""
        names = list(up)
        while any(self.queues[name] for name in names):
            for name in names:
                while self.queues[name]:
                    self._finish(self.queues[name].popleft())

    def chain(self, host: str) -> int:
        return max((node.chain for node in self.queues[host]), default=0)

    def _make_ready(self, node: Node) -> None:
        host = self._host.get(node)
        if host is None:
            self._finish(node)
        else:
            self.queues[host].append(node)

    def _finish(self, node: Node) -> None:
        for child in node.children:
            self._blocked[child] -= 1
            if not self._blocked[child]:
                self._make_ready(child)
