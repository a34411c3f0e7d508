"""What a model leaves behind: child processes, and GPU memory that is not back yet.

Runs inside hosts (Python 3.9, the standard library) and in the driver. vLLM's engine is a child that outlives a killed
parent and keeps its memory (RAY.md); so children inherit a mark, a host that stops ends its own, and one that starts
first ends those of its predecessors, then waits for its GPU.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from typing import Callable, Collection, Iterator, List, NamedTuple, Sequence, Set

FAMILY_VARIABLE = "TORUS_FAMILY"
GRACE_S = 5.0
LOOK_S = 0.2
MEMORY_S = 60.0
"""How long a starting host waits for the memory of its GPUs."""
SMI_S = 4.0
FREE_SHARE = 0.9
"""Of the share that a replica is promised, what must be free: the driver itself keeps some of every card."""


class GpuMemoryHeld(Exception):
    """The memory of a GPU did not come back: whatever holds it is none of ours, or cannot be ended."""


class Gpu(NamedTuple):
    """One GPU as nvidia-smi tells of it; None where it tells nothing."""

    number: str
    uuid: str
    free_gib: float
    total_gib: float


# --- children ---------------------------------------------------------------------------------------------------------


def join_family(family: str) -> None:
    """Children that this process starts from now on carry the mark."""
    os.environ[FAMILY_VARIABLE] = family


def end_families(families: Collection[str]) -> int:
    """End all processes that carry one of the marks, except this one; how many there were. Only Linux tells."""
    marks = {("%s=%s" % (FAMILY_VARIABLE, family)).encode() for family in families}
    return _end(lambda: {pid for pid in _pids() if _marks_of(pid) & marks} if marks else set())


def end_children() -> int:
    """End what this process started and what that started in turn; how many there were."""
    return _end(_descendants)


def _end(who: Callable[[], Set[int]]) -> int:
    """Ask, wait, and kill what is still there: looked for anew each time, for a dying parent may start more."""
    found = who()
    for sign in (signal.SIGTERM, signal.SIGKILL):
        left = who()
        for pid in left:
            _signal(pid, sign)
        until = time.monotonic() + GRACE_S
        while left and time.monotonic() < until:
            left = {pid for pid in left if _runs(pid)}
            if left:
                time.sleep(LOOK_S)
    return len(found)


def _signal(pid: int, sign: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone meanwhile, or another user's
        os.kill(pid, sign)


def _pids() -> Iterator[int]:
    me = os.getpid()
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    return (int(name) for name in names if name.isdigit() and int(name) != me)


def _marks_of(pid: int) -> Set[bytes]:
    return set(_read("/proc/%d/environ" % pid).split(b"\0"))


def _descendants() -> Set[int]:
    parents = {pid: _parent(pid) for pid in _pids()}
    found = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} | found
        if more == found:
            return {pid for pid in found if pid != os.getpid() and _runs(pid)}
        found = more


def _parent(pid: int) -> int:
    fields = _read("/proc/%d/stat" % pid).rpartition(b")")[2].split()  # a name may hold spaces and brackets
    return int(fields[1]) if len(fields) > 1 else 0


def _runs(pid: int) -> bool:
    fields = _read("/proc/%d/stat" % pid).rpartition(b")")[2].split()
    return bool(fields) and fields[0] not in (b"Z", b"X")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # gone meanwhile, or another user's
        return b""


# --- GPU memory -------------------------------------------------------------------------------------------------------


def parse_gpus(text: str) -> List[Gpu]:
    """What `nvidia-smi --query-gpu=index,uuid,memory.free,memory.total --format=csv,noheader,nounits` printed, in MiB.

    Cards that share memory with the machine say "[N/A]" and are left out.
    """
    gpus = []
    for line in text.strip().splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 4 and fields[2].isdigit() and fields[3].isdigit():
            gpus.append(Gpu(fields[0], fields[1], int(fields[2]) / 1024, int(fields[3]) / 1024))
    return gpus


def short_of(gpus: Sequence[Gpu], devices: Collection[str], gib: float, share: float) -> List[Gpu]:
    """Those of the devices (by index or UUID) that have less free than `gib`, or than the share where gib is 0."""
    mine = [gpu for gpu in gpus if {gpu.number, gpu.uuid} & set(devices)]
    return [gpu for gpu in mine if gpu.free_gib < (gib or FREE_SHARE * min(1.0, share) * gpu.total_gib)]


def look_at_gpus() -> List[Gpu]:
    """The GPUs of this machine; none where nvidia-smi is not there or does not answer."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    query = [tool, "--query-gpu=index,uuid,memory.free,memory.total", "--format=csv,noheader,nounits"]
    try:
        return parse_gpus(subprocess.run(query, capture_output=True, text=True, timeout=SMI_S, check=True).stdout)
    except (OSError, subprocess.SubprocessError):
        return []


def wait_for_memory(
    devices: Collection[str],
    gib: float,
    share: float,
    wait_s: float = MEMORY_S,
    look: Callable[[], List[Gpu]] = look_at_gpus,
) -> None:
    """Until the GPUs of this host have their memory free: the driver takes seconds to give back what a process held.

    Raises GpuMemoryHeld after `wait_s`. Where nothing is known of the devices (no nvidia-smi, MIG) it returns at once.
    """
    until = time.monotonic() + wait_s
    while True:
        short = short_of(look(), devices, gib, share) if devices else []
        if not short:
            return
        if time.monotonic() >= until:
            told = ", ".join("GPU %s: %.1f of %.1f GiB free" % (g.number, g.free_gib, g.total_gib) for g in short)
            wanted = "%g GiB" % gib if gib else "%.0f%% of a card" % (100 * FREE_SHARE * min(1.0, share))
            raise GpuMemoryHeld(
                "%s after %.0f s, wanted %s: end what holds it (`nvidia-smi` lists the processes), or lower num_gpus"
                % (told, wait_s, wanted)
            )
        time.sleep(LOOK_S)
