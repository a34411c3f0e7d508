"""Coherence (METRICS 1): right letters / all questions asked; all that is no right letter counts as wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from torus_ray.errors import InputError
from torus_ray.stats.intervals import RESAMPLES, Array, Dependence, Estimate, dependence, estimates

STATUSES = ("ok", "unparsed", "refused", "failed", "timeout", "no_clip")
QUESTION = ("test", "stage", "question")
# What else can tell two answers to one question apart; those that a frame has are part of a unit's identity.
VARIANTS = ("system", "arm", "control", "seed", "listener", "renderer", "option_shift", "repeat")
COUNTS = ("correct", "expected", "scored", "unparsed", "refused", "failed", "timeout", "no_clip")

_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(COUNTS, pl.Int64),
    "tests": pl.Int64,
    "pct": pl.Float64,
    "ci_lo": pl.Float64,
    "ci_hi": pl.Float64,
    "ci_half_width": pl.Float64,
    "lo": pl.Float64,
    "hi": pl.Float64,
    "half_width": pl.Float64,
    "method": pl.String,
    "icc": pl.Float64,
    "design_effect": pl.Float64,
    "effective_n": pl.Float64,
}


def coherence(
    frame: pl.DataFrame, by: Sequence[str] = (), *, correct: str = "correct", resamples: int = RESAMPLES
) -> pl.DataFrame:
    """Coherence of every group of `by` (columns such as system, arm, stage, audio_type, family), sorted by `by`.

    frame: one row for every question that should have been answered, with columns test, stage, question, status and
    `correct` (bool; name another column to score another reading), and those in `by`.

    Out, per group: the counts of COUNTS and `tests`; `pct` in percent; `ci_lo`, `ci_hi`, `ci_half_width`
    (ci.cluster_percentile, the paper's column); `lo`, `hi`, `half_width`, `method` (recommended: bootstrap_t, or wilson
    where tests do not vary); `icc`, `design_effect`, `effective_n`. What is undefined is null.

    Seeds and repeats that are not in `by` are pooled inside their tests.
    Raises InputError on two answers for one unit, an unknown status, or rows that contradict themselves.
    """
    return coherences(frame, [by], correct=correct, resamples=resamples)[0]


def coherences(
    frame: pl.DataFrame, slices: Sequence[Sequence[str]], *, correct: str = "correct", resamples: int = RESAMPLES
) -> list[pl.DataFrame]:
    """:func:`coherence` by each of `slices`: answers are checked and counted once, resamples drawn once."""
    columns = list(dict.fromkeys(name for by in slices for name in by))
    check_answers(frame, correct=correct, needs=columns)
    whole = list(dict.fromkeys([*columns, "test"]))
    counted = (
        _coded(frame.select(list(dict.fromkeys([*whole, correct, "status"]))), whole)
        .group_by(whole)
        .agg(
            pl.col(correct).sum().cast(pl.Int64).alias("correct"),
            pl.len().cast(pl.Int64).alias("expected"),
            *((pl.col("status") == status).sum().cast(pl.Int64).alias(_count_name(status)) for status in STATUSES),
        )
    )
    groups = [_groups(counted, list(by)) for by in slices]
    spreads = iter(_estimates([_tallies(group) for of_slice in groups for group in of_slice], resamples))
    return [
        pl.DataFrame(
            [_row(group, by, *next(spreads)) for group in of_slice],
            schema={**{key: frame.schema[key] for key in by}, **_SCHEMA},
        )
        for by, of_slice in zip(slices, groups, strict=True)
    ]


def _coded(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """The frame with texts in `columns` as codes in the same order: grouping by them is several times faster."""
    texts = [name for name in columns if frame.schema[name] == pl.String]
    return frame.with_columns(frame[name].cast(pl.Enum(frame[name].drop_nulls().unique().sort())) for name in texts)


def _groups(counted: pl.DataFrame, keys: list[str]) -> list[pl.DataFrame]:
    """The counts of each test in each group of `keys`."""
    whole = list(dict.fromkeys([*keys, "test"]))
    tests = counted.group_by(whole).agg(pl.col(COUNTS).sum()).sort(whole)
    groups = tests.partition_by(keys, maintain_order=True) if keys else [tests]
    return [group for group in groups if group.height]


def check_answers(frame: pl.DataFrame, *, correct: str = "correct", needs: Sequence[str] = ()) -> None:
    """Raise InputError unless `frame` holds answers that can be counted."""
    if not isinstance(frame, pl.DataFrame):
        raise InputError(
            f"answers are a {type(frame).__name__}",
            expected="a Polars DataFrame, one row an answer",
            mend='`torus_ray.load(run)["answers"]` is one; .collect() a LazyFrame',
        )
    wanted = [*QUESTION, "status", correct]
    missing = [name for name in dict.fromkeys([*wanted, *needs]) if name not in frame.columns]
    if missing:
        raise InputError(
            f"answers have no column {', '.join(missing)}",
            expected=f"the columns {', '.join(wanted)}; the answers have {', '.join(frame.columns) or 'none'}",
            mend="join what is missing, or group by a column that is there",
        )
    unit = [*QUESTION, *(name for name in VARIANTS if name in frame.columns)]
    # Audio type and family belong to the question: they cannot make two answers of a double.
    doubled = _coded(frame.select(unit), unit).group_by(unit).len().filter(pl.col("len") > 1).sort(unit)
    if doubled.height:
        raise InputError(
            f"{doubled.height} units have more than one answer",
            where=_named(doubled, unit),
            expected="one current row a unit",
            mend="keep the newest row of each unit",
        )
    unknown = frame.filter(~pl.col("status").is_in(STATUSES) | pl.col("status").is_null())
    _refuse(unknown, unit, "an unknown status", f"one of {', '.join(STATUSES)}")
    _refuse(frame.filter(pl.col(correct).is_null()), unit, f"no value in `{correct}`", "true or false")
    lucky = frame.filter(pl.col(correct) & (pl.col("status") != "ok"))
    _refuse(lucky, unit, "a right answer whose status is not ok", "`ok`, or an answer that is wrong")


def _refuse(rows: pl.DataFrame, unit: list[str], what: str, expected: str) -> None:
    if rows.height:
        message = f"{rows.height} answers have {what}"
        raise InputError(message, where=_named(rows.sort(unit), unit), expected=expected, mend="write the row anew")


def _named(rows: pl.DataFrame, unit: list[str]) -> str:
    shown = ["/".join(str(value) for value in row) for row in rows.select(unit).head(3).rows()]
    return f"{'/'.join(unit)}: {', '.join(shown)}{', ...' if rows.height > 3 else ''}"


def _count_name(status: str) -> str:
    return "scored" if status == "ok" else status


def _tallies(group: pl.DataFrame) -> tuple[Array, Array]:
    """Right answers and questions of each test."""
    correct, expected = (group[name].to_numpy().astype(np.float64) for name in ("correct", "expected"))
    return correct, expected


def _estimates(groups: Sequence[tuple[Array, Array]], resamples: int) -> list[tuple[Estimate, Dependence]]:
    """Both intervals of every group; groups of equally many tests share one pass over the resamples."""
    by_size: dict[int, list[int]] = defaultdict(list)
    for index, (values, _) in enumerate(groups):
        by_size[len(values)].append(index)
    made: dict[int, Estimate] = {}
    for indices in by_size.values():
        values, totals = (np.column_stack([groups[i][part] for i in indices]) for part in (0, 1))
        made.update(zip(indices, estimates(values, totals, bounds=(0, 1), resamples=resamples), strict=True))
    return [(made[i], dependence(values, totals)) for i, (values, totals) in enumerate(groups)]


def _row(group: pl.DataFrame, keys: Sequence[str], found: Estimate, alike: Dependence) -> dict[str, Any]:
    paper, advised = (each.scaled(100) if each else None for each in (found.percentile, found.recommended))
    return {
        **{key: group[key][0] for key in keys},
        **{name: int(group[name].sum()) for name in COUNTS},
        "tests": found.tests,
        "pct": 100 * found.value,
        "ci_lo": paper.lo if paper else None,
        "ci_hi": paper.hi if paper else None,
        "ci_half_width": paper.half_width if paper else None,
        "lo": advised.lo if advised else None,
        "hi": advised.hi if advised else None,
        "half_width": advised.half_width if advised else None,
        "method": advised.method if advised else None,
        "icc": alike.icc,
        "design_effect": alike.design_effect,
        "effective_n": alike.effective_n,
    }
