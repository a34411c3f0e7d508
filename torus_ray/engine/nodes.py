"""The nodes of a cluster that somebody else runs, and what each of them has: a host goes only where its environment
and its weights are.

Ray knows nothing of environments: an actor that lands on a node without its interpreter stays pending for ever, and
keeps its GPU. So each node that could hold a host is tried first, by a task there, under a deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
import ray.exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from torus_ray.engine.env_build import EnvironmentStop
from torus_ray.engine.env_spec import EnvironmentSpec
from torus_ray.engine.environments import Finding, Preflight, preflight_request, read_preflight
from torus_ray.engine.hosts import GIB, HostPlan
from torus_ray.engine.preflight import run_preflight
from torus_ray.systems import HostSpec

TRY_S = 60.0
"""For one environment on one node, which may have its packages on a slow share."""
WORKER_START_S = 60.0
"""What a node may take to bring up the process in which it is tried."""
NAMED = 5
"""Nodes that an error names; there may be hundreds."""
_NODE_DIED = "its node has died"


@dataclass(frozen=True, eq=False)
class Node:
    """A node that is alive. resources: what it has in all (CPU, GPU, memory in bytes)."""

    id: str
    name: str
    resources: Mapping[str, float]

    def could_hold(self, plan: HostPlan) -> bool:
        """Whether one replica of a host fits it when it is empty."""
        wants = {
            "CPU": plan.ray_cpus,
            "GPU": plan.spec.card.num_gpus,
            "memory": plan.spec.card.memory_gb * GIB,
        }
        return all(amount <= self.resources.get(name, 0.0) for name, amount in wants.items())


@dataclass(frozen=True)
class Lookout:
    """What the nodes said. avoid: host -> ids of nodes where it cannot run. down: hosts that only measure and can run
    nowhere -> why."""

    avoid: Mapping[str, tuple[str, ...]]
    down: Mapping[str, str]


def alive_nodes() -> tuple[Node, ...]:
    """The nodes of the cluster that this process has joined, by name."""
    nodes = (
        Node(node["NodeID"], f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})", node["Resources"])
        for node in ray.nodes()  # type: ignore[no-untyped-call]
        if node["Alive"]
    )
    return tuple(sorted(nodes, key=lambda node: (node.name, node.id)))


def look_at_nodes(
    plans: Mapping[str, HostPlan], environments: Mapping[str, EnvironmentSpec], tell: Callable[[str], None]
) -> Lookout:
    """Try, on every node that could hold a host, its environment and its files. `tell` gets a line for each node that
    is not used. Raises EnvironmentStop where a host that the run cannot do without can run nowhere."""
    nodes = alive_nodes()
    asked = {
        (name, node): _request(plan.spec, environments[plan.spec.card.environment])
        for name, plan in plans.items()
        for node in nodes
        if node.could_hold(plan) and environments[plan.spec.card.environment].kind != "image"
    }
    found = _ask(asked)
    avoid: dict[str, tuple[str, ...]] = {}
    down: dict[str, str] = {}
    for name, plan in plans.items():
        tried = [node for node in nodes if (name, node) in asked]
        bad = [node for node in tried if not found[name, node].ok]
        if bad and len(bad) == len(tried):
            stop = _nowhere(name, bad, found[name, bad[0]].findings[0])
            if not plan.spec.background:
                raise stop
            down[name] = f"host {name!r} cannot run: {stop.message}"
            continue
        for node in bad:
            first = found[name, node].findings[0]
            tell(f"node {node.name} is not used for host {name}: {first.what}; {first.mend}")
        avoid[name] = tuple(node.id for node in bad)
    return Lookout(avoid, down)


def avoiding(nodes: Sequence[str]) -> dict[str, str]:
    """The label selector that keeps an actor away from nodes; nodes that come later are welcome."""
    return {"ray.io/node-id": f"!in({', '.join(nodes)})"} if nodes else {}


def node_lost(error: BaseException) -> bool:
    """Whether a process is gone, or what it replied, because its node is: no request is to blame then. Until
    its cluster notices that a node has ended, Ray only knows that nobody answers there."""
    if isinstance(error, (ray.exceptions.ActorUnavailableError, ray.exceptions.ObjectLostError)):
        return True
    return isinstance(error, ray.exceptions.ActorDiedError) and (error.preempted or _NODE_DIED in str(error))


def _request(host: HostSpec, spec: EnvironmentSpec) -> dict[str, Any]:
    request = preflight_request(
        spec,
        files=[weight.path for weight in host.card.weights.values()],
        num_gpus=host.card.num_gpus,
        gpu_memory_gib=host.card.gpu_memory_gb,
        deadline_s=TRY_S,
    )
    if spec.kind != "venv":
        request["python"] = ""  # the node's own, wherever that is
    return request


def _ask(asked: Mapping[tuple[str, Node], dict[str, Any]]) -> dict[tuple[str, Node], Preflight]:
    """Each request answered on its node, equal ones once; what does not come back in time is a finding too."""
    remote: Any = ray.remote(run_preflight)
    once: dict[tuple[Node, str], Any] = {}
    references = {}
    for (host, node), request in asked.items():
        key = (node, repr(sorted(request.items())))
        if key not in once:
            here = NodeAffinitySchedulingStrategy(node.id, soft=False)
            options = {"num_cpus": 0, "num_gpus": 0, "max_retries": 0, "scheduling_strategy": here}
            once[key] = remote.options(**options).remote(request)
        references[host, node] = once[key]
    limit_s = TRY_S + WORKER_START_S
    done, _ = ray.wait(list(once.values()), num_returns=len(once), timeout=limit_s) if once else ([], [])
    answered = set(done)
    found = {}
    for (host, node), request in asked.items():
        reference = references[host, node]
        if reference not in answered:
            found[host, node] = _silent(request, node, f"did not answer within {limit_s:.0f} s")
            ray.cancel(reference, force=True)
            continue
        try:
            found[host, node] = read_preflight(request, ray.get(reference, timeout=10))
        except ray.exceptions.RayError as error:
            found[host, node] = _silent(request, node, f"could not be tried: {str(error).strip().splitlines()[-1]}")
    return found


def _silent(request: Mapping[str, Any], node: Node, what: str) -> Preflight:
    finding = Finding(
        f"node {node.name} {what}",
        node.id,
        "an answer of a task there",
        "look at that node (`ray list nodes`, its raylet's log)",
    )
    return Preflight(request["name"], "", "", {}, (), 0.0, (finding,))


def _nowhere(host: str, nodes: Sequence[Node], first: Finding) -> EnvironmentStop:
    names = ", ".join(node.name for node in nodes[:NAMED])
    more = f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else ""
    return EnvironmentStop(
        f"no node has what host {host!r} needs: {first.what}",
        where=f"{names}{more}: {first.where}",
        expected=first.expected,
        mend=first.mend,
    )
