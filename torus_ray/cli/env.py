"""`torus env`: the environments that hosts run in."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

app = typer.Typer(
    help="The environments that hosts run in: list, build, check, lock.", no_args_is_help=True, rich_markup_mode=None
)

Names = Annotated[
    list[str] | None, typer.Argument(help="Environments by name, or paths to their files; all where none is named.")
]


@app.command("list")
def list_all(as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False) -> int:
    """Every environment, and whether it is built on this machine."""
    from torus_ray.engine.environments import list_environments

    found = list_environments()
    if as_json:
        rows = [
            {"name": e.name, "kind": e.spec.kind, "digest": e.digest, "path": str(e.path), "built": e.built is not None}
            for e in found
        ]
        print(json.dumps(rows, indent=1))
        return 0
    for info in found:
        state = f"built in {info.built.seconds:.0f} s" if info.built else "not built"
        print(f"{info.name}  {info.spec.kind}, Python {info.spec.python}, {state}: {info.path or 'nothing to build'}")
        print(f"  {info.spec.about}")
        if info.spec.licences:
            print("  licences to know of: " + ", ".join(f"{p} {licence}" for p, licence in info.spec.licences.items()))
    return 0


@app.command()
def build(names: Names = None) -> int:
    """Build environments where they are not complete; the same path on every machine."""
    from torus_ray.engine.environments import build as build_environment
    from torus_ray.engine.environments import find_environment

    for name in names or _buildable():
        done = build_environment(find_environment(name), progress=lambda line: print(line, file=sys.stderr, flush=True))
        what = "is there" if done.reused else f"built in {done.seconds:.1f} s"
        print(f"{done.name}: {what}, {done.path}")
    return 0


@app.command()
def check(names: Names = None) -> int:
    """Try environments: built, the right Python and ray, imports. Exit 1 if something is wrong."""
    from torus_ray.engine.environments import check as check_environment
    from torus_ray.engine.environments import find_environment

    good = True
    for name in names or _buildable():
        tried = check_environment(find_environment(name))
        good &= tried.ok
        if tried.ok:
            flight = tried.preflight
            print(
                f"{name}: ok, Python {flight.python_version}, ray {flight.ray_version}, tried in {flight.seconds:.1f} s"
            )
        for finding in tried.preflight.findings:
            print(f"{name}: {finding.what}\n  where: {finding.where}")
            print(f"  expected: {finding.expected}\n  mend: {finding.mend}")
    return 0 if good else 1


@app.command()
def lock(name: Annotated[str, typer.Argument(help="An environment by name, or the path of its file.")]) -> int:
    """Compile an environment's lock anew from its [inputs]."""
    from torus_ray.engine.environments import find_environment, lock_environment

    path = lock_environment(find_environment(name, with_lock=False), progress=lambda line: print(line, file=sys.stderr))
    print(f"{name}: {path}")
    return 0


def _buildable() -> list[str]:
    from torus_ray.engine.environments import list_environments

    return [info.name for info in list_environments() if info.spec.kind == "venv"]
