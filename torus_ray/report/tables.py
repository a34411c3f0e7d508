"""The coherence table: one line an arm of a system, each number with its interval and the counts behind it.

Conventions (METRICS 1, 2): `coherence.micro`, `ci.cluster_percentile` for the paper's +-; beside it the recommended
interval (bootstrap_t over tests, wilson where tests do not vary). Seeds are pooled inside tests in one line; controls
are lines of their own (DESIGN 8).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from torus_ray.bank.schema import AUDIO_TYPES, FAMILIES, LETTERS, QUESTIONS_PER_STAGE, STAGES
from torus_ray.errors import InputError
from torus_ray.report.answers import answers_of, incomplete, together
from torus_ray.report.number import METHODS, Number
from torus_ray.report.objective import line_numbers, notes_of
from torus_ray.report.published import Published
from torus_ray.report.runs import Run, open_run
from torus_ray.stats.coherence import COUNTS, QUESTION, coherences
from torus_ray.stats.intervals import RESAMPLES
from torus_ray.stats.paired import paired_difference
from torus_ray.systems import EDIT_MODES

CHANCE_PCT = 100 / len(LETTERS)
STAGE_NAMES: Mapping[str, str] = {stage: f"S{number}" for number, stage in enumerate(STAGES, 1)}
COLUMNS = (*STAGE_NAMES.values(), "Total")
ORDERS: Mapping[str, Sequence[str]] = {"stage": STAGES, "audio_type": AUDIO_TYPES, "family": FAMILIES}
"""What a table can be broken down by, alone or crossed, and the order of its groups."""
CROSSINGS = (("audio_type",), ("family",), ("stage", "audio_type"), ("audio_type", "family"))
"""The breakdowns of `torus score`."""

_ARM = ("system", "arm")
_CELL = ("pct", "ci_half_width", "ci_lo", "ci_hi", "lo", "hi", "method", *COUNTS, "tests")


@dataclass(frozen=True)
class Cell:
    """One percentage. Counts of questions: expected = scored + unparsed + refused + failed + timeout + no_clip.

    half_width: what is printed behind +-, of the paper's interval ci_lo to ci_hi. lo, hi, method: the recommended one.
    strict_pct: the reading by letters alone, where it gives another number. What is undefined is None.
    """

    pct: float
    half_width: float | None
    ci_lo: float | None
    ci_hi: float | None
    lo: float | None
    hi: float | None
    method: str | None
    correct: int
    expected: int
    scored: int
    unparsed: int
    refused: int
    failed: int
    timeout: int
    no_clip: int
    tests: int
    strict_pct: float | None = None


_Groups = list[tuple[dict[str, Any], Cell]]
"""Groups of a slice: their columns and their numbers."""


@dataclass(frozen=True)
class Excess:
    """An arm minus its muted control in percentage points, paired by test.

    half_width: of the percentile interval, as in a Cell. lo, hi, method: the recommended interval.
    """

    points: float
    half_width: float | None
    lo: float | None
    hi: float | None
    method: str | None
    tests: int


@dataclass(frozen=True)
class ArmRow:
    """A line of the table. cells: S1, S2, S3 and, unless the arm is incomplete, Total; empty without any answer.

    missing: questions that have no row yet. rank: among complete arms over the same questions, controls apart.
    changed: answers whose letter today's reader reads otherwise than was stored; None where they were not read anew.
    numbers: the objective ones (CM, WER, KL, FAD, FD), of every convention.
    """

    system: str
    arm: str
    control: str | None
    seeds: tuple[int, ...]
    cells: Mapping[str, Cell]
    complete: bool
    missing: int
    excess: Excess | None = None
    rank: int | None = None
    changed: int | None = None
    numbers: tuple[Number, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every column is there, null where there is no number."""
        fields = {name: getattr(self, name) for name in ("system", "arm", "control", "complete", "missing", "rank")}
        cells = {name: asdict(self.cells[name]) if name in self.cells else None for name in COLUMNS}
        excess = asdict(self.excess) if self.excess else None
        objective = [asdict(number) for number in self.numbers]
        return {
            **fields,
            "seeds": list(self.seeds),
            **cells,
            "excess_over_muted": excess,
            "changed": self.changed,
            "objective": objective,
        }


