"""Reading a bank: what a sound one gives, and every way of being unsound."""

from __future__ import annotations

import gc
import gzip
import json
import os
import pickle
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.canary import make_canary_bank
from torus_ray.bank.files import LARGEST_BYTES
from torus_ray.bank.load import BankError, Problem, from_snapshot, load_bank, snapshot
from torus_ray.bank.positions import show_path
from torus_ray.errors import InputError

Change = Callable[[dict[str, Any]], Any]
ONE = "canary-001.json"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_canary_bank(tmp_path_factory.mktemp("bank"), tests=4).path


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "bank"))


def change(file: Path, how: Change) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    how(content)
    file.write_text(json.dumps(content, indent=1), encoding="utf-8")


def problems(folder: Path) -> tuple[Problem, ...]:
    with pytest.raises(BankError) as caught:
        load_bank(folder)
    return caught.value.problems


def only(folder: Path) -> Problem:
    (problem,) = problems(folder)
    return problem


# --- sound ------------------------------------------------------------------------------------------------------------


def test_tests_come_sorted_and_can_be_found_by_id(folder: Path) -> None:
    (folder / "README.md").write_text("not a test")
    bank = load_bank(folder)
    assert [test.id for test in bank.tests] == [f"canary-{number:03d}" for number in range(4)]
    assert bank.test("canary-002") is bank.tests[2]
    assert bank.path == folder


def test_an_unknown_id_is_an_error_that_names_near_ones(folder: Path) -> None:
    with pytest.raises(InputError, match="near: canary-001") as caught:
        load_bank(folder).test("canary-1")
    assert f"--bank {folder}" in caught.value.mend


def test_reading_spares_memory_and_leaves_the_collector_on(folder: Path) -> None:
    one, other = (load_bank(folder).tests[0].stages.edit.questions[at] for at in (0, 1))
    assert one.model_fields_set is other.model_fields_set
    assert one.model_fields_set == set(type(one).model_fields)
    assert one.model_copy(update={"text": "x"}).text == "x"
    (folder / ONE).write_text("no JSON")
    problems(folder)
    assert gc.isenabled()


def test_layout_of_a_file_does_not_change_the_hash(folder: Path) -> None:
    before = load_bank(folder).hash
    content = json.loads((folder / ONE).read_text())
    (folder / ONE).write_text(json.dumps(dict(reversed(content.items()))))
    assert load_bank(folder).hash == before


def test_a_snapshot_is_the_same_bank_in_the_same_bytes(folder: Path) -> None:
    bank = load_bank(folder)
    data = snapshot(bank)
    again = from_snapshot(data)
    assert again == bank
    assert again.hash == bank.hash
    assert again.path is None
    assert snapshot(again) == data


def test_a_damaged_snapshot_is_told(folder: Path) -> None:
    data = snapshot(load_bank(folder))
    with pytest.raises(BankError, match="gzip"):
        from_snapshot(data[:-20])
    middle = len(data) // 2
    with pytest.raises(BankError, match="gzip"):
        from_snapshot(data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :])
    lines = gzip.decompress(data).splitlines()
    with pytest.raises(BankError, match="occurs twice"):
        from_snapshot(gzip.compress(b"\n".join([*lines, lines[1]])))
    with pytest.raises(BankError, match="snapshot line 1"):
        from_snapshot(gzip.compress(b""))


# --- unsound ----------------------------------------------------------------------------------------------------------


