"""A coherence table laid out as grids of text, the same for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torus_ray.report.number import HEADINGS, IS_REFERENCE, METHODS, Number
from torus_ray.report.published import Published
from torus_ray.report.tables import COLUMNS, ArmRow, Breakdown, Cell, CoherenceTable

NOTHING, UNDEFINED = "-", "?"
_COUNTED = ("tests", "expected", "scored", "unparsed", "refused", "failed", "timeout", "no_clip")
_UNSCORED = ("unparsed", "refused", "failed", "timeout", "no_clip")


@dataclass(frozen=True)
class Grid:
    """Lines of equally many texts. left: how many columns, from the first, are words; the others are numbers."""

    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    left: int = 1


def grids(table: CoherenceTable) -> list[Grid]:
    """The table, the counts behind it, and the breakdowns."""
    parts = [_main(table), _objective(table), *([published(table.published)] if table.published else [])]
    parts += [_counts(table), *(_measured(table, row) for row in table.arms)]
    return parts + [_broken_down(table, part) for part in table.breakdowns]


def number(cell: Cell | None) -> str:
    """ "63.2 ±6.3" """
    if cell is None:
        return NOTHING
    return f"{cell.pct:.1f}" + (f" ±{cell.half_width:.1f}" if cell.half_width is not None else "")


def _limits(cell: Cell) -> str:
    """ "56.4-68.9 t", the letter for its method; what the letters mean is in the table's notes."""
    return NOTHING if cell.lo is None else f"{cell.lo:.1f}-{cell.hi:.1f} {_mark(cell.method)}"


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


def _objective(table: CoherenceTable) -> Grid:
    """The objective columns of the paper's row, each with its network where several took a measure."""
    named = {(n.metric, n.measure): None for row in table.arms for n in row.numbers if n.headline}
    columns = sorted(named, key=lambda column: HEADINGS.index(column[0]))
    titles = [metric for metric, _ in columns]
    header = [f"{metric} {measure}" if titles.count(metric) > 1 else metric for metric, measure in columns]
    lines = []
    for row in table.arms:
        found = {(n.metric, n.measure): n for n in row.numbers if n.headline}
        if found:
            lines.append((_arm_label(table, row), *(objective(found.get(column)) for column in columns)))
    return Grid("Objective metrics", ("arm", *header), tuple(lines))


def published(paper: Published) -> Grid:
    """The paper's table under the words that say what it is."""
    header = ("system", *COLUMNS, *HEADINGS)
    lines = tuple((row.system, *(row.cells[name] or NOTHING for name in header[1:])) for row in paper.rows)
    return Grid(f"{paper.title}. Another bank: not comparable", header, lines)


def objective(number: Number | None) -> str:
    """ "0.213 ±0.080"; a percentage with one decimal; "?" where an arm has it and a value could not be had."""
    if number is None or number.reason in (IS_REFERENCE, "no_speech_stages"):
        return NOTHING
    if number.value is None:
        return UNDEFINED
    half = number.half_width
    return _plain(number, number.value) + (f" ±{_plain(number, half)}" if half is not None else "")


def _plain(number: Number, value: float) -> str:
    return f"{value:.1f}" if number.metric == "CM" or abs(number.value or 0) >= 100 else f"{value:.3f}"


def _measured(table: CoherenceTable, row: ArmRow) -> Grid:
    """Every objective number of an arm by its whole name, with its counts."""
    told = [n for n in row.numbers if n.reason != IS_REFERENCE]
    failed = any(n.failed for n in told)
    lines = []
    for n in told:
        value = objective(n) if n.value is not None else n.reason or NOTHING
        limits = (
            NOTHING if n.lo is None or n.hi is None else f"{_plain(n, n.lo)} to {_plain(n, n.hi)} {_mark(n.method)}"
        )
        line = [n.convention, n.stages, value, limits, f"{n.n}/{n.expected}"]
        line += [str(n.failed)] * failed + [NOTHING if n.floor is None else _plain(n, n.floor)]
        lines.append(tuple(line))
    header = ("number", "stages", "value", "95 %", "clips", *(["failed"] * failed), "floor")
    return Grid(f"What was measured: {_arm_label(table, row)}", header, tuple(lines), left=2)


def _mark(method: str | None) -> str:
    return METHODS[method][0] if method else ""


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
