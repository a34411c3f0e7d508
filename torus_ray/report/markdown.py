"""The coherence table as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from torus_ray.report.grids import Grid, grids
from torus_ray.report.tables import CoherenceTable


def to_markdown(table: CoherenceTable) -> str:
    """The table, its counts, breakdowns and notes; headings of the third level."""
    return grids_to_markdown(grids(table), table.notes)


def grids_to_markdown(parts: Sequence[Grid], notes: Sequence[str]) -> str:
    """Grids that have lines, and notes below them."""
    told = "\n".join(f"- {_cell(note)}" for note in notes)
    return "\n\n".join([*(_grid(grid) for grid in parts if grid.lines), told]) + "\n"


def _grid(grid: Grid) -> str:
    rule = [":---" if number < grid.left else "---:" for number in range(len(grid.header))]
    lines = [_line(grid.header), _line(rule), *(_line(line) for line in grid.lines)]
    return f"### {grid.title}\n\n" + "\n".join(lines)


def _line(texts: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(map(_cell, texts)) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
