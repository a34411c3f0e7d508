from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.sample import FINGERPRINT, answer, key, manifest, render, tone
from torus_ray.store import HeadInfo, LocalRunStore, index
from torus_ray.store.index import ReuseIndex
from torus_ray.store.layout import run_folder


def make(results: Path, arm: str, fingerprint: str = FINGERPRINT) -> Path:
    run = run_folder(results, "mini", "0" * 64, "sys", arm)
    with LocalRunStore(run) as store:
        store.write_manifest(manifest(arm=arm, heads={"generate": HeadInfo(fingerprint=fingerprint)}))
        store.append("renders", [render("t1", tone(1), fingerprint=fingerprint)], clips=[tone(1)])
        store.append("renders", [render("t2", None, fingerprint=fingerprint)])
        store.append("answers", [answer("t1", "q1", tone(1).id, fingerprint=fingerprint, reply=f"B, says {arm}")])
    return run


def test_a_finished_outcome_is_found_by_its_key(tmp_path: Path) -> None:
    run = make(tmp_path, "native")
    found = ReuseIndex(tmp_path, {FINGERPRINT}).find("renders", render("t1", tone(1))["key"])
    assert found is not None
    assert found.run == run
    assert found.unit_id == "sys/native/t1/generation/generate"
    assert found.outcome["clip"] == tone(1).id
    assert found.outcome["frames"] == 2000
    assert "prompt" not in found.outcome


def test_failures_and_unknown_keys_are_not(tmp_path: Path) -> None:
    make(tmp_path, "native")
    known = ReuseIndex(tmp_path, {FINGERPRINT})
    assert known.find("renders", render("t2", None)["key"]) is None
    assert known.find("renders", key("never asked")) is None
    right = render("t1", tone(1))["key"]
    assert known.find("renders", right[:-1] + ("0" if right[-1] != "0" else "1")) is None


def test_runs_of_other_heads_are_not_looked_into(tmp_path: Path) -> None:
    make(tmp_path, "native", fingerprint="0" * 64)
    known = ReuseIndex(tmp_path, {FINGERPRINT})
    assert known.runs == ()
    assert len(known) == 0


def test_this_run_comes_first(tmp_path: Path) -> None:
    make(tmp_path, "a")
    here = make(tmp_path, "b")
    known = ReuseIndex(tmp_path, {FINGERPRINT}, here=[here])
    found = known.find("answers", answer("t1", "q1", None)["key"])
    assert found is not None
    assert found.outcome["reply"] == "B, says b"
    assert len(known) == 2  # a render and an answer, once each


def test_new_rows_are_found_at_once_and_after_they_have_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_SETTLE", 10)
    here = make(tmp_path, "native")
    known = ReuseIndex(tmp_path, {FINGERPRINT}, here=[here])
    rows = [answer(f"new{number}", "q1", None, reply=str(number)) for number in range(25)]
    for row in rows:
        known.add("answers", [row, answer("failing", row["test"], None, status="failed")], here)
    for row in rows:
        found = known.find("answers", row["key"])
        assert found is not None
        assert found.outcome["reply"] == row["reply"]
    assert known.find("answers", answer("failing", "new1", None)["key"]) is None


def test_an_unreadable_run_beside_does_not_stand_in_the_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = make(tmp_path, "native")
    broken = make(tmp_path, "other")
    (broken / "run.json").write_text("{")
    assert list(ReuseIndex(tmp_path, {FINGERPRINT}).runs) == [run]
    assert str(broken) in caplog.text
