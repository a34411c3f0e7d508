"""Every way in which one file of a bank can be unsound, each told with its file, path, line and mend."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bank.faulty import ONE, Change, change, first_question, only, problems, same_question_id
from torus_ray.bank.files import LARGEST_BYTES, read_document
from torus_ray.bank.load import BankError, load_bank
from torus_ray.bank.positions import show_path


def equal_options(content: dict[str, Any]) -> None:
    options = first_question(content)["options"]
    options[1] = f" {options[0].upper()}."


def not_a_number(content: dict[str, Any]) -> None:
    content["stages"]["edit"]["spec"]["sources"][0]["onset_s"] = float("nan")


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
    "not a number": (not_a_number, "stages.edit.spec.sources[0].onset_s", "`onset_s` is NaN", "a number"),
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


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ('"id": "canary-001",', '"id": "canary-001", "id": "canary-001",', "id"),
        ('"id": "canary-001",', '"id" \t\r\n : "canary-001", "id": "canary-001",', "id"),
        ('"id": "canary-001",', '"\\u0069d": "canary-001", "id":"canary-001",', "id"),
        ('"family":', '"family": "expression", "family":', f"{QUESTION_AT}.family"),
        ('"room":', '"room": "a \\": b", "room":', "stages.generation.spec.room"),
    ],
)
def test_a_repeated_field_is_told_however_it_is_written(folder: Path, old: str, new: str, at: str) -> None:
    text = (folder / ONE).read_text()
    assert old in text
    (folder / ONE).write_text(text.replace(old, new, 1))
    problem = only(folder)
    assert (problem.at, problem.expected) == (at, "once")


def test_texts_may_hold_what_looks_like_a_key(folder: Path) -> None:
    change(folder / ONE, lambda c: c.update(title=': a "word": said'))
    assert load_bank(folder).test("canary-001").title == ': a "word": said'


@pytest.mark.parametrize("name", [ONE, "bank.json"])
def test_a_number_of_thousands_of_digits_is_told(folder: Path, name: str) -> None:
    text = (folder / name).read_text()
    old = '"order_seed": ' if name == "bank.json" else '"tempo_bpm": ' if '"tempo_bpm"' in text else '"duration_s": '
    assert old in text
    (folder / name).write_text(text.replace(old, old + "1" * 5000, 1))
    assert only(folder).message.startswith("number out of range at line")
    (folder / name).write_text(text.replace(old, '"x": 1, ' * 2 + old + "1" * 5000, 1))
    assert only(folder).message == "the field `x` is there twice"


def test_a_file_that_grows_while_it_is_read_is_read_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / ONE
    before = os.stat(file)
    whole = file.read_bytes().ljust(LARGEST_BYTES)
    for size, told in ((LARGEST_BYTES, None), (LARGEST_BYTES + 1, "larger than 1 MB")):
        file.write_bytes(whole.ljust(size))
        with monkeypatch.context() as patch:
            patch.setattr("torus_ray.bank.files.os.stat", lambda path: before)
            if told:
                with pytest.raises(OSError, match="1 MB"):
                    read_document(file)
            else:
                assert read_document(file) == whole
