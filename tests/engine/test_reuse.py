"""Equal work is done once: what a change of one part costs, by counting what heads were asked for."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.canary import make_canary_bank
from tests.engine.systems import ARMS, canary_bank, computed, host, outcomes, run, system, table
from tests.store.sample import encoded_otherwise
from torus_ray.bank.load import Bank, load_bank
from torus_ray.engine.session import RunResult
from torus_ray.protocol.graph import Arm
from torus_ray.store.clips import read_clip
from torus_ray.store.layout import clip_path, run_folder
from torus_ray.systems import System

TESTS = 3


def parts(folder: Path, name: str, **accents: str) -> System:
    """A system of three hosts; another accent makes another head."""
    settings = {part: {"accent": accents.get(part, "")} for part in ("hands", "ears", "mind")}
    return system(
        folder / name,
        {
            "hands": host("generate", "edit", settings=settings["hands"]),
            "ears": host("caption", settings=settings["ears"]),
            "mind": host("answer", settings=settings["mind"]),
        },
        name=name,
    )


def asked(result: RunResult) -> dict[str, list[str]]:
    """Units that a head was asked for in the newest command, without the system's name."""
    return {
        name: sorted(unit.partition("/")[2] for unit in computed(result, name)["unit_id"])
        for name in ("renders", "captions", "answers")
    }


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return canary_bank(tmp_path / "bank", TESTS)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RunResult]:
    """The run that the tests go on from, made once, and where."""
    folder = tmp_path_factory.mktemp("original")
    return folder, run(parts(folder, "one"), canary_bank(folder / "bank", TESTS), folder / "results")


@pytest.fixture
def first(original: tuple[Path, RunResult], bank: Bank, tmp_path: Path) -> RunResult:
    """A copy of it that a test may change."""
    folder, result = original
    shutil.copytree(folder / "results", tmp_path / "results")
    return replace(result, runs={arm: tmp_path / at.relative_to(folder) for arm, at in result.runs.items()})


def test_a_first_run_asks_for_everything_and_shares_stage_one(first: RunResult) -> None:
    found = asked(first)
    assert len(found["renders"]) == TESTS * (3 + 2)
    assert len(found["captions"]) == TESTS * 2
    assert len(found["answers"]) == TESTS * (9 + 6)
    assert table(first, "renders").height == TESTS * 6
    assert table(first, "answers").height == TESTS * 18
    assert first.by_status == {"ok": TESTS * (6 + 2 + 18)}


def test_the_same_command_again_asks_nobody_and_changes_nothing(first: RunResult, bank: Bank, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for folder in first.runs.values() for path in folder.rglob("*.parquet")}
    again = run(parts(tmp_path, "one"), bank, tmp_path / "results")
    assert (again.computed, again.by_status) == (0, first.by_status)
    assert before == {path: path.read_bytes() for folder in again.runs.values() for path in folder.rglob("*.parquet")}


def test_another_answering_head_renders_nothing_and_answers_everything(
    first: RunResult, bank: Bank, tmp_path: Path
) -> None:
    second = run(parts(tmp_path, "two", mind="I say "), bank, tmp_path / "results")
    found = asked(second)
    assert (found["renders"], found["captions"]) == ([], [])
    assert len(found["answers"]) == TESTS * 15
    assert table(second, "renders")["reused_from"].null_count() == 0
    assert sorted(table(second, "renders")["clip"]) == sorted(table(first, "renders")["clip"])
    # the clips are there too: a run folder stands alone
    for arm, folder in second.runs.items():
        assert len(list(folder.rglob("*.flac"))) == TESTS * 3, arm


def test_another_captioner_renders_stages_two_and_three_of_the_self_caption_arm(
    first: RunResult, bank: Bank, tmp_path: Path
) -> None:
    found = asked(run(parts(tmp_path, "two", ears=" as it seems"), bank, tmp_path / "results"))
    assert len(found["captions"]) == TESTS * 2
    assert found["renders"] == sorted(
        f"self-caption/{test.id}/{stage}/generate" for test in bank.tests for stage in ("edit", "counterfactual")
    )
    assert len(found["answers"]) == TESTS * 6
    assert {unit.split("/")[0] for unit in found["answers"]} == {"self-caption"}
    assert not [unit for unit in found["answers"] if "/generation/" in unit]


