"""Measures beside a run and after it: what goes wrong with one costs a number, never a render or an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.engine.systems import ARMS, canary_bank, computed, gauge, measured, outcomes, run, system, table
from torus_ray.bank.load import Bank
from torus_ray.engine.opening import Opening
from torus_ray.engine.session import RunOptions, RunResult, measure_runs
from torus_ray.protocol.graph import Arm
from torus_ray.store.layout import clip_path
from torus_ray.store.manifest import read_manifest
from torus_ray.systems import System, SystemCard, with_measures

NATIVE = ARMS[:1]


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary_bank(tmp_path_factory.mktemp("canary") / "bank", tests=3)


def later(folder: Path, bank: Bank, results: Path, arms: tuple[Arm, ...] = NATIVE, **fields: Any) -> RunResult:
    """`torus measure` of runs of the toy."""
    bare = System(SystemCard.model_construct(name="toy", title="toy", hosts={}), {})
    options = RunOptions(results, tests=bank.tests, arms=arms, opening=Opening(inline=True))
    return measure_runs(with_measures(bare, [gauge(folder, **fields)]), bank, options)


def values(result: RunResult, measure: str) -> pl.DataFrame:
    return table(result, "measures").filter(pl.col("measure") == measure).sort("unit_id")


def test_a_measure_is_a_typed_row(bank: Bank, tmp_path: Path) -> None:
    result = run(measured(system(tmp_path), tmp_path / "gauge"), bank, tmp_path / "results", NATIVE)
    assert result.by_status == {"ok": 9 + 27 + 27 + 3}
    frames = values(result, "toy8").row(0, named=True)
    assert (len(frames["values"]), frames["width"], frames["flags"]) == (24, 8, "padded")
    assert frames["unit_id"] == "toy/native/canary-000/counterfactual/measure:toy8"
    assert values(result, "toy-vector")["values_json"][0].startswith('{"peak": 0.')
    words = values(result, "toy-words")
    # One speech test of three: only stages with words to compare with
    assert words["test"].unique().to_list() == ["canary-000"]
    assert all(text.startswith("the tone says") for text in words["text"])
    manifest = read_manifest(result.runs["native"])
    assert manifest is not None
    assert manifest.measures["toy8"].metrics == ("kl", "fad")
    assert manifest.counts["measures"] == {"ok": 30}
    assert "gauge.gauge.measure" in manifest.heads


@pytest.mark.parametrize("fields", [{"settings": {"load_fault": "raise"}}, {"weights": {"net": {"path": "/nowhere"}}}])
def test_a_measuring_host_that_is_not_there_costs_its_numbers_alone(
    bank: Bank, tmp_path: Path, fields: dict[str, Any]
) -> None:
    told: list[str] = []
    made = measured(system(tmp_path), tmp_path / "gauge", **fields)
    result = run(made, bank, tmp_path / "results", NATIVE, told=told)
    assert result.by_status == {"ok": 36, "failed": 30}
    assert result.exit_code == 1
    assert set(table(result, "measures")["reason"]) == {"host_down"}
    assert "goes on without" in "\n".join(told)
    again = run(measured(system(tmp_path), tmp_path / "sound"), bank, tmp_path / "results", NATIVE)
    assert again.by_status == {"ok": 66}
    assert again.computed == 30


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("raise", "error"), ("nan", "not_finite"), ("ragged", "bad_reply"), ("text", "bad_reply"), ("refuse", "too_hard")],
)
def test_a_measure_that_fails_has_a_row_with_its_reason(bank: Bank, tmp_path: Path, kind: str, reason: str) -> None:
    made = measured(system(tmp_path), tmp_path / "gauge", settings={"faults": {"toy-vector": kind}})
    result = run(made, bank, tmp_path / "results", NATIVE, tests=bank.tests[:1])
    bad = values(result, "toy-vector")
    assert set(bad["reason"]) == {reason}
    assert bad.height == 3
    assert set(bad["status"]) == {"refused" if kind == "refuse" else "failed"}
    assert set(table(result, "measures").filter(pl.col("measure") != "toy-vector")["status"]) == {"ok"}


def test_a_render_that_failed_has_nothing_to_measure(bank: Bank, tmp_path: Path) -> None:
    prompt = bank.tests[0].stages.edit.prompt
    made = system(tmp_path, {"toy": {**_toy(), "settings": {"faults": {prompt[:60]: "nan"}}}})
    result = run(measured(made, tmp_path / "gauge"), bank, tmp_path / "results", NATIVE, tests=bank.tests[:1])
    rows = values(result, "toy8")
    assert rows.select("stage", "status", "reason").rows() == [
        ("counterfactual", "no_clip", "failed: not_finite"),
        ("edit", "no_clip", "failed: not_finite"),
        ("generation", "ok", None),
    ]


def _toy() -> dict[str, Any]:
    from tests.engine.systems import host

    return host()


def test_runs_made_without_measures_get_them_later_and_stay_what_they_were(bank: Bank, tmp_path: Path) -> None:
    results = tmp_path / "results"
    plain = run(system(tmp_path), bank, results)
    before = {key: rows for key, rows in outcomes(plain).items() if key[1] != "measures"}
    manifest = read_manifest(plain.runs["native"])
    assert manifest is not None
    result = later(tmp_path / "gauge", bank, results, ARMS)
    assert result.by_status == {"ok": 18 + 60}
    after = outcomes(result)
    for key, rows in before.items():
        assert after[key].equals(rows)
    # Stage 1 is one clip in both arms: measured once
    assert computed(result, "measures").height == 30 + 20
    now = read_manifest(plain.runs["native"])
    assert now is not None
    assert now.measures.keys() == {"toy-words", "toy8", "toy-vector", "toy4"}
    kept = {"tests", "card", "state", "exit_code", "created", "system", "arm"}
    assert now.model_dump(include=kept) == manifest.model_dump(include=kept)
    assert now.heads.keys() == {*manifest.heads, "gauge.gauge.measure"}
    beside = run(measured(system(tmp_path), tmp_path / "gauge"), bank, tmp_path / "beside")
    for key, rows in outcomes(beside).items():
        assert after[key].equals(rows), key
    assert later(tmp_path / "gauge", bank, results, ARMS).computed == 0


def test_a_changed_head_measures_anew_and_nothing_is_rendered_again(bank: Bank, tmp_path: Path) -> None:
    results = tmp_path / "results"
    first = run(measured(system(tmp_path), tmp_path / "gauge"), bank, results, NATIVE, tests=bank.tests[:1])
    # 12 measures of one test; nobody is there who could render
    assert later(tmp_path / "other", bank, results, settings={"accent": "!"}).computed == 12
    assert table(first, "attempts").filter(pl.col("operation") == "measure").height == 24
    assert later(tmp_path / "other", bank, results, settings={"accent": "!"}).computed == 0


def test_a_clip_that_cannot_be_read_is_a_row_and_not_the_end(bank: Bank, tmp_path: Path) -> None:
    results = tmp_path / "results"
    plain = run(system(tmp_path), bank, results, NATIVE)
    folder = plain.runs["native"]
    first, second = table(plain, "renders").sort("unit_id")["clip"][:2]
    clip_path(folder, first).write_bytes(b"no FLAC at all")
    clip_path(folder, second).unlink()
    result = later(tmp_path / "gauge", bank, results)
    bad = table(result, "measures").filter(pl.col("status") == "failed")
    assert set(bad["clip"]) == {first, second}
    assert set(bad["reason"]) == {"clip_damaged"}
    assert table(result, "measures").height == 30
    assert result.exit_code == 1


def test_a_run_without_measures_leaves_those_of_before(bank: Bank, tmp_path: Path) -> None:
    run(measured(system(tmp_path), tmp_path / "gauge"), bank, tmp_path / "results", NATIVE, tests=bank.tests[:1])
    result = run(system(tmp_path), bank, tmp_path / "results", NATIVE)
    manifest = read_manifest(result.runs["native"])
    assert manifest is not None
    assert manifest.measures.keys() == {"toy-words", "toy8", "toy-vector", "toy4"}
    assert "gauge.gauge.measure" in manifest.heads
    assert values(result, "toy8").height == 3


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.parametrize("settings", [{"load_fault": "die"}, {"faults": {"toy8": "die"}}])
def test_a_measuring_process_that_dies_costs_its_numbers_alone(
    bank: Bank, tmp_path: Path, ray_address: str, settings: dict[str, Any]
) -> None:
    told: list[str] = []
    made = measured(system(tmp_path), tmp_path / "gauge", settings=settings)
    result = run(made, bank, tmp_path / "results", NATIVE, tests=bank.tests[:1], address=ray_address, told=told)
    assert set(table(result, "answers")["status"]) == {"ok"}
    assert table(result, "measures").height == 12
    dead = table(result, "measures").filter(pl.col("status") == "failed")
    assert set(dead["reason"]) <= {"host_down", "worker_died"}
    assert dead.height >= 3
    assert told
