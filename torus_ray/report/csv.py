"""The coherence table as CSV: one line a number, so that it can be filtered and joined."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, fields
from typing import Any

from torus_ray.report.tables import Cell, CoherenceTable

_CELL = [part.name for part in fields(Cell)]
_NUMBER = ("value", "half_width", "lo", "hi", "method", "expected", "n", "failed", "floor", "reference", "reference_n")
HEADER = (
    *("bank", "system", "arm", "seeds", "control", "by", "group", *_CELL),
    *("complete", "missing", "rank", "over_muted", "over_muted_lo", "over_muted_hi", "over_muted_method"),
    *("value", "n", "floor", "reference", "reference_n", "stages", "reason"),
)
"""by: `column` for S1, S2, S3, Total; `objective`, the group being the number's convention; else the columns broken
down by, joined by +. Numbers are not rounded."""


def to_csv(table: CoherenceTable) -> str:
    """Every number of the table and its breakdowns, with a header line; what is undefined is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, HEADER, restval="", lineterminator="\n")
    writer.writeheader()
    known = {(row.system, row.arm): row for row in table.arms}

    def write(system: str, arm: str, by: str, group: str, cell: Cell | None) -> None:
        row = known[system, arm]
        line: dict[str, Any] = {"bank": table.bank, "system": system, "arm": arm, "control": row.control}
        line |= {"seeds": " ".join(map(str, row.seeds)), "by": by, "group": group}
        line |= {"complete": row.complete, "missing": row.missing}
        line |= asdict(cell) if cell else {}
        if by == "column" and group == "Total":
            line["rank"] = row.rank
            if row.excess:
                line |= {"over_muted": row.excess.points, "over_muted_method": row.excess.method}
                line |= {"over_muted_lo": row.excess.lo, "over_muted_hi": row.excess.hi}
        writer.writerow({name: "" if value is None else value for name, value in line.items()})

    for row in table.arms:
        for name, cell in row.cells.items():
            write(row.system, row.arm, "column", name, cell)
        for number in row.numbers:
            line = {"bank": table.bank, "system": row.system, "arm": row.arm, "seeds": " ".join(map(str, row.seeds))}
            line |= {"by": "objective", "group": number.convention}
            line |= {name: getattr(number, name) for name in (*_NUMBER, "stages", "reason")}
            writer.writerow({name: "" if value is None else value for name, value in line.items()})
    for part in table.breakdowns:
        for group in part.rows:
            write(group.system, group.arm, "+".join(part.by), "+".join(group.group), group.cell)
    return out.getvalue()
