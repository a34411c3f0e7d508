"""What a killed driver leaves behind is ended and removed at the next start, and nothing else is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from torus_ray.engine.cluster import SESSION_VARIABLE, Cluster, reap_dead_sessions, sessions_folder
from torus_ray.protocol.executor import EngineStop


@pytest.fixture(autouse=True)
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORUS_CACHE", str(tmp_path / "cache"))
    sessions_folder().mkdir(parents=True)
    return sessions_folder()


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the session "dead"."""
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    process = subprocess.Popen(command, env={**os.environ, SESSION_VARIABLE: "dead"})
    yield process
    process.kill()
    process.wait()


def note(sessions: Path, session: str, driver: int, started: float, folder: Path, code: Path) -> Path:
    file = sessions / f"{session}.json"
    content = {"session": session, "driver": driver, "started": started, "folder": str(folder), "code": str(code)}
    file.write_text(json.dumps(content))
    return file


def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "torus-ray-x", tmp_path / "torus-code-x"
    for folder in made:
        (folder / "inside").mkdir(parents=True)
    return made


def test_processes_and_folders_of_a_dead_driver_go(
    sessions: Path, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    made = folders(tmp_path)
    # the pid lives, but it is another process that has it now
    file = note(sessions, "dead", os.getpid(), psutil.Process().create_time() - 100, *made)
    (line,) = reap_dead_sessions()
    assert "1 processes" in line
    sleeper.wait(20)
    assert not psutil.pid_exists(sleeper.pid)
    assert not file.exists()
    assert [folder for folder in made if folder.exists()] == []
    assert reap_dead_sessions() == []


def test_a_living_driver_keeps_what_is_its_own(
    sessions: Path, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    made = folders(tmp_path)
    file = note(sessions, "dead", os.getpid(), psutil.Process().create_time(), *made)
    assert reap_dead_sessions() == []
    assert sleeper.poll() is None
    assert file.exists()
    assert all(folder.exists() for folder in made)


def test_no_folder_but_our_own_is_ever_removed(sessions: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    note(sessions, "dead", os.getpid(), 0.0, precious, precious)
    assert len(reap_dead_sessions()) == 1
    assert precious.exists()


def test_a_note_that_is_none_is_thrown_away(sessions: Path) -> None:
    (sessions / "half.json").write_text('{"session": "x", ')
    assert reap_dead_sessions() == []
    assert list(sessions.iterdir()) == []


def test_an_address_where_no_ray_is_stops_with_it_named(tmp_path: Path, sessions: Path) -> None:
    (tmp_path / "torus-code-x").mkdir()
    with pytest.raises(EngineStop) as caught:
        Cluster(tmp_path / "torus-code-x", "127.0.0.1:1").start()
    assert caught.value.where == "127.0.0.1:1"
    assert caught.value.mend
    assert list(sessions.iterdir()) == []
