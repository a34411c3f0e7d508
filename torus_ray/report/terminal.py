"""The coherence table in a terminal, within 100 columns; plain text where the output is none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from torus_ray.report.grids import Grid, grids
from torus_ray.report.tables import CoherenceTable

WIDTH = 100
LONGEST_NAME = 24
"""A word of a name no longer than this stays whole."""


def print_table(table: CoherenceTable, stream: TextIO | None = None) -> None:
    """Write the table, its counts, breakdowns and notes to `stream` (standard output where nothing is said)."""
    print_grids(grids(table), table.notes, stream)


def print_grids(parts: Sequence[Grid], notes: Sequence[str], stream: TextIO | None = None) -> None:
    """Write grids that have lines, and notes below them."""
    out = stream or sys.stdout
    console, terminal = _console(out), out.isatty()
    for grid in parts:
        if grid.lines:
            console.print(_told(grid.title, out), style="bold" if terminal else None)
            console.print(_rich(grid, out, console.width))
            console.print()
    for note in notes:
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


def _rich(grid: Grid, out: TextIO, width: int) -> Table:
    columns = list(zip(grid.header, *grid.lines, strict=True))
    # Two spaces between columns, one where they would not fit otherwise: names are not to break within a word.
    whole = [_never_wraps(at, grid) for at in range(len(columns))]
    widths = [max(map(len, texts)) if whole[at] else _longest_word(texts) for at, texts in enumerate(columns)]
    wide = sum(widths) + 2 * len(widths) <= width
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, int(wide), 0, 0))
    for number, name in enumerate(grid.header):
        words = number < grid.left
        made.add_column(
            _told(name, out),
            justify="left" if words else "right",
            no_wrap=whole[number],
            overflow="fold",
            min_width=min(widths[number], LONGEST_NAME) if words else None,
        )
    for line in grid.lines:
        made.add_row(*(_told(text, out) for text in line))
    return made


def _longest_word(texts: Sequence[str]) -> int:
    return max(len(word) for text in texts for word in text.split() or [""])


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
