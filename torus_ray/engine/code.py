"""The code that travels: what a host needs of ours, and the adapters, as one small folder (DESIGN 5: once, at job
level)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import torus_ray
from torus_ray.systems import HostSpec, adapter_files

HOST_MODULES = (
    "__init__.py",
    "heads.py",
    "audio.py",
    "engine/__init__.py",
    "engine/actor.py",
    "engine/hosting.py",
    "engine/leftovers.py",
)
"""All of torus_ray that is imported in a host: it runs on what every environment has."""
NODE_MODULES = ("engine/preflight.py",)
"""What nodes are tried with (nodes.py)."""


def stage_code(folder: Path, hosts: Mapping[str, HostSpec], *, whole_folder: bool = True) -> dict[str, str]:
    """Fill `folder`; the place of each host's adapter in it, relative.

    whole_folder: False takes only the Python files beside the adapter (a model given by file: its folder may be
    anybody's home).
    """
    package = Path(torus_ray.__file__).parent
    for name in HOST_MODULES + NODE_MODULES:
        _copy(package / name, folder / "torus_ray" / name)
    places: dict[Path, str] = {}
    for host in hosts.values():
        if host.folder in places:
            continue
        place = f"adapters/{len(places)}-{host.folder.name}"
        files = adapter_files(host.folder) if whole_folder else sorted(host.folder.glob("*.py"))
        for file in files:
            _copy(file, folder / place / file.relative_to(host.folder))
        places[host.folder] = place
    return {name: places[host.folder] for name, host in hosts.items()}


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
