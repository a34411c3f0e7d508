"""Preflight: what is wrong with an environment on this machine is found and told before anything starts in it."""

from __future__ import annotations

import json
import os
import time
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.engine.stub_wheels import DRIVER_RAY, MINOR, STUBS, write_environment
from tests.engine.systems import host, system
from torus_ray.engine.env_spec import INHERIT, EnvironmentSpec, environment_path, load_environment
from torus_ray.engine.environments import EnvironmentStop, check, preflight, preflight_request
from torus_ray.engine.opening import preflight_hosts
from torus_ray.engine.preflight import run_preflight
from torus_ray.errors import TorusError


@pytest.fixture
def tiny(tmp_path: Path) -> EnvironmentSpec:
    """A bare virtual environment of this interpreter with stub packages, marked complete."""
    spec = load_environment(write_environment(tmp_path / "files"))
    folder = environment_path(spec, tmp_path)
    venv.create(folder, symlinks=True)
    for name, version in STUBS.items():
        (site_packages(folder) / f"{name}.py").write_text(f"print('noise')\n__version__ = {version!r}\n")
    (folder / ".complete").write_text('{"digest": "", "python": "", "ray": "", "seconds": 0}')
    return spec


def site_packages(folder: Path) -> Path:
    return next(folder.glob("lib/python3*/site-packages"))


def what_is_wrong(spec: EnvironmentSpec, root: Path, **options: Any) -> str:
    """The one finding of a preflight, as the person reads it."""
    found = preflight(spec, root=root, **options)
    assert len(found.findings) == 1, found.findings
    with pytest.raises(EnvironmentStop) as caught:
        found.raise_for_findings()
    assert isinstance(caught.value, TorusError)
    text = caught.value.render()
    assert all(f"  {part}: " in text for part in ("where", "expected", "mend")), text
    return text


