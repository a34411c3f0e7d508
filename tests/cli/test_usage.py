"""Wrong usage and bad places: exit code 2, a message, no traceback, nothing started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import torus_ray
from tests.cli.conftest import Cli
from torus_ray.cli import EXIT_STOPPED, EXIT_USAGE, GOES_ON


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nonsense"], "No such command"),
        (["show"], "Missing argument"),
        (["run", "--bogus"], "No such option"),
        (["run", "simulated", "--limit", "0"], "--limit"),
        (["run", "simulated", "--seeds", "x"], "no seed"),
        (["run", "simulated", "--seeds", "99999999999999"], "too large"),
        (["run", "simulated", "--arms", "backwards"], "native, self-caption"),
        (["run", "simulated", "--tests", "nothing-*"], "no test matches"),
        (["run", "nobody"], "no system is called"),
        (["run", "simulatd"], "near: simulated"),
        (["run", "simulated", "--model", "x.py:Y"], "in one way"),
        (["run"], "in one way"),
    ],
)
def test_wrong_usage_is_told_and_ends_with_two(words: list[str], told: str, cli: Cli) -> None:
    code, _, error = cli(*words)
    assert code == EXIT_USAGE
    assert told in error
    assert "Traceback" not in error


def test_results_that_cannot_be_kept_are_told_before_anything_starts(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    code, _, error = cli("run", "simulated", "--inline", "--limit", "1", "--results", file)
    assert code == EXIT_USAGE
    assert "cannot be kept there" in error


def test_ctrl_c_ends_with_three_and_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("torus_ray.bank.load.load_bank", interrupted)
    code, _, told = cli("bank", "gate", "bank", "--out", "gated", "--muted", "simulated")
    assert code == EXIT_STOPPED
    assert "the same command goes on" in told
    for words in (["bank", "check"], ["bank", "show"]):  # they keep nothing to go on from
        code, _, told = cli(*words)
        assert (code, told) == (EXIT_STOPPED, "stopped\n")


def test_commands_that_go_on_are_there(cli: Cli) -> None:
    for command in GOES_ON:
        assert cli(*command, "--help")[0] == 0


def test_ctrl_c_while_modules_are_loaded_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    command = [sys.executable, "-c", "from torus_ray.cli import main; main(['--help'])"]
    path = os.pathsep.join([str(tmp_path), str(Path(torus_ray.__file__).parent.parent)])
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (EXIT_STOPPED, "", "stopped\n")
