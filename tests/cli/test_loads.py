"""Loads as DESIGN 5 has them: one host 1; two that exclude each other 2 native, 6 self-caption; measuring ones once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.engine.systems import canary_bank, gauge, host, system
from torus_ray.bank.load import Bank
from torus_ray.cli.loads import loads_of
from torus_ray.engine.rooms import Room
from torus_ray.protocol.graph import Arm, build_graph
from torus_ray.protocol.requests import Protocol
from torus_ray.systems import System, with_measures

NATIVE, CAPTION = Arm("native"), Arm("self-caption")
G, U = ("generate", "edit"), ("caption", "answer")
ONE_GPU = Room(cpus=8, gpus=1, memory_gb=64)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary_bank(tmp_path_factory.mktemp("bank"), tests=3)


def loads(made: System, bank: Bank, arms: Sequence[Arm], room: Room = ONE_GPU) -> tuple[dict[str, int], bool]:
    graph = build_graph(system=made.name, bank=bank, tests=bank.tests, arms=arms, measures=made.metrics)
    found = loads_of(graph, Protocol(made, bank), [room])
    assert found.never == ()
    return dict(found.loads), found.together


def test_one_host_is_loaded_once(tmp_path: Path, bank: Bank) -> None:
    made = system(tmp_path, {"all": host(num_gpus=1)})
    assert loads(made, bank, [NATIVE, CAPTION]) == ({"all": 1}, True)


@pytest.mark.parametrize(
    ("share", "arms", "expected", "together"),
    [
        (1.0, [NATIVE], {"g": 1, "u": 1}, False),
        (1.0, [CAPTION], {"g": 3, "u": 3}, False),
        (1.0, [NATIVE, CAPTION], {"g": 3, "u": 3}, False),
        (0.5, [CAPTION], {"g": 1, "u": 1}, True),
    ],
)
def test_two_hosts_on_one_gpu(
    tmp_path: Path, bank: Bank, share: float, arms: Sequence[Arm], expected: dict[str, int], together: bool
) -> None:
    made = system(tmp_path, {"g": host(*G, num_gpus=share), "u": host(*U, num_gpus=share)})
    assert loads(made, bank, arms) == (expected, together)


def test_two_that_fit_beside_each_other_and_a_third_that_does_not(tmp_path: Path, bank: Bank) -> None:
    hosts = {
        "g": host("generate", num_gpus=0.5),
        "e": host("edit", num_gpus=0.5),
        "u": host(*U, num_gpus=1),
    }
    assert loads(system(tmp_path, hosts), bank, [NATIVE]) == ({"g": 1, "e": 1, "u": 1}, False)


def test_memory_and_cpus_exclude_too(tmp_path: Path, bank: Bank) -> None:
    made = system(tmp_path, {"g": host(*G, memory_gb=40), "u": host(*U, memory_gb=40)})
    assert loads(made, bank, [NATIVE]) == ({"g": 1, "u": 1}, False)
    made = system(tmp_path, {"g": host(*G, num_cpus=5), "u": host(*U, num_cpus=5)})
    assert loads(made, bank, [CAPTION]) == ({"g": 3, "u": 3}, False)


def test_what_measures_and_does_not_fit_beside_comes_once_at_the_end(tmp_path: Path, bank: Bank) -> None:
    pair = system(tmp_path, {"g": host(*G, num_gpus=1), "u": host(*U, num_gpus=1)})
    made = with_measures(pair, [gauge(tmp_path / "gauge", num_gpus=1)])
    assert loads(made, bank, [CAPTION]) == ({"g": 3, "u": 3, "gauge.gauge": 1}, False)


def test_a_host_that_never_fits_is_named(tmp_path: Path, bank: Bank) -> None:
    made = system(tmp_path, {"g": host(*G, num_gpus=2), "u": host(*U)})
    graph = build_graph(system=made.name, bank=bank, tests=bank.tests, arms=[NATIVE])
    found = loads_of(graph, Protocol(made, bank), [ONE_GPU])
    assert found.never == ("g",)
    assert found.loads == {"u": 1}


def test_a_host_without_work_is_not_loaded(tmp_path: Path, bank: Bank) -> None:
    hosts = {"g": host("generate"), "u": host(*U), "e": host("edit")}
    made = system(tmp_path, hosts)
    assert loads(made, bank, [CAPTION]) == ({"g": 1, "u": 1}, True)
