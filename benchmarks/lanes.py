"""Simulated replicas, many to a process: what benchmarks/efficiency.py drives the engine with.

A pool of 32 actors on two cores would measure how slowly 32 processes start. So replicas are lanes of two actor
processes: each lane is a replica to the engine (a name, a window, batches of its own), waits its declared latency as a
coroutine, one batch at a time, and then answers through the same HeadServer as any host.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from torus_ray.engine.ray_variables import set_ray_variables

set_ray_variables()  # Ray reads some of them when it is imported

import ray  # noqa: E402

from benchmarks.lane_host import LaneHost  # noqa: E402
from torus_ray.engine.cluster import Cluster  # noqa: E402
from torus_ray.engine.code import stage_code  # noqa: E402
from torus_ray.engine.hosts import HostPlan  # noqa: E402
from torus_ray.engine.ray_executor import RayExecutor  # noqa: E402
from torus_ray.engine.rooms import Room  # noqa: E402
from torus_ray.engine.sites import Sent, Site  # noqa: E402
from torus_ray.systems import System  # noqa: E402

PROCESSES = 2
ROOT = Path(__file__).resolve().parents[1]


class Lane:
    """One replica. See sites.Actor."""

    def __init__(self, host: Any, number: int, plan: HostPlan, slower: float) -> None:
        self._host, self._number, self._plan, self._slower = host, number, plan, slower

    def start(self, payload: Mapping[str, Any], place: Mapping[str, Any]) -> Future[Any]:
        return self._future(self._host.start.remote(self._number, payload, self._slower))

    def handle(self, operation: str, wires: Sequence[Any]) -> Sent:
        reference = self._host.handle.remote(self._number, operation, wires)
        return Sent(self._future(reference), lambda: ray.cancel(reference))

    def stop(self) -> Future[Any]:
        return self._future(self._host.stop.remote(self._number))

    def kill(self) -> None: ...

    def _future(self, reference: Any) -> Future[Any]:
        future: Future[Any] = reference.future()
        return future


class LaneSite:
    """Two processes that take any number of replicas. slower: the first replica takes so many times longer."""

    def __init__(self, hosts: Sequence[Any], slower: float = 1.0) -> None:
        self._hosts = itertools.cycle(hosts)
        self._numbers = itertools.count()
        self._slower = slower

    def rooms(self) -> list[Room]:
        return [Room(cpus=1_000, memory_gb=1_000)]

    def actor(self, plan: HostPlan) -> Lane:
        number = next(self._numbers)
        return Lane(next(self._hosts), number, plan, self._slower if number == 0 else 1.0)


@contextmanager
def lane_hosts(system: System, folder: Path) -> Iterator[list[Any]]:
    """A Ray of our own with the two processes, up."""
    cluster = Cluster(folder, num_cpus=PROCESSES)
    stage_code(folder, system.hosts)
    cluster.start()
    try:
        actor: Any = ray.remote(LaneHost)
        here = {"PYTHONPATH": str(ROOT)}
        options = {"num_cpus": 0.5, "max_concurrency": 1_000, "runtime_env": {"env_vars": here}}
        hosts = [actor.options(**options).remote() for _ in range(PROCESSES)]
        ray.get([host.__ray_ready__.remote() for host in hosts], timeout=300)
        yield hosts
    finally:
        cluster.stop()


class _Joined:
    """The cluster as an executor sees it: there already, and not to be ended with it."""

    own, address, lost = False, "benchmark", ""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def alive(self) -> bool:
        return True


@contextmanager
def runs_on(site: Site, plans: Callable[[System], Mapping[str, HostPlan]] | None = None) -> Iterator[None]:
    """`run_system` brings its hosts up at a site, in the Ray that is there. plans: of a system; its files where they
    lie if nothing is said."""

    @contextmanager
    def opened(system: System, how: Any, tell: Any = print) -> Iterator[RayExecutor]:
        where_they_lie = {
            name: HostPlan(host, str(host.folder), system.card.bits) for name, host in system.hosts.items()
        }
        executor = RayExecutor(plans(system) if plans else where_they_lie, _Joined(), tell=tell, site=site)  # type: ignore[arg-type]
        try:
            yield executor
        finally:
            executor.close()

    with patch("torus_ray.engine.session.open_executor", opened):
        yield
