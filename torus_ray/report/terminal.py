"""The coherence table in a terminal, within 100 columns; plain text where the output is none."""

from __future__ import annotations

import sys
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from torus_ray.report.grids import Grid, grids
from torus_ray.report.tables import CoherenceTable

WIDTH = 100


def print_table(table: CoherenceTable, stream: TextIO | None = None) -> None:
    """Write the table, its counts, breakdowns and notes to `stream` (standard output where nothing is said)."""
    out = stream or sys.stdout
    console, terminal = _console(out), out.isatty()
    for grid in grids(table):
        if grid.lines:
            console.print(_told(grid.title, out), style="bold" if terminal else None)
            console.print(_rich(grid, out))
            console.print()
    for note in table.notes:
        console.print(_told(note, out), style="dim" if terminal else None)


def print_side_by_side(header: tuple[str, str, str], lines: list[tuple[str, str, str]]) -> None:
    """Write named pairs of texts to standard output, each pair beside one another."""
    out = sys.stdout
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), show_lines=False)
    for name in header:
        made.add_column(_told(name, out), overflow="fold")
    for line in lines:
        made.add_row(*(_told(text, out) for text in line))
    _console(out).print(made)


def _console(out: TextIO) -> Console:
    # A pipe has no width of its own: what is read later is laid out as wide as it may be.
    console = Console(file=out, width=None if out.isatty() else WIDTH, highlight=False, emoji=False)
    console.width = min(console.width, WIDTH)
    return console


def _rich(grid: Grid, out: TextIO) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for number, name in enumerate(grid.header):
        words = number < grid.left
        made.add_column(
            _told(name, out), justify="left" if words else "right", no_wrap=_never_wraps(number, grid), overflow="fold"
        )
    for line in grid.lines:
        made.add_row(*(_told(text, out) for text in line))
    return made


def _never_wraps(number: int, grid: Grid) -> bool:
    """Numbers with their +- stay on one line; names of systems and lists may be folded."""
    return grid.left <= number and all(len(line[number]) <= 14 for line in grid.lines)


def _told(text: str, out: TextIO) -> Text:
    """The text as the stream can carry it: +- where there is no ±."""
    try:
        text.encode(getattr(out, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = text.replace("±", "+-").encode("ascii", "replace").decode()
    return Text(text)
