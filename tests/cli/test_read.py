"""The commands that read a run: score, report, show, replay, verify, through the command line's own entry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.report.sample import MODEL, canary, make_runs
from torus_ray.bank.load import Bank
from torus_ray.protocol.graph import Arm
from torus_ray.store import LocalRunStore
from torus_ray.store.layout import clip_path
from torus_ray.store.reader import current_rows

QUESTION = "canary-001/edit/q2"


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary(tmp_path_factory.mktemp("bank"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, bank: Bank) -> Path:
    folder = tmp_path_factory.mktemp("results")
    make_runs(folder, bank)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, bank: Bank) -> Path:
    """All arms of one test: enough where a process of its own reads them."""
    folder = tmp_path_factory.mktemp("small")
    make_runs(folder, bank, tests=1)
    return folder


@pytest.fixture
def mine(results: Path, tmp_path: Path) -> Path:
    """The system's folder of a copy that a test may damage."""
    shutil.copytree(results, tmp_path / "results")
    (system,) = (tmp_path / "results").glob("*/toy")
    return system


def test_reading_never_loads_ray(small: Path) -> None:
    program = """
import json, sys
from torus_ray.cli import _run
for words in json.loads(sys.argv[1]):
    code = _run(words)
    if code or "ray" in sys.modules:
        sys.exit(f"{words}: exit code {code}, ray loaded: {'ray' in sys.modules}")
"""
    at = str(small)
    commands = [["--help"], ["score", at], ["report", at, "--format", "csv"], ["verify", at]]
    done = subprocess.run([sys.executable, "-c", program, json.dumps(commands)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]


def test_the_module_is_the_command(small: Path) -> None:
    command = [sys.executable, "-m", "torus_ray.cli", "report", str(small)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "native.muted" in done.stdout


# --- score, report ----------------------------------------------------------------------------------------------------


def test_score_prints_the_table_and_its_breakdowns(cli: Cli, results: Path) -> None:
    code, out, _ = cli("score", results)
    assert code == 0
    for title in ("Coherence in %", "By audio type", "By family", "By stage x audio type", "By audio type x family"):
        assert title in out


def test_score_as_json(cli: Cli, results: Path) -> None:
    code, out, _ = cli("score", results, "--json")
    told = json.loads(out)
    assert code == 0
    assert [row["arm"] for row in told["rows"]] == ["native", "self-caption", "native.muted", "native.swapped"]
    assert told["rows"][0]["changed"] == 0
    assert told["bank"]["human_verified"] == 0


def test_report_writes_files(cli: Cli, results: Path, tmp_path: Path) -> None:
    for form, mark in (("markdown", "| native |"), ("csv", "bank,system,arm"), ("terminal", "native.swapped")):
        out = tmp_path / f"report.{form}"
        code, said, _ = cli("report", results, "--format", form, "--by", "type,stage+family", "--out", out)
        assert (code, said) == (0, f"written: {out}\n")
        assert mark in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("by", ["colour", "stage+stage", "stage,family+key"])
def test_report_by_what_there_is_not(cli: Cli, results: Path, by: str) -> None:
    code, out, err = cli("report", results, "--by", by)
    assert (code, out) == (2, "")
    assert "--by" in err
    assert "audio_type" in err


def test_report_to_a_folder_that_is_not_there(cli: Cli, results: Path, tmp_path: Path) -> None:
    code, _, err = cli("report", results, "--format", "csv", "--out", tmp_path / "no" / "where.csv")
    assert code == 2
    assert "cannot be written" in err


@pytest.mark.parametrize("command", ["score", "report", "verify"])
def test_what_is_no_run(cli: Cli, tmp_path: Path, command: str) -> None:
    code, out, err = cli(command, tmp_path)
    assert (code, out) == (2, "")
    assert "no run at" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", ["score", "report"])
def test_a_run_without_answers(cli: Cli, mine: Path, command: str) -> None:
    shutil.rmtree(mine / "native" / "tables" / "answers")
    code, _, err = cli(command, mine / "native")
    assert code == 2
    assert "there are no answers to count" in err


# --- show -------------------------------------------------------------------------------------------------------------


def test_show_an_answer(cli: Cli, results: Path) -> None:
    code, out, _ = cli("show", results, f"native/{QUESTION}")
    assert code == 0
    (run,) = results.glob("*/toy/native")
    row = current_rows(run, "answers").to_dicts()
    wanted = next(r for r in row if r["unit_id"] == "toy/native/canary-001/edit/answer/q2/0/0")
    for text in (wanted["question_text"], wanted["option_f"], "Listen to the audio", "raw reply: "):
        assert text in out
    assert f"letter: {wanted['letter']} (rule R1)" in out
    assert f"right letter: {wanted['answer_letter']}" in out
    assert str(clip_path(run, wanted["clip"])) in out
    assert "0.25 s, 8000 Hz, 1 channel(s), 16 bit" in out


def test_show_a_render_its_caption_and_attempts(cli: Cli, results: Path) -> None:
    _, out, _ = cli("show", results, "self-caption/canary-000/edit/generate")
    assert "from the caption: a tone of 2000 samples" in out
    assert "Now change it" in out
    _, out, _ = cli("show", results, "toy/native/canary-000/generation/generate", "--json")
    told = json.loads(out)
    assert told["clip"]["rate_hz"] == 8000
    assert told["attempts"][0]["worker"] == "toy#1"


def test_show_controls_their_clip_lies_elsewhere(cli: Cli, results: Path) -> None:
    _, out, _ = cli("show", results, f"native.muted/{QUESTION}")
    assert "digital silence" in out
    _, out, _ = cli("show", results, f"native.swapped/{QUESTION}")
    assert "/toy/native/clips/" in out
    assert "source test canary-004" in out
    assert "made by toy/native/canary-004/edit/edit" in out


def test_show_a_unit_that_is_not_there(cli: Cli, results: Path) -> None:
    code, out, err = cli("show", results, "canary-01/edit/q2")
    assert (code, out) == (2, "")
    assert "no unit is called 'canary-01/edit/q2'" in err
    assert "canary-001/edit/answer/q2" in err


def test_show_what_means_several(cli: Cli, results: Path) -> None:
    code, _, err = cli("show", results, QUESTION)
    assert code == 2
    assert "means 4 units" in err
    assert "toy/native.swapped/canary-001/edit/answer/q2/0/0" in err


# --- replay -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["native/" + QUESTION, "native/canary-001/edit/edit", "canary-001/generation/caption"])
def test_replay_is_equal(cli: Cli, mine: Path, unit: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in mine.rglob("*")}
    code, out, err = cli("replay", mine, unit, "--model", f"{MODEL}:Toy")
    assert (code, err) == (0, "")
    assert out.rstrip().endswith("\nequal")
    assert {path: path.stat().st_mtime_ns for path in mine.rglob("*")} == before


@pytest.mark.parametrize("arm", ["native.muted", "native.swapped"])
def test_replay_of_a_control(cli: Cli, mine: Path, arm: str) -> None:
    assert cli("replay", mine, f"{arm}/{QUESTION}", "--model", f"{MODEL}:Toy")[0] == 0


def test_replay_tells_what_differs(cli: Cli, mine: Path) -> None:
    row = next(
        r for r in current_rows(mine / "native", "answers").to_dicts() if "canary-001/edit/answer/q2" in r["unit_id"]
    )
    with LocalRunStore(mine / "native") as store:
        store.append("answers", [{**row, "reply": "Z"}])
    code, out, _ = cli("replay", mine, f"native/{QUESTION}", "--model", f"{MODEL}:Toy", "--json")
    told = json.loads(out)
    assert (code, told["equal"]) == (1, False)
    assert (told["stored"]["reply"], told["now"]["reply"]) == ("Z", row["reply"])


def test_replay_needs_the_model(cli: Cli, mine: Path, tmp_path: Path) -> None:
    code, _, err = cli("replay", mine, f"native/{QUESTION}")
    assert code == 2
    assert "--model FILE.py:CLASS" in err
    other = tmp_path / "other.py"
    shutil.copy(MODEL, other)
    code, _, err = cli("replay", mine, f"native/{QUESTION}", "--model", f"{other}:Toy")
    assert code == 2
    assert "the run is of 'toy'" in err


# --- verify -----------------------------------------------------------------------------------------------------------


def replace(run: Path, change: dict[str, Any], unit: str = "canary-001/edit/answer/q2") -> str:
    """Write an answer anew with something changed, as if by hand."""
    row = next(row for row in current_rows(run, "answers").to_dicts() if unit in row["unit_id"])
    with LocalRunStore(run) as store:
        store.append("answers", [row | change])
    return str(row["unit_id"])


def test_nothing_is_wrong_with_any_arm(cli: Cli, results: Path) -> None:
    code, out, _ = cli("verify", results)
    assert code == 0
    assert out.count("nothing is wrong") == 4


def test_nothing_is_wrong_where_tests_only_lend_their_clips(cli: Cli, tmp_path: Path, bank: Bank) -> None:
    make_runs(tmp_path, bank, arms=[Arm("native"), Arm("native", control="swapped")], tests=1)
    code, out, _ = cli("verify", tmp_path)
    assert code == 0, out


def test_verify_finds_one_flipped_letter(cli: Cli, mine: Path) -> None:
    row = next(r for r in current_rows(mine / "native", "answers").to_dicts() if not r["correct"])
    flipped = {"letter": row["answer_letter"], "letter_strict": row["answer_letter"]}
    unit = replace(mine / "native", {**flipped, "correct": True, "correct_strict": True}, row["unit_id"])
    code, out, _ = cli("verify", mine)
    assert code == 1
    assert f"letter: {unit}: the reply reads as {row['letter']}" in out
    assert f"table: {mine / 'native'} native Total: " in out
    assert out.count("nothing is wrong") == 3


def test_verify_finds_one_flipped_byte_in_a_clip(cli: Cli, mine: Path) -> None:
    render = current_rows(mine / "native", "renders").row(3, named=True)
    path = clip_path(mine / "native", render["clip"])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    code, out, _ = cli("verify", mine / "native")
    assert code == 1
    assert f"changed_clip: {render['unit_id']}: " in out
    assert str(path) in out


def test_verify_finds_a_missing_part(cli: Cli, mine: Path) -> None:
    (part,) = (mine / "native" / "tables" / "answers").glob("*.parquet")
    part.unlink()
    code, out, _ = cli("verify", mine / "native")
    assert code == 1
    assert f"missing_part: {part}: " in out
    assert "missing_unit: toy/native/canary-005/counterfactual/answer/q3/0/0: " in out
    assert f"counts: {mine / 'native' / 'run.json'}: answers: it says 54 ok, the rows have 0" in out


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"question_hash": "0" * 64}, "the question is not the bank's"),
        ({"test": "elsewhere-07", "source_test": "elsewhere-07"}, "the bank has no test 'elsewhere-07'"),
    ],
)
def test_verify_finds_a_row_of_another_bank(cli: Cli, mine: Path, change: dict[str, str], line: str) -> None:
    unit = replace(mine / "self-caption", change)
    code, out, _ = cli("verify", mine)
    assert code == 1
    (found,) = [text for text in out.splitlines() if text.startswith("foreign_row: ")]
    assert found.startswith(f"foreign_row: {unit}: ")
    assert line in found


