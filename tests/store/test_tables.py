from __future__ import annotations

import pyarrow as pa
import pytest

from tests.store.sample import render, tone
from torus_ray.store.tables import HISTORY_TABLES, OUTCOMES, SCHEMAS, TABLES, is_final, outcome_columns, to_arrow


def test_every_outcome_table_names_unit_key_status_and_reason() -> None:
    for table in set(TABLES) - HISTORY_TABLES:
        names = SCHEMAS[table].names
        assert {"unit_id", "key", "system", "arm", "seed", "status", "reason", "reused_from"} <= set(names)
        assert len(names) == len(set(names))
        assert set(OUTCOMES[table]) <= set(names)


def test_outcomes_leave_out_only_circumstance() -> None:
    for table in set(TABLES) - HISTORY_TABLES:
        assert set(SCHEMAS[table].names) - set(outcome_columns(table)) == {"reused_from", "message"}
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
