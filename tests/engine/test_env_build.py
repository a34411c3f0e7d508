"""Building environments with real uv from tiny wheels in a folder: no network."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engine.stub_wheels import DRIVER_RAY, STUBS, write_environment, write_wheel, write_wheels
from torus_ray.engine import env_build
from torus_ray.engine.env_build import EnvironmentStop, build, built, lock_environment
from torus_ray.engine.env_spec import EnvironmentSpec, environment_path, load_environment
from torus_ray.engine.environments import check, describe
from torus_ray.errors import InputError


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """uv knows only a folder of stub wheels; sha256 by package."""
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "index").as_uri())  # an index that has nothing
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    return write_wheels(tmp_path / "wheels")


@pytest.fixture
def tiny(tmp_path: Path, wheels: dict[str, str]) -> EnvironmentSpec:
    return load_environment(write_environment(tmp_path / "files", hashes=wheels))


def stopped(spec: EnvironmentSpec, root: Path) -> EnvironmentStop:
    with pytest.raises(EnvironmentStop) as caught:
        build(spec, root)
    assert caught.value.where
    assert caught.value.expected
    assert caught.value.mend
    assert built(spec, root) is None
    return caught.value


def test_build_installs_the_lock_and_nothing_else(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    told: list[str] = []
    done = build(tiny, tmp_path, told.append)
    assert (done.reused, done.ray_version, done.path) == (False, DRIVER_RAY, environment_path(tiny, tmp_path))
    assert done.python_version.startswith(tiny.python + ".")
    installed = {path.name.split("-")[0] for path in done.path.glob("lib/*/site-packages/*.dist-info")}
    assert installed == set(STUBS)
    assert any("installed 4 packages" in line for line in told)
    assert check(tiny, tmp_path).ok
    assert describe(tiny, tmp_path).built is not None


def test_a_complete_environment_is_used_again_at_once(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    first = build(tiny, tmp_path)
    started = time.perf_counter()
    second = build(tiny, tmp_path)
    assert time.perf_counter() - started < 0.1
    assert second.reused
    assert (second.seconds, second.digest) == (first.seconds, first.digest)


def test_an_interrupted_build_starts_over(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    done = build(tiny, tmp_path)
    (done.path / ".complete").unlink()
    (done.path / "left over").write_text("x")
    told: list[str] = []
    assert not build(tiny, tmp_path, told.append).reused
    assert any("starting over" in line for line in told)
    assert not (done.path / "left over").exists()


def test_a_killed_builder_leaves_nothing_that_counts(tiny: EnvironmentSpec, tmp_path: Path) -> None:
    """Its uv lives on for a moment and holds the lock, so that the next build does not meet it in the folder."""
    slow = tmp_path / "uv"
    slow.write_text(
        f'#!/bin/sh\n[ "$1" = pip ] && touch "{tmp_path}/begun" && sleep 1.5\nexec "{env_build.uv_binary()}" "$@"\n'
    )
    slow.chmod(0o755)
    code = (
        "import sys; from pathlib import Path; from torus_ray.engine import env_build, env_spec\n"
        "env_build.uv_binary = lambda: sys.argv[1]\n"
        "env_build.build(env_spec.load_environment(Path(sys.argv[2])), Path(sys.argv[3]))\n"
    )
    builder = subprocess.Popen([sys.executable, "-c", code, str(slow), str(tiny.file), str(tmp_path)])
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        builder.send_signal(signal.SIGKILL)
        builder.wait(timeout=10)
    assert built(tiny, tmp_path) is None
    told: list[str] = []
    assert not build(tiny, tmp_path, told.append).reused
    assert "another process is building it" in told[0]
    assert "starting over" in told[1]
    assert check(tiny, tmp_path).ok


def test_a_package_that_is_not_the_locked_one(tmp_path: Path, wheels: dict[str, str]) -> None:
    spec = load_environment(write_environment(tmp_path / "files", hashes={**wheels, "soxr": "0" * 64}))
    error = stopped(spec, tmp_path)
    assert "not the one that was locked" in error.message
    assert "soxr" in error.message
    assert "torus env lock tiny" in error.mend


def test_a_package_that_is_not_to_be_had(tmp_path: Path, wheels: dict[str, str]) -> None:
    spec = load_environment(write_environment(tmp_path / "files", hashes=wheels, packages={**STUBS, "nowhere": "1.0"}))
    error = stopped(spec, tmp_path)
    assert "not to be had" in error.message
    assert "nowhere" in error.message


def test_no_network(tmp_path: Path, tiny: EnvironmentSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple",
        "UV_HTTP_RETRIES": "0",
        "UV_CACHE_DIR": str(tmp_path / "other-cache"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UV_FIND_LINKS")
    assert "cannot be reached" in stopped(tiny, tmp_path).message


def test_a_full_disk(tmp_path: Path, tiny: EnvironmentSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    full = tmp_path / "full-uv"
    full.write_text("#!/bin/sh\necho 'error: failed to write: No space left on device (os error 28)' >&2\nexit 2\n")
    full.chmod(0o755)
    monkeypatch.setattr(env_build, "uv_binary", lambda: str(full))
    error = stopped(tiny, tmp_path)
    assert "the disk is full" in error.message
    assert "UV_CACHE_DIR" in error.mend


def test_a_root_that_is_no_folder(tmp_path: Path, tiny: EnvironmentSpec) -> None:
    (tmp_path / "file").write_text("x")
    assert "TORUS_ENVS" in stopped(tiny, tmp_path / "file" / "envs").mend


def test_kinds_that_are_not_built(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to build"):
        build(EnvironmentSpec(name="x", kind="inherit"), tmp_path)


# --- sources ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_repository_at_a_commit_is_importable(tmp_path: Path, wheels: dict[str, str]) -> None:
    repository = tmp_path / "repository"
    (repository / "code").mkdir(parents=True)
    (repository / "code" / "model_code.py").write_text("__version__ = 'at the commit'\n")
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "one"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (repository / "code" / "model_code.py").write_text("__version__ = 'later'\n")
    place = f'name = "x"\ngit = "{repository}"\ncommit = "{commit}"\nhow = "path"\nfolder = "code"'
    source = f'imports = ["model_code"]\n[[sources]]\n{place}'
    spec = load_environment(write_environment(tmp_path / "files", hashes=wheels, extra=source))
    build(spec, tmp_path)
    found = check(spec, tmp_path).preflight
    assert found.ok, found.findings
    assert found.versions["model_code"] == "at the commit"


# --- locking ----------------------------------------------------------------------------------------------------------

INPUTS = f"""
[inputs]
packages = ["ray=={DRIVER_RAY}", "numpy", "soundfile", "soxr", "heavy"]
excludes = ["unwanted"]
"""


def test_lock_holds_the_closure_without_the_excluded(tmp_path: Path, wheels: dict[str, str]) -> None:
    write_wheel(tmp_path / "wheels", "heavy", "1.0")
    file = write_environment(tmp_path / "files", extra=INPUTS)
    (tmp_path / "files" / "tiny.txt").unlink()
    lock = lock_environment(load_environment(file, with_lock=False))
    spec = load_environment(file)
    assert lock == spec.lock_file
    assert spec.lock_text.startswith("# Made by `torus env lock tiny`")
    assert build(spec, tmp_path).ray_version == DRIVER_RAY


def test_a_lock_that_cannot_be_made_leaves_the_old_one(tmp_path: Path, wheels: dict[str, str]) -> None:
    file = write_environment(tmp_path / "files", extra=INPUTS)  # there is no wheel of `heavy`
    before = (tmp_path / "files" / "tiny.txt").read_text()
    with pytest.raises(EnvironmentStop, match="heavy"):
        lock_environment(load_environment(file))
    assert (tmp_path / "files" / "tiny.txt").read_text() == before
    assert sorted(os.listdir(tmp_path / "files")) == ["tiny.toml", "tiny.txt"]


def test_locking_needs_inputs(tmp_path: Path, tiny: EnvironmentSpec) -> None:
    with pytest.raises(InputError, match="made from"):
        lock_environment(tiny)
