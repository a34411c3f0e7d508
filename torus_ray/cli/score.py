"""`torus score`: read the letters anew from the stored replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.cli.measuring import Reference
from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.report.tables import CoherenceTable

Published = Annotated[bool, typer.Option(help="Show the paper's Table 2 too: another bank, not comparable.")]
Runs = Annotated[
    list[Path], typer.Argument(help="Run folders or s3:// URIs, or what is above some.", show_default=False)
]


def score(
    runs: Runs,
    reference: Reference = None,
    published: Published = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Score runs from their rows alone: today's letter reader over the stored replies, WER, CM and distances from the
    stored measures, the table and its breakdowns. Writes nothing."""
    from torus_ray.cli.common import runs_at
    from torus_ray.report.tables import CROSSINGS, coherence_table

    folders = runs_at(runs)
    table = coherence_table(folders, by=CROSSINGS, reread=True, reference=reference_among(folders, reference))
    require_answers(table, runs)
    table = with_published(table, wanted=published)
    if as_json:
        print(json.dumps(table.as_dict(), indent=1))
        return 0
    from torus_ray.report.terminal import print_table

    print_table(table)
    return 0


def reference_among(folders: list[Path], reference: str | None) -> str | None:
    """The reference asked for, as the runs' own run.json would name it. Raises InputError."""
    from torus_ray.report.references import locate, named

    return named(locate(reference), folders[0].absolute().parent.parent) if reference else None


def with_published(table: CoherenceTable, *, wanted: bool) -> CoherenceTable:
    """The table with the paper's beside it, where it is wanted."""
    from dataclasses import replace

    from torus_ray.report.published import read_published

    return replace(table, published=read_published()) if wanted else table


def require_answers(table: CoherenceTable, runs: list[Path]) -> None:
    """Raise InputError for a table without any number."""
    from torus_ray.store.mirror import local_folder, named

    if not any(arm.cells for arm in table.arms):
        raise InputError(
            "there are no answers to count",
            where=", ".join(named(local_folder(run).absolute()) for run in runs),
            expected="rows in tables/answers",
            mend="the command that made the run goes on when it is given again",
        )