def test_a_good_environment_passes(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    found = preflight(tiny, root=tmp_path)
    assert found.ok
    assert found.python_version.startswith(MINOR + ".")
    assert (found.ray_version, dict(found.versions)) == (DRIVER_RAY, dict(STUBS))
    found.raise_for_findings()
    assert check(tiny, root=tmp_path).ok


def test_the_request_travels_as_plain_data(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    request = preflight_request(tiny, root=tmp_path, files=[tmp_path / "w.bin"])
    answer = run_preflight(json.loads(json.dumps(request)))
    assert json.loads(json.dumps(answer)) == answer


def test_not_built(tmp_path: Path) -> None:
    spec = load_environment(write_environment(tmp_path / "files"))
    text = what_is_wrong(spec, tmp_path)
    assert "not built" in text
    assert "torus env build tiny" in text
    assert check(spec, root=tmp_path).info.built is None


def test_half_built(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    (environment_path(tiny, tmp_path) / ".complete").unlink()
    assert "only half built" in what_is_wrong(tiny, tmp_path)


def test_interpreter_gone(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    (environment_path(tiny, tmp_path) / "bin" / "python").unlink()
    assert "no interpreter" in what_is_wrong(tiny, tmp_path)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("#!/bin/sh\necho broken libpython >&2\nexit 127\n", "broken libpython"),
        ("#!/nowhere/python\n", "does not start"),
        ("not a program", "does not start"),
        ("#!/bin/sh\nexec sleep 60\n", "no answer within 1 s"),
    ],
)
def test_interpreter_that_does_not_start(tiny: EnvironmentSpec, tmp_path: Path, script: str, told: str) -> None:
    python = environment_path(tiny, tmp_path) / "bin" / "python"
    python.unlink()
    python.write_text(script)
    python.chmod(0o755)
    started = time.monotonic()
    assert told in what_is_wrong(tiny, tmp_path, deadline_s=1)
    assert time.monotonic() - started < 10


def test_another_python_minor(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    sitecustomize = site_packages(environment_path(tiny, tmp_path)) / "sitecustomize.py"
    sitecustomize.write_text("import sys\nsys.version_info = (3, 9, 18, 'final', 0)\n")
    text = what_is_wrong(tiny, tmp_path)
    assert "Python 3.9.18" in text
    assert f"Python {MINOR}" in text


def test_another_ray(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    (site_packages(environment_path(tiny, tmp_path)) / "ray.py").write_text("__version__ = '2.59.0'\n")
    text = what_is_wrong(tiny, tmp_path)
    assert "has ray 2.59.0" in text
    assert f"ray {DRIVER_RAY}" in text


@pytest.mark.parametrize("package", sorted(STUBS))
def test_a_missing_package(tiny: EnvironmentSpec, tmp_path: Path, package: str) -> None:
    (site_packages(environment_path(tiny, tmp_path)) / f"{package}.py").unlink()
    assert f"cannot import {package}: ModuleNotFoundError" in what_is_wrong(tiny, tmp_path)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("raise ImportError('libc10_cuda.so')", "ImportError: libc10_cuda.so"),
        ("import time; time.sleep(60)", "was not done within 2 s"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signal SIGSEGV"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import os, sys; print('last words', file=sys.stderr, flush=True); os._exit(4)", "last words"),
    ],
)
def test_a_declared_import_that_fails(tiny: EnvironmentSpec, tmp_path: Path, body: str, told: str) -> None:
    spec = tiny.model_copy(update={"imports": ("model_code",)})
    (site_packages(environment_path(tiny, tmp_path)) / "model_code.py").write_text(body + "\n")
    text = what_is_wrong(spec, tmp_path, deadline_s=2)
    assert "model_code" in text
    assert told in text


def test_env_vars_reach_the_imports(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    spec = tiny.model_copy(update={"imports": ("needs",), "env_vars": {"NEEDED": "1"}})
    (site_packages(environment_path(tiny, tmp_path)) / "needs.py").write_text("import os; os.environ['NEEDED']\n")
    assert preflight(spec, root=tmp_path).ok


def test_missing_weights(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    package = site_packages(environment_path(tiny, tmp_path)) / "weights_in_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('is not imported to look for a file')\n")
    (package / "model.onnx").write_text("x")
    there = tmp_path / "there.bin"
    there.write_text("x")
    assert preflight(tiny, root=tmp_path, files=[there, "weights_in_package:model.onnx"]).ok
    assert str(tmp_path / "gone.bin") in what_is_wrong(tiny, tmp_path, files=[there, tmp_path / "gone.bin"])
    assert "weights_in_package:other.onnx" in what_is_wrong(tiny, tmp_path, files=["weights_in_package:other.onnx"])
    assert "no such package" in what_is_wrong(tiny, tmp_path, files=["nowhere:model.onnx"])


def test_several_findings_are_one_error_that_names_all(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    (site_packages(environment_path(tiny, tmp_path)) / "ray.py").write_text("__version__ = '2.59.0'\n")
    found = preflight(tiny, root=tmp_path, files=[tmp_path / "gone.bin"])
    assert len(found.findings) == 2
    with pytest.raises(EnvironmentStop, match="also: ") as caught:
        found.raise_for_findings()
    assert "2.59.0" in str(caught.value)


def test_inherit_is_the_current_interpreter() -> None:
    found = preflight(INHERIT)
    assert found.ok, found.findings
    assert found.ray_version == DRIVER_RAY


# --- GPU memory -------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvidia-smi of a machine with an almost full card 0 and an empty card 1, 80 GiB each."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho '0, GPU-a, 2048, 81920'\necho '1, GPU-b, 81000, 81920'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    ("num_gpus", "gib", "visible", "fits"),
    [
        (0, 0, None, True),
        (1, 0, None, True),
        (0.5, 0, None, True),
        (2, 0, None, False),
        (1, 0, "0", False),
        (1, 0, "GPU-b", True),
        (0.01, 0, "0", True),
        (0.5, 1.5, "0", True),
        (0.5, 40, "0", False),
    ],
)
def test_free_gpu_memory(
    tiny: EnvironmentSpec,
    tmp_path: Path,
    two_gpus: None,
    monkeypatch: pytest.MonkeyPatch,
    num_gpus: float,
    gib: float,
    visible: str | None,
    fits: bool,
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = preflight(tiny, root=tmp_path, num_gpus=num_gpus, gpu_memory_gib=gib)
    assert found.ok is fits
    if not fits:
        assert "GPU 0: 2.0 of 80.0 GiB" in found.findings[0].what


def test_a_run_asks_for_the_gpu_memory_of_its_hungriest_host(
    tiny: EnvironmentSpec, tmp_path: Path, two_gpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("TORUS_ENVS", str(tmp_path))
    hosts = {
        "small": host("answer", "caption", num_gpus=0.1),
        "large": host("generate", "edit", num_gpus=0.1, gpu_memory_gb=79.5),
    }
    made = system(tmp_path / "card", hosts)
    with pytest.raises(EnvironmentStop, match="too little free GPU memory") as told:
        preflight_hosts(made, {"inherit": tiny})
    assert "79.5 GiB" in told.value.expected
