"""SIGKILL of each process of a run once, at each point once: the run, or the same command, then finishes as if nothing
had been. The whole grid is benchmarks/kills.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import kills
from benchmarks.driven import Place, at_least, place
from benchmarks.kills import Outcome
from tests.canary import make_canary_bank

pytestmark = [pytest.mark.ray, pytest.mark.timeout(500)]

TESTS = 12
UNITS = TESTS * 26


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_canary_bank(tmp_path_factory.mktemp("canary") / "bank", TESTS).path


@pytest.fixture(scope="module")
def at(bank: Path) -> Iterator[Place]:
    with place(bank, latency_s=0.01) as made:
        yield made


@pytest.fixture(scope="module")
def undisturbed(at: Place) -> Outcome:
    """Inline: it leaves the rows that Ray leaves (test_ray_rows.py)."""
    run = at.start("undisturbed", address="inline")
    assert run.wait() == 0, run.told[-20:]
    assert run.units_done() == UNITS
    return at.outcome("undisturbed")


@pytest.mark.parametrize("point", [p for p in kills.POINTS if "renamed" not in p])  # those: tests/store, the benchmark
def test_driver_killed_at_a_point_of_the_store(point: str, at: Place, undisturbed: Outcome, ray_address: str) -> None:
    results = point.partition(":")[0]
    killed = at.start(results, fault=point, address=ray_address)
    assert killed.wait() == -9, killed.told[-20:]
    survived = kills.survive_driver_kill(at, results, killed, 0.0, point, ray_address)
    assert survived.units_kept < UNITS or point.startswith("compaction")
    kills.assert_same(at.outcome(results), undisturbed)


def test_driver_killed_while_a_host_starts(at: Place, undisturbed: Outcome, bank: Path) -> None:
    with place(bank, latency_s=0.01, load_s=5) as slow:
        starting = slow.start("r")
        kills.await_victim(starting, "host")
        killed_at = kills.kill(starting, "driver")
        survived = kills.survive_driver_kill(slow, "r", starting, killed_at, "while a host starts")
        assert survived.units_kept == 0
        # load_s is a setting, so it is another head that says the same
        kills.assert_same(slow.outcome("r"), undisturbed, without=("key", "fingerprint"))


def test_driver_killed_in_the_middle(at: Place, undisturbed: Outcome) -> None:
    run = at.start("driver")
    run.wait_for(at_least(UNITS // 4))
    killed_at = kills.kill(run, "driver")
    survived = kills.survive_driver_kill(at, "driver", run, killed_at, "in the middle")
    assert UNITS // 4 <= survived.units_kept < UNITS
    kills.assert_same(at.outcome("driver"), undisturbed)


@pytest.mark.parametrize("what", ["host", "raylet", "gcs_server"])
def test_a_run_goes_on_by_itself(what: str, at: Place, undisturbed: Outcome) -> None:
    run = at.start(what)
    survived = kills.survive_in_process(run, what, UNITS // 4)
    print(survived)  # `pytest -rP` shows the seconds
    assert survived.units_kept < UNITS
    kills.assert_same(at.outcome(what), undisturbed)
    assert [path.name for path in at.temporary.iterdir()] == []


def test_nothing_is_left_running(at: Place) -> None:
    assert at.processes() == []
