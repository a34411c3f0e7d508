"""Environments as the rest of the engine and the command line use them: list, check, preflight; build and compile.

Nothing here imports ray. A preflight on another node is :func:`preflight_request` in the driver,
:func:`torus_ray.engine.preflight.run_preflight` in a task there, and :func:`read_preflight` in the driver again.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torus_ray.engine.env_build import MARKER, Built, EnvironmentStop, build, built, lock_environment
from torus_ray.engine.env_spec import (
    INHERIT,
    EnvironmentSpec,
    compile_runtime_env,
    env_digest,
    environment_files,
    environment_path,
    environments_root,
    find_environment,
    interpreter,
    load_environment,
)
from torus_ray.engine.preflight import DEADLINE_S, run_preflight

__all__ = [
    "INHERIT",
    "Built",
    "EnvironmentCheck",
    "EnvironmentInfo",
    "EnvironmentSpec",
    "EnvironmentStop",
    "Finding",
    "Preflight",
    "build",
    "built",
    "check",
    "compile_runtime_env",
    "env_digest",
    "environment_path",
    "environments_root",
    "find_environment",
    "interpreter",
    "list_environments",
    "load_environment",
    "lock_environment",
    "preflight",
    "preflight_request",
    "read_preflight",
]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, in the four parts of every error."""

    what: str
    where: str
    expected: str
    mend: str


@dataclass(frozen=True)
class Preflight:
    """What a preflight found. versions: of modules imported. gpus: {index, free_gib, total_gib} of those it saw."""

    environment: str
    python_version: str
    ray_version: str
    versions: Mapping[str, str]
    gpus: tuple[Mapping[str, Any], ...]
    seconds: float
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not self.findings

    def raise_for_findings(self) -> None:
        """EnvironmentStop with the first finding, the others named in it."""
        if self.findings:
            first, *others = self.findings
            also = "".join(f"\n  also: {other.what} ({other.mend})" for other in others)
            raise EnvironmentStop(first.what + also, where=first.where, expected=first.expected, mend=first.mend)


@dataclass(frozen=True)
class EnvironmentInfo:
    """One environment for a list. built: None where nothing stands complete (or nothing is built for its kind)."""

    spec: EnvironmentSpec
    digest: str
    path: Path | None
    built: Built | None

    @property
    def name(self) -> str:
        return self.spec.name


@dataclass(frozen=True)
class EnvironmentCheck:
    """An environment tried on this machine."""

    info: EnvironmentInfo
    preflight: Preflight

    @property
    def ok(self) -> bool:
        return self.preflight.ok


def describe(spec: EnvironmentSpec, root: Path | None = None) -> EnvironmentInfo:
    """Where an environment stands on this machine."""
    root = root or environments_root()
    is_venv = spec.kind == "venv"
    path = environment_path(spec, root) if is_venv else None
    return EnvironmentInfo(spec, env_digest(spec), path, built(spec, root) if is_venv else None)


def list_environments(folder: Path | None = None, root: Path | None = None) -> tuple[EnvironmentInfo, ...]:
    """Every environment described in `folder` (default: the project's), by name. Raises InputError at a bad file."""
    return tuple(describe(load_environment(file), root) for file in environment_files(folder).values())


def check(spec: EnvironmentSpec, root: Path | None = None) -> EnvironmentCheck:
    """Is it built, does its Python start, do ray and Python agree with the driver's, does what it names import?"""
    return EnvironmentCheck(describe(spec, root), preflight(spec, root=root))


def preflight_request(
    spec: EnvironmentSpec,
    *,
    root: Path | None = None,
    files: Iterable[str | Path] = (),
    num_gpus: float = 0.0,
    gpu_memory_gib: float = 0.0,
    python: str | Path | None = None,
    deadline_s: float = DEADLINE_S,
) -> dict[str, Any]:
    """What :func:`run_preflight` asks for, as plain data that travels to a node.

    files: weights that must be there, absolute or "package:path/inside/it". gpu_memory_gib: free memory that a replica
    needs; 0 means its share of the card. python: another interpreter to try than the environment's own.
    """
    root = root or environments_root()
    is_venv = spec.kind == "venv" and python is None
    return {
        "name": spec.name,
        "file": str(spec.file or ""),
        "python": str(python or interpreter(spec, root)),
        "marker": str(environment_path(spec, root) / MARKER) if is_venv else "",
        "build": f"torus env build {spec.name}" if is_venv else "",
        "python_minor": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "ray": importlib.metadata.version("ray"),
        "imports": list(spec.imports),
        "files": [str(file) for file in files],
        "num_gpus": num_gpus,
        "gpu_memory_gib": gpu_memory_gib,
        "env_vars": dict(spec.env_vars),
        "deadline_s": deadline_s,
    }


def read_preflight(request: Mapping[str, Any], answer: Mapping[str, Any]) -> Preflight:
    """The answer of :func:`run_preflight` to `request`, typed."""
    return Preflight(
        environment=request["name"],
        python_version=answer["python_version"],
        ray_version=answer["ray_version"],
        versions=answer["versions"],
        gpus=tuple(answer["gpus"]),
        seconds=answer["seconds"],
        findings=tuple(Finding(**problem) for problem in answer["problems"]),
    )


def preflight(
    spec: EnvironmentSpec,
    *,
    root: Path | None = None,
    files: Iterable[str | Path] = (),
    num_gpus: float = 0.0,
    gpu_memory_gib: float = 0.0,
    python: str | Path | None = None,
    deadline_s: float = DEADLINE_S,
) -> Preflight:
    """Try an environment on this machine within `deadline_s` (4 s more for the GPUs). What is wrong: its `findings`."""
    request = preflight_request(
        spec,
        root=root,
        files=files,
        num_gpus=num_gpus,
        gpu_memory_gib=gpu_memory_gib,
        python=python,
        deadline_s=deadline_s,
    )
    return read_preflight(request, run_preflight(request))
