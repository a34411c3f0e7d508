"""What `torus doctor` looks at."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil

from torus_ray.engine.environments import find_environment, preflight
from torus_ray.errors import TorusError
from torus_ray.systems import HostSpec, load_system

GIB = 1024**3
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
    """The environments and weights of a system, each environment tried once."""
    try:
        system = load_system(name)
    except TorusError as error:
        return [Check(False, f"system {name}", error.message, error.expected, error.mend)]
    checks = [check for host in system.hosts.values() for check in _room(host)]
    for environment in sorted({host.card.environment for host in system.hosts.values()}):
        hosts = [host for host in system.hosts.values() if host.card.environment == environment]
        files = [weight.path for host in hosts for weight in host.card.weights.values()]
        what = f"system {name}, environment {environment}"
        try:
            flight = preflight(find_environment(environment), files=files, num_gpus=max(h.card.num_gpus for h in hosts))
        except TorusError as error:
            checks.append(Check(False, what, error.message, error.expected, error.mend))
            continue
        checks += [Check(False, what, f"{f.what} ({f.where})", f.expected, f.mend) for f in flight.findings]
        if flight.ok:
            checks.append(Check(True, what, f"Python {flight.python_version}, ray {flight.ray_version}, imports work"))
    return checks


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
