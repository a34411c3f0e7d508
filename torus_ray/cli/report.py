"""`torus report`: the coherence table of runs, as they are stored."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.cli.measuring import Reference
from torus_ray.cli.score import reference_among, require_answers, with_published
from torus_ray.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torus_ray.report.grids import Grid

_SHORT = {"type": "audio_type"}


class Format(StrEnum):
    """What a report can be written as."""

    terminal = "terminal"
    markdown = "markdown"
    csv = "csv"


def report(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Run folders or s3:// URIs, or what is above some.", show_default=False)
    ] = None,
    format: Annotated[Format, typer.Option(help="How it is written.")] = Format.terminal,
    by: Annotated[
        str | None,
        typer.Option(
            help="Breakdowns: stage, audio_type, family with commas; crossings with +, e.g. stage+audio_type."
        ),
    ] = None,
    reference: Reference = None,
    published: Annotated[
        bool,
        typer.Option(help="Show the paper's Table 2 too, without runs alone: another bank, not comparable."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="A file to write to; standard output where nothing is said.", show_default=False)
    ] = None,
) -> int:
    """The table of runs on one bank: coherence and objective metrics, with intervals and the counts behind each
    number."""
    if published and format is Format.csv:
        raise InputError(
            "the paper's table is no part of a CSV file: its numbers must not be mixed with ours",
            where="--published",
            expected="--format terminal or markdown",
            mend="results/published/torus_table2.json is that table as data",
        )
    if not runs:
        if not published or by or reference:
            raise InputError(
                "no run is named",
                where="torus report",
                expected="run folders, or a folder above some",
                mend="e.g. `torus report results`; `torus report --published` alone shows the paper's table",
            )
        return _write(*_paper(), format, out)

    from torus_ray.cli.common import runs_at
    from torus_ray.report.csv import to_csv
    from torus_ray.report.grids import grids
    from torus_ray.report.tables import coherence_table

    folders = runs_at(runs)
    table = coherence_table(folders, by=_breakdowns(by), reference=reference_among(folders, reference))
    require_answers(table, runs)
    if format is Format.csv:
        return _put(to_csv(table), out)
    table = with_published(table, wanted=published)
    return _write(grids(table), table.notes, format, out)


def _breakdowns(by: str | None) -> list[tuple[str, ...]]:
    """The columns of each breakdown, as `coherence_table` takes them; it refuses words that are none."""
    groups = [group.split("+") for group in (by or "").split(",") if group.strip()]
    return [tuple(_SHORT.get(word.strip(), word.strip()) for word in group) for group in groups]


def _paper() -> tuple[list[Grid], list[str]]:
    """The paper's table alone, and which bank it is about."""
    from torus_ray.report.grids import published
    from torus_ray.report.published import read_published

    paper = read_published()
    return [published(paper)], [f"Its bank: {paper.bank}."]


def _write(parts: Sequence[Grid], notes: Sequence[str], format: Format, out: Path | None) -> int:
    if format is Format.markdown:
        from torus_ray.report.markdown import grids_to_markdown

        return _put(grids_to_markdown(parts, notes), out)
    import io

    from torus_ray.report.terminal import print_grids

    if out is None:
        print_grids(parts, notes)
        return 0
    buffer = io.StringIO()
    print_grids(parts, notes, buffer)
    return _put(buffer.getvalue(), out)


def _put(text: str, out: Path | None) -> int:
    """The text to a file, or to standard output where none is named. Raises InputError."""
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
