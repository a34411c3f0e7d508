"""The coherence table of whole runs: its lines, its counts, what it refuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.report.sample import canary, make_runs, toy_system
from torus_ray.bank.load import Bank
from torus_ray.errors import InputError
from torus_ray.protocol.graph import Arm, Node, Unit
from torus_ray.report.csv import to_csv
from torus_ray.report.grids import published
from torus_ray.report.markdown import to_markdown
from torus_ray.report.published import read_published
from torus_ray.report.tables import COLUMNS, CROSSINGS, ArmRow, coherence_table
from torus_ray.report.terminal import print_grids, print_table
from torus_ray.stats.coherence import STATUSES
from torus_ray.store import LocalRunStore
from torus_ray.store.reader import current_rows

Row = dict[str, Any]


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary(tmp_path_factory.mktemp("bank"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, bank: Bank) -> dict[str, Path]:
    return make_runs(tmp_path_factory.mktemp("results"), bank)


def right(node: Node, unit: Unit, outcome: Row) -> Row:
    """Answers with the text of the right option; the control that hears nothing stays as it is."""
    if node.kind == "answer" and node.arm.control is None and unit.question is not None:
        return {**outcome, "reply": unit.question.answer}
    return outcome


def by_arm(folders: dict[str, Path], **options: Any) -> dict[str, ArmRow]:
    return {row.arm: row for row in coherence_table(list(folders.values()), **options).arms}


def test_a_line_an_arm_controls_last_and_counts_that_add_up(runs: dict[str, Path]) -> None:
    table = coherence_table(list(runs.values())[::-1])
    assert [row.arm for row in table.arms] == ["native", "self-caption", "native.muted", "native.swapped"]
    for row in table.arms:
        assert list(row.cells) == list(COLUMNS)
        assert (row.cells["Total"].expected, row.cells["Total"].tests, row.missing) == (54, 6, 0)
        for cell in row.cells.values():
            parts = (cell.scored, cell.unparsed, cell.refused, cell.failed, cell.timeout, cell.no_clip)
            assert cell.expected == sum(parts)
            assert cell.pct == pytest.approx(100 * cell.correct / cell.expected)
            assert cell.half_width == pytest.approx((cell.ci_hi - cell.ci_lo) / 2)
    assert table.bank.startswith("canary@")
    assert (table.bank_tests, table.verified) == (6, 0)
    json.dumps(table.rows)


def test_the_total_is_what_the_rows_say(runs: dict[str, Path]) -> None:
    rows = current_rows(runs["native"], "answers")
    total = by_arm(runs)["native"].cells["Total"]
    assert (total.correct, total.expected) == (rows["correct"].sum(), rows.height)


def test_excess_over_muted_is_paired_and_only_where_the_control_is(tmp_path: Path, bank: Bank) -> None:
    lines = by_arm(make_runs(tmp_path, bank, hook=right))
    excess = lines["native"].excess
    assert excess is not None
    expected = lines["native"].cells["Total"].pct - lines["native.muted"].cells["Total"].pct
    assert excess.points == pytest.approx(expected)
    assert excess.points > 50
    assert excess.lo is not None
    assert excess.lo < excess.points
    assert lines["self-caption"].excess is None
    assert lines["native.muted"].excess is None


def test_letters_alone_are_shown_where_they_give_another_number(tmp_path: Path, bank: Bank) -> None:
    table = coherence_table(list(make_runs(tmp_path, bank, arms=[Arm("native")], hook=right).values()))
    (row,) = table.arms
    assert row.cells["Total"].pct == 100
    assert row.cells["Total"].strict_pct == 0
    assert "S1 0.0" in to_markdown(table)
    # Tests that do not vary: the recommended interval is Wilson's.
    assert row.cells["Total"].method == "wilson"
    assert "100.0 ±0.0" in to_markdown(table)


def test_seeds_are_pooled_inside_their_tests(tmp_path: Path, bank: Bank) -> None:
    arms = [Arm("native"), Arm("native", 1), Arm("native", control="muted"), Arm("native", 1, "muted")]
    folders = make_runs(tmp_path, bank, arms=arms)
    lines = by_arm(folders)
    assert set(lines) == {"native", "native.muted"}
    assert lines["native"].seeds == (0, 1)
    assert (lines["native"].cells["Total"].expected, lines["native"].cells["Total"].tests) == (108, 6)
    assert "native (seeds 0,1)" in to_markdown(coherence_table(list(folders.values())))


def test_a_system_that_cannot_has_no_total_and_no_rank(tmp_path: Path, bank: Bank) -> None:
    deaf = make_runs(tmp_path, bank, system=toy_system(["generate", "answer"], "noedit"), arms=[Arm("native")])
    whole = make_runs(tmp_path, bank, arms=[Arm("native"), Arm("self-caption")])
    table = coherence_table([*deaf.values(), *whole.values()])
    lines = {row.system: row for row in table.arms}
    assert not lines["noedit"].complete
    assert "Total" not in lines["noedit"].cells
    assert lines["noedit"].rank is None
    assert lines["noedit"].cells["S2"].no_clip == 18
    assert table.rows[0]["Total"] is None
    assert {row.rank for row in table.arms if row.system == "toy"} == {1}
    assert "incomplete" in to_markdown(table)


def test_what_failed_counts_as_wrong_and_is_told(tmp_path: Path, bank: Bank) -> None:
    def hook(node: Node, unit: Unit, outcome: Row) -> Row:
        if node.kind == "render" and node.stage == "edit" and node.test.id == "canary-001":
            return {"status": "failed", "reason": "error", "message": "it broke"}
        if node.kind == "answer" and node.stage == "generation" and node.test.id == "canary-000":
            return {"status": "ok", "reply": "I cannot tell."}
        return right(node, unit, outcome)

    (row,) = coherence_table(list(make_runs(tmp_path, bank, arms=[Arm("native")], hook=hook).values())).arms
    assert (row.cells["S1"].unparsed, row.cells["S1"].scored) == (3, 15)
    assert (row.cells["S2"].no_clip, row.cells["S3"].no_clip) == (3, 3)
    assert row.cells["Total"].correct == 54 - 9
    assert row.complete


def test_breakdowns_and_crossings_hold_every_answer(runs: dict[str, Path]) -> None:
    table = coherence_table(list(runs.values()), by=CROSSINGS)
    for part in table.breakdowns:
        for arm in runs:
            assert sum(row.cell.expected for row in part.rows if row.arm == arm) == 54
    groups = [row.group for row in table.breakdowns[2].rows if row.arm == "native"]
    assert groups[:3] == [("generation", "speech"), ("generation", "sound"), ("generation", "music")]


def test_letters_are_read_anew(tmp_path: Path, bank: Bank) -> None:
    folders = make_runs(tmp_path, bank, arms=[Arm("native")])
    assert by_arm(folders, reread=True)["native"].changed == 0
    first = current_rows(folders["native"], "answers").row(0, named=True)
    wrong = {**first, "letter": None, "letter_strict": None, "status": "unparsed", "correct": False}
    with LocalRunStore(folders["native"]) as store:
        store.append("answers", [{**wrong, "correct_strict": False}])
    assert by_arm(folders)["native"].cells["Total"].unparsed == 1
    anew = by_arm(folders, reread=True)["native"]
    assert (anew.changed, anew.cells["Total"].unparsed) == (1, 0)


def test_a_run_that_goes_on_says_how_much_is_missing(tmp_path: Path, bank: Bank) -> None:
    (folder,) = make_runs(tmp_path, bank, arms=[Arm("native")], state="running").values()
    kept = current_rows(folder, "answers").head(20)
    for part in (folder / "tables" / "answers").glob("*.parquet"):
        part.unlink()
    with LocalRunStore(folder) as store:
        store.append("answers", kept.to_dicts())
    table = coherence_table([folder])
    assert table.arms[0].missing == 34
    assert any("34 questions have no row yet" in note for note in table.notes)


def test_tests_that_only_lend_their_clips_to_a_control_are_not_missing(tmp_path: Path, bank: Bank) -> None:
    folders = make_runs(tmp_path, bank, arms=[Arm("native"), Arm("native", control="swapped")], tests=1)
    lines = by_arm(folders)
    assert lines["native"].missing == lines["native.swapped"].missing == 0
    assert lines["native"].cells["Total"].expected == 9
    # One test has no interval.
    assert lines["native"].cells["Total"].half_width is None


def test_one_bank_a_table(tmp_path: Path, runs: dict[str, Path]) -> None:
    other = make_runs(tmp_path / "results", canary(tmp_path / "bank", seed=1), arms=[Arm("native")])
    with pytest.raises(InputError, match="the runs are on 2 banks"):
        coherence_table([*runs.values(), *other.values()])


def test_two_runs_of_one_arm_are_refused(tmp_path: Path, bank: Bank, runs: dict[str, Path]) -> None:
    twin = make_runs(tmp_path, bank, arms=[Arm("native")])
    with pytest.raises(InputError, match="two runs are of the same arm"):
        coherence_table([*runs.values(), *twin.values()])


def test_a_table_without_its_bank_says_so(tmp_path: Path, bank: Bank) -> None:
    (folder,) = make_runs(tmp_path, bank, arms=[Arm("native")]).values()
    (folder.parents[1] / "bank.jsonl.gz").unlink()
    table = coherence_table([folder])
    assert table.verified is None
    assert "not known" in table.notes[0]


def test_csv_has_every_number_unrounded(runs: dict[str, Path]) -> None:
    table = coherence_table(list(runs.values()), by=[("family",)])
    lines = list(csv.DictReader(io.StringIO(to_csv(table))))
    total = next(line for line in lines if line["arm"] == "native" and line["group"] == "Total")
    assert float(total["pct"]) == table.arms[0].cells["Total"].pct
    assert sum(line["by"] == "column" for line in lines) == 4 * len(runs)
    assert sum(line["by"] == "family" for line in lines) == len(table.breakdowns[0].rows)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_terminal_of_100_columns_is_enough(tmp_path: Path, bank: Bank, encoding: str) -> None:
    long = make_runs(
        tmp_path, bank, system=toy_system(name="a-unified-model-of-long-name+another-listener"), hook=right
    )
    short = make_runs(tmp_path, bank)
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    print_table(coherence_table([*long.values(), *short.values()], by=CROSSINGS), stream)
    stream.flush()
    text = raw.getvalue().decode(encoding)
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text
    assert ("100.0 ±0.0" if encoding == "utf-8" else "100.0 +-0.0") in text


def test_names_of_the_paper_break_between_words_alone() -> None:
    stream = io.StringIO()
    grid = published(read_published())
    print_grids([grid], [], stream)
    text = stream.getvalue()
    assert max(map(len, text.splitlines())) <= 100
    words = {word for line in grid.lines for word in line[0].split()}
    assert words <= set(text.split())
    assert "Unified-IO 2 " in text


def test_the_statuses_are_those_of_the_store() -> None:
    from torus_ray.store import tables

    assert STATUSES == tables.STATUSES
