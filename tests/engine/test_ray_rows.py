"""A run on Ray leaves behind what the inline executor leaves behind; and how it got there, from its attempts."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from tests.engine.conftest import SharedCluster
from tests.engine.systems import (
    ALL_ARMS,
    ARMS,
    MEASURES,
    OUTCOME_TABLES,
    SIMULATED,
    TOY,
    canary_bank,
    computed,
    host,
    measured,
    outcomes,
    run,
    system,
    table,
)
from torus_ray.bank.load import Bank
from torus_ray.engine.session import RunResult
from torus_ray.protocol.graph import build_graph

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

SIZES = {"generate": 4, "edit": 3, "caption": 4, "answer": 4, "measure": 5}


class Both(NamedTuple):
    on_ray: RunResult
    inline: RunResult


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary_bank(tmp_path_factory.mktemp("canary") / "bank")


@pytest.fixture(scope="module")
def batches(bank: Bank, tmp_path_factory: pytest.TempPathFactory, ray_cluster: SharedCluster) -> Both:
    """The simulated system in batches on two replicas, every arm and control."""
    folder = tmp_path_factory.mktemp("batches")
    settings = {"max_batch": SIZES, "latency_s": {"generate": [0.1, 0.02]}}
    card = {"simulated": host(adapter=f"{SIMULATED}:Simulated", replicas=2, settings=settings)}
    made = measured(system(folder / "card", card, name="simulated"), folder / "gauge", settings={"max_batch": SIZES})
    return Both(
        run(made, bank, folder / "ray", ALL_ARMS, address=ray_cluster.address),
        run(made, bank, folder / "inline", ALL_ARMS),
    )


@pytest.fixture(scope="module")
def hosts(bank: Bank, tmp_path_factory: pytest.TempPathFactory, ray_cluster: SharedCluster) -> Both:
    """Three hosts that take their time, one of them of coroutines, both arms."""
    folder = tmp_path_factory.mktemp("hosts")
    slow = {"latency_s": 0.1}
    card = {
        "hands": host("generate", "edit", settings=slow),
        "ears": host("caption", settings=slow),
        "mind": host("answer", adapter=f"{TOY}:ToyAsync", style="async", settings=slow),
    }
    made = measured(system(folder / "card", card), folder / "gauge", settings={"latency_s": 0.02})
    return Both(
        run(made, bank, folder / "ray", ARMS, address=ray_cluster.address), run(made, bank, folder / "inline", ARMS)
    )


# --- rows -------------------------------------------------------------------------------------------------------------


def assert_equal(both: Both) -> None:
    assert both.on_ray.by_status == both.inline.by_status
    assert both.on_ray.computed == both.inline.computed == sum(both.inline.by_status.values())
    expected = outcomes(both.inline)
    found = outcomes(both.on_ray)
    assert found.keys() == expected.keys()
    for key, rows in found.items():
        differing = [name for name in rows.columns if not rows[name].equals(expected[key][name])]
        assert differing == [], key


def test_batches_on_two_replicas_give_the_rows_of_one_request_at_a_time(batches: Both) -> None:
    assert_equal(batches)


def test_coroutines_and_lists_give_the_same_rows(hosts: Both) -> None:
    assert_equal(hosts)


def test_batches_happen_and_are_no_larger_than_the_head_takes(batches: Both) -> None:
    attempts = table(batches.on_ray, "attempts")
    for operation, size in SIZES.items():
        found = attempts.filter(pl.col("operation") == operation)["batch"]
        assert 1 <= found.max() <= size
    assert attempts["batch"].max() > 1
    assert set(table(batches.inline, "attempts")["batch"]) == {1}


def test_stage_one_is_rendered_once_for_both_arms_and_its_questions_asked_once(batches: Both, hosts: Both) -> None:
    for result in (batches.on_ray, batches.inline, hosts.on_ray):
        renders = computed(result, "renders").filter(pl.col("stage") == "generation")
        assert renders.height == 6
        answers = computed(result, "answers").filter(pl.col("stage") == "generation", pl.col("control").is_null())
        assert answers.height == 18
        assert (
            table(result, "answers").filter(pl.col("stage") == "generation", pl.col("control").is_null()).height == 36
        )


def test_the_cluster_goes_on_without_hosts_of_ours(
    batches: Both, hosts: Both, bank: Bank, tmp_path: Path, ray_cluster: SharedCluster
) -> None:
    assert ray_cluster.actors_left() == []
    made = system(tmp_path / "card")
    for results in ("first", "second"):
        again = run(made, bank, tmp_path / results, ARMS[:1], address=ray_cluster.address, tests=bank.tests[:1])
        assert again.by_status == {"ok": 12}
    assert ray_cluster.actors_left() == []


# --- attempts ---------------------------------------------------------------------------------------------------------


def test_a_clip_is_measured_once_whoever_made_it(batches: Both, hosts: Both) -> None:
    for result in (batches.on_ray, batches.inline, hosts.on_ray):
        taken = computed(result, "measures").filter(pl.col("measure") == "toy8")
        assert taken["clip"].n_unique() == taken.height
        every = table(result, "measures").filter(pl.col("measure") == "toy8")
        assert every.height == 36
        assert set(every["status"]) == {"ok"}


def test_every_computed_unit_has_its_attempts(hosts: Both) -> None:
    attempts = table(hosts.on_ray, "attempts")
    asked = [unit for name in OUTCOME_TABLES for unit in computed(hosts.on_ray, name)["unit_id"]]
    assert sorted(attempts["unit_id"]) == sorted(asked)
    times = ["ready_at", "submitted_at", "started_at", "ended_at", "returned_at", "committed_at"]
    for row in attempts.select(times).iter_rows():
        assert list(row) == sorted(row)
    assert attempts["pid"].n_unique() == 4
    assert set(attempts["worker"]) == {"hands#1", "ears#1", "mind#1", "gauge.gauge#1"}


def test_renders_captions_and_answers_of_different_tests_overlap_in_time(hosts: Both) -> None:
    attempts = table(hosts.on_ray, "attempts").with_columns(
        pl.col("unit_id").str.split("/").list.get(2).alias("test"),
        pl.col("operation").replace({"generate": "render", "edit": "render"}).alias("what"),
    )
    for first, second in combinations(("render", "caption", "answer", "measure"), 2):
        pairs = attempts.filter(pl.col("what") == first).join(attempts.filter(pl.col("what") == second), how="cross")
        overlap = pairs.filter(
            pl.col("test") != pl.col("test_right"),
            pl.col("started_at") < pl.col("ended_at_right"),
            pl.col("started_at_right") < pl.col("ended_at"),
        )
        assert overlap.height > 0, (first, second)


@pytest.mark.parametrize("name", ["batches", "hosts"])
def test_no_unit_starts_before_its_parents_commit(name: str, bank: Bank, request: pytest.FixtureRequest) -> None:
    both: Both = request.getfixturevalue(name)
    arms = ALL_ARMS if name == "batches" else ARMS
    made = "simulated" if name == "batches" else "toy"
    attempts = table(both.on_ray, "attempts")
    started = dict(zip(attempts["unit_id"], attempts["started_at"], strict=True))
    committed = dict(zip(attempts["unit_id"], attempts["committed_at"], strict=True))
    seen = 0
    for node in build_graph(system=made, bank=bank, tests=bank.tests, arms=arms, measures=MEASURES):
        for parent in node.parents:
            for unit in node.units:
                if unit.id in started and parent.units[0].id in committed:
                    seen += 1
                    assert committed[parent.units[0].id] <= started[unit.id], unit.id
    assert seen > 100
