"""`torus report`: the coherence table of runs, as they are stored."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.cli.measuring import Reference
from torus_ray.cli.score import Published, Runs, reference_among, require_answers, with_published
from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.report.tables import CoherenceTable

_SHORT = {"type": "audio_type"}


class Format(StrEnum):
    """What a report can be written as."""

    terminal = "terminal"
    markdown = "markdown"
    csv = "csv"


def report(
    runs: Runs,
    format: Annotated[Format, typer.Option(help="How it is written.")] = Format.terminal,
    by: Annotated[
        str | None,
        typer.Option(
            help="Breakdowns: stage, audio_type, family with commas; crossings with +, e.g. stage+audio_type."
        ),
    ] = None,
    reference: Reference = None,
    published: Published = False,
    out: Annotated[
        Path | None, typer.Option(help="A file to write to; standard output where nothing is said.", show_default=False)
    ] = None,
) -> int:
    """The table of runs on one bank: coherence and objective metrics, with intervals and the counts behind each
    number."""
    from torus_ray.cli.common import runs_at
    from torus_ray.report.tables import coherence_table

    folders = runs_at(runs)
    table = coherence_table(folders, by=_breakdowns(by), reference=reference_among(folders, reference))
    require_answers(table, runs)
    if published and format is Format.csv:
        raise InputError(
            "the paper's table is no part of a CSV file: its numbers must not be mixed with ours",
            where="--published",
            expected="--format terminal or markdown",
            mend="results/published/torus_table2.json is that table as data",
        )
    table = with_published(table, wanted=published)
    if out is None and format is Format.terminal:
        from torus_ray.report.terminal import print_table

        print_table(table)
        return 0
    text = _written(table, format)
    if out is None:
        print(text, end="")
        return 0
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"the report cannot be written: {error.strerror}",
            where=str(out.absolute()),
            expected="a file in a folder that is there and can be written",
            mend="choose another --out",
        ) from error
    print(f"written: {out}")
    return 0


def _breakdowns(by: str | None) -> list[tuple[str, ...]]:
    """The columns of each breakdown, as `coherence_table` takes them; it refuses words that are none."""
    groups = [group.split("+") for group in (by or "").split(",") if group.strip()]
    return [tuple(_SHORT.get(word.strip(), word.strip()) for word in group) for group in groups]


def _written(table: CoherenceTable, format: Format) -> str:
    if format is Format.csv:
        from torus_ray.report.csv import to_csv

        return to_csv(table)
    if format is Format.markdown:
        from torus_ray.report.markdown import to_markdown

        return to_markdown(table)
    import io

    from torus_ray.report.terminal import print_table

    buffer = io.StringIO()
    print_table(table, buffer)
    return buffer.getvalue()
