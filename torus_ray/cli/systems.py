"""`torus systems` and `torus doctor`: what can be run, and whether it can be run here."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def systems(as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False) -> int:
    """List the systems: what each can do, its arms, its environment, its licence, and how far it is proven."""
    from torus_ray.systems import list_cards, read_card

    told: list[dict[str, Any]] = []
    for name, path in sorted(list_cards().items()):
        system = read_card(path)
        abilities: dict[str, list[str]] = {}
        for operation, audio_type in system.routes:
            abilities.setdefault(operation, []).append(audio_type)
        told.append(
            {
                "system": name,
                "title": system.card.title,
                "heads": abilities,
                "arms": list(system.edit_modes),
                "environments": sorted({host.card.environment for host in system.hosts.values()}),
                "proven": system.card.proven,
                "licence": system.card.licence,
                "card": str(path),
            }
        )
    if as_json:
        print(json.dumps(told, indent=1))
        return 0
    for entry in told:
        print(f"{entry['system']}  ({entry['title']})")
        for operation, types in entry["heads"].items():
            print(f"  {operation}: {', '.join(types)}")
        print(f"  arms: {', '.join(entry['arms'])}; environment: {', '.join(entry['environments'])}")
        print(f"  proven: {entry['proven']}; licence: {entry['licence'] or 'not stated'}")
    return 0


def doctor(
    names: Annotated[list[str] | None, typer.Argument(help="Systems to check; all where none is named.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Check this machine, and the environments and weights of systems, without starting Ray. Exit 1 if something is
    wrong."""
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