def first_question(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content["stages"]["generation"]["questions"][0]
    return found


def equal_options(content: dict[str, Any]) -> None:
    options = first_question(content)["options"]
    options[1] = f" {options[0].upper()}."


def not_a_number(content: dict[str, Any]) -> None:
    content["stages"]["edit"]["spec"]["sources"][0]["onset_s"] = float("nan")


def same_question_id(content: dict[str, Any]) -> None:
    content["stages"]["edit"]["questions"][2]["id"] = "q1"


QUESTION_AT = "stages.generation.questions[0]"
CHANGES: dict[str, tuple[Change, str, str, str]] = {
    "five options": (lambda c: first_question(c)["options"].pop(), f"{QUESTION_AT}.options", "5 options", "exactly 6"),
    "seven options": (
        lambda c: first_question(c)["options"].append("x"),
        f"{QUESTION_AT}.options",
        "7 options",
        "exactly 6",
    ),
    "equal options": (equal_options, f"{QUESTION_AT}.options[1]", "equal options", "six different"),
    "answer no option": (
        lambda c: first_question(c).update(answer="a silence"),
        f"{QUESTION_AT}.answer",
        'the answer "a silence" is none of the options',
        "the text of one",
    ),
    "missing stage": (lambda c: c["stages"].pop("edit"), "stages.edit", "the stage `edit` is missing", "generation"),
    "missing field": (lambda c: c.pop("title"), "title", "`title` is missing", ""),
    "unknown family": (
        lambda c: first_question(c).update(family="timbre"),
        f"{QUESTION_AT}.family",
        'unknown family "timbre"',
        "temporal_ordering",
    ),
    "unknown field": (
        lambda c: first_question(c).update(optoins=[]),
        f"{QUESTION_AT}.optoins",
        "unknown field `optoins`",
        "options",
    ),
    "same question id": (same_question_id, "stages.edit.questions[2].id", "two questions", "q1, q2, q3"),
    "two questions": (
        lambda c: c["stages"]["edit"]["questions"].pop(),
        "stages.edit.questions",
        "2 questions",
        "exactly 3",
    ),
    "not a number": (not_a_number, "stages.edit.spec.sources[0].onset_s", "`onset_s` is nan", "a number"),
    "a long clip": (
        lambda c: c["stages"]["edit"]["spec"].update(duration_s=11),
        "stages.edit.spec.duration_s",
        "`duration_s` is 11",
        "at most 10",
    ),
    "empty text": (lambda c: first_question(c).update(text="  "), f"{QUESTION_AT}.text", "`text` is empty", "some"),
    "a number for text": (lambda c: c.update(title=5), "title", "`title` is 5", "text in quotes"),
    "text for a number": (
        lambda c: c["stages"]["edit"]["spec"].update(duration_s="8"),
        "stages.edit.spec.duration_s",
        '`duration_s` is "8"',
        "a number",
    ),
    "a list for an object": (lambda c: c.update(seed=[]), "seed", "`seed` is []", "an object"),
    "text for a list": (
        lambda c: first_question(c).update(options="a"),
        f"{QUESTION_AT}.options",
        '`options` is "a"',
        "a list",
    ),
    "unknown type": (lambda c: c.update(audio_type="noise"), "audio_type", 'unknown audio_type "noise"', "speech"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_each_fault_is_told_with_file_path_line_expected_and_mend(case: str, folder: Path) -> None:
    how, at, message, expected = CHANGES[case]
    change(folder / ONE, how)
    problem = only(folder)
    assert (problem.file, problem.at) == (ONE, at)
    assert problem.message.startswith(message)
    assert expected in problem.expected
    assert problem.mend
    assert problem.line
    assert "\n" not in problem.render()
    assert f"{ONE}:{problem.line} {at}" in problem.render()


def test_the_line_is_the_line_of_the_value(folder: Path) -> None:
    change(folder / ONE, lambda c: first_question(c).update(family="timbre"))
    line = only(folder).line
    assert line
    assert '"family": "timbre"' in (folder / ONE).read_text().splitlines()[line - 1]


def test_an_answer_that_only_looks_like_an_option_is_shown_the_option(folder: Path) -> None:
    change(folder / ONE, lambda c: first_question(c).update(answer=first_question(c)["options"][2].upper()))
    content = json.loads((folder / ONE).read_text())
    assert first_question(content)["options"][2] in only(folder).mend


def test_duplicate_ids_name_both_files_once(folder: Path) -> None:
    shutil.copy(folder / ONE, folder / "copy.json")
    problem = only(folder)
    assert ONE in problem.message
    assert "copy.json" in problem.message
    assert (problem.line, problem.at) == (2, "id")


def test_a_file_is_named_by_its_id(folder: Path) -> None:
    (folder / ONE).rename(folder / "other.json")
    assert only(folder).expected == "canary-001.json"
    assert only(folder).line == 2


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b'{"id": "a",\n "title": "\xff"}', "byte 0xff at offset 23 is not UTF-8", 2),
        ('\ufeff{"id": "a"}'.encode(), "the file starts with a byte order mark", 1),
        ("{}".encode("utf-16"), "byte 0xff at offset 0 is not UTF-8", 1),
        (b'{"id": "a",\n "title" "b"}', "not JSON: expecting ':' delimiter at column 10", 2),
        (b"", "not JSON: expecting value at column 1", 1),
        (b'{"id": "a",\n "id": "b"}', "the field `id` is there twice", 2),
        (b"[\n" * 100_000, "values are nested too deeply", 100_000),
        (b'{"a": 1, "a": 2, "b":' + b"[" * 900 + b"]" * 900 + b"}", "values are nested too deeply", 1),
    ],
)
def test_a_file_that_is_no_json_text(folder: Path, data: bytes, message: str, line: int | None) -> None:
    (folder / ONE).write_bytes(data)
    problem = only(folder)
    assert (problem.message, problem.line, problem.file) == (message, line, ONE)


