"""What a host's actor is told, and how many replicas fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from torus_ray.engine.hosts import HostPlan, Limits, replicas_that_fit, unfit
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


def test_replicas_grow_in_turn_until_something_is_used_up() -> None:
    plans = {"g": plan("g"), "u": plan("u", replicas=1)}
    assert replicas_that_fit(plans, cpus=4, gpus=0, memory_gb=100) == {"g": 3, "u": 1}
    assert replicas_that_fit(plans, cpus=4, gpus=0, memory_gb=3) == {"g": 2, "u": 1}
    big = {"g": plan("g", num_gpus=0.5), "u": plan("u", num_gpus=0.5)}
    assert replicas_that_fit(big, cpus=64, gpus=2, memory_gb=100) == {"g": 2, "u": 2}


def test_what_only_measures_takes_no_cpu_and_what_is_left_of_the_rest() -> None:
    measuring = {"heads": {"measure": HeadCard()}}
    plans = {"m": plan("m", replicas=4, **measuring), "g": plan("g"), "one": plan("one", **measuring)}
    assert plans["m"].ray_cpus == 0
    assert replicas_that_fit(plans, cpus=2, gpus=0, memory_gb=100) == {"m": 4, "g": 2, "one": 1}
    assert replicas_that_fit(plans, cpus=2, gpus=0, memory_gb=4) == {"m": 1, "g": 2, "one": 1}
    assert plans["m"].payload()["background"] is True
    assert plans["g"].payload()["background"] is False


def test_a_host_that_ray_could_never_place_is_told_before_it_waits_for_ever() -> None:
    there = {"CPU": 2.0, "memory": 4.0 * 1024**3}
    assert unfit(plan(), there) is None
    told = unfit(plan(num_gpus=1), there)
    assert told is not None
    assert "wants num_gpus = 1, this Ray has 0.0" in told.message
    assert unfit(plan(num_cpus=8, heads={"measure": HeadCard()}), there) is None


def test_a_head_whose_replies_depend_on_the_batch_is_sent_one_at_a_time_under_exact() -> None:
    told = {"style": "batch", "max_batch": {"answer": 8}, "batch_invariant": False}
    assert Limits.of(told, exact=False).max_batch == {"answer": 8}
    assert Limits.of(told, exact=True).max_batch == {}
    assert Limits.of({**told, "batch_invariant": True}, exact=True).max_batch == {"answer": 8}
    assert Limits.of({"style": "async", "max_in_flight": 5}, exact=True).window == 5
