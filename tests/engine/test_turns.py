"""Hosts that do not fit at the same time: the whole protocol, loads counted. Replicas are threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import ARMS, canary_bank, host, measured, outcomes, run, system, table
from tests.engine.threads_site import ThreadSite, runs_on
from torus_ray.bank.load import Bank
from torus_ray.engine.rooms import Room
from torus_ray.protocol.executor import EngineStop
from torus_ray.store.manifest import read_manifest

TELLING = str(Path(__file__).parent / "models" / "telling.py") + ":Telling"
ONE_GPU = Room(cpus=16, gpus=1, memory_gb=64)
NATIVE, SELF_CAPTION = ARMS[:1], ARMS[1:]
BATCHES = {"max_batch": {"generate": 2, "edit": 2, "caption": 2, "answer": 2}}


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary_bank(tmp_path_factory.mktemp("canary") / "bank", tests=4)


def pair(gpus: float = 1.0, **fields: Any) -> dict[str, dict[str, Any]]:
    """A generator and a listener."""
    common = {"num_gpus": gpus, "settings": BATCHES, **fields}
    return {"G": host("generate", "edit", **common), "U": host("caption", "answer", **common)}


@pytest.mark.parametrize(
    ("gpus", "arms", "loads"),
    [
        (1.0, NATIVE, ["G", "U"]),
        (1.0, SELF_CAPTION, ["G", "U", "G", "U", "G", "U"]),
        (0.5, SELF_CAPTION, ["G", "U"]),
    ],
)
def test_loads_on_one_gpu(
    gpus: float, arms: Any, loads: list[str], bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = ThreadSite([ONE_GPU])
    runs_on(site, monkeypatch)
    made = system(tmp_path / "card", pair(gpus))
    result = run(made, bank, tmp_path / "r", arms, address="threads")
    assert (sorted(site.loads) if gpus < 1 else site.loads) == loads
    assert site.most_at_once == (2 if gpus < 1 else 1)
    assert set(result.by_status) == {"ok"}
    monkeypatch.undo()
    here = run(system(tmp_path / "here", {"toy": host()}), bank, tmp_path / "inline", arms)
    for name, column in (("renders", "clip"), ("answers", "letter")):
        found, expected = (table(one, name).sort("unit_id")[column].to_list() for one in (result, here))
        assert found == expected


def test_one_host_is_loaded_once_and_a_resumed_run_loads_what_it_needs(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = ThreadSite([ONE_GPU])
    runs_on(site, monkeypatch)
    one = system(tmp_path / "one", {"toy": host(num_gpus=1)})
    run(one, bank, tmp_path / "r1", ARMS, address="threads")
    assert site.loads == ["toy"]
    site.loads.clear()
    two = system(tmp_path / "two", pair(adapter=TELLING))
    run(two, bank, tmp_path / "r2", NATIVE, address="threads")
    louder = pair(adapter=TELLING)
    louder["U"]["settings"] = {**BATCHES, "accent": "!"}
    site.loads.clear()
    result = run(system(tmp_path / "two", louder), bank, tmp_path / "r2", NATIVE, address="threads")
    assert site.loads == ["U"]  # the clips are there; only answers are asked anew
    manifest = read_manifest(result.runs["native"])
    assert manifest is not None
    observed = {name: head.observed for name, head in manifest.heads.items()}
    assert observed["G.generate"] == {"accent": ""}  # what a host said that was not up this time stays
    assert observed["U.answer"] == {"accent": "!"}
    assert manifest.versions.keys() == {"G", "U"}


@pytest.mark.parametrize(("gpus", "arms", "before"), [(1.0, NATIVE, ["G", "U"]), (1.0, SELF_CAPTION, ["G", "U"] * 3)])
def test_measuring_hosts_that_do_not_fit_wait_and_load_once_at_the_end(
    gpus: float, arms: Any, before: list[str], bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = ThreadSite([ONE_GPU])
    runs_on(site, monkeypatch)
    made = measured(system(tmp_path / "card", pair(gpus)), tmp_path / "gauge", num_gpus=gpus)
    result = run(made, bank, tmp_path / "r", arms, address="threads")
    assert site.loads == [*before, "gauge.gauge"]
    assert set(result.by_status) == {"ok"}
    assert set(table(result, "measures")["status"]) == {"ok"}


def test_measuring_hosts_that_fit_beside_the_others_but_not_beside_both_come_last(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = ThreadSite([ONE_GPU])
    runs_on(site, monkeypatch)
    made = measured(system(tmp_path / "card", pair(0.5)), tmp_path / "gauge", num_gpus=0.5)
    run(made, bank, tmp_path / "r", NATIVE, address="threads")
    assert sorted(site.loads[:2]) == ["G", "U"]
    assert site.loads[2:] == ["gauge.gauge"]


def test_a_host_of_whose_turn_nothing_comes_stops_the_run_and_the_same_command_goes_on(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = ThreadSite([ONE_GPU])
    runs_on(site, monkeypatch)
    broken = pair()
    broken["U"]["settings"] = {**BATCHES, "load_fault": "raise"}
    with pytest.raises(EngineStop, match="no weights at /nowhere"):
        run(system(tmp_path / "card", broken), bank, tmp_path / "r", NATIVE, address="threads")
    site.loads.clear()
    result = run(system(tmp_path / "card", pair()), bank, tmp_path / "r", NATIVE, address="threads")
    assert site.loads == ["U"]
    assert set(result.by_status) == {"ok"}


def test_what_never_fits_is_told_at_once(bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = ThreadSite([ONE_GPU])
    runs_on(site, monkeypatch)
    big = pair()
    big["U"]["num_gpus"] = 2
    with pytest.raises(EngineStop, match="host 'U' wants num_gpus = 2, this Ray has 1"):
        run(system(tmp_path / "card", big), bank, tmp_path / "r", NATIVE, address="threads")
    assert site.loads == []


def test_replicas_side_by_side_leave_the_rows_of_one(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = ThreadSite([Room(cpus=16, gpus=6, memory_gb=64)])
    runs_on(site, monkeypatch)
    result = run(system(tmp_path / "card", pair(replicas=3)), bank, tmp_path / "r", ARMS, address="threads")
    assert sorted(site.loads) == ["G"] * 3 + ["U"] * 3
    monkeypatch.undo()
    alone = run(system(tmp_path / "card", pair()), bank, tmp_path / "inline", ARMS)
    theirs = outcomes(alone)
    for key, rows in outcomes(result).items():
        assert rows.equals(theirs[key]), key