def test_a_folder_in_place_of_a_file_is_told(folder: Path) -> None:
    (folder / "canary-009.json").mkdir()
    assert only(folder).message.startswith("cannot be read")


@pytest.mark.parametrize("name", [ONE, "bank.json"])
def test_what_is_no_plain_file_of_a_person_s_size_is_told_unread(folder: Path, name: str) -> None:
    file = folder / name
    for make in (lambda: os.mkfifo(file), lambda: file.symlink_to("/dev/zero"), file.mkdir):
        file.unlink()
        make()
        assert only(folder).message == "cannot be read (not a regular file)"
        file.rmdir() if file.is_dir() else file.unlink()
        file.touch()
    with file.open("wb") as sparse:
        sparse.truncate(20 << 30)
    assert only(folder).message == "cannot be read (larger than 1 MB)"
    assert "regular file of at most 1 MB" in only(folder).expected


def test_the_largest_file_is_read_and_one_byte_more_is_not(folder: Path) -> None:
    file = folder / ONE
    file.write_bytes(file.read_bytes().ljust(LARGEST_BYTES))
    load_bank(folder)
    (folder / "elsewhere").write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to("elsewhere")
    load_bank(folder)
    file.write_bytes(file.read_bytes() + b" ")
    assert only(folder).message == "cannot be read (larger than 1 MB)"


def test_a_snapshot_s_test_has_the_same_limit(folder: Path) -> None:
    card, *tests = gzip.decompress(snapshot(load_bank(folder))).splitlines()
    with pytest.raises(BankError, match="1 problem") as caught:
        from_snapshot(gzip.compress(b"\n".join([card, tests[0].ljust(LARGEST_BYTES + 1)])))
    assert "larger than 1 MB" in caught.value.render()


CONTROLS = [chr(code) for code in (*range(9), *range(11, 32), *range(127, 160)) if not chr(code).isspace()]


@pytest.mark.parametrize("character", CONTROLS)
def test_a_control_character_is_told_with_field_line_and_mend(folder: Path, character: str) -> None:
    change(folder / ONE, lambda c: first_question(c)["options"].__setitem__(3, f"a {character}[31m word"))
    problem = only(folder)
    assert problem.at == f"{QUESTION_AT}.options[3]"
    assert problem.message == f"`options` holds the control character U+{ord(character):04X}"
    assert problem.line
    assert problem.mend


def test_every_text_of_test_and_card_is_held_to_it_but_tab_and_newline_pass(folder: Path) -> None:
    def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for step, member in members:
            yield from paths(member, (*at, step))
        if isinstance(value, str):
            yield at

    for name in (ONE, "bank.json"):
        content = json.loads((folder / name).read_text())
        for path in paths(content):
            holder = content
            for step in path[:-1]:
                holder = holder[step]
            before = holder[path[-1]]
            holder[path[-1]] = f"a\u001bb{before}"
            (folder / name).write_text(json.dumps(content))
            assert show_path(path) in {problem.at for problem in problems(folder)}
            holder[path[-1]] = before
        content["title"] = "two\nlines\tand a tab"
        (folder / name).write_text(json.dumps(content))
        load_bank(folder)


