"""Verdicts as data, their log, and the desk that carries them out."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.curation.review.sample import FIRST, SECOND, make_bank
from torus_ray.bank.load import BankError, load_bank
from torus_ray.curation.folders import file_bytes
from torus_ray.curation.review import desk as desk_module
from torus_ray.curation.review.desk import Conflict, Desk, Refused
from torus_ray.curation.review.log import LOG_FILE, read_log
from torus_ray.curation.review.verdicts import Verdict, from_line, to_line
from torus_ray.errors import InputError
from torus_ray.store.files import temp_beside


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    return make_bank(tmp_path / "bank")


@pytest.fixture
def desk(bank: Path) -> Iterator[Desk]:
    with Desk(bank) as opened:
        yield opened


def judge(desk: Desk, decision: Any, reviewer: str = "Ann", test_id: str = FIRST, **more: Any) -> Any:
    return desk.judge(test_id, decision, reviewer=reviewer, version=desk.sheet(test_id).version, **more)


def edited(desk: Desk, title: str, test_id: str = FIRST) -> dict[str, Any]:
    test = desk.sheet(test_id).test
    assert test is not None
    return test.model_dump(mode="json") | {"title": title}


def verified(bank: Path, test_id: str = FIRST) -> str | None:
    return load_bank(bank).test(test_id).provenance.human_verified_by


def test_an_acceptance_is_in_the_log_and_in_the_file(desk: Desk, bank: Path) -> None:
    sheet = judge(desk, "accept")
    assert (sheet.standing.state, sheet.standing.by) == ("accepted", ("Ann",))
    assert verified(bank) == "Ann"
    assert verified(bank, SECOND) is None
    (verdict,) = read_log(bank)
    assert (verdict.reviewer, verdict.test_id, verdict.decision, verdict.file_after) == (
        "Ann",
        FIRST,
        "accept",
        sheet.version,
    )


def test_two_reviewers_and_what_ends_an_acceptance(desk: Desk, bank: Path) -> None:
    judge(desk, "accept")
    judge(desk, "accept", "Bo")
    judge(desk, "accept")
    assert verified(bank) == "Ann, Bo"
    sheet = judge(desk, "reject", "Cy", reason="two right options")
    assert (sheet.standing.state, sheet.standing.by, sheet.standing.reason) == (
        "rejected",
        ("Cy",),
        "two right options",
    )
    assert verified(bank) is None
    assert judge(desk, "accept", "Bo").standing.by == ("Bo",)
    sheet = judge(desk, "edit", "Ann", edited=edited(desk, "Another title"))
    assert (sheet.standing.state, sheet.standing.by, sheet.test.title) == ("edited", ("Ann",), "Another title")
    assert verified(bank) is None
    assert judge(desk, "accept", "Cy").standing.by == ("Cy",)
    assert [v.decision for v in read_log(bank)] == ["accept", "accept", "accept", "reject", "accept", "edit", "accept"]


def test_a_rejection_leaves_the_file_of_an_unverified_test_alone(desk: Desk, bank: Path) -> None:
    path = bank / f"{FIRST}.json"
    path.write_text(json.dumps(json.loads(path.read_text())))  # by another hand: other spaces
    before = path.read_bytes()
    judge(desk, "reject", reason="no")
    assert path.read_bytes() == before


def test_an_edit_cannot_change_id_or_provenance(desk: Desk, bank: Path) -> None:
    wanted = edited(desk, "Other") | {"provenance": {"author": "me", "written": "now"}}
    before = load_bank(bank).test(FIRST).provenance
    with pytest.raises(Refused, match="id of a test cannot be changed"):
        judge(desk, "edit", edited={**wanted, "id": "another"})
    judge(desk, "edit", edited=wanted)
    assert load_bank(bank).test(FIRST).provenance == before


def test_names_that_a_file_brought_along_stay(bank: Path) -> None:
    path = bank / f"{FIRST}.json"
    test = json.loads(path.read_text())
    test["provenance"]["human_verified_by"] = "Somebody Before"
    path.write_text(json.dumps(test))
    with Desk(bank) as desk:
        assert desk.sheet(FIRST).standing.by == ("Somebody Before",)
        judge(desk, "accept")
    assert verified(bank) == "Somebody Before, Ann"


def test_a_change_by_other_means_waits_for_a_look(desk: Desk, bank: Path) -> None:
    judge(desk, "accept")
    path = bank / f"{FIRST}.json"
    path.write_text(path.read_text().replace('"title": "', '"title": "New '))
    assert next(sheet for sheet in desk.sheets() if sheet.id == FIRST).standing.state == "changed"
    judge(desk, "accept", "Bo")
    assert verified(bank) == "Bo"


def test_what_was_changed_meanwhile_is_not_overwritten(desk: Desk, bank: Path) -> None:
    version = desk.sheet(FIRST).version
    judge(desk, "accept", "Bo")
    before = (bank / f"{FIRST}.json").read_bytes()
    for decision, more in (("accept", {}), ("reject", {"reason": "no"}), ("edit", {"edited": edited(desk, "Mine")})):
        with pytest.raises(Conflict, match=r"changed by Bo \(accept\) since"):
            desk.judge(FIRST, decision, reviewer="Ann", version=version, **more)  # type: ignore[arg-type]
    (bank / f"{FIRST}.json").unlink()
    with pytest.raises(Conflict):
        desk.judge(FIRST, "accept", reviewer="Ann", version=version)
    (bank / f"{FIRST}.json").write_bytes(before)
    assert len(read_log(bank)) == 1


def test_an_edit_that_is_not_valid_changes_nothing(desk: Desk, bank: Path) -> None:
    before = {path.name: path.read_bytes() for path in bank.iterdir()}
    wanted = edited(desk, "")
    wanted["stages"]["edit"]["questions"][1]["answer"] = "none of them"
    wanted["stages"]["edit"]["spec"]["duration_s"] = 11
    with pytest.raises(BankError) as caught:
        judge(desk, "edit", edited=wanted)
    answer_at = "stages.edit.questions[1].answer"
    assert {problem.at for problem in caught.value.problems} == {"title", "stages.edit.spec.duration_s", answer_at}
    wanted["title"], wanted["stages"]["edit"]["spec"]["duration_s"] = "T", 9
    with pytest.raises(BankError) as caught:
        judge(desk, "edit", edited=wanted)
    assert [problem.at for problem in caught.value.problems] == [answer_at]
    assert {path.name: path.read_bytes() for path in bank.iterdir()} == before


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "Ann, Bo", "Ann\x07"])
def test_a_verdict_needs_a_name(desk: Desk, bank: Path, name: str) -> None:
    with pytest.raises(Refused) as caught:
        judge(desk, "accept", name)
    assert caught.value.field == "reviewer"
    assert read_log(bank) == []


def test_a_rejection_needs_a_reason_and_an_edit_a_change(desk: Desk) -> None:
    for more in ({}, {"reason": " \n"}, {"reason": "x" * 2001}):
        with pytest.raises(Refused) as caught:
            judge(desk, "reject", **more)
        assert caught.value.field == "reason"
    for wanted in (None, edited(desk, desk.sheet(FIRST).test.title)):  # type: ignore[union-attr]
        with pytest.raises(Refused) as caught:
            judge(desk, "edit", edited=wanted)
        assert caught.value.field == "test"


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b'{"id": "x"}', b"\xff", b"[" * 5000, None],
    ids=["empty", "cut", "list", "short", "not utf-8", "deep", "gone"],
)
def test_a_file_that_broke_is_told_and_cannot_be_judged(desk: Desk, bank: Path, damage: bytes | None) -> None:
    path = bank / f"{FIRST}.json"
    path.unlink() if damage is None else path.write_bytes(damage)
    sheet = desk.sheet(FIRST)
    assert sheet.test is None
    assert sheet.problems
    with pytest.raises(BankError):
        judge(desk, "accept")
    assert read_log(bank) == []


# --- what a crash leaves ----------------------------------------------------------------------------------------------


def test_a_killed_writer_at_every_byte_of_the_log(bank: Path) -> None:
    """Whatever part of the last record reached the disk: all of it, with its file, or nothing of it."""
    with Desk(bank) as desk:
        judge(desk, "accept", test_id=SECOND)
        first = (bank / LOG_FILE).read_bytes()
        untouched = (bank / f"{FIRST}.json").read_bytes()
        judge(desk, "edit", edited=edited(desk, "After the crash"))
        done = (bank / f"{FIRST}.json").read_bytes()
    whole = (bank / LOG_FILE).read_bytes()
    assert whole.startswith(first)
    for size in (*range(len(first), len(whole), 997), len(whole) - 1, len(whole)):
        (bank / LOG_FILE).write_bytes(whole[:size])
        (bank / f"{FIRST}.json").write_bytes(untouched)
        with Desk(bank) as desk:
            assert desk.sheet(SECOND).standing.state == "accepted"
            assert desk.sheet(FIRST).standing.state == ("edited" if size == len(whole) else "unreviewed")
        expected = (whole, done) if size == len(whole) else (first, untouched)
        assert ((bank / LOG_FILE).read_bytes(), (bank / f"{FIRST}.json").read_bytes()) == expected


def test_a_file_that_a_killed_server_had_half_written_is_removed(bank: Path) -> None:
    before = sorted(path.name for path in bank.iterdir())
    temp_beside(bank / f"{FIRST}.json").write_text('{"id": "canary-0')
    with Desk(bank) as desk:
        assert desk.sheet(FIRST).standing.state == "unreviewed"
    assert sorted(path.name for path in bank.iterdir()) == sorted([*before, LOG_FILE])


def test_no_log_is_made_where_there_is_no_bank(tmp_path: Path) -> None:
    with pytest.raises(BankError, match="1 problem"):
        Desk(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("decision", ["accept", "reject"])
def test_a_verdict_in_the_log_alone_is_carried_out_at_the_next_start(bank: Path, decision: str) -> None:
    with Desk(bank) as desk:
        judge(desk, "accept", "Bo")
        before = (bank / f"{FIRST}.json").read_bytes()
        judge(desk, decision, reason="no" if decision == "reject" else None)
        after = (bank / f"{FIRST}.json").read_bytes()
    assert before != after
    (bank / f"{FIRST}.json").write_bytes(before)
    Desk(bank).close()
    assert (bank / f"{FIRST}.json").read_bytes() == after


def test_a_full_disk_leaves_log_and_file_as_they_were(desk: Desk, bank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(desk, "accept", "Bo")
    before = {path.name: path.read_bytes() for path in bank.iterdir()}

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    for module, name in ((desk_module, "write_atomic"), (os, "fsync")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            with pytest.raises(OSError, match="No space"):
                judge(desk, "accept")
        if name == "write_atomic":
            assert {path.name: path.read_bytes() for path in bank.iterdir()} == before
    assert judge(desk, "accept").standing.by == ("Bo", "Ann")


def test_one_server_a_bank(desk: Desk, bank: Path) -> None:
    with pytest.raises(InputError, match="being reviewed by another"):
        Desk(bank)


def test_a_damaged_log_is_told_with_its_line_and_left_alone(bank: Path) -> None:
    with Desk(bank) as desk:
        judge(desk, "accept")
    good = (bank / LOG_FILE).read_bytes()
    for bad in (b"nonsense\n", b"{}\n", good.replace(b'"accept"', b'"maybe"'), good.replace(b'"Ann"', b"7", 1)):
        (bank / LOG_FILE).write_bytes(good + bad)
        with pytest.raises(InputError) as caught:
            Desk(bank)
        assert caught.value.where == f"{bank / LOG_FILE}:2"
        assert (bank / LOG_FILE).read_bytes() == good + bad


def test_lines_and_records_are_the_same(desk: Desk, bank: Path) -> None:
    judge(desk, "reject", reason="line one\nline two\u2028“quoted”")
    judge(desk, "edit", edited=edited(desk, "Tïtle"))
    lines = (bank / LOG_FILE).read_bytes().splitlines(keepends=True)
    for line, verdict in itertools.zip_longest(lines, read_log(bank)):
        assert to_line(verdict) == line
        assert from_line(line) == verdict
    assert {field.name for field in dataclasses.fields(Verdict)} == set(json.loads(lines[0]))


def test_the_project_bank_is_written_as_its_files_are() -> None:
    bank = load_bank(Path(__file__).parents[3] / "bank" / "torus_open_48")
    assert bank.path is not None
    test = bank.tests[0]
    assert file_bytes(test) == (bank.path / f"{test.id}.json").read_bytes()
