"""Environment files, their identity, what Ray is told. Building: test_env_build.py; preflight: test_preflight.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.engine.stub_wheels import DRIVER_RAY, MINOR, STUBS, write_environment
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
from torus_ray.engine.environments import list_environments
from torus_ray.errors import InputError

REPOSITORY = Path(__file__).resolve().parents[2]


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
