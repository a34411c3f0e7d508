"""The script that stands by itself and the package agree on every number."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.sample import canary, make_runs
from torus_ray.report.tables import coherence_table
from torus_ray.store import LocalRunStore
from torus_ray.store.reader import current_rows

SCRIPT = Path(__file__).with_name("coherence_from_rows.py")


def test_it_agrees_with_the_table_also_after_rows_were_replaced(tmp_path: Path) -> None:
    runs = make_runs(tmp_path / "results", canary(tmp_path / "bank"))
    rows = current_rows(runs["native"], "answers").to_dicts()
    newer = [{**row, "letter": row["answer_letter"], "correct": True, "correct_strict": True} for row in rows[:7]]
    store = LocalRunStore(runs["native"])
    store.append("answers", newer)
    store.close(compact=False)
    assert len(list((runs["native"] / "tables" / "answers").glob("*.parquet"))) == 2

    told = subprocess.run([sys.executable, SCRIPT, *runs.values()], capture_output=True, text=True, check=True)
    by_hand = json.loads(told.stdout)
    for arm, folder in runs.items():
        table = coherence_table([folder], by=[("audio_type",), ("family",)])
        (row,) = table.arms
        cells = dict(row.cells) | {group.group[0]: group.cell for part in table.breakdowns for group in part.rows}
        assert by_hand[str(folder)].keys() == cells.keys(), arm
        for name, cell in cells.items():
            theirs = by_hand[str(folder)][name]
            assert (theirs["correct"], theirs["expected"]) == (cell.correct, cell.expected), (arm, name)
            assert theirs["pct"] == pytest.approx(cell.pct)


def test_it_imports_nothing_of_the_package() -> None:
    assert "torus_ray" not in SCRIPT.read_text(encoding="utf-8")
