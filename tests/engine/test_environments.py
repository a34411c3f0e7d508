"""Environment files, their identity, what Ray is told, preflight. Building is in test_env_build.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.engine.stub_wheels import DRIVER_RAY, STUBS, write_environment
from tests.engine.systems import host, system
from torus_ray.engine.env_spec import (
    INHERIT,
    EnvironmentSpec,
    compile_runtime_env,
    env_digest,
    environment_path,
    environments_root,
    find_environment,
    load_environment,
    pins,
)
from torus_ray.engine.environments import EnvironmentStop, check, list_environments, preflight, preflight_request
from torus_ray.engine.preflight import run_preflight
from torus_ray.engine.session import _preflight
from torus_ray.errors import InputError, TorusError

REPOSITORY = Path(__file__).resolve().parents[2]
MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"


def refused(file: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        load_environment(file)
    error = caught.value
    assert error.where
    assert error.expected
    assert error.mend
    return error


# --- the project's own files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [REPOSITORY / "runtime_envs", REPOSITORY / "tests" / "data" / "envs"], ids=str)
def test_shipped_environments_load_and_their_locks_hold_their_inputs(folder: Path) -> None:
    environments = list_environments(folder)
    assert environments
    for environment in environments:
        spec = environment.spec
        locked = {name: version for name, version, _ in pins(spec.lock_text)}
        assert spec.inputs is not None
        for line in spec.inputs.packages:
            wanted = Requirement(line)
            name = canonicalize_name(wanted.name)
            assert name in locked
            assert wanted.specifier.contains(locked[name], prereleases=True), line
        assert not locked.keys() & set(spec.inputs.excludes)
        held = {*locked, *(canonicalize_name(source.name) for source in spec.sources)}
        assert {canonicalize_name(name) for name in spec.licences} <= held
        assert "://" not in spec.lock_text


def test_requirement_files_name_no_index() -> None:
    for file in (REPOSITORY / "requirements").glob("*.txt"):
        text = file.read_text()
        assert "://" not in text
        assert not [line for line in text.splitlines() if line.startswith("-")]


def test_the_two_numpy_environments_differ_in_numpy_major() -> None:
    one, two = (load_environment(REPOSITORY / "tests" / "data" / "envs" / f"numpy{n}.toml") for n in (1, 2))
    versions = [{name: version for name, version, _ in pins(spec.lock_text)}["numpy"] for spec in (one, two)]
    assert [version.split(".")[0] for version in versions] == ["1", "2"]


# --- reading ----------------------------------------------------------------------------------------------------------


def test_unknown_key_is_named_with_its_line(tmp_path: Path) -> None:
    error = refused(write_environment(tmp_path, extra='about = "x"\nlocks = "y"'))
    assert "locks" in error.message
    assert error.where.endswith("tiny.toml:3")


def test_broken_toml_is_named(tmp_path: Path) -> None:
    assert "line 2" in refused(write_environment(tmp_path, extra="about = ")).message


@pytest.mark.parametrize("kind", ["venv", "inherit"])
def test_cuda_visible_devices_is_refused(tmp_path: Path, kind: str) -> None:
    extra = f'kind = "{kind}"\n[env_vars]\nCUDA_VISIBLE_DEVICES = "0"'
    error = refused(write_environment(tmp_path, extra=extra))
    assert "CUDA_VISIBLE_DEVICES" in error.message
    assert error.where.endswith("tiny.toml:4")
    assert "before" in error.mend


@pytest.mark.parametrize("package", sorted(STUBS))
def test_a_lock_without_what_every_host_needs_is_refused(tmp_path: Path, package: str) -> None:
    packages = {name: version for name, version in STUBS.items() if name != package}
    error = refused(write_environment(tmp_path, packages=packages))
    assert f"lacks {package}" in error.message
    assert error.where.endswith("tiny.txt")


def test_a_lock_with_another_ray_is_refused(tmp_path: Path) -> None:
    error = refused(write_environment(tmp_path, packages={**STUBS, "ray": "2.59.0"}))
    assert "2.59.0" in error.message
    assert DRIVER_RAY in error.expected


@pytest.mark.parametrize("line", ["--find-links wheels", "emoji", "emoji==2.0", "emoji>=2 --hash=sha256:00"])
def test_a_lock_line_that_is_no_hashed_pin_is_refused(tmp_path: Path, line: str) -> None:
    file = write_environment(tmp_path)
    lock = tmp_path / "tiny.txt"
    lock.write_text(lock.read_text() + line + "\n")
    assert line in refused(file).message


def test_a_missing_lock_is_refused_but_the_file_alone_can_be_read(tmp_path: Path) -> None:
    file = write_environment(tmp_path)
    (tmp_path / "tiny.txt").unlink()
    assert "torus env lock tiny" in refused(file).mend
    assert load_environment(file, with_lock=False).lock_text == ""


def test_another_python_minor_is_refused(tmp_path: Path) -> None:
    error = refused(write_environment(tmp_path, extra='python = "3.9"'))
    assert "3.9" in error.message
    assert MINOR in error.expected


@pytest.mark.parametrize("content", ['kind = "venv"', 'kind = "uv"', 'kind = "pip"', 'kind = "image"'])
def test_a_kind_without_what_it_installs_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(content)
    assert "says what it installs" in refused(file).message


def test_name_cannot_be_set_in_the_file(tmp_path: Path) -> None:
    assert "name" in refused(write_environment(tmp_path, extra='name = "other"')).message


def test_an_unknown_name_is_met_with_the_nearest(tmp_path: Path) -> None:
    write_environment(tmp_path, "pocket")
    with pytest.raises(InputError, match="did you mean 'pocket'") as caught:
        find_environment("poket", tmp_path)
    assert "inherit" in caught.value.expected
    assert find_environment("inherit", tmp_path) is INHERIT
    assert find_environment("pocket", tmp_path) == find_environment(str(tmp_path / "pocket.toml"))


def test_pins_read_markers_names_and_comments() -> None:
    lock = (
        "# top\nmir_eval==0.8.2 ; sys_platform != 'win32' \\\n    --hash=sha256:ab \\\n    --hash=sha256:cd\n"
        "    # via us\nRay==2.60.0 --hash=sha256:00\n"
    )
    assert pins(lock) == [("mir-eval", "0.8.2", "sys_platform != 'win32'"), ("ray", "2.60.0", "")]


# --- identity ---------------------------------------------------------------------------------------------------------


def test_digest_changes_with_what_is_installed_and_with_nothing_else(tmp_path: Path) -> None:
    plain = load_environment(write_environment(tmp_path / "a"))
    same = load_environment(write_environment(tmp_path / "b", extra='about = "x"\n[env_vars]\nA = "1"'))
    (tmp_path / "b" / "tiny.txt").write_text("# other comment\n\n" + plain.lock_text)
    assert env_digest(plain) == env_digest(same) == env_digest(load_environment(tmp_path / "b" / "tiny.toml"))

    source = {"name": "x", "git": "https://example.org/x", "commit": "0" * 40}
    others = [
        load_environment(write_environment(tmp_path / "c", packages={**STUBS, "numpy": "2.4.5"})),
        load_environment(write_environment(tmp_path / "d", hashes={"numpy": "1" * 64})),
        EnvironmentSpec.model_validate({**plain.model_dump(), "sources": [source]}),
        EnvironmentSpec.model_validate({**plain.model_dump(), "sources": [{**source, "commit": "1" * 40}]}),
    ]
    assert len({env_digest(spec) for spec in [plain, *others]}) == 5


def test_path_carries_name_and_digest_and_follows_torus_envs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = load_environment(write_environment(tmp_path))
    assert environment_path(spec, Path("/envs")) == Path(f"/envs/tiny-{env_digest(spec)[:12]}")
    monkeypatch.setenv("TORUS_ENVS", str(tmp_path / "here"))
    assert environments_root() == tmp_path / "here"
    monkeypatch.delenv("TORUS_ENVS")
    assert environments_root() == Path.home() / ".cache" / "torus-ray" / "envs"


# --- what Ray is told -------------------------------------------------------------------------------------------------

LOCK = "ray==2.60.0 --hash=sha256:00\nemoji==2.9.0 ; python_version < '4' --hash=sha256:00\n"
COMPILED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "inherit"}, {}),
    ({"kind": "inherit", "env_vars": {"A": "1"}}, {"env_vars": {"A": "1"}}),
    (
        {"kind": "venv", "lock_text": LOCK, "env_vars": {"A": "1"}},
        {"py_executable": "PATH/bin/python", "env_vars": {"A": "1"}},
    ),
    ({"kind": "venv", "lock_text": LOCK}, {"py_executable": "PATH/bin/python"}),
    ({"kind": "uv", "packages": ("emoji",)}, {"uv": {"packages": ["emoji"], "uv_pip_install_options": []}}),
    (
        {"kind": "uv", "lock_text": LOCK},
        {"uv": {"packages": ["emoji==2.9.0 ; python_version < '4'"], "uv_pip_install_options": ["--no-deps"]}},
    ),
    ({"kind": "pip", "packages": ("emoji",)}, {"pip": {"packages": ["emoji"], "pip_check": False}}),
    ({"kind": "image", "image": "here/x:1"}, {"image_uri": "here/x:1"}),
    (
        {"kind": "image", "image": "here/x:1", "env_vars": {"A": "1"}},
        {"image_uri": "here/x:1", "env_vars": {"A": "1"}},
    ),
]


@pytest.mark.parametrize(("fields", "expected"), COMPILED)
def test_compile_runtime_env(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    spec = EnvironmentSpec(name="x", **fields)
    root = Path("/nowhere/envs")
    wanted = {
        key: value.replace("PATH", str(environment_path(spec, root))) if isinstance(value, str) else value
        for key, value in expected.items()
    }
    assert compile_runtime_env(spec, root=root) == wanted


def test_ray_takes_every_compiled_form() -> None:
    runtime_env = pytest.importorskip("ray.runtime_env")
    for fields, _ in COMPILED:
        spec = EnvironmentSpec(name="x", **fields)
        compiled = compile_runtime_env(spec, root=Path("/nowhere"))
        assert set(compiled) <= set(runtime_env.RuntimeEnv(**compiled)), "Ray raises at a key that it does not know"


def test_environments_are_read_without_importing_ray() -> None:
    code = "import sys, torus_ray.engine.environments as e; e.list_environments(); sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False, timeout=60).returncode == 0


# --- preflight --------------------------------------------------------------------------------------------------------


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
    tmp_path: Path, two_gpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    hosts = {
        "small": host("answer", "caption", num_gpus=0.1),
        "large": host("generate", "edit", num_gpus=0.1, gpu_memory_gb=79.5),
    }
    made = system(tmp_path / "card", hosts)
    with pytest.raises(EnvironmentStop, match="too little free GPU memory") as told:
        _preflight(made, {"inherit": find_environment("inherit")})
    assert "79.5 GiB" in told.value.expected
