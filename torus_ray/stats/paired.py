"""The difference of two sets of answers to the same questions, paired by test (METRICS 2, STATS 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from torus_ray.errors import InputError
from torus_ray.stats.coherence import QUESTION, check_answers
from torus_ray.stats.intervals import Interval, estimate


@dataclass(frozen=True)
class PairedDifference:
    """a minus b in percentage points, over `tests` tests and `questions` questions.

    percentile, recommended (bootstrap-t): None for one test; recommended is None too where the tests do not vary.
    wins, ties, losses: tests where a has more, as many, fewer right than b.
    correlation: of the two scores over tests; None where one of them does not vary.
    """

    difference: float
    a_pct: float
    b_pct: float
    tests: int
    questions: int
    percentile: Interval | None
    recommended: Interval | None
    wins: int
    ties: int
    losses: int
    correlation: float | None


def paired_difference(a: pl.DataFrame, b: pl.DataFrame) -> PairedDifference:
    """Compare two frames of answers (columns as for coherence.coherence) that ask the same questions of the same tests.

    Several answers to a question in one frame (seeds, repeats) count by their mean. Raises InputError where one frame
    has a question that the other has not: such a gap would be no difference of two systems.
    """
    scores = [_by_question(frame, name) for frame, name in ((a, "a"), (b, "b"))]
    both = scores[0].join(scores[1], on=list(QUESTION), how="full", coalesce=True)
    lone = both.filter(pl.col("a").is_null() | pl.col("b").is_null()).sort(QUESTION)
    if lone.height or not both.height:
        shown = ", ".join("/".join(map(str, row)) for row in lone.select(QUESTION).head(3).rows())
        raise InputError(
            f"{lone.height} questions are answered in one of the two only" if lone.height else "there are no answers",
            where=shown,
            expected="two sets of answers to the same questions",
            mend="finish both runs, or compare over the tests that both have",
        )
    tests = both.group_by("test").agg(pl.col("a", "b").sum(), pl.len().alias("n")).sort("test")
    right_a, right_b, n = (tests[name].to_numpy().astype(np.float64) for name in ("a", "b", "n"))
    gap = right_a - right_b
    found = estimate(gap, n, bounds=(-1, 1))
    score_a, score_b = right_a / n, right_b / n
    vary = len(gap) > 1 and np.ptp(score_a) > 0 and np.ptp(score_b) > 0
    return PairedDifference(
        difference=100 * found.value,
        a_pct=100 * float(right_a.sum() / n.sum()),
        b_pct=100 * float(right_b.sum() / n.sum()),
        tests=len(gap),
        questions=int(n.sum()),
        percentile=found.percentile.scaled(100) if found.percentile else None,
        recommended=found.recommended.scaled(100) if found.recommended else None,
        wins=int((gap > 1e-9).sum()),
        ties=int((np.abs(gap) <= 1e-9).sum()),
        losses=int((gap < -1e-9).sum()),
        correlation=float(np.corrcoef(score_a, score_b)[0, 1]) if vary else None,
    )


def _by_question(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    check_answers(frame)
    return frame.group_by(list(QUESTION)).agg(pl.col("correct").cast(pl.Float64).mean().alias(name))
