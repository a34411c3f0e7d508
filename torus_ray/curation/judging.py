"""When a question is flagged: the paper's rule, and the same over several asks against chance. Pure.

The paper (3.2, Appendix D) asks once: flagged iff the muted solver is right or the ideal solver is wrong. One ask is
right by luck one time in six, so each question is also asked under several option orders, and judged by how probable
it is that the solver knows the answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torus_ray.answers.letters import read_letter
from torus_ray.bank.digest import question_hash
from torus_ray.bank.order import letter_of, shown_options
from torus_ray.bank.schema import LETTERS, Question, StageName, Test

Solver = Literal["muted", "ideal"]
Rule = Literal["paper", "posterior"]
RULES: tuple[Rule, ...] = ("paper", "posterior")

CHANCE = 1 / len(LETTERS)


@dataclass(frozen=True, eq=False)
class Job:
    """One ask: a question of a test, its options turned by `shift` places from the order of the bank."""

    test: Test
    stage: StageName
    question: Question
    order_seed: int
    shift: int = 0

    @property
    def unit(self) -> str:
        return f"{self.test.id}.{self.stage}.{self.question.id}"

    @property
    def options(self) -> tuple[str, ...]:
        """As they are shown, A first."""
        return shown_options(seed=self.order_seed, item=self.unit, options=self.question.options, shift=self.shift)


@dataclass(frozen=True)
class Heard:
    """What a solver said to one job. reply: None where it gave none, with the reason."""

    reply: str | None
    reason: str | None = None
    model_version: str | None = None


@dataclass(frozen=True)
class Verdict:
    """One solver on one question in one round.

    letters, right_letters: what it said and what was right at each ask, "-" for none. posterior: that it knows the
    answer. flagged_paper, flagged_posterior: None where the asks do not allow a verdict, with the reason.
    """

    test: str
    stage: StageName
    question: str
    question_hash: str
    round: int
    solver: Solver
    kind: str
    model: str
    model_version: str | None
    asks: int
    right: int
    unparsed: int
    failed: int
    letters: str
    right_letters: str
    flagged_paper: bool | None
    posterior: float | None
    threshold: float
    flagged_posterior: bool | None
    reason: str | None
    chosen: str | None

    @property
    def unit(self) -> str:
        return f"{self.test}.{self.stage}.{self.question}"

    def flagged(self, rule: Rule) -> bool | None:
        return self.flagged_paper if rule == "paper" else self.flagged_posterior

    def row(self) -> dict[str, Any]:
        """As the table of verdicts has it."""
        named = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "chosen"}
        return {"unit": self.unit, **named}


def knows(right: int, asks: int) -> float:
    """The probability that a solver knows the answer, after `right` of `asks` (each under another order).

    Two cases, equally likely beforehand: it guesses, right with probability 1/6; or it knows something, right with a
    probability anywhere from 1/6 to 1 alike. With no asks it is 0.5.
    """
    if not 0 <= right <= asks:
        raise ValueError(f"right is from 0 to asks, got {right} of {asks}")
    guesses = CHANCE**right * (1 - CHANCE) ** (asks - right)
    # The integral over p from 1/6 to 1 is a beta function times a binomial tail: all counts are whole.
    informed = 1 / ((asks + 1) * math.comb(asks, right)) * _at_most(right, asks + 1) / (1 - CHANCE)
    return informed / (informed + guesses)


def false_flag_rate(asks: int, threshold: float) -> float:
    """How often a question is flagged by the posterior though the muted solver only guesses."""
    least = next((n for n in range(asks + 1) if knows(n, asks) >= threshold), None)
    return 0.0 if least is None else 1 - _at_most(least - 1, asks)


def _at_most(right: int, asks: int) -> float:
    """The probability that a guesser is right at most so often."""
    return sum(math.comb(asks, n) * CHANCE**n * (1 - CHANCE) ** (asks - n) for n in range(right + 1))


def verdict(
    jobs: Sequence[Job],
    heard: Sequence[Heard],
    *,
    round_: int,
    solver: Solver,
    kind: str,
    model: str,
    threshold: float,
) -> Verdict:
    """The verdict of all asks of one question; the first job has the bank's own order, which the paper's rule takes."""
    first = jobs[0]
    readings = [
        read_letter(h.reply, job.options).letter if h.reply is not None else None
        for job, h in zip(jobs, heard, strict=True)
    ]
    keys = [letter_of(first.question.answer, job.options) for job in jobs]
    hits = [letter == key for letter, key in zip(readings, keys, strict=True)]
    failed = sum(h.reply is None for h in heard)
    right, asks = sum(hits), len(jobs)
    # A verdict that no number of right answers could bring about is none.
    told = failed == 0 and knows(asks, asks) >= threshold
    posterior = knows(right, asks) if told else None
    wanted = solver == "ideal"
    reasons = [h.reason for h in heard if h.reason]
    return Verdict(
        test=first.test.id,
        stage=first.stage,
        question=first.question.id,
        question_hash=question_hash(first.question),
        round=round_,
        solver=solver,
        kind=kind,
        model=model,
        model_version=next((h.model_version for h in heard if h.model_version), None),
        asks=asks,
        right=right,
        unparsed=sum(h.reply is not None and letter is None for h, letter in zip(heard, readings, strict=True)),
        failed=failed,
        letters="".join(letter or "-" for letter in readings),
        right_letters="".join(keys),
        flagged_paper=None if heard[0].reply is None else hits[0] != wanted,
        posterior=posterior,
        threshold=threshold,
        flagged_posterior=None if posterior is None else (posterior >= threshold) != wanted,
        reason=reasons[0] if reasons else None,
        chosen=first.options[LETTERS.index(readings[0])] if readings[0] else None,
    )


def flagged(verdicts: Mapping[Solver, Verdict], rule: Rule) -> bool | None:
    """Whether a question is flagged: by any solver; None where none flags it and some could not judge it."""
    each = [v.flagged(rule) for v in verdicts.values()]
    return True if True in each else None if None in each else False


def fault_text(verdicts: Mapping[Solver, Verdict], rule: Rule) -> str:
    """What went wrong with a flagged question, for its author."""
    told = []
    muted, ideal = verdicts["muted"], verdicts["ideal"]
    if muted.flagged(rule):
        how = "" if rule == "paper" else f" in {muted.right} of {muted.asks} orders of the options"
        told.append(f"A solver that heard nothing but silence chose the right option{how}: it can be guessed.")
    if ideal.flagged(rule):
        how = "" if rule == "paper" else f" (right in {ideal.right} of {ideal.asks} orders of the options)"
        said = f'chose "{ideal.chosen}" instead' if ideal.chosen and not _right_first(ideal) else "did not find it"
        told.append(f"A solver that was given the exact description of the ideal clip {said}{how}.")
    return " ".join(told)


def _right_first(found: Verdict) -> bool:
    return found.letters[:1] == found.right_letters[:1]
