"""Where replicas live: Ray actors. The one seam between the executor's decisions and Ray's calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import ray

from torus_ray.engine.actor import AsyncHost, BatchHost
from torus_ray.engine.hosts import GIB, HostPlan
from torus_ray.engine.nodes import alive_nodes, avoiding
from torus_ray.engine.rooms import Room
from torus_ray.heads import Wire

ASYNC_CONCURRENCY = 1_000


class Sent(NamedTuple):
    """A call on its way. cancel: take it back if it has not begun; it may be answered all the same."""

    future: Future[Any]
    cancel: Callable[[], None]


class Actor(Protocol):
    """One process that holds one replica."""

    def start(self, payload: Mapping[str, Any], place: Mapping[str, Any]) -> Future[Any]: ...

    def handle(self, operation: str, wires: Sequence[Wire]) -> Sent: ...

    def stop(self) -> Future[Any]: ...

    def kill(self) -> None: ...


class Site(Protocol):
    """What has room for actors, and makes them."""

    def rooms(self) -> list[Room]: ...

    def actor(self, plan: HostPlan) -> Actor: ...


class RaySite:
    """The nodes of the Ray that this process has joined."""

    def rooms(self) -> list[Room]:
        return [
            Room(
                node.resources.get("CPU", 0.0),
                int(node.resources.get("GPU", 0.0)),
                node.resources.get("memory", 0.0) / GIB,
                node.id,
            )
            for node in alive_nodes()
        ]

    def actor(self, plan: HostPlan) -> Actor:
        return RayActor(plan)


class RayActor:
    """A Ray actor in the environment of its host."""

    def __init__(self, plan: HostPlan) -> None:
        card = plan.spec.card
        asynchronous = card.style == "async"
        actor_class: Any = ray.remote(AsyncHost if asynchronous else BatchHost)
        options: dict[str, Any] = {
            "num_cpus": plan.ray_cpus,
            "num_gpus": card.num_gpus,
            "memory": int(card.memory_gb * GIB),
            "max_restarts": 0,
            "max_task_retries": 0,
            "runtime_env": plan.actor_environment(),
            "label_selector": avoiding(plan.avoid),
        }
        if asynchronous:
            options["max_concurrency"] = ASYNC_CONCURRENCY
        self._actor = actor_class.options(**options).remote()

    def start(self, payload: Mapping[str, Any], place: Mapping[str, Any]) -> Future[Any]:
        return self._future(self._actor.start.remote(payload, place))

    def handle(self, operation: str, wires: Sequence[Wire]) -> Sent:
        reference = self._actor.handle.remote(operation, wires)
        return Sent(self._future(reference), lambda: ray.cancel(reference))

    def stop(self) -> Future[Any]:
        return self._future(self._actor.stop.remote())

    def kill(self) -> None:
        ray.kill(self._actor, no_restart=True)

    def _future(self, reference: Any) -> Future[Any]:
        future: Future[Any] = reference.future()
        return future
