"""Reading a bank: what a sound one gives, its snapshot, and what is wrong with its files together."""

from __future__ import annotations

import gc
import gzip
import json
import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bank.faulty import ONE, change, only, problems, same_question_id
from tests.canary import make_canary_bank
from torus_ray.bank.files import LARGEST_BYTES
from torus_ray.bank.load import BankError, from_snapshot, load_bank, snapshot
from torus_ray.errors import InputError


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


def test_a_snapshot_s_test_has_the_same_limit(folder: Path) -> None:
    card, *tests = gzip.decompress(snapshot(load_bank(folder))).splitlines()
    with pytest.raises(BankError, match="1 problem") as caught:
        from_snapshot(gzip.compress(b"\n".join([card, tests[0].ljust(LARGEST_BYTES + 1)])))
    assert "larger than 1 MB" in caught.value.render()


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
