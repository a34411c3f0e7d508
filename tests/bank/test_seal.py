"""A sealed bank: what is in it, that it is the same bank, and that what is wrong with one is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.canary import make_canary_bank
from torus_ray.bank.check import check_bank
from torus_ray.bank.hub_import import read_mapped, read_mapping, read_sealed, write_bank
from torus_ray.bank.load import Bank, BankError, load_bank
from torus_ray.bank.order import shown_options
from torus_ray.bank.schema import STAGES
from torus_ray.bank.seal import sealed_files, write_sealed
from torus_ray.bank.statistics import statistics
from torus_ray.errors import InputError


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return load_bank(make_canary_bank(tmp_path_factory.mktemp("bank"), tests=6).path)


@pytest.fixture
def sealed(bank: Bank, tmp_path: Path) -> Path:
    folder = tmp_path / "sealed"
    write_sealed(sealed_files(bank, check_bank(bank)), folder)
    return folder


def by_people(bank: Bank, *names: str | None) -> Bank:
    """The bank with its first tests verified."""
    tests = [
        test.model_copy(update={"provenance": test.provenance.model_copy(update={"human_verified_by": name})})
        for test, name in zip(bank.tests, names, strict=False)
    ]
    return Bank(bank.card, (*tests, *bank.tests[len(tests) :]))


def test_what_was_sealed_comes_back_as_the_same_bank(bank: Bank, sealed: Path, tmp_path: Path) -> None:
    again = read_sealed(sealed)
    assert again == bank
    assert again.hash == bank.hash
    write_bank(again, tmp_path / "bank")
    assert load_bank(tmp_path / "bank") == bank


def test_the_same_bank_gives_the_same_bytes(bank: Bank) -> None:
    one, other = (sealed_files(bank, check_bank(bank)) for _ in range(2))
    assert one == other
    assert sorted(one) == ["README.md", "data/questions.parquet", "data/tests.parquet"]


def test_polars_reads_both_tables(bank: Bank, sealed: Path) -> None:
    questions = pl.read_parquet(sealed / "data" / "questions.parquet")
    assert questions.shape == (54, 13)
    for row in questions.iter_rows(named=True):
        assert row["options"]["ABCDEF".index(row["letter"])] == row["answer"]
        stage = bank.test(row["test_id"]).stage(row["stage"])
        question = next(q for q in stage.questions if row["question_id"].endswith(f".{q.id}"))
        shown = shown_options(seed=bank.card.order_seed, item=row["question_id"], options=question.options)
        assert tuple(row["options"]) == shown
        assert (row["prompt"], row["human_verified_by"]) == (stage.prompt, None)
    tests = pl.read_parquet(sealed / "data" / "tests.parquet")
    assert tests["id"].to_list() == [test.id for test in bank.tests]
    assert tests["stages"][0]["edit"]["questions"][2]["answer"] == bank.tests[0].stages.edit.questions[2].answer


def test_datasets_loads_both_tables(sealed: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="`datasets` is not installed")
    for name, rows in (("questions", 54), ("tests", 6)):
        table = datasets.load_dataset(str(sealed), name, split="test", cache_dir=str(tmp_path / "cache"))
        assert table.num_rows == rows


def test_the_card_names_hash_tables_and_that_nobody_verified(bank: Bank, sealed: Path) -> None:
    card = (sealed / "README.md").read_text()
    assert bank.hash in card
    assert "No human has verified any of the 6 tests." in card
    front = card.split("---")[1]
    assert "path: data/questions.parquet" in front
    assert "license: cc0-1.0" in front
    assert "n<1K" in front


def test_the_card_counts_who_verified_and_who_did_not(bank: Bank) -> None:
    some = by_people(bank, "Ada, Ben", None, "Ada")
    told = statistics(some, check_bank(some))
    assert "2 of 6 tests have been verified by a human (Ada, Ben); 4 have not." in told
    assert "| the longest option | " in told
    assert "Not checked, for want of the sentence embeddings: " in told
    assert check_bank(some).human_verified == 2


def test_a_bank_with_errors_is_not_sealed(bank: Bank, tmp_path: Path) -> None:
    folder = make_canary_bank(tmp_path / "bank", tests=3).path
    file = folder / "canary-000.json"
    content = json.loads(file.read_text())
    question = content["stages"]["generation"]["questions"][0]
    question["text"] = f"Is it {question['answer']}?"
    file.write_text(json.dumps(content))
    wrong = load_bank(folder)
    with pytest.raises(InputError, match="has 1 error") as caught:
        sealed_files(wrong, check_bank(wrong))
    assert "canary-000.generation.q1" in caught.value.message


def test_nothing_is_written_over(bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("mine")
    with pytest.raises(InputError, match="is there already"):
        write_bank(bank, tmp_path / "there")
    (tmp_path / "empty").mkdir()
    write_bank(bank, tmp_path / "empty")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "there"]


# --- what is wrong with a folder --------------------------------------------------------------------------------------


def rewrite(file: Path, column: str, value: Any) -> None:
    table = pq.read_table(file)
    values = table.column(column).to_pylist()
    values[0] = value
    at = table.schema.get_field_index(column)
    pq.write_table(table.set_column(at, table.schema.field(at), [values]), file)


def test_a_changed_test_is_refused_by_the_hash(sealed: Path) -> None:
    rewrite(sealed / "data" / "tests.parquet", "title", "Another")
    with pytest.raises(InputError, match="the tests have the hash"):
        read_sealed(sealed)


def test_changed_questions_are_refused(sealed: Path) -> None:
    rewrite(sealed / "data" / "questions.parquet", "letter", "Z")
    with pytest.raises(InputError, match=r"its questions are not those of data/tests\.parquet"):
        read_sealed(sealed)


def test_an_unsound_test_is_told_as_in_a_bank(sealed: Path) -> None:
    rewrite(sealed / "data" / "tests.parquet", "id", "Not An Id")
    with pytest.raises(BankError, match="row 1"):
        read_sealed(sealed)


def test_folders_that_are_no_sealed_bank(sealed: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_sealed(tmp_path)
    tests = sealed / "data" / "tests.parquet"
    tests.write_bytes(tests.read_bytes()[:-20])
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_sealed(sealed)
    pl.DataFrame({"a": [1]}).write_parquet(tests)
    with pytest.raises(InputError, match="holds no bank of torus"):
        read_sealed(sealed)


# --- somebody else's table --------------------------------------------------------------------------------------------

MAPPING = """
name = "their-bank"
title = "Their bank"
licence = "CC-BY-4.0"
about = "As they published it."
file = "train.parquet"
answer = "letter"
family = "expression"