@pytest.mark.parametrize("stage", ["generation", "counterfactual"])
def test_one_question_edited_costs_one_answer_an_arm(first: RunResult, bank: Bank, tmp_path: Path, stage: str) -> None:
    file = tmp_path / "bank" / "canary-002.json"
    test: dict[str, Any] = json.loads(file.read_text())
    test["stages"][stage]["questions"][2]["text"] += " Listen well."
    file.write_text(json.dumps(test))
    changed = load_bank(tmp_path / "bank")
    assert changed.hash != bank.hash
    result = run(parts(tmp_path, "one"), changed, tmp_path / "results")
    found = asked(result)
    assert (found["renders"], found["captions"]) == ([], [])
    units = [f"{arm}/canary-002/{stage}/answer/q3/0/0" for arm in ("native", "self-caption")]
    assert set(found["answers"]) <= set(units)
    # stage 1 is one clip in both arms, so its question is asked once
    assert len(found["answers"]) == (1 if stage == "generation" else 2)
    assert set(result.runs.values()).isdisjoint(first.runs.values())


def test_a_clip_taken_over_is_named_as_it_lies_even_where_another_encoder_wrote_it(
    first: RunResult, bank: Bank, tmp_path: Path
) -> None:
    """Two environments may hold two releases of the encoder: one sound, two files."""
    again = load_bank(renamed(tmp_path / "bank", "again"))
    row = table(first, "renders").row(0, named=True)
    run_there = run_folder(tmp_path / "results", again.card.name, again.hash, "one", "native")
    lying = clip_path(run_there, row["clip"])
    lying.parent.mkdir(parents=True)
    lying.write_bytes(encoded_otherwise(read_clip(first.runs["native"], row["clip"])))
    result = run(parts(tmp_path, "one"), again, tmp_path / "results")
    assert asked(result) == {"renders": [], "captions": [], "answers": []}
    for kept in table(result, "renders").iter_rows(named=True):
        if kept["arm"] == "native":
            assert len(read_clip(run_there, kept["clip"], kept["clip_sha256"])) == kept["clip_bytes"]


def renamed(folder: Path, name: str) -> Path:
    """The bank in `folder` under another name: the same tests, other run folders."""
    card = json.loads((folder / "bank.json").read_text())
    (folder / "bank.json").write_text(json.dumps({**card, "name": name}))
    return folder


def test_a_test_added_costs_its_own_units(first: RunResult, tmp_path: Path) -> None:
    make_canary_bank(tmp_path / "bank", TESTS + 1)
    result = run(parts(tmp_path, "one"), load_bank(tmp_path / "bank"), tmp_path / "results")
    found = asked(result)
    assert {unit.split("/")[1] for units in found.values() for unit in units} == {f"canary-{TESTS:03d}"}
    assert [len(found[name]) for name in ("renders", "captions", "answers")] == [5, 2, 15]
    assert result.by_status == {"ok": (TESTS + 1) * 26}


def test_a_limit_and_then_all_is_one_run_growing(original: tuple[Path, RunResult], bank: Bank, tmp_path: Path) -> None:
    made = parts(tmp_path, "one")
    some = run(made, bank, tmp_path / "results", tests=bank.tests[:2])
    grown = run(made, bank, tmp_path / "results")
    assert some.runs == grown.runs
    assert (some.computed, grown.computed) == (2 * 26, (TESTS - 2) * 26)
    _, whole = original
    assert {key: rows.rows() for key, rows in outcomes(grown).items()} == {
        key: rows.rows() for key, rows in outcomes(whole).items()
    }


def test_an_arm_added_later_finds_stage_one(bank: Bank, tmp_path: Path) -> None:
    made = parts(tmp_path, "one")
    run(made, bank, tmp_path / "results", ARMS[:1])
    found = asked(run(made, bank, tmp_path / "results", ARMS[1:]))
    assert not [unit for name in ("renders", "answers") for unit in found[name] if "/generation/" in unit]
    assert len(found["renders"]) == TESTS * 2


def test_seeds_are_pooled_apart_and_share_nothing(bank: Bank, tmp_path: Path) -> None:
    made = parts(tmp_path, "one")
    arms = (Arm("native"), Arm("native", 1))
    result = run(made, bank, tmp_path / "results", arms, tests=bank.tests[:1])
    assert set(result.runs) == {"native", "native.seed1"}
    assert len(asked(result)["renders"]) == 6


def test_a_clip_whose_file_is_gone_is_rendered_again(first: RunResult, bank: Bank, tmp_path: Path) -> None:
    folder = first.runs["native"]
    unit = "one/native/canary-000/counterfactual/edit"
    row = table(first, "renders").filter(pl.col("unit_id") == unit).row(0, named=True)
    for found in folder.rglob(f"{row['clip']}.flac"):
        found.unlink()
    again = run(parts(tmp_path, "one"), bank, tmp_path / "results")
    assert again.computed == 1
    assert list(folder.rglob(f"{row['clip']}.flac"))


