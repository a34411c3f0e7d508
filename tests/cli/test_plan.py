"""`torus run --plan`: hosts, replicas, loads, units, and time as far as something was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.engine.systems import canary_bank, host, system
from torus_ray.cli import plan as planning
from torus_ray.engine.rooms import Room
from torus_ray.profiling.rows import FOLDER, ProfileRow, write_rows

G, U = ("generate", "edit"), ("caption", "answer")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bank of four tests, and a machine with one GPU."""
    canary_bank(tmp_path / "bank", tests=4)
    monkeypatch.setattr(planning, "_room_here", lambda: Room(cpus=4, gpus=1, memory_gb=32))
    return tmp_path


def planned(cli: Cli, place: Path, name: str, *words: str) -> dict[str, Any]:
    code, told, _ = cli(
        *("run", place / f"{name}.toml", "--plan", "--json", "--bank", place / "bank"),
        *("--results", place / "results", *words),
    )
    assert code == 0
    plan: dict[str, Any] = json.loads(told)["plan"][0]
    return plan


def told_rows(place: Path, rows: Mapping[tuple[str, str], float]) -> None:
    """A profile in which a unit of each head took so many seconds."""
    made = [
        ProfileRow("s", of, operation, "f", "batch", 1, "ok", calls=10, units=10, busy_s=10 * unit_s, load_s=20.0)
        for (of, operation), unit_s in rows.items()
    ]
    write_rows(made, place / "results" / FOLDER / "toy" / "12345678" / "a.parquet")


def test_hosts_that_take_turns_are_loaded_often_and_their_times_add_up(place: Path, cli: Cli) -> None:
    system(place, {"g": host(*G, num_gpus=1), "u": host(*U, num_gpus=1)})
    told_rows(place, {("g", "generate"): 2.0, ("g", "edit"): 1.0, ("u", "answer"): 0.5, ("u", "caption"): 4.0})
    plan = planned(cli, place, "toy")
    assert plan["together"] is False
    assert {name: told["loads"] for name, told in plan["hosts"].items()} == {"g": 3, "u": 3}
    assert plan["hosts"]["g"]["units"] == {"generate": 4 * 4, "edit": 4 * 2}
    assert plan["hosts"]["u"]["units"] == {"answer": 4 * 18, "caption": 4 * 2}
    assert plan["units"]["native"] == {"render": 12, "answer": 36}
    assert plan["time"]["seconds"] == pytest.approx(16 * 2 + 8 * 1 + 72 * 0.5 + 8 * 4)
    assert plan["time"]["loading_seconds"] == pytest.approx(6 * 20)
    assert plan["time"]["unknown"] == []
    (answers,) = [each for each in plan["time"]["from"] if each["operation"] == "answer"]
    assert (answers["unit_s"], answers["units"]) == (0.5, 10)


def test_hosts_beside_each_other_work_at_the_same_time_with_all_replicas_that_fit(place: Path, cli: Cli) -> None:
    system(place, {"g": host(*G, replicas=2), "u": host(*U, num_cpus=1, replicas=3)})
    told_rows(place, {("g", "generate"): 2.0, ("g", "edit"): 1.0, ("u", "answer"): 0.1, ("u", "caption"): 0.1})
    plan = planned(cli, place, "toy")
    assert plan["together"] is True
    assert {name: (told["loads"], told["replicas"]) for name, told in plan["hosts"].items()} == {
        "g": (1, 2),
        "u": (1, 3),
    }
    assert plan["time"]["seconds"] == pytest.approx((16 * 2 + 8 * 1) / 2)
    assert plan["time"]["loading_seconds"] == 20


def test_what_was_never_measured_is_unknown_and_no_number(place: Path, cli: Cli) -> None:
    system(place, {"g": host(*G), "u": host(*U)})
    told_rows(place, {("g", "generate"): 2.0})
    plan = planned(cli, place, "toy", "--arms", "native")
    assert plan["time"]["seconds"] is None
    assert plan["time"]["unknown"] == [["g", "edit"], ["u", "answer"]]
    code, told, _ = cli("run", place / "toy.toml", "--plan", "--bank", place / "bank", "--results", place / "none")
    assert code == 0
    assert "time: unknown; never measured: generate of g" in told
    assert "host g (inherit; 0.5 CPU, 0 GPU, 0.2 GB a replica): generate, edit" in told
    assert "replica(s), loaded 1 time(s); units: 16 generate, 8 edit" in told


def test_what_does_not_fit_and_what_has_no_work_is_said(place: Path, cli: Cli) -> None:
    system(place, {"g": host("generate", num_gpus=4), "e": host("edit"), "u": host(*U)})
    plan = planned(cli, place, "toy", "--arms", "self-caption")
    assert plan["hosts"]["g"] | {"fits": False, "replicas": None, "loads": None} == plan["hosts"]["g"]
    assert plan["hosts"]["e"]["units"] == {}
    _, told, _ = cli(
        *("run", place / "toy.toml", "--plan", "--arms", "self-caption", "--bank", place / "bank"),
        *("--results", place / "results"),
    )
    assert "does not fit this machine" in told
    assert "has nothing to do" in told


def test_earlier_runs_tell_the_time_too(place: Path, cli: Cli) -> None:
    options = ("--bank", place / "bank", "--results", place / "results")
    assert cli("run", "simulated", "--inline", "--limit", "2", "--quiet", *options)[0] == 0
    code, told, _ = cli("run", "simulated", "--plan", *options)
    assert code == 0
    assert "time: about " in told
    assert "loading not measured" in told
    assert "a unit (30 units; earlier runs)" in told
