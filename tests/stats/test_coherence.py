"""Coherence tables against the oracle, and the counts beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torus_ray.errors import InputError
from torus_ray.stats.coherence import COUNTS, STATUSES, coherence, coherences

ORACLES = Path(__file__).parents[1] / "oracles"
EXPECTED: dict[str, Any] = json.loads((ORACLES / "coherence.json").read_text())["expected"]


@pytest.fixture(scope="module")
def answers() -> pl.DataFrame:
    raw = pl.read_csv(ORACLES / "coherence_answers.csv")
    return raw.rename({"q": "question"}).with_columns(
        status=pl.when(pl.col("answer").is_null()).then(pl.lit("unparsed")).otherwise(pl.lit("ok")),
        correct=(pl.col("answer") == pl.col("key")).fill_null(False),
    )


def rows(*given: tuple[str, str, str, bool]) -> pl.DataFrame:
    """Answers given as (test, question, status, correct)."""
    return pl.DataFrame(
        [{"test": t, "stage": "edit", "question": q, "status": s, "correct": c} for t, q, s, c in given]
    )


def agrees(row: dict[str, Any], expected: dict[str, Any]) -> None:
    assert (row["correct"], row["expected"]) == (expected["correct"], expected["total"])
    assert row["pct"] == pytest.approx(expected["pct"])
    step = 100 / expected["total"] + 1e-9
    assert [row["ci_lo"], row["ci_hi"]] == pytest.approx(expected["ci95_exact"], abs=step)
    assert row["ci_half_width"] == pytest.approx((row["ci_hi"] - row["ci_lo"]) / 2)


def test_total_of_the_oracle(answers: pl.DataFrame) -> None:
    (row,) = coherence(answers).to_dicts()
    agrees(row, EXPECTED["total"])
    assert (row["unparsed"], row["scored"], row["tests"]) == (EXPECTED["null_answers"], 421, 48)


@pytest.mark.parametrize("by", ["stage", "audio_type", "family"])
def test_slices_of_the_oracle(by: str, answers: pl.DataFrame) -> None:
    found = coherence(answers, [by])
    expected = EXPECTED[f"by_{by}"]
    assert set(found[by]) == set(expected)
    for row in found.to_dicts():
        agrees(row, expected[row[by]])
    if by == "family":
        assert found["pct"].mean() == pytest.approx(EXPECTED["macro_mean_over_families_pct"])


def test_several_slices_at_once_are_what_each_is_alone(answers: pl.DataFrame) -> None:
    slices = [[], ["stage"], ["audio_type", "family"], ["test"]]
    for by, found in zip(slices, coherences(answers, slices, resamples=500), strict=True):
        assert found.equals(coherence(answers, by, resamples=500))
        assert found.schema[by[0]] == answers.schema[by[0]] if by else found.height == 1


def test_crossings_add_up_and_strata_have_only_their_tests(answers: pl.DataFrame) -> None:
    found = coherence(answers, ["audio_type", "stage"])
    assert found.height == 9
    assert set(found["tests"]) == {16}
    for name in COUNTS:
        assert found[name].sum() == coherence(answers)[name][0]


def test_everything_but_a_right_letter_is_wrong_and_in_the_denominator() -> None:
    lost = [("t1", f"q{i}", status, False) for i, status in enumerate(STATUSES[1:])]
    (row,) = coherence(rows(("t1", "a", "ok", True), ("t1", "b", "ok", False), *lost)).to_dicts()
    assert row["pct"] == pytest.approx(100 / 7)
    assert (row["correct"], row["expected"], row["scored"]) == (1, 7, 2)
    assert [row[status] for status in STATUSES[1:]] == [1] * 5


def test_one_test_has_a_value_and_no_interval() -> None:
    (row,) = coherence(rows(("t1", "a", "ok", True), ("t1", "b", "ok", False))).to_dicts()
    undefined = ("ci_lo", "ci_hi", "ci_half_width", "lo", "hi", "half_width", "method", "icc", "effective_n")
    assert row["pct"] == 50
    assert [row[name] for name in undefined] == [None] * len(undefined)


def test_tests_that_are_all_right_have_wilson_beside_a_point() -> None:
    found = coherence(rows(*[(f"t{i}", q, "ok", True) for i in range(16) for q in "abc"])).row(0, named=True)
    assert (found["ci_lo"], found["ci_hi"], found["method"]) == (100, 100, "wilson")
    assert found["lo"] == pytest.approx(80.64, abs=0.01)
    assert found["hi"] == 100


def test_groups_are_sorted_and_keep_their_types(answers: pl.DataFrame) -> None:
    frames = [answers.with_columns(system=pl.lit(name), option_shift=number) for number, name in enumerate("ba")]
    two = pl.concat(frames)
    found = coherence(two, ["system", "option_shift"])
    assert found["system"].to_list() == ["a", "b"]
    assert found.schema["option_shift"] == two.schema["option_shift"]
    assert found["ci_lo"][0] == found["ci_lo"][1]


def test_seeds_are_pooled_inside_their_tests(answers: pl.DataFrame) -> None:
    two = pl.concat([answers.with_columns(seed=seed) for seed in (0, 1)])
    one, pooled = coherence(answers).row(0, named=True), coherence(two).row(0, named=True)
    assert (pooled["expected"], pooled["tests"]) == (864, 48)
    assert [pooled[name] for name in ("pct", "ci_lo", "ci_hi")] == pytest.approx(
        [one[name] for name in ("pct", "ci_lo", "ci_hi")]
    )


def test_another_reading_can_be_scored(answers: pl.DataFrame) -> None:
    strict = answers.with_columns(correct_strict=pl.col("correct") & (pl.col("question") == 1))
    assert coherence(strict, correct="correct_strict")["correct"][0] < coherence(strict)["correct"][0]


def test_no_answers_give_an_empty_table_with_all_columns() -> None:
    empty = rows(("t1", "a", "ok", True)).clear()
    found = coherence(empty, ["stage"])
    assert found.height == 0
    assert found.columns[:2] == ["stage", "correct"]
    assert coherence(empty).height == 0


@pytest.mark.parametrize(
    ("given", "message", "where"),
    [
        ([("t1", "a", "ok", True), ("t1", "a", "ok", False)], "more than one answer", "t1/edit/a"),
        ([("t1", "a", "lost", False)], "an unknown status", "t1/edit/a"),
        ([("t1", "a", "failed", True)], "a right answer whose status is not ok", "t1/edit/a"),
    ],
)
def test_rows_that_cannot_be_counted_are_refused(given: list[Any], message: str, where: str) -> None:
    with pytest.raises(InputError) as caught:
        coherence(rows(*given))
    assert message in caught.value.message
    assert where in caught.value.where


def test_a_null_in_place_of_right_or_wrong_is_refused() -> None:
    frame = rows(("t1", "a", "ok", True)).with_columns(correct=pl.lit(None, dtype=pl.Boolean))
    with pytest.raises(InputError, match="no value in `correct`"):
        coherence(frame)


def test_a_missing_column_is_named(answers: pl.DataFrame) -> None:
    with pytest.raises(InputError, match="no column arm") as told:
        coherence(answers, ["arm"])
    # What is not there is no answer to the question of what should be.
    assert "arm" not in told.value.expected
    assert "test, stage, question, status, correct" in told.value.expected


def test_two_families_for_one_question_do_not_hide_a_double(answers: pl.DataFrame) -> None:
    doubled = pl.concat([answers, answers.with_columns(family=pl.lit("expression"))])
    with pytest.raises(InputError, match="more than one answer"):
        coherence(doubled, ["family"])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    raw = pl.read_csv(ORACLES / "coherence_answers.csv").rename({"q": "question"})
    frame = raw.with_columns(status=pl.lit("ok"), correct=(pl.col("answer") == pl.col("key")).fill_null(False))
    shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
    assert coherence(shuffled, ["audio_type"]).equals(coherence(frame, ["audio_type"]))
