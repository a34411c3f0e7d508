"""`torus new` writes a system that runs and keeps its contract as it is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torus_ray.cli import EXIT_USAGE, _run
from torus_ray.cli.contract import findings
from torus_ray.engine.environments import load_environment
from torus_ray.systems import load_system

ROOT = Path(__file__).parents[2]


def made(folder: Path, name: str = "my-model") -> Path:
    assert _run(["new", name, "--folder", str(folder / name)]) == 0
    return folder / name / f"{name}.system.toml"


def test_what_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made(tmp_path)
    told = capsys.readouterr().out
    names = ["adapter/adapter.py", "my-model-env.toml", "my-model.system.toml", "test_contract.py"]
    written = sorted(p.relative_to(path.parent).as_posix() for p in path.parent.rglob("*") if p.is_file())
    assert written == names
    assert all(str(path.parent / name) in told for name in names)
    system = load_system(str(path))
    assert (system.name, system.card.title) == ("my-model", "My Model")
    assert set(system.hosts["main"].card.heads) == {"generate", "edit", "caption", "answer"}
    environment = load_environment(Path(system.hosts["main"].card.environment))
    assert (environment.name, environment.kind) == ("my-model-env", "inherit")


def test_the_test_and_the_environment_are_no_part_of_the_heads_identity(tmp_path: Path) -> None:
    path = made(tmp_path)
    before = load_system(str(path)).hosts["main"].adapter_digest
    (path.parent / "test_contract.py").write_text("# changed\n")
    (path.parent / "notes.txt").write_text("a note")
    assert load_system(str(path)).hosts["main"].adapter_digest == before
    adapter = path.parent / "adapter" / "adapter.py"
    adapter.write_text(adapter.read_text() + "\n# changed\n")
    assert load_system(str(path)).hosts["main"].adapter_digest != before


def test_it_keeps_its_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its environment is this interpreter, which is where the inline executor would go on.
    monkeypatch.setattr("torus_ray.cli.borrow.borrow_environment", lambda systems: None)
    found = list(findings(str(made(tmp_path)), calls=20, inline=True))
    assert [finding for finding in found if finding.verdict == "failed"] == []
    assert {finding.check for finding in found} >= {"shape", "rates", "order", "seed", "raises", "60 s clip", "memory"}


def test_it_runs_as_it_is_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made(tmp_path)
    monkeypatch.setattr("torus_ray.cli.borrow.borrow_environment", lambda systems: None)
    monkeypatch.setattr("torus_ray.engine.opening.preflight_hosts", lambda system, environments: {})
    monkeypatch.chdir("/")
    words = ["run", str(path), "--inline", "--json", "--limit", "1", "--results", str(tmp_path / "results")]
    capsys.readouterr()
    assert _run(words) == 0
    (told,) = json.loads(capsys.readouterr().out)["systems"]
    assert told["units"] == {"ok": told["computed"]}


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_the_contract_test_that_is_written_passes(tmp_path: Path) -> None:
    path = made(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path.parent)],
        capture_output=True,
        text=True,
        timeout=580,
        cwd=path.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("name", ["My_model", "my model", "-x", "a" * 50, "x.y", ""])
def test_a_name_that_is_none(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["new", "--folder", str(tmp_path / "made"), "--", name]) == EXIT_USAGE
    assert "is no name for a system" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_a_name_of_digits_makes_a_class(tmp_path: Path) -> None:
    assert load_system(str(made(tmp_path, "2-ears"))).hosts["main"].class_name == "Model2Ears"


def test_nothing_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made(tmp_path)
    path.write_text("mine")
    assert _run(["new", "my-model", "--folder", str(path.parent)]) == EXIT_USAGE
    assert "there already" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert _run(["new", "my-model", "--folder", str(tmp_path / "file" / "x")]) == EXIT_USAGE
    assert "cannot be written" in capsys.readouterr().err
