"""What a run's rows say of its clips."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from torus_ray.report.measured import measured_of
from torus_ray.store.tables import SCHEMAS, STATUSES


@pytest.mark.parametrize("status", [s for s in STATUSES if s != "unparsed"])
def test_every_render_with_a_row_is_settled_however_it_ended(status: str) -> None:
    """METRICS 11: a render that outran its deadline is a missing clip like any other, not one still to come."""
    row = {"test": "t0", "stage": "generation", "seed": 0, "audio_type": "sound", "status": status}
    tables = {"renders": pl.DataFrame([row | {"clip": "c" if status == "ok" else None, "duration_s": None}])}

    def rows(table: str, columns: list[str]) -> pl.DataFrame:
        empty: Any = pl.DataFrame(SCHEMAS[table].empty_table())
        return tables.get(table, empty).select(columns)

    manifest = SimpleNamespace(system="s", arm="native", seed=0, bank_hash="b", measures={})
    found = measured_of(SimpleNamespace(manifest=manifest, tests=("t0",), rows=rows))  # type: ignore[arg-type]
    assert found.clips["t0", "generation", 0].rendered
    assert found.no_clip("any", ("t0", "generation", 0)) == (status != "ok")
    assert not found.clips["t0", "edit", 0].rendered
