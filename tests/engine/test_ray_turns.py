"""Hosts that exclude each other on real actors, with GPUs that Ray is only told of, and what they leave behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest

from tests.engine.conftest import SharedCluster
from tests.engine.systems import canary_bank, host, outcomes, run, system, table
from torus_ray.bank.load import Bank
from torus_ray.protocol.graph import Arm

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

PARENT = str(Path(__file__).parent / "models" / "parent.py") + ":Parent"
SELF_CAPTION = (Arm("self-caption"),)
NATIVE = (Arm("native"),)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary_bank(tmp_path_factory.mktemp("canary") / "bank", tests=3)


def pair(**fields: Any) -> dict[str, dict[str, Any]]:
    """Two hosts that both want all GPUs of the cluster."""
    return {"G": host("generate", "edit", num_gpus=2, **fields), "U": host("caption", "answer", num_gpus=2, **fields)}


def test_six_loads_in_a_self_caption_arm_and_the_rows_of_the_inline_run(
    bank: Bank, tmp_path: Path, ray_cluster: SharedCluster
) -> None:
    made = system(tmp_path / "card", pair())
    result = run(made, bank, tmp_path / "r", SELF_CAPTION, address=ray_cluster.address)
    attempts = table(result, "attempts")
    turns = attempts.group_by("pid").agg(pl.col("started_at").min(), pl.col("ended_at").max(), pl.col("worker").first())
    turns = turns.sort("started_at")
    assert [worker[0] for worker in turns["worker"]] == ["G", "U"] * 3
    assert (turns["started_at"][1:] >= turns["ended_at"][:-1]).all()
    assert set(attempts["device"]) == {"cuda:0,1"}
    assert ray_cluster.actors_left() == []
    here = run(made, bank, tmp_path / "inline", SELF_CAPTION)
    theirs = outcomes(here)
    for key, rows in outcomes(result).items():
        assert rows.equals(theirs[key]), key


@pytest.mark.parametrize("dies", [False, True])
def test_children_of_hosts_are_gone_with_them(
    dies: bool, bank: Bank, tmp_path: Path, ray_cluster: SharedCluster
) -> None:
    noted = tmp_path / "noted"
    noted.mkdir()
    faults = {bank.tests[0].stages.edit.prompt: "once_die"} if dies else {}
    cards = pair(adapter=PARENT, settings={"flaky": str(noted), "faults": faults})
    result = run(system(tmp_path / "card", cards), bank, tmp_path / "r", NATIVE, address=ray_cluster.address)
    assert set(result.by_status) == {"ok"}
    children = [int(file.name.partition("-")[2]) for file in noted.glob("child-*")]
    assert len(children) == (3 if dies else 2)
    assert [pid for pid in children if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"] == []