@dataclass(frozen=True)
class GroupRow:
    """One group of one arm. group: a value for each column of the breakdown."""

    system: str
    arm: str
    group: tuple[str, ...]
    cell: Cell


@dataclass(frozen=True)
class Breakdown:
    """The table by one or more of ORDERS."""

    by: tuple[str, ...]
    rows: tuple[GroupRow, ...]

    @property
    def title(self) -> str:
        return " x ".join(name.replace("_", " ") for name in self.by)


@dataclass(frozen=True)
class CoherenceTable:
    """verified: how many of the bank's tests a person has verified; None where the bank's snapshot cannot be read.
    published: the paper's table, where it is to stand beside."""

    bank: str
    bank_tests: int | None
    verified: int | None
    arms: tuple[ArmRow, ...]
    breakdowns: tuple[Breakdown, ...] = ()
    notes: tuple[str, ...] = field(default=())
    published: Published | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The lines as plain data for JSON."""
        return [arm.as_dict() for arm in self.arms]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        groups = [
            {"by": list(part.by), "rows": [{**asdict(row), "group": list(row.group)} for row in part.rows]}
            for part in self.breakdowns
        ]
        bank = {"name": self.bank, "tests": self.bank_tests, "human_verified": self.verified}
        return {
            "bank": bank,
            "chance_pct": CHANCE_PCT,
            "rows": self.rows,
            "breakdowns": groups,
            "notes": list(self.notes),
        }


def coherence_table(
    folders: Sequence[Path],
    *,
    by: Sequence[Sequence[str]] = (),
    reread: bool = False,
    reference: str | None = None,
    objective: bool = True,
) -> CoherenceTable:
    """The table of some run folders, all on one bank.

    by: breakdowns, each one or more columns of ORDERS. reread: letters from the stored replies by today's reader.
    reference: what distances are taken to (references.named), else what each run.json says. objective: whether WER, CM
    and distances are wanted at all.
    Raises InputError for runs of several banks, two runs of one arm and seed, and rows that cannot be counted.
    """
    runs = [open_run(folder) for folder in folders]
    _check(runs)
    frames = [answers_of(run, reread=reread) for run in runs]
    answers = together(frames)
    slices = [tuple(columns) for columns in by]
    for columns in slices:
        _check_slice(columns)
    stages, totals, *sliced = _both_readings(answers, [(*_ARM, "stage"), _ARM, *((*_ARM, *each) for each in slices)])
    cells = _cells(stages, totals)
    lines: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number in sorted(range(len(runs)), key=lambda at: _place(runs, at)):
        lines[runs[number].manifest.system, runs[number].line].append(number)
    arms = []
    for line, numbers in lines.items():
        frame = together([frames[number] for number in numbers])
        here = [runs[number] for number in numbers]
        lacking = incomplete(frame)
        found = {name: cell for name, cell in cells.get(line, {}).items() if not (lacking and name == "Total")}
        arms.append(
            ArmRow(
                system=line[0],
                arm=line[1],
                control=here[0].manifest.control,
                seeds=tuple(sorted(run.manifest.seed for run in here)),
                cells=found,
                complete=not lacking,
                missing=sum(_missing(run, frames[number]) for run, number in zip(here, numbers, strict=True)),
                excess=_excess(answers, line) if here[0].manifest.control is None and not lacking else None,
                changed=int(frame["changed"].sum()) if reread else None,
                numbers=line_numbers(here, reference) if objective else (),
            )
        )
    ranked = _ranked(arms, answers)
    breakdowns = tuple(_breakdown(each, columns, list(lines)) for columns, each in zip(slices, sliced, strict=True))
    bank = _bank_facts(runs[0])
    notes = [*_notes(ranked, answers, *bank), *notes_of({f"{arm.system} {arm.arm}": arm.numbers for arm in ranked})]
    return CoherenceTable(runs[0].bank_name, *bank, ranked, breakdowns, tuple(notes))


# --- which runs -------------------------------------------------------------------------------------------------------


def _check(runs: Sequence[Run]) -> None:
    if not runs:
        raise InputError("no run is given", expected="one or more run folders", mend="`torus run` prints their paths")
    banks = {run.manifest.bank_hash: run for run in runs}
    if len(banks) > 1:
        raise InputError(
            f"the runs are on {len(banks)} banks: {', '.join(sorted(run.bank_name for run in banks.values()))}",
            where=", ".join(str(run.folder) for run in banks.values()),
            expected="runs on one bank: numbers of different tests do not stand in one table",
            mend="make one table a bank: name the folder of one, e.g. results/<bank>@<hash8>",
        )
    seeds: dict[tuple[str, str, int], Run] = {}
    for run in runs:
        twin = seeds.setdefault((run.manifest.system, run.line, run.manifest.seed), run)
        if twin is not run:
            raise InputError(
                f"two runs are of the same arm: {run.manifest.system}/{run.manifest.arm}",
                where=f"{twin.folder} and {run.folder}",
                expected="one run of each system, arm and seed",
                mend="name one of the two",
            )


def _place(runs: Sequence[Run], number: int) -> tuple[int, int, int, str, int]:
    """Systems as given; in each the edit modes, then the controls."""
    manifest = runs[number].manifest
    first = next(at for at, run in enumerate(runs) if run.manifest.system == manifest.system)
    modes: Sequence[str] = EDIT_MODES
    mode = modes.index(manifest.edit_mode) if manifest.edit_mode in modes else len(modes)
    return first, int(manifest.control is not None), mode, manifest.control or "", manifest.seed


def _missing(run: Run, answers: pl.DataFrame) -> int:
    asked = answers.select(QUESTION).unique().height
    return max(0, len(run.tests) * len(STAGES) * QUESTIONS_PER_STAGE - asked)


def _bank_facts(run: Run) -> tuple[int | None, int | None]:
    """Tests of the bank, and how many a person has verified; None, None where its snapshot is not to be had."""
    try:
        tests = run.bank.tests
    except InputError:
        # A table can be made from rows alone; that the snapshot is gone or another is for `torus verify` to name.
        return None, None
    return len(tests), sum(test.provenance.human_verified_by is not None for test in tests)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _cell(row: Mapping[str, Any], strict: Mapping[str, Any]) -> Cell:
    values = {name.removeprefix("ci_") if name == "ci_half_width" else name: row[name] for name in _CELL}
    return Cell(**values, strict_pct=strict["pct"] if strict["pct"] != row["pct"] else None)


def _both_readings(answers: pl.DataFrame, slices: Sequence[Sequence[str]]) -> list[_Groups]:
    """For each of `slices`, its groups in order."""
    if not answers.height:
        return [[] for _ in slices]
    loose, strict = (coherences(answers, slices, correct=correct) for correct in ("correct", "correct_strict"))
    return [
        [(row, _cell(row, other)) for row, other in zip(table.to_dicts(), letters.to_dicts(), strict=True)]
        for table, letters in zip(loose, strict, strict=True)
    ]


def _cells(stages: _Groups, totals: _Groups) -> dict[tuple[str, str], dict[str, Cell]]:
    cells: dict[tuple[str, str], dict[str, Cell]] = defaultdict(dict)
    for row, cell in stages:
        cells[row["system"], row["arm"]][STAGE_NAMES[row["stage"]]] = cell
    for row, cell in totals:
        cells[row["system"], row["arm"]]["Total"] = cell
    return {line: {name: found[name] for name in COLUMNS if name in found} for line, found in cells.items()}


def _check_slice(by: Sequence[str]) -> None:
    unknown = [name for name in by if name not in ORDERS]
    if unknown or not by or len(set(by)) < len(by):
        raise InputError(
            f"a table cannot be broken down by {' + '.join(by) or 'nothing'}",
            where="--by",
            expected=f"one or more of {', '.join(ORDERS)}, crossed with +",
            mend="e.g. --by audio_type,stage+audio_type",
        )


def _breakdown(groups: _Groups, by: tuple[str, ...], arms: Sequence[tuple[str, str]]) -> Breakdown:
    rows = [GroupRow(row["system"], row["arm"], tuple(row[name] for name in by), cell) for row, cell in groups]
    rows.sort(
        key=lambda r: (arms.index((r.system, r.arm)), [_order(name, v) for name, v in zip(by, r.group, strict=True)])
    )
    return Breakdown(by, tuple(rows))


def _order(column: str, value: str) -> tuple[int, str]:
    order = list(ORDERS[column])
    return (order.index(value) if value in order else len(order)), value


def _of(answers: pl.DataFrame, system: str, arm: str) -> pl.DataFrame:
    return answers.filter((pl.col("system") == system) & (pl.col("arm") == arm))


def _excess(answers: pl.DataFrame, line: tuple[str, str]) -> Excess | None:
    """Over the questions that both have: either may still be growing."""
    own, muted = _of(answers, *line), _of(answers, line[0], f"{line[1]}.muted")
    own, muted = (a.join(b, on=list(QUESTION), how="semi") for a, b in ((own, muted), (muted, own)))
    if not own.height:
        return None
    found = paired_difference(own, muted)
    paper, limits = found.percentile, found.recommended or found.percentile
    if paper is None or limits is None:
        return Excess(found.difference, None, None, None, None, found.tests)
    return Excess(found.difference, paper.half_width, limits.lo, limits.hi, limits.method, found.tests)


def _ranked(arms: Sequence[ArmRow], answers: pl.DataFrame) -> tuple[ArmRow, ...]:
    able = [arm for arm in arms if arm.control is None and "Total" in arm.cells and not arm.missing]
    asked = {frozenset(_of(answers, a.system, a.arm).select(QUESTION).unique().rows()) for a in able}
    if len(able) < 2 or len(asked) != 1:
        return tuple(arms)
    totals = [arm.cells["Total"].pct for arm in able]
    ranks = {(arm.system, arm.arm): 1 + sum(t > arm.cells["Total"].pct for t in totals) for arm in able}
    return tuple(ArmRow(**{**arm.__dict__, "rank": ranks.get((arm.system, arm.arm))}) for arm in arms)


# --- words ------------------------------------------------------------------------------------------------------------


def _notes(arms: Sequence[ArmRow], answers: pl.DataFrame, tests: int | None, verified: int | None) -> list[str]:
    human = "how many a person has verified is not known: the bank's snapshot cannot be read"
    if tests is not None:
        human = f"{tests} tests in the bank, {verified} of them verified by a person"
    methods = {cell.method for arm in arms for cell in arm.cells.values() if cell.method}
    notes = [
        f"{human}. Chance is {CHANCE_PCT:.1f} %.",
        "coherence.micro: right letters / all questions; what is no right letter counts as wrong. "
        f"± is half of ci.cluster_percentile (95 %, {RESAMPLES:,} resamples of whole tests), the paper's column.",
    ]
    told = [f"{METHODS[method][1]} ({METHODS[method][0]})" for method in sorted(methods)]
    if told:
        notes.append(f"95 %: recommended interval, {', '.join(told)}.")
    if any(arm.excess for arm in arms):
        notes.append("Vs muted: difference to the arm's muted control, paired by test, in points.")
    for arm in arms:
        name = f"{arm.system} {arm.arm}"
        if not arm.complete:
            notes.append(f"{name} is incomplete: the system has no head for some of it (no_capability).")
        if arm.missing:
            notes.append(f"{name} is not finished: {arm.missing} questions have no row yet and are not counted.")
        elif not arm.cells:
            notes.append(f"{name} has no answers.")
        if arm.changed:
            notes.append(f"{name}: today's reader reads {arm.changed} answers otherwise than was stored.")
    compared = [arm for arm in arms if arm.control is None and arm.cells]
    if len({_of(answers, a.system, a.arm).select(QUESTION).unique().height for a in compared}) > 1:
        notes.append("The arms do not cover the same questions: their numbers are not ranked.")
    return notes
