"""Runs on an S3-compatible store from start to report, through the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.systems import canary_bank, gauge, measured, system
from tests.engine.systems import run as run_toy
from tests.store.kill_driver import missing_after
from tests.store.s3 import KEY, SECRET, Server, Wire
from torus_ray.cli import _run
from torus_ray.engine.opening import Opening
from torus_ray.engine.session import RunOptions, measure_runs
from torus_ray.protocol.graph import Arm
from torus_ray.store import LocalRunStore, current_rows
from torus_ray.store.bucket import Bucket, open_bucket
from torus_ray.store.files import TEMP_PREFIX
from torus_ray.store.layout import find_runs
from torus_ray.store.mirror import local_folder, look_into
from torus_ray.store.tables import TABLES, outcome_columns
from torus_ray.store.verify import verify
from torus_ray.systems import System, SystemCard, with_measures

ROOT = Path(__file__).parents[2]
RUN = ("run", "simulated", "--inline", "--quiet", "--limit", "4")
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*words: object) -> tuple[int, str, str]:
        code = _run([str(word) for word in words])
        out, err = capsys.readouterr()
        assert SECRET not in out + err
        return code, out, err

    return call


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of the same command on a disk."""
    results = tmp_path_factory.mktemp("local") / "results"
    assert _run([*RUN, "--results", str(results)]) == 0
    return results


def outcomes(results: Path) -> dict[str, list[tuple[object, ...]]]:
    """What must be equal wherever a run lies, by run and table."""
    return {
        f"{run.relative_to(results)} {table}": sorted(current_rows(run, table, outcome_columns(table)).rows(), key=str)
        for run in find_runs(results)
        for table in TABLES
        if table != "attempts"
    }


def in_a_process(*words: str, fault: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torus_ray.cli", *words]
    env = os.environ | {"TORUS_FAULT": fault, "PYTHONPATH": os.pathsep.join([str(ROOT), *_added()])}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=110, check=False)


