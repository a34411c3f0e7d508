"""Paired differences over the same tests."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from torus_ray.errors import InputError
from torus_ray.stats.coherence import coherence
from torus_ray.stats.paired import paired_difference


def answers(right: np.ndarray) -> pl.DataFrame:
    """Answers with right[t, q] as `correct`."""
    return pl.DataFrame(
        [
            {"test": f"t{t:02d}", "stage": "edit", "question": f"q{q}", "status": "ok", "correct": bool(value)}
            for (t, q), value in np.ndenumerate(right)
        ]
    )


@pytest.fixture(scope="module")
def two() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two systems that find the same tests hard; the first is better."""
    rng = np.random.default_rng(2)
    ease = rng.beta(1, 1, size=(48, 1))
    return answers(rng.random((48, 9)) < 0.9 * ease + 0.1), answers(rng.random((48, 9)) < 0.9 * ease)


def test_the_difference_is_that_of_the_two_values(two: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    found = paired_difference(*two)
    assert found.difference == pytest.approx(coherence(two[0])["pct"][0] - coherence(two[1])["pct"][0])
    assert found.difference == pytest.approx(found.a_pct - found.b_pct)
    assert (found.tests, found.questions, found.wins + found.ties + found.losses) == (48, 432, 48)
    assert found.percentile
    assert found.recommended
    assert found.recommended.method == "bootstrap_t"
    assert found.percentile.lo < found.difference < found.percentile.hi


def test_pairing_is_narrower_than_two_intervals_side_by_side(two: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    found = paired_difference(*two)
    alone = [coherence(frame)["ci_half_width"][0] for frame in two]
    assert found.correlation
    assert found.correlation > 0.5
    assert found.percentile
    assert found.percentile.half_width < 0.8 * np.hypot(*alone)


def test_exchange_turns_the_sign(two: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    there, back = paired_difference(*two), paired_difference(*reversed(two))
    assert there.difference == pytest.approx(-back.difference)
    assert there.wins == back.losses
    assert there.recommended
    assert back.recommended
    assert there.recommended.lo == pytest.approx(-back.recommended.hi)


def test_the_order_of_rows_does_not_matter(two: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    shuffled = two[0].sample(fraction=1, shuffle=True, seed=1)
    assert paired_difference(shuffled, two[1]) == paired_difference(*two)


def test_equal_answers_differ_by_a_plain_zero(two: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    found = paired_difference(two[0], two[0])
    assert (found.difference, found.ties, found.recommended) == (0, 48, None)
    assert found.percentile
    assert (found.percentile.lo, found.percentile.hi) == (0, 0)


def test_one_test_has_no_interval() -> None:
    found = paired_difference(answers(np.array([[1, 1, 0]])), answers(np.array([[0, 0, 0]])))
    assert found.difference == pytest.approx(200 / 3)
    assert (found.percentile, found.recommended, found.correlation) == (None, None, None)


def test_seeds_count_by_their_mean(two: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    seeds = pl.concat([frame.with_columns(seed=seed) for seed, frame in enumerate(two)])
    found = paired_difference(seeds, two[1])
    assert found.difference == pytest.approx(paired_difference(*two).difference / 2)


def test_a_question_that_only_one_has_is_refused(two: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    with pytest.raises(InputError, match="1 questions are answered in one of the two only") as caught:
        paired_difference(two[0], two[1].head(431))
    assert "t47/edit/q8" in caught.value.where
    with pytest.raises(InputError, match="no answers"):
        paired_difference(two[0].clear(), two[1].clear())
