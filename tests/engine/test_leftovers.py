"""Children that outlive a host are ended, and a GPU is waited for: real processes, recorded output."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from torus_ray.engine import leftovers
from torus_ray.engine.leftovers import Gpu, GpuMemoryHeld, parse_gpus, short_of, wait_for_memory

# `nvidia-smi --query-gpu=index,uuid,memory.free,memory.total --format=csv,noheader,nounits`
# in its documented form; no GPU has printed it
TWO_CARDS = """\
0, GPU-5f2b6f5e-6a0a-3a57-1c0e-3c6f5a1d9e01, 79873, 81559
1, GPU-90c0b1a2-77de-4f0e-9d6a-0b1f2d3c4e5f, 1022, 81559
"""
SHARED_MEMORY = "0, GPU-a1b2c3d4-0000-1111-2222-333344445555, [N/A], [N/A]\n"
NO_DEVICES = "No devices were found\n"

HOST = """
import subprocess, sys, time
from torus_ray.engine import leftovers
leftovers.join_family(sys.argv[1])
child = subprocess.Popen([sys.executable, "-c", "import subprocess, sys, time; "
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True); "
    "print(p.pid, flush=True); time.sleep(600)"], stdout=subprocess.PIPE, text=True)
print(child.pid, child.stdout.readline().strip(), flush=True)
if sys.argv[2] == "stop":
    print(leftovers.end_children(), flush=True)
else:
    time.sleep(600)
"""


def start(family: str, how: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A host with a child and a grandchild in a session of its own, as vLLM starts them."""
    command = [sys.executable, "-c", HOST, family, how]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    host = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=path)
    assert host.stdout is not None
    return host, [int(pid) for pid in host.stdout.readline().split()]


def runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_children_of_a_killed_host_are_ended_by_their_mark_and_no_others() -> None:
    family = uuid.uuid4().hex
    host, children = start(family, "wait")
    other, theirs = start(uuid.uuid4().hex, "wait")
    try:
        host.kill()
        host.wait()
        assert all(map(runs, children))
        assert leftovers.end_families([family]) == 2
        assert not any(map(runs, children))
        assert all(map(runs, theirs))
        assert leftovers.end_families([family]) == leftovers.end_families([]) == 0
    finally:
        other.kill()
        other.wait()
        for pid in theirs:
            psutil.Process(pid).kill()


def test_a_host_that_stops_ends_its_children_and_theirs() -> None:
    host, children = start(uuid.uuid4().hex, "stop")
    output, _ = host.communicate(timeout=60)
    assert output.strip() == "2"
    assert not any(map(runs, children))


def test_what_nvidia_smi_says() -> None:
    first, second = parse_gpus(TWO_CARDS)
    assert (first.number, first.uuid[:8], round(first.free_gib, 1), round(first.total_gib, 1)) == (
        "0",
        "GPU-5f2b",
        78.0,
        79.6,
    )
    assert round(second.free_gib, 1) == 1.0
    assert parse_gpus(SHARED_MEMORY) == parse_gpus(NO_DEVICES) == parse_gpus("") == []


@pytest.mark.parametrize(
    ("devices", "gib", "share", "short"),
    [
        (["0"], 0, 1.0, []),
        (["1"], 0, 1.0, ["1"]),
        (["1"], 0, 0.01, []),
        (["1"], 0.5, 1.0, []),
        (["0"], 79.0, 0.1, ["0"]),
        (["0", "1"], 0, 2.0, ["1"]),
        (["GPU-90c0b1a2-77de-4f0e-9d6a-0b1f2d3c4e5f"], 0, 1.0, ["1"]),
        (["MIG-1"], 0, 1.0, []),  # of parts of a card nothing is known
        ([], 0, 1.0, []),
    ],
)
def test_which_gpus_have_too_little_free(devices: list[str], gib: float, share: float, short: list[str]) -> None:
    assert [gpu.number for gpu in short_of(parse_gpus(TWO_CARDS), devices, gib, share)] == short


def test_memory_that_comes_back_is_waited_for() -> None:
    looks = iter([10.0, 40.0, 75.0])
    wait_for_memory(["0"], 70, 1.0, look=lambda: [Gpu("0", "GPU-x", next(looks), 80.0)])
    assert next(looks, None) is None


def test_memory_that_does_not_come_back_is_told_with_what_is_there() -> None:
    with pytest.raises(GpuMemoryHeld, match=r"GPU 0: 10.0 of 80.0 GiB free after 0 s, wanted 45% of a card"):
        wait_for_memory(["0"], 0, 0.5, wait_s=0, look=lambda: [Gpu("0", "GPU-x", 10.0, 80.0)])


def test_a_machine_without_nvidia_smi_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert leftovers.look_at_gpus() == []
    wait_for_memory(["0"], 0, 1.0, wait_s=0)


def test_an_nvidia_smi_that_fails_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed' >&2\nexit 9\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert leftovers.look_at_gpus() == []
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{TWO_CARDS}END\n")
    assert [gpu.number for gpu in leftovers.look_at_gpus()] == ["0", "1"]
