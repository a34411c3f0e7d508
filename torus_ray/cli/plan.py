"""`torus run --plan`: what a command would run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torus_ray.bank.load import Bank
from torus_ray.bank.schema import Test
from torus_ray.cli.costs import estimate
from torus_ray.protocol.graph import Arm, build_graph
from torus_ray.systems import System


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
    """Hosts, arms and units of each system. What is done already is not taken off: that is found out by running."""
    told: list[dict[str, Any]] = []
    for system in systems:
        graph = build_graph(
            system=system.name,
            bank=bank,
            tests=tests,
            arms=arms[system.name],
            repeats=repeats,
            measures=system.metrics,
        )
        counts = Counter((node.arm.name, node.kind) for node in graph for _ in node.units)
        hosts = {
            name: {
                "environment": host.card.environment,
                "heads": list(host.card.heads),
                "num_cpus": host.card.num_cpus,
                "num_gpus": host.card.num_gpus,
                "memory_gb": host.card.memory_gb,
            }
            for name, host in system.hosts.items()
        }
        units = {
            arm: {kind: counts[arm, kind] for kind in ("render", "caption", "answer", "measure") if counts[arm, kind]}
            for arm in dict.fromkeys(arm for arm, _ in counts)
        }
        costs = estimate(system, bank, graph)
        told.append({"system": system.name, "tests": len(tests), "hosts": hosts, "units": units, "costs": costs})
    if as_json:
        plan = {"bank": bank.card.name, "bank_hash": bank.hash, "results": str(results), "plan": told}
        print(json.dumps(plan, indent=1, default=asdict))
        return
    print(f"bank {bank.card.name}@{bank.hash[:8]}, results in {results}")
    for entry in told:
        print(f"{entry['system']}: {entry['tests']} tests")
        for name, host in entry["hosts"].items():
            needs = f"{host['num_cpus']:g} CPU, {host['num_gpus']:g} GPU, {host['memory_gb']:g} GB"
            print(f"  host {name} ({host['environment']}; {needs} a replica): {', '.join(host['heads'])}")
        for arm, units in entry["units"].items():
            print(f"  arm {arm}: " + ", ".join(f"{count} {kind}s" for kind, count in units.items()))
        for cost in entry["costs"]:
            print(f"  {cost}")