def _added() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def test_a_run_from_start_to_report_its_driver_killed_in_between(
    bucket: Bucket, cli: Cli, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = bucket.uri("some/results")
    killed = in_a_process(*RUN, "--results", uri, fault="part_renamed:9")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = [key for key in bucket.objects("some/results") if key.endswith(".parquet")]
    assert len(done) >= 9

    # The same command, by somebody who has no copy of anything.
    monkeypatch.setenv("TORUS_CACHE", str(tmp_path / "second"))
    code, out, _ = cli(*RUN, "--results", uri)
    assert code == 0
    assert f"rows: {uri}/" in out
    assert "cache" not in out
    assert outcomes(local_folder(uri)) == outcomes(undisturbed)
    code, out, _ = cli(*RUN, "--results", uri)
    assert code == 0
    assert "nothing to do" in out

    # A reader elsewhere.
    monkeypatch.setenv("TORUS_CACHE", str(tmp_path / "third"))
    (bank,) = (path.name for path in undisturbed.iterdir())
    code, out, _ = cli("report", f"{uri}/{bank}/simulated", "--format", "csv")
    assert (code, out) == (0, cli("report", undisturbed, "--format", "csv")[1])
    unit = "simulated/native/music-01/edit/edit"
    code, out, _ = cli("show", uri, unit)
    assert code == 0
    assert f"run: {uri}/{bank}/simulated/native" in out
    assert "NOT THERE" not in out
    code, out, _ = cli("replay", f"{uri}/{bank}/simulated/native", unit)
    assert (code, out.splitlines()[-1]) == (0, "equal")
    code, out, _ = cli("verify", uri)
    assert code == 0, out
    assert out.count("nothing is wrong") == 2

    # What changes in the bucket is seen there, not in a copy.
    clip = next(key for key in bucket.objects("some/results") if "/native/clips/" in key)
    bucket.put(clip, b"noise")
    code, out, _ = cli("verify", uri)
    assert code == 1
    assert f"changed_clip: {unit.rpartition('/')[0].rpartition('/')[0].rpartition('/')[0]}" in out
    assert bucket.uri(clip) in out


def test_a_store_that_goes_in_the_middle_stops_the_run_and_the_same_command_goes_on(
    bucket: Bucket, s3: Server, cli: Cli, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torus_ray.store.bucket.RETRY_S", 0.2)
    # This process lives on, and could not give its lease back.
    monkeypatch.setattr("torus_ray.store.bucket_lease.LEASE_S", -5.0)
    uri = bucket.uri("results")
    with Wire(s3, b"/tables/renders/", 4) as wire:
        thread = wire.serving()
        monkeypatch.setenv("AWS_ENDPOINT_URL", wire.endpoint)
        code, _, err = cli(*RUN, "--results", uri)
        wire.shutdown()
        thread.join()
    assert code == 3, err
    assert "no store answers there" in err
    assert "the same command goes on" in err
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    code, _, err = cli(*RUN, "--results", uri)
    assert code == 0, err
    assert outcomes(local_folder(uri)) == outcomes(undisturbed)


def test_the_second_driver_is_told_who_writes_the_run(bucket: Bucket, cli: Cli) -> None:
    uri = bucket.uri("results")
    assert cli(*RUN[:-1], "1", "--results", uri)[0] == 0
    (run, *_) = find_runs(local_folder(uri))
    with LocalRunStore(run):
        code, _, err = cli(*RUN, "--results", uri)
    assert code == 2
    assert f"process {os.getpid()}" in err
    assert cli(*RUN, "--results", uri)[0] == 0


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1", "no store answers there"),
        ("AWS_ENDPOINT_URL", "127.0.0.1:9000", "AWS_ENDPOINT_URL is no address"),
        ("BUCKET", "no-such-bucket", "there is no such bucket"),
        ("BUCKET", f"{KEY}:{SECRET}@bucket", "that is no address of a bucket"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_starts(
    bucket: Bucket, cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setattr("torus_ray.store.bucket.FIRST_RETRY_S", 0.2)
    monkeypatch.setenv(name, value)
    uri = f"s3://{value if name == 'BUCKET' else bucket.name}/results"
    for words in ((*RUN, "--results", uri), ("report", uri)):
        code, out, err = cli(*words)
        assert (code, out) == (2, "")
        assert says in err
        assert "mend:" in err
    assert bucket.objects("") == {}


def test_a_run_is_measured_where_nothing_of_it_is_known(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = canary_bank(tmp_path / "bank", tests=2)
    arms = (Arm("native"),)
    rendered = run_toy(system(tmp_path / "toy"), bank, local_folder(bucket.uri("results")), arms)
    on_disk = run_toy(measured(system(tmp_path / "toy"), tmp_path / "gauge"), bank, tmp_path / "results", arms)
    assert rendered.by_status["ok"] < on_disk.by_status["ok"]

    monkeypatch.setenv("TORUS_CACHE", str(tmp_path / "second"))
    results = local_folder(bucket.uri("results"))
    look_into(results)
    bare = System(SystemCard.model_construct(name="toy", title="toy", hosts={}), {})
    options = RunOptions(results, tests=bank.tests, arms=arms, opening=Opening(inline=True))
    result = measure_runs(with_measures(bare, [gauge(tmp_path / "gauge")]), bank, options)
    assert result.exit_code == 0
    assert outcomes(results) == outcomes(tmp_path / "results")
    assert not any(TEMP_PREFIX in key for key in bucket.objects("results"))


def test_a_place_in_a_bucket_without_runs(bucket: Bucket, cli: Cli) -> None:
    for command in ("report", "score", "verify"):
        code, out, err = cli(command, bucket.uri("nothing"))
        assert (code, out) == (2, "")
        assert f"no run at {bucket.uri('nothing')}" in err


@pytest.fixture(scope="module")
def rows_without_a_kill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    missing_after(run, 24)
    return run


def test_a_driver_killed_between_a_merge_and_the_removal_of_what_it_merged(
    bucket: Bucket, rows_without_a_kill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = local_folder(bucket.uri("run"))
    command = [sys.executable, "-m", "tests.store.kill_driver", str(run), "24", str(tmp_path / "acked")]
    env = os.environ | {"TORUS_FAULT": "compaction_renamed:1", "PYTHONPATH": os.pathsep.join([str(ROOT), *_added()])}
    killed = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    acked = (tmp_path / "acked").read_text().splitlines() if (tmp_path / "acked").exists() else []

    monkeypatch.setenv("TORUS_CACHE", str(tmp_path / "second"))
    open_bucket.cache_clear()
    run = local_folder(bucket.uri("run"))
    done = missing_after(run, 24)
    assert not {line for line in acked} & {f"render {number}" for number in done}
    for table in ("renders", "answers"):
        columns = outcome_columns(table)
        assert sorted(current_rows(run, table, columns).rows(), key=str) == sorted(
            current_rows(rows_without_a_kill, table, columns).rows(), key=str
        )
    folders = [Path(key).parent for key in bucket.objects("run/tables") if key.endswith(".parquet")]
    assert len(folders) == len(set(folders))
    assert [finding for finding in verify(run) if finding.kind != "manifest"] == []
