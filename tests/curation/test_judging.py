"""The paper's rule, and the posterior against chance."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from tests.curation.authors import architecture, questions, seed
from torus_ray.bank import schema
from torus_ray.bank.schema import LETTERS, STAGES
from torus_ray.curation.judging import (
    Heard,
    Job,
    Solver,
    Verdict,
    false_flag_rate,
    fault_text,
    flagged,
    knows,
    verdict,
)


def a_test() -> schema.Test:
    document = {name: seed(0)[name] for name in ("id", "audio_type")}
    idea = {name: value for name, value in seed(0).items() if name not in document}
    plan = architecture(0)
    stages = {
        name: {**plan["stages"][name], "questions": [{"id": f"q{i}", **q} for i, q in enumerate(questions(0)[name], 1)]}
        for name in STAGES
    }
    provenance = {"author": "a script", "written": "2026"}
    whole = {**document, "title": plan["title"], "seed": idea, "stages": stages, "provenance": provenance}
    return schema.Test.model_validate_json(json.dumps(whole))


def jobs(orders: int) -> list[Job]:
    test = a_test()
    return [Job(test, "generation", test.stages.generation.questions[0], 0, shift) for shift in range(orders)]


def letter(job: Job, *, right: bool) -> str:
    at = job.options.index(job.question.answer)
    return LETTERS[at if right else (at + 1) % 6]


def judged(solver: Solver, rights: list[bool | None], threshold: float = 0.9) -> Verdict:
    asked = jobs(len(rights))
    heard = [
        Heard(None, "timeout") if right is None else Heard(letter(job, right=right), None, "v1")
        for job, right in zip(asked, rights, strict=True)
    ]
    return verdict(asked, heard, round_=0, solver=solver, kind="chat", model="m", threshold=threshold)


def test_the_posterior_is_bayes_over_guessing_and_knowing() -> None:
    p = np.linspace(1 / 6, 1, 200_001)
    for asks in range(7):
        for right in range(asks + 1):
            guesses = (1 / 6) ** right * (5 / 6) ** (asks - right)
            informed = np.trapezoid(p**right * (1 - p) ** (asks - right), p) / (5 / 6)
            assert knows(right, asks) == pytest.approx(informed / (informed + guesses), rel=1e-6)


def test_the_posterior_grows_with_each_right_answer() -> None:
    values = [knows(right, 6) for right in range(7)]
    assert values == sorted(values)
    assert [value >= 0.9 for value in values] == [False] * 4 + [True] * 3


def test_how_often_a_guesser_is_flagged() -> None:
    exact = sum(
        (1 / 6) ** sum(hits) * (5 / 6) ** (6 - sum(hits)) for hits in product((0, 1), repeat=6) if sum(hits) >= 4
    )
    assert false_flag_rate(6, 0.9) == pytest.approx(exact)
    assert false_flag_rate(1, 0.9) == 0.0


def test_every_order_shows_the_right_option_under_another_letter() -> None:
    assert sorted(letter(job, right=True) for job in jobs(6)) == list(LETTERS)


@pytest.mark.parametrize(
    ("solver", "rights", "paper", "posterior"),
    [
        ("muted", [True, False, False, False, False, False], True, False),  # lucky once
        ("muted", [False, True, True, True, True, True], False, True),  # unlucky once
        ("muted", [False] * 6, False, False),
        ("ideal", [True] * 6, False, False),
        ("ideal", [False, True, True, True, True, True], True, False),
        ("ideal", [True, False, False, False, False, False], False, True),
        ("muted", [True], True, None),  # one ask bears no posterior
        ("ideal", [True, None, True], False, None),
        ("muted", [None, True], None, None),
    ],
)
def test_both_rules(solver: Solver, rights: list[bool | None], paper: bool | None, posterior: bool | None) -> None:
    found = judged(solver, rights)
    assert (found.flagged_paper, found.flagged_posterior) == (paper, posterior)
    assert found.right == sum(bool(right) for right in rights)
    assert found.failed == rights.count(None)
    assert (found.posterior is None) == (posterior is None)


def test_a_reply_without_a_letter_is_no_right_answer() -> None:
    asked = jobs(2)
    silent = [Heard("I hear nothing."), Heard("I hear nothing.")]
    muted = verdict(asked, silent, round_=0, solver="muted", kind="head", model="m", threshold=0.9)
    ideal = verdict(asked, silent, round_=0, solver="ideal", kind="chat", model="m", threshold=0.9)
    assert (muted.unparsed, muted.letters, muted.flagged_paper, ideal.flagged_paper) == (2, "--", False, True)


@pytest.mark.parametrize(
    ("muted", "ideal", "state"),
    [(False, True, False), (True, True, True), (False, False, True), (None, False, True), (None, True, None)],
)
def test_a_question_is_flagged_by_any_solver(muted: bool | None, ideal: bool | None, state: bool | None) -> None:
    both: dict[Solver, Verdict] = {"muted": judged("muted", [muted]), "ideal": judged("ideal", [ideal])}
    assert flagged(both, "paper") is state


def test_the_author_is_told_what_went_wrong() -> None:
    leaky: dict[Solver, Verdict] = {"muted": judged("muted", [True]), "ideal": judged("ideal", [True])}
    assert fault_text(leaky, "paper").startswith("A solver that heard nothing")
    vague: dict[Solver, Verdict] = {"muted": judged("muted", [False]), "ideal": judged("ideal", [False])}
    assert f'chose "{vague["ideal"].chosen}" instead' in fault_text(vague, "paper")
    counted: dict[Solver, Verdict] = {
        "muted": judged("muted", [True] * 5 + [False]),
        "ideal": judged("ideal", [True] * 6),
    }
    assert "in 5 of 6 orders" in fault_text(counted, "posterior")
