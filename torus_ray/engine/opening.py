"""From a system's hosts to an executor that can start them: environments tried, code laid out, a cluster named."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from torus_ray.engine.code import stage_code
from torus_ray.engine.curfew import ending_in_time
from torus_ray.engine.env_build import EnvironmentStop
from torus_ray.engine.environments import (
    EnvironmentSpec,
    compile_runtime_env,
    environments_root,
    find_environment,
    preflight,
)
from torus_ray.engine.hosts import HostPlan
from torus_ray.engine.identity import environment_digest, weights_digest
from torus_ray.engine.inline import InlineExecutor
from torus_ray.engine.jobs import cluster_address
from torus_ray.engine.ray_variables import set_ray_variables
from torus_ray.protocol.executor import Executor
from torus_ray.systems import System

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Opening:
    """Where and how hosts run. inline: in this process, no Ray at all. address: as jobs.cluster_address takes it.
    exact: one request a call where a reply depends on its batch. only_python: ship only the Python files beside the
    adapter (`--model`). deadline: when the run is to have ended, in seconds since the epoch."""

    inline: bool = False
    address: str | None = None
    exact: bool = False
    only_python: bool = False
    deadline: float | None = None


def environments_of(system: System) -> dict[str, EnvironmentSpec]:
    """The environments of its hosts by name. Raises InputError for one that is not there."""
    return {host.card.environment: find_environment(host.card.environment) for host in system.hosts.values()}


def with_identity(system: System) -> System:
    """The system with the digests of its environments and weights, as its fingerprints need them."""
    return system.with_digests(
        {name: environment_digest(spec) for name, spec in environments_of(system).items()},
        {name: weights_digest(host) for name, host in system.hosts.items()},
    )


@contextmanager
def open_executor(system: System, how: Opening, tell: Tell = lambda line: None) -> Iterator[Executor]:
    """An executor for the hosts of a system, not started; closed at the end, what was laid out for it removed.

    Raises EnvironmentStop before anything starts where an environment lacks something; a host that only measures does
    not run then, and `tell` says why.
    """
    environments = environments_of(system)
    with tempfile.TemporaryDirectory(prefix="torus-code-") as code:
        executor = (_inline if how.inline else _on_ray)(system, environments, how, Path(code), tell)
        try:
            with ending_in_time(executor, how.deadline) as timed:
                yield timed
        finally:
            executor.close()


def preflight_hosts(system: System, environments: Mapping[str, EnvironmentSpec]) -> dict[str, str]:
    """Each environment tried once with what its hosts need. Raises EnvironmentStop; hosts that only measure come back
    instead, each with why it cannot run."""
    down: dict[str, str] = {}
    for name, spec in environments.items():
        here = [host for host in system.hosts.values() if host.card.environment == name]
        needed = [host for host in here if not host.background]
        # Files of hosts that the run can do without are looked at apart: their lack must not stop the others.
        for hosts in ([needed] if needed else []) + [[host] for host in here if host.background]:
            files = [weight.path for host in hosts for weight in host.card.weights.values()]
            num_gpus = max(host.card.num_gpus for host in hosts)
            memory_gib = max(host.card.gpu_memory_gb for host in hosts)
            nothing_new = hosts[0].background and needed and not files and not num_gpus
            if nothing_new or (spec.kind == "inherit" and not files and not num_gpus):
                continue  # this very interpreter, or one just tried: there is nothing to find out
            try:
                preflight(spec, files=files, num_gpus=num_gpus, gpu_memory_gib=memory_gib).raise_for_findings()
            except EnvironmentStop as stop:
                if not hosts[0].background:
                    raise
                down[hosts[0].name] = f"host {hosts[0].name!r} cannot run: {stop.message}"
    return down


def _told(down: Mapping[str, str], tell: Tell) -> Mapping[str, str]:
    for message in dict.fromkeys(down.values()):
        tell(f"{message}; the run goes on without what it measures")
    return down


def _inline(
    system: System, environments: Mapping[str, EnvironmentSpec], _how: Opening, _code: Path, tell: Tell
) -> Executor:
    down = _told(preflight_hosts(system, environments), tell)
    bits = system.card.bits
    plans = {name: HostPlan(host, str(host.folder), bits) for name, host in system.hosts.items() if name not in down}
    return InlineExecutor(plans, down=down, tell=tell)


def _on_ray(
    system: System, environments: Mapping[str, EnvironmentSpec], how: Opening, code: Path, tell: Tell
) -> Executor:
    """On a cluster of our own, after this machine was tried; on one that is there, after its nodes were."""
    address = cluster_address(how.address)
    down = _told(preflight_hosts(system, environments), tell) if address is None else {}
    set_ray_variables()
    from torus_ray.engine.cluster import Cluster, reap_dead_sessions
    from torus_ray.engine.nodes import look_at_nodes
    from torus_ray.engine.ray_executor import RayExecutor

    for line in reap_dead_sessions():
        tell(line)
    places = stage_code(code, system.hosts, whole_folder=not how.only_python)
    root = environments_root()
    compiled = {name: compile_runtime_env(spec, root=root) for name, spec in environments.items()}
    plans = {
        name: HostPlan(host, places[name], system.card.bits, compiled[host.card.environment])
        for name, host in system.hosts.items()
    }
    needed = math.ceil(sum(plan.ray_cpus for plan in plans.values()))
    cluster = Cluster(code, address, num_cpus=max(os.cpu_count() or 1, needed))
    if address is not None:
        with ExitStack() as stack:
            stack.callback(cluster.stop)
            cluster.start()
            lookout = look_at_nodes(plans, environments, tell)
            stack.pop_all()  # from here on it is the executor's
        down = _told(lookout.down, tell)
        plans = {name: replace(plan, avoid=lookout.avoid.get(name, ())) for name, plan in plans.items()}
    return RayExecutor(plans, cluster, exact=how.exact, down=down, tell=tell)
