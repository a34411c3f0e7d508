"""What `torus doctor` looks at."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from torus_ray.engine.environments import EnvironmentSpec, built, environments_root, find_environment, preflight
from torus_ray.errors import TorusError
from torus_ray.systems import HostSpec, load_system
from torus_ray.systems.fetching import PART_SUFFIX
from torus_ray.systems.weights import Weight, weights_of

GIB = 1024**3
DEVICES = Path("/dev")
ENOUGH_DISK_GIB = 3.0
ENOUGH_SHM_GIB = 0.5
SOCKET_PATH_LIMIT = 107
LONGEST_RAY_SOCKET = len("/torus-ray-12345678/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store.12")


@dataclass(frozen=True)
class Check:
    """One thing looked at. mend: what to do when it is not ok."""

    ok: bool
    what: str
    found: str
    expected: str = ""
    mend: str = ""


def machine_checks() -> list[Check]:
    """CPU, memory, disk, shared memory, the length of socket paths, Ray's authentication."""
    memory = psutil.virtual_memory().available / GIB
    disk = shutil.disk_usage(Path.cwd()).free / GIB
    temporary = tempfile.gettempdir()
    checks = [
        Check(True, "CPUs", str(os.cpu_count())),
        Check(memory >= 2, "free memory", f"{memory:.1f} GiB", "2 GiB or more", "end other programs"),
        Check(
            disk >= ENOUGH_DISK_GIB,
            "free disk here",
            f"{disk:.1f} GiB",
            f"{ENOUGH_DISK_GIB:g} GiB or more",
            "free some, or choose another disk with --results",
        ),
        Check(
            len(temporary) + LONGEST_RAY_SOCKET <= SOCKET_PATH_LIMIT,
            "temporary folder",
            temporary,
            f"a path that leaves Ray's sockets within {SOCKET_PATH_LIMIT} characters",
            "set TMPDIR to a short path, e.g. /tmp",
        ),
    ]
    shared = Path("/dev/shm")
    if shared.is_dir():
        free = shutil.disk_usage(shared).free / GIB
        checks.append(
            Check(
                free >= ENOUGH_SHM_GIB,
                "shared memory",
                f"{free:.1f} GiB free in /dev/shm",
                f"{ENOUGH_SHM_GIB:g} GiB or more",
                "in a container: --shm-size=1g",
            )
        )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        checks.append(Check(True, "CUDA_VISIBLE_DEVICES", f"{visible!r}: only these GPUs are used"))
    return checks


def system_checks(name: str) -> list[Check]:
    """What a system lacks on this machine: room, GPUs, weights, keys, environments. Environments that could not be used
    anyway are not tried: importing takes longer than all the rest, and what is missing should be told in seconds."""
    try:
        system = load_system(name)
        specs = {host.card.environment: find_environment(host.card.environment) for host in system.hosts.values()}
    except TorusError as error:
        return [Check(False, f"system {name}", error.message, error.expected, error.mend)]
    gpus = gpus_here()
    hosts, weights = list(system.hosts.values()), weights_of(system, name)
    checks = [check for host in hosts for check in (*_room(host), *_keys(host), *_gpu(host, gpus))]
    checks += [check for weight in weights if (check := _missing(weight))]
    checks = [replace(check, what=f"system {name}, {check.what}") for check in checks]
    unbuilt = {environment for environment, spec in specs.items() if not _is_built(spec)}
    whole = not checks and not unbuilt
    for environment, spec in sorted(specs.items()):
        what = f"system {name}, environment {spec.name}"
        here = [host for host in hosts if host.card.environment == environment]
        if whole or environment in unbuilt:
            checks += _tried(what, spec, here, [w for w in weights if whole and system.hosts[w.host] in here])
        else:
            told = f"there; not tried until the rest is: `torus env check {environment}` tries it alone"
            checks.append(Check(True, what, told))
    return checks


def _is_built(spec: EnvironmentSpec) -> bool:
    return spec.kind != "venv" or built(spec, environments_root()) is not None


def _tried(what: str, spec: EnvironmentSpec, hosts: list[HostSpec], weights: list[Weight]) -> list[Check]:
    flight = preflight(
        spec,
        files=[weight.card.path for weight in weights],
        num_gpus=max(host.card.num_gpus for host in hosts),
        gpu_memory_gib=max(host.card.gpu_memory_gb for host in hosts),
    )
    if flight.ok:
        return [Check(True, what, f"Python {flight.python_version}, ray {flight.ray_version}, imports work")]
    return [Check(False, what, f"{f.what} ({f.where})", f.expected, f.mend) for f in flight.findings]


def _missing(weight: Weight) -> Check | None:
    if weight.there:
        return None
    part = weight.path.with_name(weight.path.name + PART_SUFFIX)
    begun = " (a fetch was begun: the same command goes on)" if part.exists() else ""
    what = f"weights {weight.name} of host {weight.host}"
    return Check(False, what, f"not at {weight.path}{begun}", "a file or a folder", weight.how_to_get())


def gpus_here() -> int:
    """NVIDIA GPUs that this process may use: those that the driver shows, less what CUDA_VISIBLE_DEVICES hides."""
    seen = len([path for path in DEVICES.glob("nvidia[0-9]*") if path.name[6:].isdigit()])
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return seen if visible is None else min(seen, len([part for part in visible.split(",") if part.strip()]))


def _gpu(host: HostSpec, gpus: int) -> list[Check]:
    """Whether there are as many GPUs as one replica wants; how much memory is free is the preflight's."""
    wanted = math.ceil(host.card.num_gpus)
    if gpus >= wanted:
        return []
    size = f" with {host.card.gpu_memory_gb:g} GiB free" if host.card.gpu_memory_gb else ""
    return [
        Check(
            False,
            f"host {host.name}",
            f"num_gpus = {host.card.num_gpus:g} in its card, this machine shows {gpus} NVIDIA GPU(s)",
            f"{wanted} NVIDIA GPU(s){size}, with their driver",
            "run it on a machine that has one, or `torus run --address` a Ray cluster that does",
        )
    ]


def _keys(host: HostSpec) -> list[Check]:
    """Whether the environment variables that a card names are set; what is in them is nobody's business."""
    named = [str(value) for key, value in host.card.operating.items() if key.endswith("_env") and value]
    return [
        Check(False, f"host {host.name}", f"{name} is not set", "a key", f"export {name}=..., never in a card")
        for name in named
        if not os.environ.get(name)
    ]


def _room(host: HostSpec) -> list[Check]:
    """Whether one replica of a host can ever be placed on this machine. Only what does not fit is named."""
    wants = {
        "num_cpus": (host.card.num_cpus, float(os.cpu_count() or 1)),
        "memory_gb": (host.card.memory_gb, psutil.virtual_memory().total / GIB),
    }
    return [
        Check(
            False,
            f"host {host.name}",
            f"{name} = {wanted:g} in its card, this machine has {there:.1f}",
            "a replica that fits",
            f"lower {name} in the card, or run where there is more (--address)",
        )
        for name, (wanted, there) in wants.items()
        if wanted > there
    ]
