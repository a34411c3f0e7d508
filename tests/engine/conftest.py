"""The one Ray cluster that most tests of the engine share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from torus_ray.engine.ray_variables import set_ray_variables

# Ray reads some of them when it is imported, which a test module may do
set_ray_variables()

START_S = 180
STOP_S = 60
MARK = "TORUS_TEST_CLUSTER"


@dataclass(frozen=True)
class SharedCluster:
    """The cluster: where it is, and what marks its processes."""

    address: str
    mark: str

    def actors_left(self, patience_s: float = 30.0) -> list[str]:
        """The processes of hosts that are still there after a while: Ray ends them behind the driver's back."""
        end = time.monotonic() + patience_s
        while (left := self._actors()) and time.monotonic() < end:
            time.sleep(0.2)
        return left

    def _actors(self) -> list[str]:
        found = [process.cmdline() for process in psutil.process_iter() if _is_marked(process, self.mark)]
        return [command[0] for command in found if command and command[0].startswith("ray::") and "Host" in command[0]]


@pytest.fixture
def ray_address(ray_cluster: SharedCluster) -> str:
    return ray_cluster.address


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[SharedCluster]:
    """A cluster that is started when first asked for and gone, its folder too, at the end."""
    mark = uuid.uuid4().hex
    # Unix socket paths end at 107 characters: a short folder, not pytest's own
    folder = Path(tempfile.mkdtemp(prefix="tt-", dir="/tmp"))
    script = Path(__file__).parent / "cluster_process.py"
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark, "PYTHONPATH": str(script.parents[2])},
    )
    try:
        yield SharedCluster(_address_of(process), mark)
    finally:
        _end(process, mark)
        shutil.rmtree(folder, ignore_errors=True)


def _address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    assert process.stderr is not None
    watchdog = threading.Timer(START_S, process.kill)
    watchdog.start()
    try:
        for line in process.stdout:
            if line.startswith("address "):
                return line.split()[1]
    finally:
        watchdog.cancel()
    raise RuntimeError(f"the tests' Ray cluster did not start: {process.stderr.read()[-2000:]}")


def _end(process: subprocess.Popen[str], mark: str) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    left = [p for p in psutil.process_iter() if _is_marked(p, mark)]
    for straggler in left:
        straggler.kill()
    psutil.wait_procs(left, timeout=10)


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark
    except (psutil.Error, OSError):
        return False
