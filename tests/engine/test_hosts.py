"""What a host's actor is told, and what can never be placed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from torus_ray.engine.hosts import HostPlan, Limits, unfit
from torus_ray.engine.rooms import Room
from torus_ray.systems import HeadCard, HostCard, HostSpec


def plan(name: str = "x", **card: object) -> HostPlan:
    fields = {"adapter": "x.py:X", "heads": {"answer": HeadCard()}, **card}
    host = HostSpec(name, HostCard.model_validate(fields), Path("/x"), "x", "X", "digest")
    return HostPlan(host, "x", 16, {"env_vars": {"OMP_NUM_THREADS": "7"}} if card.get("settings") else {})


@pytest.mark.parametrize(("gpus", "hidden"), [(0.0, True), (0.5, False), (2.0, False)])
def test_a_host_without_a_gpu_share_sees_no_gpu(gpus: float, hidden: bool) -> None:
    variables = plan(num_gpus=gpus).actor_environment()["env_vars"]
    assert ("CUDA_VISIBLE_DEVICES" in variables) is hidden
    assert variables.get("CUDA_VISIBLE_DEVICES", "") == ""


def test_threads_are_the_cpus_of_the_card_unless_the_environment_says_otherwise() -> None:
    assert plan(num_cpus=3).actor_environment()["env_vars"]["OMP_NUM_THREADS"] == "3"
    assert plan(num_cpus=0.25).actor_environment()["env_vars"]["OMP_NUM_THREADS"] == "1"
    assert plan(settings={"a": 1}).actor_environment()["env_vars"]["OMP_NUM_THREADS"] == "7"


def test_what_only_measures_takes_no_cpu() -> None:
    measuring = plan(heads={"measure": HeadCard()})
    assert (measuring.ray_cpus, measuring.wants.cpus) == (0, 0)
    assert measuring.payload()["background"] is True
    assert plan().payload()["background"] is False


def test_the_model_is_told_its_share_of_one_gpu() -> None:
    for num_gpus, share in ((0.0, 0.0), (0.25, 0.25), (1.0, 1.0), (2.0, 1.0)):
        assert plan(num_gpus=num_gpus).payload()["host"]["gpu_share"] == share


@pytest.mark.parametrize("num_gpus", [1.5, 2.25])
def test_more_than_one_gpu_are_whole_ones(num_gpus: float) -> None:
    with pytest.raises(ValidationError, match="whole GPUs"):
        plan(num_gpus=num_gpus)


def test_a_host_that_ray_could_never_place_is_told_before_it_waits_for_ever() -> None:
    there = [Room(cpus=2, memory_gb=4), Room(cpus=2, memory_gb=4)]
    assert unfit(plan(), there) is None
    told = unfit(plan(num_gpus=1), there[:1])
    assert told is not None
    assert "wants num_gpus = 1, this Ray has 0.0" in told.message
    assert unfit(plan(num_cpus=8, heads={"measure": HeadCard()}), there) is None


def test_what_nodes_have_together_is_not_what_a_replica_finds() -> None:
    one_each = [Room(8, 1, 64, "a"), Room(8, 1, 64, "b")]
    told = unfit(plan(num_gpus=2), one_each)
    assert told is not None
    assert "this Ray has 1.0 on any one node" in told.message
    apart = unfit(plan(num_gpus=1, num_cpus=4), [Room(8, 0, 64, "a"), Room(2, 1, 64, "b")])
    assert apart is not None
    assert "wants num_cpus = 4, num_gpus = 1, memory_gb = 1 on one node" in apart.message
    alone = replace(plan(num_gpus=1), avoid=("a", "b"))
    assert unfit(alone, one_each) is not None
    assert unfit(alone, [*one_each, Room(8, 1, 64, "c")]) is None


def test_a_head_whose_replies_depend_on_the_batch_is_sent_one_at_a_time_under_exact() -> None:
    told = {"style": "batch", "max_batch": {"answer": 8}, "batch_invariant": False}
    assert Limits.of(told, exact=False).max_batch == {"answer": 8}
    assert Limits.of(told, exact=True).max_batch == {}
    assert Limits.of({**told, "batch_invariant": True}, exact=True).max_batch == {"answer": 8}
    assert Limits.of({"style": "async", "max_in_flight": 5}, exact=True).window == 5
