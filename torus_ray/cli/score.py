"""`torus score`: read the letters anew from the stored replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.report.tables import CoherenceTable

Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders above some.", show_default=False)]


def score(
    runs: Runs,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Score runs from their rows alone: today's letter reader over the stored replies, the table and its breakdowns.
    Writes nothing."""
    from torus_ray.cli.common import runs_at
    from torus_ray.report.tables import CROSSINGS, coherence_table

    table = coherence_table(runs_at(runs), by=CROSSINGS, reread=True)
    require_answers(table, runs)
    if as_json:
        print(json.dumps(table.as_dict(), indent=1))
        return 0
    from torus_ray.report.terminal import print_table

    print_table(table)
    return 0


def require_answers(table: CoherenceTable, runs: list[Path]) -> None:
    """Raise InputError for a table without any number."""
    if not any(arm.cells for arm in table.arms):
        raise InputError(
            "there are no answers to count",
            where=", ".join(str(run.absolute()) for run in runs),
            expected="rows in tables/answers",
            mend="the command that made the run goes on when it is given again",
        )
