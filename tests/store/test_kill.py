"""SIGKILL at each point of the write path: nothing acknowledged is lost, nothing is double, nothing half-done stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store import kill_driver
from tests.store.sample import temps
from torus_ray.store import LocalRunStore, current_rows
from torus_ray.store.faults import POINTS
from torus_ray.store.parts import live_parts
from torus_ray.store.tables import TABLES, outcome_columns
from torus_ray.store.verify import verify

ROOT = Path(__file__).parents[2]
UNITS = 60


def killed(run: Path, fault: str) -> subprocess.CompletedProcess[str]:
    """The driver in a process of its own, which ends itself at a point."""
    command = [sys.executable, "-m", "tests.store.kill_driver", str(run), str(UNITS), str(run.parent / "acked")]
    env = os.environ | {"TORUS_FAULT": fault, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)


def finish(run: Path) -> None:
    """The same driver, undisturbed."""
    kill_driver.main(run, UNITS, run.parent / "acked")


def outcome(run: Path, table: str) -> list[tuple[object, ...]]:
    return sorted(current_rows(run, table, outcome_columns(table)).rows(), key=str)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    finish(run)
    return run


@pytest.mark.parametrize(
    "fault",
    ["clip_written:7", "part_written:3", "part_renamed:3", "compaction_written:1", "compaction_renamed:1"],
)
def test_a_killed_driver_leaves_a_run_that_the_same_command_finishes(
    fault: str, tmp_path: Path, undisturbed: Path
) -> None:
    run = tmp_path / "run"
    ended = killed(run, fault)
    assert ended.returncode == -signal.SIGKILL, ended.stderr

    acked = (tmp_path / "acked").read_text().split("\n")[:-1] if (tmp_path / "acked").exists() else []
    renders = set(current_rows(run, "renders", ["test"])["test"])
    answers = current_rows(run, "answers", ["unit_id", "test"])
    assert {f"t{line.split()[1]}" for line in acked if line.startswith("render")} <= renders
    assert {f"t{line.split()[1]}" for line in acked if line.startswith("answer")} <= set(answers["test"])
    assert answers["unit_id"].is_unique().all()

    finish(run)
    assert temps(run) == []
    for table in ("renders", "answers"):
        assert outcome(run, table) == outcome(undisturbed, table)
    for table in TABLES:
        live, covered = live_parts(run / "tables" / table)
        assert len(live) <= 1, table
        assert covered == []
    attempts = current_rows(run, "attempts")
    assert attempts.height == attempts.unique().height <= UNITS
    assert [f for f in verify(run) if f.kind != "manifest"] == []


def test_every_named_point_is_killed_at_above() -> None:
    marks = test_a_killed_driver_leaves_a_run_that_the_same_command_finishes.pytestmark
    assert {fault.split(":")[0] for mark in marks for fault in mark.args[1]} == set(POINTS)


def test_opening_removes_what_a_killed_driver_left(tmp_path: Path) -> None:
    run = tmp_path / "run"
    LocalRunStore(run).close()
    for folder in ("tables/renders", "clips/ab", "."):
        (run / folder).mkdir(parents=True, exist_ok=True)
        (run / folder / ".tmp-1-x").write_bytes(b"half")
    LocalRunStore(run).close()
    assert temps(run) == []
