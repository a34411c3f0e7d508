"""Prompts and questions out, clips and answers in: what belongs together must match, and nothing is half written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.canary import Canary, make_canary_bank
from tests.cli.conftest import Cli
from tests.report.model import toy
from tests.report.sample import make_runs
from torus_ray.audio import encode, identify
from torus_ray.bank.load import load_bank
from torus_ray.protocol.graph import Arm
from torus_ray.store import read_manifest
from torus_ray.store.reader import current_rows

Line = dict[str, Any]
TESTS = 3


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return make_canary_bank(tmp_path / "bank", tests=TESTS)


def read(file: Path) -> list[Line]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def write(file: Path, lines: list[Line]) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file.parent


def rendered(prompts: list[Line], folder: Path, stages: tuple[str, ...]) -> list[Line]:
    """What somebody elsewhere makes of the prompts of some stages: files, and the lines of clips.jsonl."""
    folder.mkdir(exist_ok=True)
    lines = []
    for number, prompt in enumerate(prompts):
        if prompt["stage"] in stages:
            clip = toy.tone(prompt["prompt"])
            soundfile.write(folder / f"{number}.wav", clip.wave.T, clip.rate_hz, subtype="FLOAT")
            line = {"unit_id": prompt["unit_id"], "file": f"{number}.wav", "rate_hz": clip.rate_hz}
            lines.append(line | ({"source": prompt["source"]} if prompt.get("source") else {}))
    return lines


@pytest.fixture
def started(cli: Cli, canary: Canary, tmp_path: Path) -> Path:
    """A run of stage 1 clips that were imported."""
    code, out, err = cli("export", "prompts", canary.path, tmp_path / "p1", "--system", "ext")
    assert (code, err) == (0, "")
    prompts = read(tmp_path / "p1" / "prompts.jsonl")
    folder = write(tmp_path / "c1" / "clips.jsonl", rendered(prompts, tmp_path / "c1", ("generation",)))
    where = ("--system", "ext", "--arm", "native", "--results", tmp_path / "results")
    code, out, err = cli("import", "clips", canary.path, folder, *where)
    assert (code, err) == (0, "")
    assert out.startswith("3 clips are new, 0 were there")
    (run,) = (tmp_path / "results").glob("*/ext/native")
    return run


def go_on(cli: Cli, run: Path, tmp_path: Path, stages: tuple[str, ...]) -> None:
    for stage in stages:
        assert cli("export", "prompts", run, tmp_path / f"p-{stage}")[0] == 0
        prompts = read(tmp_path / f"p-{stage}" / "prompts.jsonl")
        folder = tmp_path / f"c-{stage}"
        write(folder / "clips.jsonl", rendered(prompts, folder, (stage,)))
        code, _, err = cli("import", "clips", run, folder, "--system", "ext", "--arm", "native")
        assert (code, err) == (0, "")


def test_a_model_elsewhere_from_prompts_to_a_table(cli: Cli, started: Path, tmp_path: Path) -> None:
    go_on(cli, started, tmp_path, ("edit", "counterfactual"))
    assert cli("export", "questions", started, tmp_path / "q")[0] == 0
    questions = read(tmp_path / "q" / "questions.jsonl")
    assert len(questions) == 9 * TESTS
    for question in questions:
        assert identify((tmp_path / "q" / question["clip_file"]).read_bytes()) == question["clip"]
    answers = [{"unit_id": q["unit_id"], "clip": q["clip"], "reply": toy.reply(q["prompt"])} for q in questions]
    folder = write(tmp_path / "a" / "answers.jsonl", answers)
    assert cli("import", "answers", started, folder)[1].startswith("27 answers are new, 0 were there")
    assert cli("import", "answers", started, folder)[1].startswith("0 answers are new, 27 were there")

    manifest = read_manifest(started)
    assert manifest is not None
    assert (manifest.state, manifest.counts["answers"]) == ("finished", {"ok": 27})
    assert {head.host for head in manifest.heads.values()} == {"imported"}
    code, out, _ = cli("verify", started)
    assert code == 0, out
    assert "ext on canary@" in cli("report", started)[1]
    # What was asked is the same as if the model had run here.
    here = make_runs(tmp_path / "here", load_bank(tmp_path / "bank"), arms=[Arm("native")])["native"]
    for table, order in (("answers", ["test", "stage", "question"]), ("renders", ["test", "stage"])):
        mine, theirs = (current_rows(run, table).sort(order) for run in (here, started))
        assert mine["prompt"].equals(theirs["prompt"])


def test_prompts_carry_the_clip_to_edit(cli: Cli, started: Path, tmp_path: Path) -> None:
    cli("export", "prompts", started, tmp_path / "p2")
    prompts = read(tmp_path / "p2" / "prompts.jsonl")
    edits = [line for line in prompts if line["stage"] == "edit"]
    assert len(edits) == TESTS
    for line in edits:
        assert identify((tmp_path / "p2" / line["source_file"]).read_bytes()) == line["source"]
    assert {line["source"] for line in prompts if line["stage"] == "counterfactual"} == {None}
    spoken = next(line for line in prompts if line["audio_type"] == "speech")
    assert spoken["words"] in spoken["prompt"]


def test_nothing_sealed_goes_out(cli: Cli, canary: Canary, started: Path, tmp_path: Path) -> None:
    cli("export", "prompts", started, tmp_path / "p2")
    cli("export", "questions", started, tmp_path / "q")
    out = (tmp_path / "p2" / "prompts.jsonl").read_text(encoding="utf-8")
    asked = (tmp_path / "q" / "questions.jsonl").read_text(encoding="utf-8")
    assert not [token for token in canary.sealed if token in out or token in asked]
    assert not [token for token in canary.prompt_tokens() if token in asked]
    assert "answer" not in json.loads(asked.splitlines()[0])


def test_a_self_caption_run_gives_filled_prompts_and_controls_their_clips(cli: Cli, tmp_path: Path) -> None:
    make_canary_bank(tmp_path / "bank", tests=6)
    runs = make_runs(tmp_path / "results", load_bank(tmp_path / "bank"))
    cli("export", "prompts", runs["self-caption"], tmp_path / "p")
    edit = next(line for line in read(tmp_path / "p" / "prompts.jsonl") if line["stage"] == "edit")
    assert edit["prompt"].startswith("a tone of 2000 samples")
    assert edit["words"]
    for arm, clips in (("native.muted", 1), ("native.swapped", 18)):
        out = cli("export", "questions", runs[arm], tmp_path / arm)[1]
        assert out.endswith(f"54 questions, {clips} clips\n")


def test_it_does_not_write_over_anything(cli: Cli, started: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("dear", encoding="utf-8")
    code, _, err = cli("export", "questions", started, tmp_path / "mine")
    assert code == 2
    assert "is not empty" in err


# --- clips that are refused -------------------------------------------------------------------------------------------


def nan(folder: Path) -> None:
    soundfile.write(folder / "bad.wav", np.full(4000, np.nan, dtype=np.float32), 8000, subtype="FLOAT")


def nothing(folder: Path) -> None:
    soundfile.write(folder / "bad.wav", np.zeros(0, dtype=np.float32), 8000, subtype="PCM_16")


def text(folder: Path) -> None:
    (folder / "bad.wav").write_text("no sound", encoding="utf-8")


def sound(folder: Path) -> None:
    soundfile.write(folder / "bad.wav", np.zeros(4000, dtype=np.float32), 8000, subtype="PCM_16")


@pytest.mark.parametrize(
    ("make", "change", "told"),
    [
        (nan, {}, "bad.wav: not_finite: 4000 of 4000 samples are NaN or infinite"),
        (nothing, {}, "bad.wav: empty: the clip has no samples"),
        (text, {}, "bad.wav is no audio that can be read"),
        (sound, {"rate_hz": 44100}, "rate_hz says 44100, the header of bad.wav says 8000"),
        (sound, {"rate_hz": "8000"}, '`rate_hz` is "8000", not int'),
        (sound, {"sha256": "0" * 64}, "bad.wav is not the file that sha256 names"),
        (sound, {"file": "gone.wav"}, "gone.wav cannot be read"),
        (sound, {"file": "../bank/bank.json"}, "is not inside"),
        (sound, {"file": None}, "`file` is missing"),
        (sound, {"length": 3}, "unknown field `length`"),
        (sound, {"unit_id": "ext/native/canary-009/edit/edit"}, "no unit 'ext/native/canary-009/edit/edit' here"),
        (sound, {"unit_id": "ext/native/canary-000/edit/edit"}, "ext/native/canary-000/edit/edit is on line 1 too"),
        (sound, {"source": "f" * 64}, "was made from the clip ffffffffffff..., its source is"),
        (sound, {"unit_id": "ext/native/canary-001/counterfactual/edit"}, "canary-001/edit/edit, which is not there"),
        (sound, {"unit_id": "ext/native/canary-001/generation/generate"}, "has another clip already"),
    ],
)
def test_a_bad_clip_is_named_and_nothing_is_written(
    cli: Cli, started: Path, tmp_path: Path, make: Callable[[Path], None], change: Line, told: str
) -> None:
    folder = tmp_path / "c2"
    cli("export", "prompts", started, tmp_path / "p2")
    good = rendered(read(tmp_path / "p2" / "prompts.jsonl"), folder, ("edit",))
    bad = {"unit_id": "ext/native/canary-001/edit/edit", "file": "bad.wav"} | change
    make(folder)
    write(folder / "clips.jsonl", [good[0], bad])
    before = {path: path.read_bytes() for path in started.rglob("*") if path.is_file()}
    code, out, err = cli("import", "clips", started, folder, "--system", "ext", "--arm", "native")
    assert (code, out) == (2, "")
    assert "clips.jsonl has 1 problem, so nothing was written" in err
    assert "clips.jsonl:2: " in err
    assert told in err
    assert {path: path.read_bytes() for path in started.rglob("*") if path.is_file()} == before


def test_a_line_that_is_not_json(cli: Cli, started: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "c2" / "clips.jsonl", [])
    assert "it has no lines" in cli("import", "clips", started, folder, "--system", "ext", "--arm", "native")[2]
    (folder / "clips.jsonl").write_text('\n{"unit_id": \n[]\n', encoding="utf-8")
    err = cli("import", "clips", started, folder, "--system", "ext", "--arm", "native")[2]
    assert "clips.jsonl:2: not JSON" in err
    assert "clips.jsonl:3: not a JSON object" in err
    (folder / "clips.jsonl").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in cli("import", "clips", started, folder, "--system", "ext", "--arm", "native")[2]
    (folder / "clips.jsonl").unlink()
    assert "there is no clips.jsonl" in cli("import", "clips", started, folder, "--system", "ext", "--arm", "native")[2]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--system", "Not A Name", "--arm", "native"), "cannot be a system's name"),
        (("--system", "ext", "--arm", "self-caption"), "cannot be exchanged for the arm 'self-caption'"),
        (("--system", "toy", "--arm", "native"), "was rendered by `torus run`"),
    ],
)
def test_places_where_clips_do_not_belong(
    cli: Cli, canary: Canary, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    make_runs(tmp_path / "results", load_bank(canary.path), arms=[Arm("native")])
    folder = write(tmp_path / "c" / "clips.jsonl", [])
    code, _, err = cli("import", "clips", canary.path, folder, *options, "--results", tmp_path / "results")
    assert code == 2
    assert told in err


# --- answers that are refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"clip": "f" * 64}, "generation/answer/q1/0/0 is an answer about another clip: ffffffffffff..., the run's is"),
        ({"unit_id": "ext/native/canary-000/edit/answer/q1/0/0"}, "the run has no clip there"),
        ({"unit_id": "ext/native/canary-000/generation/answer/q9/0/0"}, "no unit"),
        ({"reply": 3}, "`reply` is 3, not str"),
        ({"reply": None}, "`reply` is missing"),
        ({"letter": "A"}, "unknown field `letter`"),
    ],
)
def test_a_bad_answer_is_named_and_nothing_is_written(
    cli: Cli, started: Path, tmp_path: Path, change: Line, told: str
) -> None:
    cli("export", "questions", started, tmp_path / "q")
    lines = [
        {"unit_id": q["unit_id"], "clip": q["clip"], "reply": "B"} for q in read(tmp_path / "q" / "questions.jsonl")
    ]
    folder = write(tmp_path / "a" / "answers.jsonl", [*lines[1:], lines[0] | change])
    code, _, err = cli("import", "answers", started, folder)
    assert code == 2
    assert f"answers.jsonl:{len(lines)}: " in err
    assert told in err
    assert current_rows(started, "answers").is_empty()


def test_an_answer_is_not_replaced(cli: Cli, started: Path, tmp_path: Path) -> None:
    cli("export", "questions", started, tmp_path / "q")
    first = read(tmp_path / "q" / "questions.jsonl")[0]
    line = {"unit_id": first["unit_id"], "clip": first["clip"], "reply": "B"}
    assert cli("import", "answers", started, write(tmp_path / "a" / "answers.jsonl", [line]))[0] == 0
    code, _, err = cli("import", "answers", started, write(tmp_path / "b" / "answers.jsonl", [line | {"reply": "C"}]))
    assert code == 2
    assert f"{first['unit_id']} has an answer already: 'B'" in err


def test_what_is_neither_run_nor_bank(cli: Cli, tmp_path: Path, started: Path) -> None:
    assert "neither a run nor a bank" in cli("export", "questions", tmp_path / "none", tmp_path / "q")[2]
    code, _, err = cli("export", "prompts", started.parent, tmp_path / "q")
    assert code == 2
    assert f"name one run, e.g. {started}" in err


def test_an_imported_clip_is_the_one_that_was_given(started: Path, tmp_path: Path) -> None:
    rows = current_rows(started, "renders")
    for row in rows.to_dicts():
        assert row["clip"] == encode(toy.tone(row["prompt"])).id
        assert row["head"] == "imported"
