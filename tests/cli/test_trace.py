"""`torus trace`: of a real run, its files, its lines, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from torus_ray.cli import EXIT_USAGE


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from torus_ray.cli import _run

    place = tmp_path_factory.mktemp("results")
    assert _run(["run", "simulated", "--inline", "--limit", "2", "--quiet", "--results", str(place)]) == 0
    return place


def test_a_run_becomes_a_trace_with_every_unit_that_was_computed(results: Path, tmp_path: Path, cli: Cli) -> None:
    trace, gantt = tmp_path / "t.json", tmp_path / "g.svg"
    code, told, _ = cli("trace", results, "--output", trace, "--gantt", gantt)
    assert code == 0
    events = json.loads(trace.read_text())["traceEvents"]
    calls = [event for event in events if event["ph"] == "X"]
    units = [unit for call in calls for unit in call["args"]["units"]]
    # Stage 1 of the self-caption arm is taken over from the native one, or the other way round.
    assert len(units) == len(set(units)) == 2 * (3 + 2 + 2 + 9 + 6)
    assert f"{trace}: {len(calls)} calls" in told
    assert "host simulated: 44 units, 1 worker(s), busy" in told
    assert gantt.read_bytes().startswith(b"<?xml")


def test_one_arm_alone(results: Path, tmp_path: Path, cli: Cli) -> None:
    (native,) = results.glob("*/simulated/native")
    code, told, _ = cli("trace", native, "--output", tmp_path / "t.json")
    assert code == 0
    assert "units" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--gantt", "run.gif"], "no kind of picture"),
        (["--output", "no/such/folder/t.json"], "cannot write no/such/folder/t.json"),
    ],
)
def test_places_that_cannot_be_written(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, words: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, error = cli("trace", results, *words)
    assert code == EXIT_USAGE
    assert told in error
    assert list(tmp_path.iterdir()) == []


def test_no_run_is_told(tmp_path: Path, cli: Cli) -> None:
    code, _, error = cli("trace", tmp_path)
    assert code == EXIT_USAGE
    assert "no run at" in error
