"""What `torus doctor` finds on a machine and of a system."""

from __future__ import annotations

import time
from importlib.metadata import version
from pathlib import Path

import pytest

from torus_ray.cli import checks
from torus_ray.cli.checks import machine_checks, system_checks

CARD = """
name = "big"
title = "wants more than there is"

[hosts.big]
adapter = "model.py:Model"
num_cpus = {cpus}
memory_gb = {memory}

[hosts.big.heads.answer]
"""


def card(folder: Path, *, cpus: float = 1, memory: float = 0.5) -> str:
    (folder / "model.py").write_text("class Model:\n    def answer(self, requests):\n        return []\n")
    path = folder / "big.system.toml"
    path.write_text(CARD.format(cpus=cpus, memory=memory))
    return str(path)


def test_this_machine_can_run_the_tests() -> None:
    assert {check.what for check in machine_checks()} >= {"CPUs", "free memory", "free disk here", "temporary folder"}


def test_a_temporary_folder_too_long_for_unix_sockets_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    (bad,) = [check for check in machine_checks() if check.what == "temporary folder"]
    assert not bad.ok
    assert "TMPDIR" in bad.mend


@pytest.mark.parametrize(("cpus", "memory", "named"), [(4096, 0.5, "num_cpus"), (1, 100_000, "memory_gb")])
def test_a_host_that_no_replica_of_can_be_placed_is_named(
    tmp_path: Path, cpus: float, memory: float, named: str
) -> None:
    (bad,) = [check for check in system_checks(card(tmp_path, cpus=cpus, memory=memory)) if not check.ok]
    assert named in bad.found
    assert named in bad.mend


def test_a_system_that_fits_is_fine(tmp_path: Path) -> None:
    checks = system_checks(card(tmp_path))
    assert checks
    assert all(check.ok for check in checks), checks


def test_a_system_that_is_not_there() -> None:
    (bad,) = system_checks("nowhere")
    assert not bad.ok
    assert bad.mend


NEEDY = """
name = "needy"
title = "wants all that is not here"

[hosts.main]
adapter = "model.py:Model"
environment = "{environment}"
num_gpus = 1
gpu_memory_gb = 60
heads = {{ answer = {{}} }}
operating = {{ key_env = "NEEDY_KEY" }}

[hosts.main.weights.model]
path = "weights/model"
repo = "owner/model"
revision = "0123456789abcdef0123456789abcdef01234567"
size_gb = 65.5
licence = "research only"
gated = true
"""


def needy(folder: Path, environment: str = "inherit") -> str:
    card(folder)
    path = folder / "needy.system.toml"
    path.write_text(NEEDY.format(environment=environment))
    return str(path)


def unbuilt(folder: Path) -> str:
    """An environment that has a lock and stands nowhere."""
    hashed = " --hash=sha256:" + "0" * 64 + "\n"
    pins = ("ray==" + version("ray"), "numpy==2.0.0", "soundfile==0.13.1", "soxr==0.5.0")
    (folder / "far.txt").write_text("".join(pin + hashed for pin in pins))
    (folder / "far.toml").write_text('about = "far away"\nlock = "far.txt"\n')
    return "far.toml"


def test_all_that_is_missing_is_told_at_once_and_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "gpus_here", lambda: 0)
    monkeypatch.delenv("NEEDY_KEY", raising=False)
    began = time.monotonic()
    found = system_checks(needy(tmp_path, unbuilt(tmp_path)))
    assert time.monotonic() - began < 5, "nothing is imported while something is missing"
    assert not any(check.ok for check in found)
    told = {check.found: check for check in found}
    text = "\n".join(told)
    assert "NEEDY_KEY is not set" in text
    assert "num_gpus = 1 in its card, this machine shows 0 NVIDIA GPU(s)" in text
    assert f"not at {tmp_path / 'weights' / 'model'}" in text
    assert "environment far is not built" in text
    (weights,) = [check for check in found if "weights model of host main" in check.what]
    for part in ("https://huggingface.co/owner/model", "HF_TOKEN", "torus weights fetch", "65.5 GB", "research only"):
        assert part in weights.mend
    (gpu,) = [check for check in found if "num_gpus" in check.found]
    assert "60 GiB free" in gpu.expected


def test_too_little_gpu_memory_is_told_with_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a GPU is: what its driver's tool says, here a stand-in for it on the PATH."""
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "model").write_bytes(b"there")
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '0, GPU-x, 20480, 24576'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("NEEDY_KEY", "a key")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(checks, "gpus_here", lambda: 1)
    found = [check for check in system_checks(needy(tmp_path, unbuilt(tmp_path))) if not check.ok]
    (bad,) = [check for check in found if "not built" not in check.found]
    assert "too little free GPU memory" in bad.found
    assert "20.0 of 24.0 GiB" in bad.found
    assert bad.expected == "60 GiB free on 1 GPU(s)"


def test_an_environment_that_is_there_is_not_tried_while_weights_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "gpus_here", lambda: 1)
    monkeypatch.setattr(checks, "preflight", lambda *_, **__: pytest.fail("tried"))
    monkeypatch.setenv("NEEDY_KEY", "a key")
    bad, environment = system_checks(needy(tmp_path))
    assert "weights/model" in bad.found
    assert environment.ok
    assert "not tried" in environment.found


@pytest.mark.parametrize(("visible", "counted"), [(None, 2), ("0", 1), ("", 0), ("0,1,2,3", 2)])
def test_gpus_are_counted_by_what_the_driver_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None, counted: int
) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    monkeypatch.setattr(checks, "DEVICES", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert checks.gpus_here() == counted
