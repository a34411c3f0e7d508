from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.store.sample import render, tone
from torus_ray.store import LocalRunStore, index
from torus_ray.store.layout import table_folder
from torus_ray.store.reader import current_rows
from torus_ray.store.tables import HISTORY_TABLES, OUTCOMES, SCHEMAS, TABLES, is_final, outcome_columns, to_arrow


def test_every_outcome_table_names_unit_key_status_and_reason() -> None:
    for table in OUTCOMES:
        names = SCHEMAS[table].names
        assert {"unit_id", "key", "system", "arm", "seed", "status", "reason", "reused_from"} <= set(names)
        assert len(names) == len(set(names))
        assert set(OUTCOMES[table]) <= set(names)


def test_outcomes_leave_out_only_circumstance() -> None:
    assert set(TABLES) == {*OUTCOMES, *HISTORY_TABLES, "distances"}
    for table in OUTCOMES:
        assert set(SCHEMAS[table].names) - set(outcome_columns(table)) == {"reused_from", "message"} | (
            {"notes"} & set(SCHEMAS[table].names)
        )
    assert outcome_columns("attempts") == ()


@pytest.mark.parametrize(
    ("status", "reason", "seeded", "final"),
    [
        ("ok", None, False, True),
        ("unparsed", "refusal", False, True),
        ("refused", "no_words", False, True),
        ("failed", "error", True, False),
        ("failed", "not_finite", True, True),
        ("failed", "empty", True, True),
        ("failed", "not_finite", False, False),
        ("timeout", None, True, False),
        ("no_clip", "failed", True, False),
    ],
)
def test_what_is_final(status: str, reason: str | None, seeded: bool, final: bool) -> None:
    assert is_final(status, reason, seeded=seeded) is final


def test_rows_are_typed_and_what_they_lack_is_null() -> None:
    rows = to_arrow("renders", [render("t1", None), render("t2", tone(1))])
    assert rows.schema == SCHEMAS["renders"]
    assert rows["frames"].to_pylist() == [None, 2000]
    assert rows["clipped"].to_pylist() == [None, False]
    assert SCHEMAS["renders"].field("duration_s").type == pa.float64()


def test_measures_keep_their_numbers_as_float32_and_merge(tmp_path: Path) -> None:
    row = {"system": "s", "arm": "native", "seed": 0, "measure": "m", "status": "ok", "width": 2}
    with LocalRunStore(tmp_path) as store:
        for number in range(20):
            values = np.array([number, 0.1], dtype=np.float32)
            store.append("measures", [{**row, "unit_id": f"u{number:02}", "key": "k", "values": values}])
            store.flush()
    rows = current_rows(tmp_path, "measures").sort("unit_id")
    assert rows["values"].dtype == pl.List(pl.Float32)
    assert rows["values"][19].to_list() == pytest.approx([19, 0.1])
    assert rows["text"].null_count() == 20


def test_measures_and_manifests_of_before_their_columns_are_read(tmp_path: Path) -> None:
    # As the first layout of the table had it: no text, values, width or flags
    old = [name for name in SCHEMAS["measures"].names if name not in ("text", "values", "width", "flags")]
    folder = table_folder(tmp_path, "measures")
    folder.mkdir(parents=True)
    row = dict.fromkeys(old) | {"unit_id": "u", "status": "ok", "values_json": "{}"}
    schema = pa.schema([SCHEMAS["measures"].field(name) for name in old])
    pq.write_table(pa.Table.from_pylist([row], schema), folder / "000001-000001.parquet")
    found = current_rows(tmp_path, "measures").row(0, named=True)
    assert (found["unit_id"], found["values_json"], found["values"], found["text"]) == ("u", "{}", None, None)
    assert current_rows(tmp_path, "distances").height == 0


def test_equal_keys_give_back_the_numbers_of_a_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_SETTLE", 3)
    found = index.ReuseIndex(tmp_path, {"f"})
    rows = [
        {"unit_id": f"u{n}", "key": f"{n:064x}", "status": "ok", "values": np.array([n, 2], np.float32), "width": 2}
        for n in range(5)
    ]
    for row in rows:
        found.add("measures", [row], tmp_path)
    for n in range(5):
        outcome = found.find("measures", f"{n:064x}")
        assert outcome is not None
        assert list(outcome.outcome["values"]) == [n, 2]
