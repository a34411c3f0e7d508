"""Released code with tiny weights: what docs and cards say of it, and the runs where checkouts are given.

    TORUS_CHECKOUTS=DIR .venv/bin/python -m pytest -q tests/released

DIR holds a git directory a system, named as its environment, and `NAME-beside`, what --beside wants. Elsewhere these
skip: they build environments of several GB, and nothing of the repositories is in this tree.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.released.__main__ import copied, main
from tests.released.cases import CASES, case
from torus_ray.engine.env_spec import find_environment
from torus_ray.systems import load_system

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "model-adapters.md").read_text(encoding="utf-8")
CHECKOUTS = "TORUS_CHECKOUTS"
TINY = "real code, tiny weights"


@pytest.mark.parametrize("name", CASES)
def test_a_card_and_its_row_on_the_page_claim_what_its_case_shows(name: str) -> None:
    assert load_system(name).card.proven == TINY
    (row,) = re.findall(rf"^\| `{name}` \| .*`{TINY}` \|$", PAGE, re.MULTILINE)
    assert find_environment(name).sources[0].commit[:8] in row


@pytest.mark.parametrize("name", CASES)
def test_a_case_says_what_it_makes_small_and_the_page_tells_what_was_seen(name: str) -> None:
    found = case(name)
    assert found.MADE_SMALL
    assert callable(found.weights)
    assert callable(found.patched)
    assert callable(found.prove)
    assert re.search(rf"^\| `{name}` \| torch ", PAGE, re.MULTILINE)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_what_runs_is_the_commit_and_what_a_partial_checkout_lacks_is_named(tmp_path: Path) -> None:
    repository, folder = tmp_path / "repository", tmp_path / "copy"
    repository.mkdir()
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(repository), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    (repository / "part").mkdir()
    (repository / "part" / "code.py").write_text("one\n")
    (repository / "large.bin").write_bytes(b"weights")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    commit = git("rev-parse", "HEAD")
    (repository / "part" / "code.py").write_text("two\n")
    assert copied(repository, commit, tmp_path / "whole") == []
    blob = git("rev-parse", "HEAD:large.bin")
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert copied(repository, commit, folder) == ["large.bin"]
    assert (folder / "part" / "code.py").read_text() == "one\n"
    assert not (folder / "large.bin").exists()


def test_code_that_comes_with_weights_is_asked_for_before_anything_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ace-step", "--checkout", str(tmp_path), "--scratch", str(tmp_path)]) == 2
    assert "--beside, a folder with configuration_acestep_v15.py" in capsys.readouterr().out


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", CASES)
def test_released_code_with_tiny_weights(name: str) -> None:
    checkouts = Path(os.environ.get(CHECKOUTS, "")).absolute()
    if not os.environ.get(CHECKOUTS) or not (checkouts / name).is_dir():
        pytest.skip(
            f"{name}: {CHECKOUTS} names no folder with a checkout of it ({find_environment(name).sources[0].git})"
        )
    command = [sys.executable, "-m", "tests.released", name, "--checkout", str(checkouts / name)]
    if case(name).BESIDE:
        command += ["--beside", str(checkouts / f"{name}-beside")]
    done = subprocess.run(command, cwd=ROOT, check=False)
    assert done.returncode == 0
