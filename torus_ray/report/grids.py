"""A coherence table laid out as grids of text, the same for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torus_ray.report.tables import COLUMNS, ArmRow, Breakdown, Cell, CoherenceTable

NOTHING = "-"
_COUNTED = ("tests", "expected", "scored", "unparsed", "refused", "failed", "timeout", "no_clip")
_UNSCORED = ("unparsed", "refused", "failed", "timeout", "no_clip")
_MARKS = {"bootstrap_t": "t", "wilson": "w", "percentile": "p", "": ""}


@dataclass(frozen=True)
class Grid:
    """Lines of equally many texts. left: how many columns, from the first, are words; the others are numbers."""

    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    left: int = 1


def grids(table: CoherenceTable) -> list[Grid]:
    """The table, the counts behind it, and the breakdowns."""
    return [_main(table), _counts(table), *(_broken_down(table, part) for part in table.breakdowns)]


def number(cell: Cell | None) -> str:
    """ "63.2 ±6.3" """
    if cell is None:
        return NOTHING
    return f"{cell.pct:.1f}" + (f" ±{cell.half_width:.1f}" if cell.half_width is not None else "")


def _limits(cell: Cell) -> str:
    """ "56.4-68.9 t", the letter for its method; what the letters mean is in the table's notes."""
    return NOTHING if cell.lo is None else f"{cell.lo:.1f}-{cell.hi:.1f} {_MARKS[cell.method or '']}"


def _label(table: CoherenceTable, system: str, arm: str) -> str:
    """The arm, after its system where there are several."""
    return arm if len({row.system for row in table.arms}) < 2 else f"{system} {arm}"


def _arm_label(table: CoherenceTable, row: ArmRow) -> str:
    seeds = "" if row.seeds == (0,) else f" (seed{'s' if len(row.seeds) > 1 else ''} {','.join(map(str, row.seeds))})"
    return _label(table, row.system, row.arm) + seeds


def _main(table: CoherenceTable) -> Grid:
    ranked = any(row.rank for row in table.arms)
    strict = any(cell.strict_pct is not None for row in table.arms for cell in row.cells.values())
    over = any(row.excess for row in table.arms)
    header = ["arm", *COLUMNS, "95 %"]
    header += ["vs muted"] * over + ["letters only"] * strict + ["rank"] * ranked
    lines = []
    for row in table.arms:
        total = row.cells.get("Total")
        line = [_arm_label(table, row), *(number(row.cells.get(name)) for name in COLUMNS)]
        if not row.complete:
            line[len(COLUMNS)] = "incomplete"
        line.append(_limits(total) if total else NOTHING)
        if over:
            line.append(_excess(row))
        if strict:
            line.append(_strict(row))
        if ranked:
            line.append(str(row.rank or NOTHING))
        lines.append(tuple(line))
    systems = list(dict.fromkeys(row.system for row in table.arms))
    who = f"{systems[0]} on " if len(systems) == 1 else ""
    return Grid(f"Coherence in %: {who}{table.bank}", tuple(header), tuple(lines))


def _excess(row: ArmRow) -> str:
    if row.excess is None:
        return NOTHING
    half_width = row.excess.half_width
    return f"{row.excess.points:+.1f}" + (f" ±{half_width:.1f}" if half_width is not None else "")


def _strict(row: ArmRow) -> str:
    """Stages where letters alone give another number."""
    differ = [(name, row.cells[name].strict_pct) for name in COLUMNS if name in row.cells]
    return ", ".join(f"{name} {pct:.1f}" for name, pct in differ if pct is not None) or NOTHING


def _counts(table: CoherenceTable) -> Grid:
    lines = []
    for row in table.arms:
        shown = [name for name in COLUMNS if name in row.cells]
        if "Total" in row.cells and row.cells["Total"].scored == row.cells["Total"].expected:
            shown = ["Total"]
        for name in shown:
            label = _arm_label(table, row) + ("" if name == "Total" else f", {name}")
            lines.append((label, *(str(getattr(row.cells[name], count)) for count in _COUNTED)))
    header = ("questions", *(count.replace("_", " ") for count in _COUNTED))
    return Grid("What was asked and what came back", header, tuple(lines))


def _broken_down(table: CoherenceTable, part: Breakdown) -> Grid:
    unscored = any(row.cell.scored < row.cell.expected for row in part.rows)
    strict = any(row.cell.strict_pct is not None for row in part.rows)
    header = ["arm", *(name.replace("_", " ") for name in part.by), "%", "95 %", "tests", "scored/expected"]
    header += ["letters only"] * strict + ["not scored"] * unscored
    lines = []
    for row in part.rows:
        cell = row.cell
        line = [_label(table, row.system, row.arm), *(value.replace("_", " ") for value in row.group)]
        line += [number(cell), _limits(cell), str(cell.tests)]
        line.append(f"{cell.scored}/{cell.expected}")
        if strict:
            line.append(f"{cell.strict_pct:.1f}" if cell.strict_pct is not None else NOTHING)
        if unscored:
            line.append(_why(cell))
        lines.append(tuple(line))
    return Grid(f"By {part.title}", tuple(header), tuple(lines), left=1 + len(part.by))


def _why(cell: Cell) -> str:
    counts: Sequence[tuple[str, int]] = [(name.replace("_", " "), getattr(cell, name)) for name in _UNSCORED]
    return ", ".join(f"{count} {name}" for name, count in counts if count) or NOTHING