def test_an_edited_head_under_the_same_name_is_asked_anew_and_no_run_is_a_mix(
    first: RunResult, bank: Bank, tmp_path: Path
) -> None:
    changed = parts(tmp_path / "later", "one", mind="another")
    again = run(changed, bank, tmp_path / "results")
    assert again.computed == TESTS * 18, "every answer, and nothing else"
    assert table(again, "answers")["fingerprint"].n_unique() == 1
    assert run(changed, bank, tmp_path / "results").computed == 0


def test_an_edited_renderer_under_the_same_name_renders_and_asks_anew(
    first: RunResult, bank: Bank, tmp_path: Path
) -> None:
    again = run(parts(tmp_path / "later", "one", hands="another"), bank, tmp_path / "results")
    heads = table(again, "renders").select("operation", "fingerprint").unique()
    assert heads["operation"].n_unique() == heads.height, "one head an operation"
    heard = set(table(again, "answers")["clip"])
    assert heard <= set(table(again, "renders")["clip"]), "no answer is about a clip of the earlier code"


# --- what failed ------------------------------------------------------------------------------------------------------


def faulty(folder: Path, bank: Bank, kind: str, *, seeded: bool = True) -> System:
    settings = {"faults": {bank.tests[0].stages.edit.prompt: kind}, "flaky": str(folder)}
    return system(folder, {"toy": host(settings=settings, heads={"edit": {"seeded": seeded}})})


def test_what_failed_is_tried_again_and_the_new_row_replaces_the_old(bank: Bank, tmp_path: Path) -> None:
    made = faulty(tmp_path, bank, "once_raise")
    result = run(made, bank, tmp_path / "results", ARMS[:1], tests=bank.tests[:1])
    assert result.by_status == {"ok": 12}, "a second try mends what passes"
    broken = faulty(tmp_path / "other", bank, "raise")
    result = run(broken, bank, tmp_path / "r2", ARMS[:1], tests=bank.tests[:1])
    assert result.by_status == {"ok": 4, "failed": 1, "no_clip": 7}
    assert result.exit_code == 1
    again = run(broken, bank, tmp_path / "r2", ARMS[:1], tests=bank.tests[:1])
    assert (again.computed, again.by_status) == (1, result.by_status), "what hangs on it keeps its rows"
    assert table(again, "renders").height == 3
    assert table(again, "attempts").filter(pl.col("status") == "failed").height == 4


def test_a_seeded_clip_of_no_numbers_is_final_with_all_that_hangs_on_it(bank: Bank, tmp_path: Path) -> None:
    made = faulty(tmp_path, bank, "nan")
    result = run(made, bank, tmp_path / "results", ARMS[:1], tests=bank.tests[:1])
    assert result.by_status == {"ok": 4, "failed": 1, "no_clip": 7}
    reasons = table(result, "answers").filter(pl.col("status") == "no_clip")["reason"].unique().to_list()
    assert reasons == ["failed: not_finite"]
    again = run(made, bank, tmp_path / "results", ARMS[:1], tests=bank.tests[:1])
    assert (again.computed, again.by_status, again.exit_code) == (0, result.by_status, 1)
    unseeded = faulty(tmp_path / "other", bank, "nan", seeded=False)
    run(unseeded, bank, tmp_path / "r2", ARMS[:1], tests=bank.tests[:1])
    assert run(unseeded, bank, tmp_path / "r2", ARMS[:1], tests=bank.tests[:1]).computed > 0


def test_one_bad_question_fails_alone_and_keeps_the_attempts_of_its_clip(bank: Bank, tmp_path: Path) -> None:
    bad = bank.tests[0].stages.generation.questions[1]
    made = system(tmp_path, {"toy": host(settings={"faults": {bad.text: "raise"}})})
    result = run(made, bank, tmp_path / "results", ARMS[:1], tests=bank.tests[:1])
    assert result.by_status == {"ok": 11, "failed": 1}
    failed = table(result, "answers").filter(pl.col("status") == "failed").row(0, named=True)
    assert (failed["question"], failed["reason"]) == ("q2", "error")
    assert "a toy fault" in failed["message"]
    attempts = table(result, "attempts").filter(pl.col("unit_id") == failed["unit_id"]).sort("attempt")
    assert attempts["attempt"].to_list() == [1, 2, 3, 4]
    assert attempts["traceback"].str.contains("a toy fault").all()