[columns]
test = "scene_id"
audio_type = "kind"
stage = "step"
prompt = "instruction"
question = "q"
options = ["A", "B", "C", "D", "E", "F"]
answer = "key"
spec = "caption"

[values.stage]
gen = "generation"
edit = "edit"
cf = "counterfactual"

[values.audio_type]
sfx = "sound"
"""


def their_rows() -> list[dict[str, Any]]:
    return [
        {
            "scene_id": f"Scene {test}",
            "kind": "sfx",
            "step": step,
            "instruction": f"Make {step} of {test}",
            "q": f"Question {number} of {step}?",
            **{letter: f"{letter} of {number}" for letter in "ABCDEF"},
            "key": "abc"[number],
            "caption": f"{step} as it should be",
        }
        for test in (1, 2)
        for step in ("gen", "edit", "cf")
        for number in range(3)
    ]


def take(folder: Path, rows: list[dict[str, Any]], mapping: str = MAPPING) -> Bank:
    folder.mkdir(exist_ok=True)
    pl.DataFrame(rows).write_parquet(folder / "train.parquet")
    (folder / "mapping.toml").write_text(mapping)
    return read_mapped(folder, read_mapping(folder / "mapping.toml"))


def test_a_mapped_table_becomes_a_bank(tmp_path: Path) -> None:
    bank = take(tmp_path / "hub", their_rows())
    assert [test.id for test in bank.tests] == ["scene-1", "scene-2"]
    test = bank.test("scene-2")
    assert test.audio_type == "sound"
    assert [test.stage(name).prompt for name in STAGES] == [f"Make {step} of 2" for step in ("gen", "edit", "cf")]
    assert test.stages.edit.spec.summary == "edit as it should be"
    assert [q.answer for q in test.stages.edit.questions] == ["A of 0", "B of 1", "C of 2"]
    assert test.stages.edit.questions[0].key.attribute == "not given"
    assert test.provenance.human_verified_by is None
    write_bank(bank, tmp_path / "bank")
    assert load_bank(tmp_path / "bank").hash == bank.hash


def test_options_in_one_column_and_answers_by_index_or_text(tmp_path: Path) -> None:
    rows = [{**row, "options": [row[letter] for letter in "ABCDEF"], "key": 4} for row in their_rows()]
    listed = MAPPING.replace('["A", "B", "C", "D", "E", "F"]', '"options"')
    bank = take(tmp_path, rows, listed.replace('"letter"', '"index"'))
    assert bank.tests[0].stages.edit.questions[1].answer == "E of 1"
    rows = [{**row, "key": row["options"][5]} for row in rows]
    assert (
        take(tmp_path, rows, listed.replace('"letter"', '"text"')).tests[0].stages.edit.questions[1].answer == "F of 1"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": "later"}, "unknown: the stage 'later'"),
        ({"kind": "noise"}, "unknown: the audio_type 'noise'"),
        ({"key": "G"}, "unknown: the answer 'G'"),
    ],
)
def test_an_unknown_value_names_its_row_and_what_is_known(change: dict[str, str], message: str, tmp_path: Path) -> None:
    rows = their_rows()
    rows[0] |= change
    with pytest.raises(InputError, match=message) as caught:
        take(tmp_path, rows)
    assert caught.value.where.endswith("row 1")
    assert caught.value.expected.startswith("one of ")


def test_a_test_with_too_few_questions_is_told(tmp_path: Path) -> None:
    with pytest.raises(BankError, match=r"scene-1.*2 questions; expected exactly 3"):
        take(tmp_path, their_rows()[1:])


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (MAPPING.replace('"kind"', '"sort"'), "the table has no column sort"),
        (MAPPING.replace('prompt = "instruction"', ""), r"the mapping's `columns\.prompt`: Field required"),
        (MAPPING + "[else]\n", "the mapping's `else`"),
        ("name = ", "the mapping cannot be read"),
    ],
)
def test_a_wrong_mapping_is_told(mapping: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        take(tmp_path, their_rows(), mapping)