def test_nothing_in_a_file_reaches_a_terminal_raw(folder: Path) -> None:
    def change_all(content: dict[str, Any]) -> None:
        content["\u001b[31m"] = 1
        content["audio_type"] = "\u009b31m"
        content["stages"]["\u0007"] = {}

    change(folder / ONE, change_all)
    (folder / "\x1b[31m.json").write_text("{")
    with pytest.raises(BankError) as caught:
        load_bank(folder)
    told = caught.value.render()
    assert "\\u001b[31m" in told
    assert told.replace("\n", "").isprintable()


def test_a_wrong_answer_is_told_beside_errors_of_the_shape(folder: Path) -> None:
    def change_all(content: dict[str, Any]) -> None:
        content.pop("title")
        first_question(content).update(answer="a silence", family="timbre")
        options = content["stages"]["edit"]["questions"][1]["options"]
        options[1] = options[0].upper()
        content["stages"]["counterfactual"]["questions"][0]["options"] = [1, 2]
        content["stages"]["counterfactual"]["questions"][1] = None

    change(folder / ONE, change_all)
    found = {problem.at: problem for problem in problems(folder)}
    assert {"title", f"{QUESTION_AT}.family"} < found.keys()
    assert "none of the options" in found[f"{QUESTION_AT}.answer"].message
    assert "equal options" in found["stages.edit.questions[1].options[1]"].message
    assert all(problem.line for problem in found.values())


def test_half_a_surrogate_pair_is_refused(folder: Path) -> None:
    text = (folder / ONE).read_text()
    (folder / ONE).write_text(text.replace('"title": "', '"title": "\\ud800', 1))
    assert (only(folder).file, only(folder).line) == (ONE, 4)


def test_folders_that_are_no_bank(tmp_path: Path, folder: Path) -> None:
    assert only(tmp_path / "nowhere").message == "there is no such folder"
    (tmp_path / "empty").mkdir()
    assert only(tmp_path / "empty").message == "no bank.json in this folder"
    shutil.copy(folder / "bank.json", tmp_path / "empty")
    assert only(tmp_path / "empty").message == "the bank is empty"


def test_a_wrong_card_is_told_beside_wrong_tests(folder: Path) -> None:
    change(folder / "bank.json", lambda c: c.pop("order_seed"))
    change(folder / ONE, lambda c: c.pop("title"))
    assert [(p.file, p.at) for p in problems(folder)] == [("bank.json", "order_seed"), (ONE, "title")]


def test_all_problems_of_all_files_are_in_one_report(folder: Path) -> None:
    change(folder / ONE, lambda c: (c.pop("title"), c.pop("seed")))
    change(folder / "canary-002.json", same_question_id)
    (folder / "canary-003.json").write_bytes(b"\xff")
    with pytest.raises(BankError) as caught:
        load_bank(folder)
    told = caught.value.render().splitlines()
    assert told[0].endswith("has 4 problems")
    assert len(told) == 5
    assert pickle.loads(pickle.dumps(caught.value)).render() == caught.value.render()
    assert caught.value.exit_code == 2


def test_loading_costs_a_few_times_what_parsing_costs(tmp_path: Path) -> None:
    """Parsing 10,000 tests takes 0.4 s on one quiet core, so this keeps loading them under 5 s on any machine."""
    folder = make_canary_bank(tmp_path, tests=100).path

    def seconds(work: Callable[[], object]) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    def parse() -> list[Any]:
        return [json.loads(file.read_bytes()) for file in folder.glob("*.json")]

    pairs = [(seconds(lambda: load_bank(folder)), seconds(parse)) for _ in range(5)]
    assert min(load for load, _ in pairs) < 12 * min(plain for _, plain in pairs)
