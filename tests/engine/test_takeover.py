"""Replicas that hang, are slow, answer twice: others take their calls over, and no unit is done twice. Replicas are
threads."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.engine.systems import canary_bank, host, run, system, table
from tests.engine.threads_site import ThreadSite, runs_on
from torus_ray.bank.load import Bank
from torus_ray.engine.pools import Pool
from torus_ray.engine.rooms import Room
from torus_ray.engine.session import RunResult
from torus_ray.protocol.graph import Arm

NATIVE = (Arm("native"),)
ROOM = Room(cpus=16, memory_gb=64)
HANG_S = 45.0
TESTS = 8


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary_bank(tmp_path_factory.mktemp("canary") / "bank", tests=TESTS)


def go(site: ThreadSite, bank: Bank, folder: Path, patch: pytest.MonkeyPatch, **fields: Any) -> RunResult:
    runs_on(site, patch)
    card = {"settings": {"latency_s": 0.02}, "replicas": 3, **fields}
    return run(system(folder / "card", {"toy": host(**card)}), bank, folder / "r", NATIVE, address="threads")


def assert_whole(result: RunResult) -> None:
    """Every unit is done, and was asked for once."""
    assert result.by_status == {"ok": TESTS * 12}
    assert table(result, "attempts").height == TESTS * 12
    for name in ("renders", "answers"):
        assert table(result, name)["unit_id"].is_unique().all()


@pytest.mark.parametrize("batch", [1, 3])
def test_what_a_hanging_replica_holds_is_done_by_others(
    batch: int, bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = dict.fromkeys(("generate", "edit", "answer"), batch)
    site = ThreadSite([ROOM], slow={"toy#1": HANG_S})
    began = time.monotonic()
    result = go(site, bank, tmp_path, monkeypatch, settings={"latency_s": 0.02, "max_batch": sizes})
    assert time.monotonic() - began < HANG_S
    assert_whole(result)
    assert set(table(result, "attempts")["worker"]) == {"toy#2", "toy#3"}
    assert site.loads == ["toy"] * 3


def test_a_slow_replica_gets_less(bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = ThreadSite([ROOM], slow={"toy#1": 0.4})
    result = go(site, bank, tmp_path, monkeypatch)
    assert_whole(result)
    calls = table(result, "attempts").group_by("worker").agg(pl.col("submitted_at").n_unique())
    counts = dict(calls.iter_rows())
    assert counts.get("toy#1", 0) < min(counts["toy#2"], counts["toy#3"]) / 2


def test_a_hanging_coroutine_is_done_by_another_replica(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = str(Path(__file__).parent / "models" / "toy.py") + ":ToyAsync"
    faults = {"faults": {bank.tests[0].stages.edit.prompt: "once_hang"}, "flaky": str(tmp_path), "latency_s": 0.02}
    site = ThreadSite([ROOM])
    heads = {"edit": {"deadline_s": HANG_S}}
    began = time.monotonic()
    result = go(
        site, bank, tmp_path, monkeypatch, adapter=adapter, style="async", settings=faults, replicas=2, heads=heads
    )
    assert time.monotonic() - began < HANG_S
    assert_whole(result)


def test_a_reply_that_comes_twice_counts_once(bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = Pool._watch

    def twice(pool: Pool, *what: Any) -> None:
        once(pool, *what)
        once(pool, *what)

    monkeypatch.setattr(Pool, "_watch", twice)
    assert_whole(go(ThreadSite([ROOM]), bank, tmp_path, monkeypatch))


def test_a_request_that_failed_before_is_not_copied(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = {bank.tests[0].stages.edit.prompt: "raise"}
    result = go(ThreadSite([ROOM]), bank, tmp_path, monkeypatch, settings={"latency_s": 0.02, "faults": faults})
    tried = table(result, "attempts").filter(pl.col("status") == "failed")
    assert tried.height == 2
    assert result.by_status["failed"] == 1
