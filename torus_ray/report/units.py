"""One unit of a run, found by its id or by what of it is enough to tell it from the others."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from torus_ray.errors import InputError
from torus_ray.report.runs import Run

TABLES = ("renders", "captions", "answers", "measures")
_NEAR = 5
_LISTED = 12


@dataclass(frozen=True)
class FoundUnit:
    """A unit's current row, and the run that it lies in."""

    run: Run
    table: str
    row: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.row["unit_id"])


def find_unit(runs: Sequence[Run], text: str) -> FoundUnit:
    """The unit whose id is `text`, ends with it, or holds its parts in their order: speech-01/edit/q2 finds
    pocket/native/speech-01/edit/answer/q2/0/0.

    Raises InputError with the ids meant, or the nearest ones where none is.
    """
    units = [(run, table, unit) for run in runs for table in TABLES for unit in run.rows(table, ["unit_id"])["unit_id"]]
    parts = [part for part in text.strip().split("/") if part]
    tests = (
        lambda unit: unit == text,
        lambda unit: unit.endswith(f"/{text.strip('/')}"),
        lambda unit: bool(parts) and _in_order(parts, unit.split("/")),
    )
    for fits in tests:
        meant = [found for found in units if fits(found[2])]
        if len(meant) == 1:
            run, table, unit = meant[0]
            row = run.rows(table).filter(pl.col("unit_id") == unit).row(0, named=True)
            return FoundUnit(run, table, row)
        if meant:
            ids = [unit for _, _, unit in meant]
            more = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
            raise InputError(
                f"{text!r} means {len(ids)} units",
                where=", ".join(str(run.folder) for run in runs),
                expected="the id of one: " + ", ".join(ids[:_LISTED]) + more,
                mend="say more of it",
            )
    ids = [unit for _, _, unit in units]
    raise InputError(
        f"no unit is called {text!r}",
        where=", ".join(str(run.folder) for run in runs),
        expected=f"one of {len(ids)} units" + (f", near: {', '.join(_nearest(text, ids))}" if ids else ""),
        mend="an id is system/arm/test/stage/operation; its tail is enough, e.g. test/stage/q1",
    )


def _in_order(parts: Sequence[str], whole: Sequence[str]) -> bool:
    rest = iter(whole)
    return all(part in rest for part in parts)


def _nearest(text: str, ids: Sequence[str]) -> list[str]:
    """Ids whose own tail of about that length is most like `text`."""
    size = max(1, len([part for part in text.split("/") if part]))
    tails: dict[str, str] = {}
    for unit in ids:
        parts = [part for part in unit.split("/")[2:] if part not in ("answer", "0")]
        tails.setdefault("/".join(parts[:size]), unit)
    near = difflib.get_close_matches(text.strip("/"), list(tails), n=_NEAR, cutoff=0.0)
    return [tails[tail] for tail in near]
