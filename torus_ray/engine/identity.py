"""Digests of what stands behind a head beside its card and adapter: its environment and its weights (DESIGN 4,
"Identity")."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import site
from functools import cache
from pathlib import Path

from torus_ray.bank.digest import sha256_of
from torus_ray.engine.environments import EnvironmentSpec, env_digest
from torus_ray.systems import HostSpec


def environment_digest(spec: EnvironmentSpec) -> str:
    """The lock's digest; for `inherit`, which has none, what is installed in this interpreter."""
    if spec.kind != "inherit":
        return env_digest(spec)
    # Not sys.path: Ray puts a folder of its own packages on it when it is imported.
    folders = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    changed = tuple((folder, Path(folder).stat().st_mtime_ns) for folder in folders if Path(folder).is_dir())
    return sha256_of({"python": platform.python_version(), "installed": _installed(changed)})


@cache
def _installed(folders: tuple[tuple[str, int], ...]) -> list[str]:
    """Name and version of all that lies in folders, given with the times when something was last put into them."""
    found = (d.metadata for d in importlib.metadata.distributions(path=[folder for folder, _ in folders]))
    return sorted({f"{metadata['Name']}=={metadata['Version']}" for metadata in found})


def weights_digest(host: HostSpec) -> str:
    """Over a host's weights: the digest or the commit that its card states, else the digests of the files themselves.

    Weights that the card pins are not read at a start; `torus weights check` reads them.
    """
    return sha256_of(
        {name: weight.identity or _digest_path(Path(weight.path)) for name, weight in host.card.weights.items()}
    )


def _digest_path(path: Path) -> str:
    # Python leaves caches beside code that lies among weights: reading it once must not make them others.
    under = (p for p in path.rglob("*") if "__pycache__" not in p.relative_to(path).parts)
    files = sorted(p for p in under if p.is_file()) if path.is_dir() else [path]
    digests = {}
    for file in files:
        if file.is_file():
            with file.open("rb") as opened:
                digests[file.relative_to(path.parent).as_posix()] = hashlib.file_digest(opened, "sha256").hexdigest()
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()