def test_verify_finds_another_banks_snapshot(cli: Cli, mine: Path, tmp_path: Path) -> None:
    from torus_ray.bank.load import snapshot

    path = mine.parent / "bank.jsonl.gz"
    path.write_bytes(snapshot(canary(tmp_path / "other", seed=1)))
    code, out, _ = cli("verify", mine / "native")
    assert code == 1
    assert f"bank: {path}: the copy of the bank is canary@" in out


def test_verify_of_the_muted_control_still_finds_another_clip(cli: Cli, mine: Path) -> None:
    unit = replace(mine / "native.muted", {"clip": "0" * 64})
    code, out, _ = cli("verify", mine)
    assert code == 1
    assert f"no_parent: {unit}: " in out


def test_verify_says_that_a_run_is_not_finished(cli: Cli, tmp_path: Path, bank: Bank) -> None:
    (folder,) = make_runs(tmp_path, bank, arms=[Arm("native")], state="stopped").values()
    rows = current_rows(folder, "answers").to_dicts()
    shutil.rmtree(folder / "tables" / "answers")
    (folder / "tables" / "parts.json").unlink()
    with LocalRunStore(folder) as store:
        store.append("answers", rows[:-2])
    code, out, _ = cli("verify", folder)
    assert code == 1
    assert f"unfinished: {folder}: the run is stopped: 2 units have no row yet, the first {rows[-2]['unit_id']}" in out


def test_verify_of_a_broken_manifest(cli: Cli, mine: Path) -> None:
    (mine / "native" / "run.json").write_text("{", encoding="utf-8")
    code, out, _ = cli("verify", mine / "native")
    assert code == 1
    assert f"manifest: {mine / 'native' / 'run.json'}: " in out


def test_verify_as_json(cli: Cli, mine: Path) -> None:
    unit = replace(mine / "native", {"reply": "C C C"})
    code, out, _ = cli("verify", mine, "--json")
    told = json.loads(out)
    assert code == 1
    assert unit in {finding["where"] for finding in told[str(mine / "native")]}
    assert told[str(mine / "native.muted")] == []
