"""How often a rule that hears nothing, or only looks for echoes, lands on the right option, and when that is too often.

A rule gives each of the six options a score and takes the highest; where several are highest it gets that share of the
question, so the order of the options never decides. Intervals are Wilson's at 95 % with n = questions: questions of one
test are not independent, so the true ones are a little wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from torus_ray.bank.findings import Finding
from torus_ray.stats.intervals import Interval, wilson_interval

CHANCE = 1 / 6
DEAF_LIMIT = 0.25
ECHO_LIMIT = 0.40
ENOUGH_QUESTIONS = 100
TIE = 1e-5

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rate:
    """Expected right answers of one rule. credits: (n,) its share of each question, 0 to 1. limit: the highest share
    that is good, or where `below` the lowest that is not."""

    rule: str
    limit: float
    credits: Floats = field(repr=False)
    below: bool = False

    @property
    def questions(self) -> int:
        return len(self.credits)

    @property
    def hits(self) -> float:
        """Expected, so not always whole."""
        return float(self.credits.sum())

    @property
    def share(self) -> float:
        return self.hits / self.questions

    @property
    def interval(self) -> Interval:
        return wilson_interval(self.share, self.questions)

    @property
    def too_high(self) -> bool:
        """Beyond the limit, and more than bad luck: there are 100 questions, or the interval lies above chance."""
        sure = self.questions >= ENOUGH_QUESTIONS or self.interval.lo > CHANCE
        beyond = self.share >= self.limit if self.below else self.share > self.limit
        return beyond and sure

    def as_json(self) -> dict[str, object]:
        interval = self.interval
        return {
            "rule": self.rule,
            "hits": round(self.hits, 3),
            "questions": self.questions,
            "share": self.share,
            "lo": interval.lo,
            "hi": interval.hi,
            "interval": "Wilson 95 %, n = questions",
            "chance": CHANCE,
            "limit": self.limit,
            "too_high": self.too_high,
        }


def credits(scores: ArrayLike, right: NDArray[np.int64]) -> Floats:
    """(n,) what a rule gets: `scores` (n, 6), the highest is its answer, `right` (n,) the right option's index."""
    table = np.asarray(scores, float)
    best = table >= table.max(axis=1, keepdims=True) - TIE
    got: Floats = best[np.arange(len(right)), right] / best.sum(axis=1)
    return got


def finding(rate: Rate, names: Sequence[str], mend: str) -> Finding:
    """The warning that `rate` is too high, with the questions that the rule has alone and right, best first."""
    interval, order = rate.interval, np.argsort(-rate.credits, kind="stable")
    message = (
        f"{rate.rule} is right in {100 * rate.share:.1f} % of {rate.questions} questions "
        f"({100 * interval.lo:.1f} to {100 * interval.hi:.1f}), limit {100 * rate.limit:.0f} %, chance 16.7 %"
    )
    hit = tuple(names[row] for row in order if rate.credits[row] > CHANCE)
    return Finding("warning", message, mend, questions=hit)
