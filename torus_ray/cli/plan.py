"""`torus run --plan`: what a command would run, on what, for how long and for how much."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torus_ray.bank.load import Bank
from torus_ray.bank.schema import Test
from torus_ray.cli.costs import estimate
from torus_ray.cli.loads import Loads, loads_of
from torus_ray.engine.rooms import Room
from torus_ray.heads import OPERATIONS
from torus_ray.profiling import estimate as time
from torus_ray.protocol.graph import Arm, Node, build_graph
from torus_ray.protocol.requests import Protocol
from torus_ray.store.mirror import named
from torus_ray.systems import System

MEMORY_SHARE = 0.8
"""Of the memory that is free now, what hosts may take: as the engine reckons."""
KINDS = ("render", "caption", "answer", "measure")


def print_plan(
    systems: Sequence[System],
    bank: Bank,
    tests: Sequence[Test],
    arms: Mapping[str, Sequence[Arm]],
    *,
    repeats: int,
    results: Path,
    as_json: bool,
) -> None:
    """Hosts, replicas, loads, arms, units, money and time of each system, on this machine. What is done already is not
    taken off: that is found out by running."""
    room = _room_here()
    told = [_plan(system, bank, tests, arms[system.name], repeats, results, room) for system in systems]
    if as_json:
        plan = {"bank": bank.card.name, "bank_hash": bank.hash, "results": named(results), "plan": told}
        print(json.dumps(plan, indent=1, default=asdict))
        return
    print(f"bank {bank.card.name}@{bank.hash[:8]}, results in {named(results)}")
    print(f"this machine: {room.cpus:g} CPUs, {room.gpus:g} GPUs, {room.memory_gb:.1f} GiB for hosts")
    for entry in told:
        print("\n".join(_lines(entry)))


def _plan(
    system: System, bank: Bank, tests: Sequence[Test], arms: Sequence[Arm], repeats: int, results: Path, room: Room
) -> dict[str, Any]:
    graph = build_graph(system=system.name, bank=bank, tests=tests, arms=arms, repeats=repeats, measures=system.metrics)
    protocol = Protocol(system, bank)
    loads = loads_of(graph, protocol, [room])
    kinds: Counter[tuple[str, str]] = Counter((node.arm.name, node.kind) for node in graph for _ in node.units)
    work = _work(graph, protocol)
    return {
        "system": system.name,
        "tests": len(tests),
        "hosts": {
            name: {
                "environment": host.card.environment,
                "heads": list(host.card.heads),
                "num_cpus": host.card.num_cpus,
                "num_gpus": host.card.num_gpus,
                "memory_gb": host.card.memory_gb,
                "replicas": loads.replicas.get(name),
                "loads": loads.loads.get(name),
                "fits": name not in loads.never,
                "units": {operation: count for (of, operation), count in work.items() if of == name},
            }
            for name, host in system.hosts.items()
        },
        "together": loads.together,
        "units": {
            arm: {kind: kinds[arm, kind] for kind in KINDS if kinds[arm, kind]}
            for arm in dict.fromkeys(arm for arm, _ in kinds)
        },
        "costs": estimate(system, bank, graph),
        "time": _time(system, work, results, loads),
    }


def _work(graph: Sequence[Node], protocol: Protocol) -> dict[time.Head, int]:
    """Units of each host and operation, in the order of a run."""
    work: Counter[time.Head] = Counter()
    for node in graph:
        host = protocol.host(node)
        if host is not None:
            work[host.name, node.operation] += len(node.units)
    heads = [(host, operation) for operation in OPERATIONS for host in protocol.system.hosts]
    return {head: work[head] for head in heads if work[head]}


def _time(system: System, work: Mapping[time.Head, int], results: Path, loads: Loads) -> dict[str, Any]:
    """The time of a run as far as it is known. Measuring takes what the others leave idle, so it is not in it unless
    nothing else is done."""
    waited = {head: count for head, count in work.items() if not system.hosts[head[0]].background} or work
    measured = time.measured_heads(results, system.name, waited)
    reckoned = time.estimate(
        waited,
        measured,
        replicas=loads.replicas,
        loads=loads.loads,
        load_s=time.load_seconds(results, system.name),
        together=loads.together,
    )
    return {
        "seconds": reckoned.seconds,
        "loading_seconds": reckoned.start_s,
        "from": [
            {"host": host, "operation": operation, **asdict(measured[host, operation])} for host, operation in measured
        ],
        "unknown": [list(head) for head in reckoned.unknown],
    }


def _room_here() -> Room:
    import psutil

    from torus_ray.profiling.memory import GIB, gpus_here

    memory = psutil.virtual_memory().available / GIB * MEMORY_SHARE
    return Room(float(os.cpu_count() or 1), gpus_here(), memory)


def _lines(entry: Mapping[str, Any]) -> list[str]:
    lines = [f"{entry['system']}: {entry['tests']} tests"]
    for name, host in entry["hosts"].items():
        needs = f"{host['num_cpus']:g} CPU, {host['num_gpus']:g} GPU, {host['memory_gb']:g} GB"
        lines.append(f"  host {name} ({host['environment']}; {needs} a replica): {', '.join(host['heads'])}")
        if not host["fits"]:
            lines.append("    does not fit this machine: it runs where there is more (--address)")
        elif host["loads"] is None:
            lines.append("    has nothing to do")
        else:
            work = ", ".join(f"{count} {operation}" for operation, count in host["units"].items())
            lines.append(f"    {host['replicas']} replica(s), loaded {host['loads']} time(s); units: {work}")
    if not entry["together"]:
        lines.append("  its hosts do not fit this machine together: they take turns")
    for arm, units in entry["units"].items():
        lines.append(f"  arm {arm}: " + ", ".join(f"{count} {kind}s" for kind, count in units.items()))
    lines += [f"  {cost}" for cost in entry["costs"]]
    return lines + _time_lines(entry["time"])


def _time_lines(told: Mapping[str, Any]) -> list[str]:
    if told["seconds"] is None:
        heads = ", ".join(f"{operation} of {host}" for host, operation in told["unknown"])
        lines = [f"  time: unknown; never measured: {heads} (`torus profile` does)"]
    else:
        loading = told["loading_seconds"]
        start = "loading not measured" if loading is None else f"and {_clock(loading)} of loading"
        lines = [f"  time: about {_clock(told['seconds'])}, {start}; set-up and waiting for the last apart"]
    for each in told["from"]:
        seconds = f"{each['unit_s']:.3g} s a unit ({each['units']} units; {each['source']})"
        lines.append(f"    {each['operation']} of {each['host']}: {seconds}")
    return lines


def _clock(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
