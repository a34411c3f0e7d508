"""How much memory a host holds while it is asked: of its process and its children, and on GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType

import psutil

GIB = 1024**3
EVERY_S = 0.1
GPU_EVERY = 10
"""nvidia-smi takes tenths of a second: asked at every so many-th look."""
NVIDIA_SMI = ("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
GPU_LIST = ("nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader")
NVIDIA_SMI_S = 5.0


def private_gib(pid: int) -> float | None:
    """Memory of a process and its children that they share with nobody (Ray's object store is mapped into them); None
    where the process is not there."""
    total = 0
    try:
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            info = member.memory_info()
            total += info.rss - getattr(info, "shared", 0)
    except psutil.Error:
        return None
    return total / GIB


def gpu_gib(told: str, pids: frozenset[int]) -> float | None:
    """What those processes hold on all GPUs, from the output of NVIDIA_SMI (a line a process and GPU, MiB); None where
    none of them is in it: in a container the driver knows them by other numbers."""
    found: list[float] = []
    for line in told.splitlines():
        pid, _, used = line.partition(",")
        if pid.strip().isdecimal() and used.strip().isdecimal() and int(pid) in pids:
            found.append(int(used) / 1024)
    return sum(found) if found else None


def gpus_here() -> int:
    """GPUs of this machine that this process may use."""
    return count_gpus(ask_nvidia_smi(GPU_LIST), os.environ.get("CUDA_VISIBLE_DEVICES"))


def count_gpus(told: str, visible: str | None) -> int:
    """GPUs in the output of GPU_LIST that are visible; all of them where nothing is said."""
    wanted = None if visible is None else {part.strip() for part in visible.split(",")}
    lines = [{part.strip() for part in line.split(",")} for line in told.splitlines() if "," in line]
    return sum(1 for names in lines if wanted is None or names & wanted)


def ask_nvidia_smi(command: Sequence[str] = NVIDIA_SMI) -> str:
    """Its output; "" where there is none."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=NVIDIA_SMI_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


class Peak:
    """The most memory of a process between two :meth:`take`. Looks from a thread of its own while it is open.

    gpu: also at GPUs. A host on another node is not seen: pass no pid.
    """

    def __init__(self, pid: int | None, *, gpu: bool) -> None:
        self.pid = pid
        self._gpu = gpu
        self._memory: float | None = None
        self._gpu_memory: float | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._look, name="torus-memory", daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def take(self) -> tuple[float | None, float | None]:
        """(memory, GPU memory) in GiB at their highest since the last time; None where nothing was seen."""
        self._see(private_gib(self.pid) if self.pid else None, None)
        with self._lock:
            seen = self._memory, self._gpu_memory
            self._memory = self._gpu_memory = None
        return seen

    def _look(self) -> None:
        looks = 0
        while not self._ended.wait(EVERY_S):
            pid = self.pid
            if pid is None:
                continue
            told = ask_nvidia_smi() if self._gpu and looks % GPU_EVERY == 0 else ""
            looks += 1
            self._see(private_gib(pid), gpu_gib(told, _family(pid)) if told else None)

    def _see(self, memory: float | None, gpu: float | None) -> None:
        with self._lock:
            self._memory = _more(self._memory, memory)
            self._gpu_memory = _more(self._gpu_memory, gpu)


def _family(pid: int) -> frozenset[int]:
    try:
        return frozenset([pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))])
    except psutil.Error:
        return frozenset([pid])


def _more(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return max(known) if known else None
