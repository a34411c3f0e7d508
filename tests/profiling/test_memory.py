"""Memory of a host: of a real process and its children; what nvidia-smi printed, read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torus_ray.profiling.memory import Peak, ask_nvidia_smi, count_gpus, gpu_gib, private_gib

# As `nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits` prints it: a process on two GPUs,
# another one, one whose memory the driver does not tell.
APPS = "4021, 20480\n4021, 10240\n977, 512\n1200, [N/A]\n"
GPUS = "0, GPU-1aa2\n1, GPU-9bb3\n"


@pytest.mark.parametrize(
    ("pids", "gib"), [({4021}, 30.0), ({4021, 977}, 30.5), ({977, 5}, 0.5), ({1200}, None), ({5}, None)]
)
def test_gpu_memory_is_that_of_the_hosts_processes(pids: set[int], gib: float | None) -> None:
    assert gpu_gib(APPS, frozenset(pids)) == gib


def test_no_output_is_no_memory() -> None:
    assert gpu_gib("", frozenset({1})) is None
    assert gpu_gib("No running processes found\n", frozenset({1})) is None


@pytest.mark.parametrize(("visible", "count"), [(None, 2), ("0", 1), ("0, 1", 2), ("GPU-9bb3", 1), ("", 0), ("7", 0)])
def test_gpus_that_this_process_may_use(visible: str | None, count: int) -> None:
    assert count_gpus(GPUS, visible) == count
    assert count_gpus("", visible) == 0


def test_nvidia_smi_that_is_not_there_or_fails_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask_nvidia_smi() == ""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '1, 2'\nexit 9\n")
    tool.chmod(0o755)
    assert ask_nvidia_smi() == ""
    tool.write_text("#!/bin/sh\necho '1, 1024'\n")
    assert gpu_gib(ask_nvidia_smi(), frozenset({1})) == 1.0


HOG = "import sys; sys.stdin.readline(); held = bytearray(200 * 2**20); print('held', flush=True); sys.stdin.readline()"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOG!r}])"


def test_the_peak_is_that_of_a_process_with_its_children_and_starts_anew() -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen([sys.executable, "-c", PARENT], **pipes) as process,  # type: ignore[call-overload]
        Peak(process.pid, gpu=False) as peak,
    ):
        before, gpu = peak.take()
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "held\n"
        held, _ = peak.take()
        process.stdin.write("\n")
        process.stdin.close()
        process.wait()
        peak.take()
        after, _ = peak.take()
    assert gpu is None
    assert held - before > 0.15
    assert after is None


def test_this_process_has_memory_and_no_process_has_none() -> None:
    here = private_gib(os.getpid())
    assert here is not None
    assert here > 0
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert private_gib(process.pid) is None
    with Peak(None, gpu=True) as peak:
        assert peak.take() == (None, None)
