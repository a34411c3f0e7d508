"""Each kind of damage is found, alone and by name."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.store.sample import answer, key, manifest, render, tone
from torus_ray.store import LocalRunStore, ManifestError, current_rows
from torus_ray.store.layout import clip_path, table_folder
from torus_ray.store.parts import open_part, part_bytes
from torus_ray.store.tables import to_arrow
from torus_ray.store.verify import Finding, KnownQuestion, verify

TESTS = ("t1", "t2")
QUESTIONS = {
    (test, "generation", question): KnownQuestion(key(question), "a drum")
    for test in TESTS
    for question in ("q1", "q2")
}
RENDERS = [render(test, tone(number)) for number, test in enumerate(TESTS)]
ANSWERS = [answer(test, question, tone(TESTS.index(test)).id) for test, _, question in QUESTIONS]
UNITS = {"renders": [row["unit_id"] for row in RENDERS], "answers": [row["unit_id"] for row in ANSWERS]}


class Letters(NamedTuple):
    letter: str | None
    letter_strict: str | None


def read_first_letter(reply: str, options: Sequence[str]) -> Letters:
    letter = reply[:1] if reply[:1] in "ABCDEF" else None
    return Letters(letter, letter)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("results") / "mini@0" / "sys" / "native"
    with LocalRunStore(run) as store:
        store.write_manifest(manifest())
        store.append("renders", RENDERS, clips=[tone(number) for number in range(len(TESTS))])
        store.append("answers", ANSWERS[:2])
        store.flush()
        store.append("answers", ANSWERS[2:])
        store.close(compact=False)
    return run


@pytest.fixture
def run(sound: Path, tmp_path: Path) -> Path:
    target = tmp_path / "mini@0" / "sys" / "native"
    shutil.copytree(sound, target)
    return target


def check(run: Path) -> list[Finding]:
    return verify(run, questions=QUESTIONS, read_letter=read_first_letter, expected=UNITS)


def append(run: Path, table: str, row: dict[str, Any]) -> None:
    """A row that is written as if by hand: with what it says of its clip's file."""
    clip = next((tone(number) for number in range(len(TESTS)) if tone(number).id == row.get("clip")), None)
    with LocalRunStore(run) as store:
        store.append(table, [row], clips=[clip] if clip and table == "renders" else [])


def test_nothing_is_wrong_with_a_sound_run(run: Path) -> None:
    assert check(run) == []
    LocalRunStore(run).close()
    assert check(run) == []


def test_one_flipped_byte_in_a_clip(run: Path) -> None:
    path = clip_path(run, tone(1).id)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    (found,) = check(run)
    assert (found.kind, found.where) == ("changed_clip", UNITS["renders"][1])
    assert str(path) in found.message


def test_a_missing_clip(run: Path) -> None:
    clip_path(run, tone(0).id).unlink()
    (found,) = check(run)
    assert (found.kind, found.where) == ("missing_clip", UNITS["renders"][0])


def test_a_clip_that_is_another_sound_with_its_sha256_put_right(run: Path) -> None:
    other = tone(7)
    path = clip_path(run, tone(0).id)
    path.write_bytes(other.data)
    changed = render("t1", tone(0), clip_sha256=hashlib.sha256(other.data).hexdigest(), clip_bytes=len(other.data))
    with LocalRunStore(run) as store:
        store.append("renders", [changed])
    (found,) = check(run)
    assert (found.kind, found.where) == ("changed_clip", UNITS["renders"][0])
    assert other.id in found.message


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ({"letter": "C"}, {"letter", "correct"}),
        ({"letter": "C", "correct": False}, {"letter"}),
        ({"letter_strict": "C", "correct_strict": False}, {"letter"}),
        ({"reply": "C"}, {"letter"}),
        ({"correct": False}, {"correct"}),
        ({"answer_letter": "C", "correct": False, "correct_strict": False}, {"letter"}),
        ({"question_hash": "0" * 64}, {"foreign_row"}),
        ({"status": "unparsed"}, {"letter"}),
        ({"status": "fine"}, {"status", "letter"}),
        ({"clip": "0" * 64}, {"no_parent"}),
        ({"clip": tone(1).id}, {"wrong_clip"}),
    ],
)
def test_an_answer_that_is_not_true(run: Path, change: dict[str, Any], kinds: set[str]) -> None:
    append(run, "answers", ANSWERS[0] | change)
    found = check(run)
    assert {finding.kind for finding in found} == kinds
    assert {finding.where for finding in found} == {ANSWERS[0]["unit_id"]}


