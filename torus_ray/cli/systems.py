"""`torus systems` and `torus doctor`: what can be run, and whether it can be run here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from torus_ray.systems import HostCard, System


def systems(
    names: Annotated[list[str] | None, typer.Argument(help="Systems to list; all where none is named.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """List the systems: what each can do, its settings, licences, environments, memory, and how far it is proven."""
    from torus_ray.systems import list_cards, load_system

    told = [_system(name, load_system(name)) for name in names or sorted(list_cards())]
    if as_json:
        print(json.dumps(told, indent=1))
        return 0
    for entry in told:
        print("\n".join(_lines(entry)))
    return 0


def _system(name: str, system: System) -> dict[str, Any]:
    """A system as plain data. memory_gb: of one replica of each of its hosts together."""
    from torus_ray.systems.weights import restricts, weights_of

    abilities: dict[str, list[str]] = {}
    for operation, audio_type in system.routes:
        abilities.setdefault(operation, []).append(audio_type)
    hosts = {host.name: host.card for host in system.hosts.values()}
    needed = weights_of(system, name)
    weights = [
        {"host": w.host, "name": w.name, "there": w.there, "size_gb": w.card.size_gb, "licence": w.card.licence}
        for w in needed
    ]
    licences = [system.card.licence, *(weight.card.licence for weight in needed)]
    return {
        "system": name,
        "title": system.card.title,
        "about": system.card.about,
        "heads": abilities,
        "measures": {name: list(metrics) for name, metrics in system.metrics.items()},
        "arms": list(system.edit_modes),
        "seeds": system.card.seeds,
        "hosts": {name: _host(card) for name, card in hosts.items()},
        "weights": weights,
        "proven": system.card.proven,
        "licence": system.card.licence,
        "restricted": any(restricts(licence) for licence in licences),
    }


def _host(card: HostCard) -> dict[str, Any]:
    """What one replica takes, and the host's settings, those of a head under its operation."""
    heads = {name: head.settings for name, head in card.heads.items() if head.settings}
    taken = {name: getattr(card, name) for name in ("num_cpus", "memory_gb", "num_gpus", "gpu_memory_gb")}
    return {"environment": card.environment, **taken, "settings": {**card.settings, **heads}}


def _lines(entry: dict[str, Any]) -> list[str]:
    from torus_ray.cli.weights import licence_told

    lines = [f"{entry['system']}  ({entry['title']})"]
    if entry["heads"]:
        lines.append("  " + "; ".join(f"{name}: {', '.join(types)}" for name, types in entry["heads"].items()))
    lines += [f"  measure {name}: {', '.join(metrics)}" for name, metrics in entry["measures"].items()]
    lines.append(f"  arms: {', '.join(entry['arms']) or 'none'}; seeds: {entry['seeds']}")
    for name, host in entry["hosts"].items():
        free = f" with {host['gpu_memory_gb']:g} GiB free" if host["gpu_memory_gb"] else ""
        gpu = f", {host['num_gpus']:g} GPU{free}" if host["num_gpus"] else ", no GPU"
        lines.append(f"  host {name}: environment {host['environment']}; memory {host['memory_gb']:g} GiB{gpu}")
        if host["settings"]:
            lines.append("    settings: " + ", ".join(f"{k} = {_plain(v)}" for k, v in host["settings"].items()))
    lines.append(f"  proven: {entry['proven']}; licence: {licence_told(entry['licence'])}")
    for weight in entry["weights"]:
        size = f"{weight['size_gb']:g} GB, " if weight["size_gb"] else ""
        state = "there" if weight["there"] else "missing"
        licence = f"licence: {licence_told(weight['licence'])}" if weight["licence"] else "licence: as above"
        lines.append(f"  weights {weight['host']}.{weight['name']}: {state}, {size}{licence}")
    return lines


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def doctor(
    names: Annotated[list[str] | None, typer.Argument(help="Systems to check; all where none is named.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Check this machine, and what systems need of it, without starting Ray. Exit 1 if something is missing."""
    from torus_ray.cli.checks import machine_checks, system_checks
    from torus_ray.systems import list_cards

    checks = machine_checks()
    for name in names or sorted(list_cards()):
        checks += system_checks(name)
    if as_json:
        print(json.dumps([check.__dict__ for check in checks], indent=1))
    else:
        for check in checks:
            print(f"{'ok  ' if check.ok else 'BAD '} {check.what}: {check.found}")
            if not check.ok:
                print(f"     expected: {check.expected}")
                print(f"     mend: {check.mend}")
    return 0 if all(check.ok for check in checks) else 1
