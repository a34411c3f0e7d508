"""Solvers that hear nothing, and the echo rate, on questions of which the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.bank.made import SIX, table, vectors
from torus_ray.bank import deaf, echo
from torus_ray.bank.asked import Asked
from torus_ray.bank.rates import CHANCE, DEAF_LIMIT, ECHO_LIMIT, Rate, credits, finding
from torus_ray.stats.intervals import wilson_interval


def credit(solver: str, asked: Asked) -> list[float]:
    return credits(deaf.BY_WORDS[solver](asked), asked.right).tolist()


def test_ties_get_their_share_wherever_the_right_option_stands() -> None:
    scores = [[1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0] * 6]
    assert credits(scores, np.array([0, 1, 2, 5])).tolist() == [0.5, 0.5, 0.0, pytest.approx(CHANCE)]


def test_longest_and_shortest() -> None:
    asked = table(("?", ("aaa", "bb", "cc", "dd", "ee", "f"), 0), ("?", ("aaa", "bbb", "c", "d", "e", "f"), 1))
    assert credit("the longest option", asked) == [1.0, 0.5]
    assert credit("the shortest option", asked) == [0.0, 0.0]
    assert credits(deaf.shortest(asked), np.array([5, 4])).tolist() == [1.0, 0.25]


def test_odd_shape_sees_what_only_one_option_has() -> None:
    alike = ["a low bell", "a low drum", "a low horn", "a low pipe", "a low harp"]
    asked = table(("?", (*alike, "two high bells"), 5), ("?", ("1 s", "2 s", "3 s", "4 s", "5 s", "6 s"), 2))
    assert credit("the odd one out in shape", asked) == [1.0, pytest.approx(CHANCE)]


def test_words_in_common_with_the_question() -> None:
    six = ("a bell", "a drum", "a horn", "a pipe", "a harp", "a gong")
    asked = table(("What does the drum do?", six, 1), ("What is the a of it?", six, 1))
    assert credit("most words in common with the question", asked) == [1.0, pytest.approx(CHANCE)]


def test_words_of_the_tests_other_questions_and_of_no_other_tests() -> None:
    rows = [("first?", ("owl", "cow", "dog", "cat", "hen", "pig"), 1), ("Where is the cow?", SIX, 0)]
    asked = table(*rows, tests=[0, 0])
    assert credit("most words in common with the test's other questions", asked)[0] == 1.0
    apart = table(*rows, tests=[0, 1])
    assert credit("most words in common with the test's other questions", apart)[0] == pytest.approx(CHANCE)


def test_a_test_is_never_answered_from_its_own_answers() -> None:
    rows = [("?", SIX, 2)] * 3
    name = "the most frequent right option of other tests"
    assert credit(name, table(*rows, tests=[0, 0, 0])) == [pytest.approx(CHANCE)] * 3
    assert credit(name, table(*rows, tests=[0, 1, 2])) == [1.0] * 3
    two = table(*rows, ("?", SIX, 5), tests=[0, 0, 0, 1])
    assert credit(name, two) == [0.0, 0.0, 0.0, 0.0]


def test_meaning_solvers_take_the_nearest_and_the_farthest() -> None:
    near = {"stem": (1, 0, 0), "ab": (1, 0.1, 0), "cd": (0, 1, 0.1)}
    asked = table(("stem", SIX, 0), ("other", SIX, 1), ("more", SIX, 4), tests=[0, 0, 0])
    space = vectors(near, asked)
    assert credits(deaf.stem_meaning(asked, space), asked.right)[0] == 1.0
    odd = deaf.odd_meaning(asked, space)
    assert odd[0].argmax() in (0, 1)
    assert odd[0, 2:].max() < odd[0, :2].min()


def test_meaning_of_other_questions_leaves_the_own_question_out() -> None:
    rows = [(f"s{row}", SIX, 0) for row in range(18)]
    asked = table(*rows)
    whole = asked.whole
    # the first clip's second question points at option ab; the test's last one, of another clip, twice at cd
    space = vectors({"ab": (1, 0, 0), "cd": (0, 1, 0), whole[1]: (1, 0, 0), whole[8]: (0, 1, 0)}, asked)
    in_clip, in_test = deaf.clip_meaning(asked, space), deaf.test_meaning(asked, space)
    assert in_clip[0, 0] == pytest.approx(1) == in_clip[2, 0]
    assert in_clip[1, 0] == 0
    assert in_clip[3].tolist() == in_clip[4].tolist()
    assert in_clip[0, 1] == 0 == in_test[8, 1]
    assert in_test[0, 1] == pytest.approx(1)
    assert in_test[9:, :2].max() == 0


def test_rows_in_blocks_give_what_rows_at_once_give(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = table(*[(f"s{row}", SIX, row % 6) for row in range(27)])
    space = vectors({text: np.random.default_rng(at).normal(size=3) for at, text in enumerate(asked.whole)}, asked)
    at_once = deaf.test_meaning(asked, space), deaf.odd_meaning(asked, space)
    monkeypatch.setattr(deaf, "ROWS", 4)
    in_blocks = deaf.test_meaning(asked, space), deaf.odd_meaning(asked, space)
    np.testing.assert_allclose(in_blocks, at_once, atol=1e-5)


def test_echo_by_words_and_by_meaning() -> None:
    asked = table(
        ("?", ("a bell", "a drum", "a horn", "a pipe", "a harp", "a gong"), 2),
        ("?", SIX, 0),
        told=["Then a horn is blown in a hall", "far away"],
    )
    assert credits(echo.echo_words(asked), asked.right).tolist() == [1.0, pytest.approx(CHANCE)]
    space = vectors({"far away": (1, 0, 0), "ab": (1, 0, 0)}, asked)
    assert credits(echo.echo_meaning(asked, space), asked.right)[1] == 1.0
    words, meaning = echo.echo_rates(asked, space)
    assert words.limit == ECHO_LIMIT == meaning.limit


@pytest.mark.parametrize(
    ("hits", "questions", "below", "found"),
    [
        (25, 100, False, False),  # at the limit
        (26, 100, False, True),  # above it, enough questions
        (9, 30, False, False),  # 30 %, and chance is in its interval
        (15, 30, False, True),  # 50 %: surely more than chance
        (40, 100, True, True),  # echo: the limit itself is too much
        (39, 100, True, False),
    ],
)
def test_when_a_rate_is_too_high(hits: int, questions: int, below: bool, found: bool) -> None:
    rate = Rate("r", ECHO_LIMIT if below else DEAF_LIMIT, np.repeat([1.0, 0.0], [hits, questions - hits]), below)
    assert rate.too_high is found


def test_a_finding_names_its_questions_and_its_interval() -> None:
    rate = Rate("the rule", DEAF_LIMIT, np.array([0.0, 1.0, 1 / 6, 0.5]))
    told = finding(rate, ["a", "b", "c", "d"], "mend it")
    assert told.questions == ("b", "d")
    low, high = wilson_interval(rate.share, 4).lo * 100, wilson_interval(rate.share, 4).hi * 100
    assert f"41.7 % of 4 questions ({low:.1f} to {high:.1f}), limit 25 %, chance 16.7 %" in told.message