def test_a_row_of_another_bank(run: Path) -> None:
    append(run, "answers", answer("elsewhere", "q1", None))
    (found,) = check(run)
    assert (found.kind, found.where) == ("foreign_row", "sys/native/elsewhere/generation/answer/q1/0/0")


def test_a_control_hears_the_clip_of_another_run(run: Path) -> None:
    control = run.with_name("native.swapped")
    heard = {"control": "swapped", "arm": control.name, "source_test": "t2", "clip": tone(1).id}
    with LocalRunStore(control) as store:
        store.write_manifest(manifest(control="swapped"))
        store.append("answers", [answer("t1", "q1", None) | heard])
        store.append("answers", [answer("t1", "q2", None) | heard | {"source_test": "t1"}])
    (found,) = verify(control, questions=QUESTIONS, read_letter=read_first_letter)
    assert (found.kind, found.where) == ("wrong_clip", answer("t1", "q2", None)["unit_id"])


def remove_last(folder: Path) -> Path:
    path = max(folder.iterdir())
    path.unlink()
    return path


def remove_first(folder: Path) -> Path:
    path = min(folder.iterdir())
    path.unlink()
    return path


@pytest.mark.parametrize("remove", [remove_first, remove_last])
@pytest.mark.parametrize("listed", [True, False])
def test_a_missing_part(run: Path, remove: Callable[[Path], Path], listed: bool) -> None:
    if not listed:  # as after a kill, before the first merge
        (run / "tables" / "parts.json").unlink()
    path = remove(table_folder(run, "answers"))
    found = check(run)
    # Without the list, the last part of an epoch shows only by its units.
    by_name = [finding.where for finding in found if finding.kind == "missing_part"]
    assert by_name == ([str(path)] if listed or remove is remove_first else [])
    lost = ANSWERS[:2] if remove is remove_first else ANSWERS[2:]
    assert [f.where for f in found if f.kind == "missing_unit"] == [row["unit_id"] for row in lost]


def test_a_missing_part_is_mended_by_running_its_units_again(run: Path) -> None:
    remove_first(table_folder(run, "answers"))
    with LocalRunStore(run) as store:
        store.append("answers", ANSWERS[:2])
    assert check(run) == []


def test_a_broken_part(run: Path) -> None:
    path = max(table_folder(run, "answers").iterdir())
    path.write_bytes(path.read_bytes()[:100])
    found = check(run)
    assert [f.where for f in found if f.kind == "broken_part"] == [str(path)]
    assert {f.kind for f in found} == {"broken_part", "missing_unit"}


def test_a_part_that_was_written_anew_by_other_hands(run: Path) -> None:
    path = min(table_folder(run, "answers").iterdir())
    path.write_bytes(part_bytes(to_arrow("answers", [row | {"reply": "B."} for row in ANSWERS[:2]])))
    (found,) = check(run)
    assert (found.kind, found.where) == ("changed_part", str(path))


def test_a_unit_that_is_double_in_a_merged_part(run: Path) -> None:
    LocalRunStore(run).close()
    (path,) = table_folder(run, "answers").iterdir()
    with open_part(path) as file:
        rows, metadata = file.read(), file.metadata.metadata
    with pq.ParquetWriter(path, rows.schema, store_schema=False) as writer:
        writer.add_key_value_metadata(metadata)
        writer.write_table(pa.concat_tables([rows, rows.slice(0, 1)]))
    found = [finding for finding in check(run) if finding.kind == "double_unit"]
    assert [finding.where for finding in found] == [ANSWERS[0]["unit_id"]]
    assert current_rows(run, "answers").height == len(ANSWERS)


def test_a_run_without_its_manifest(run: Path) -> None:
    (run / "run.json").unlink()
    (found,) = check(run)
    assert (found.kind, found.where) == ("manifest", str(run / "run.json"))


def test_a_list_of_parts_that_cannot_be_read(run: Path) -> None:
    path = run / "tables" / "parts.json"
    path.write_text("{")
    (found,) = check(run)
    assert (found.kind, found.where) == ("broken_list", str(path))
    with pytest.raises(ManifestError, match=r"parts\.json"):
        LocalRunStore(run)
    path.unlink()
    LocalRunStore(run).close()
