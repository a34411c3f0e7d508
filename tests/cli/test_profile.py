"""`torus profile`: its table, its files, what feeds --plan, wrong usage, Ctrl-C."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.engine.systems import SIMULATED, host, system
from torus_ray.cli import EXIT_STOPPED, EXIT_USAGE
from torus_ray.profiling import sweep
from torus_ray.profiling.rows import ProfileRow, read_rows

QUICK = ("--inline", "--seconds", "0.1")


def test_a_profile_is_a_table_a_parquet_file_a_picture_and_advice(tmp_path: Path, cli: Cli) -> None:
    code, told, progress = cli("profile", "simulated", *QUICK, "--results", tmp_path)
    assert code == 0
    (file,) = tmp_path.glob("profiles/simulated/????????/*.parquet")
    assert file.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name, file.with_suffix(".png").name]
    rows = read_rows(tmp_path, "simulated")
    assert [(row.operation, row.size, row.status) for row in rows] == [
        (operation, 1, "ok") for operation in ("generate", "edit", "caption", "answer")
    ]
    assert len({row.fingerprint for row in rows}) == 4
    assert "where the time of a call goes" in told
    assert "host simulated: answer 1 a batch (" in told
    assert "replica(s) on this machine" in told
    assert file.name in told.replace("\n", "")
    assert len(progress.splitlines()) == 4


def test_json_holds_the_rows_and_the_advice(tmp_path: Path, cli: Cli) -> None:
    code, told, _ = cli(
        "profile", "simulated", *QUICK, "--results", tmp_path, "--operations", "answer", "--batches", "1,2", "--json"
    )
    assert code == 0
    report = json.loads(told)
    assert [(row["size"], row["status"]) for row in report["rows"]] == [(1, "ok"), (2, "skipped")]
    assert report["rows"][0]["unit_s"] > 0
    assert report["advice"]["simulated"]["sizes"]["answer"]["size"] == 1
    assert Path(report["profile"]).is_file()


def test_a_head_that_raises_has_a_row_and_the_command_ends_with_one(tmp_path: Path, cli: Cli) -> None:
    card = host("generate", "answer", adapter=f"{SIMULATED}:Simulated", settings={"faults": {"raise": 1.0}})
    system(tmp_path, {"sim": card}, name="raising")
    code, told, _ = cli("profile", tmp_path / "raising.toml", *QUICK, "--results", tmp_path)
    assert code == 1
    assert "sim generate 1: failed: RuntimeError: a simulated fault" in told
    assert {row.status for row in read_rows(tmp_path, "raising")} == {"failed"}
    assert not list(tmp_path.glob("profiles/*/*/*.png"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["simulatd"], "near: simulated"),
        (["simulated", "--operations", "anwser"], "near: answer"),
        (["simulated", "--operations", "measure"], "simulated has no measure"),
        (["simulated", "--operations", ","], "--operations has nothing"),
        (["simulated", "--batches", "1,x"], "are no sizes"),
        (["simulated", "--batches", "0"], "are no sizes"),
        (["simulated", "--seconds", "0"], "--seconds"),
        (["simulated", "--results", "s3://bucket/results"], "kept in a folder"),
        (["nothing.py:Model"], "is no class in a file"),
    ],
)
def test_wrong_usage(words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, error = cli("profile", *words, "--inline")
    assert code == EXIT_USAGE
    assert told in error
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_keeps_what_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    asked: list[ProfileRow] = []
    as_it_is = sweep._row

    def interrupted(row: ProfileRow, came: object) -> ProfileRow:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(as_it_is(row, came))  # type: ignore[arg-type]
        return asked[-1]

    monkeypatch.setattr(sweep, "_row", interrupted)
    code, told, error = cli("profile", "simulated", *QUICK, "--results", tmp_path)
    assert code == EXIT_STOPPED
    assert told == ""
    assert "what was measured until then: " in error
    assert [row.operation for row in read_rows(tmp_path, "simulated")] == ["generate", "edit"]


@pytest.mark.ray
@pytest.mark.timeout(600)
def test_a_real_host_is_asked_in_batches_and_with_many_in_flight(tmp_path: Path) -> None:
    settings = {"latency_s": {"answer": [0.05, 0.0]}, "clip_s": 0.5}
    hosts = {
        "g": host("generate", "edit", adapter=f"{SIMULATED}:Simulated", settings={"max_batch": {"generate": 4}}),
        "u": host("answer", adapter=f"{SIMULATED}:SimulatedAsync", style="async", settings=settings),
    }
    system(tmp_path, hosts, name="pair")
    command = [sys.executable, "-m", "torus_ray.cli", "profile", str(tmp_path / "pair.toml"), "--json"]
    options = ["--seconds", "1", "--batches", "1,4", "--results", str(tmp_path)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stderr
    rows = {(row["operation"], row["size"]): row for row in json.loads(done.stdout)["rows"]}
    assert rows["edit", 4]["status"] == "skipped"
    assert rows["generate", 4]["units"] == 4 * rows["generate", 4]["calls"]
    one, four = rows["answer", 1], rows["answer", 4]
    # Four at once take hardly longer than one: the head only waits.
    assert four["rate"] > 2 * one["rate"]
    assert 0.05 <= one["model_s"] <= one["latency_p50_s"]
    for row in (one, four, rows["generate", 4]):
        assert row["transfer_s"] > 0
        assert row["memory_gib"] > 0
        assert 0 < row["load_s"] <= row["start_s"]
