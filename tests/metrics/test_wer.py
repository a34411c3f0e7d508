"""Word error rate against the oracle, jiwer's own lists, and the inputs of METRICS 3 and 11."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jiwer
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torus_ray.errors import InputError
from torus_ray.metrics.wer import WordErrors, _english, loops, normalise, normaliser, wer, word_errors

ORACLE: dict[str, Any] = json.loads((Path(__file__).parents[1] / "oracles" / "wer.json").read_text())
CASES = {case["name"]: case for case in ORACLE["cases"]}
# The oracle shows the library as it is; ours makes typographic quotes plain before it.
AS_LIBRARY = [case for case in ORACLE["cases"] if case["name"] != "apostrophe_curly"]


def errors_of(case: dict[str, Any], **given: Any) -> WordErrors:
    return word_errors(reference=case["reference"], hypothesis=case["hypothesis"], **given)


@pytest.mark.parametrize("case", AS_LIBRARY, ids=lambda case: str(case["name"]))
def test_a_clip_of_the_oracle(case: dict[str, Any]) -> None:
    assert normalise(case["reference"]) == case["normalised_reference"].strip()
    assert normalise(case["hypothesis"]) == case["normalised_hypothesis"].strip()
    found = errors_of(case)
    for name in ("hits", "substitutions", "deletions", "insertions", "errors"):
        assert getattr(found, name) == case[name], name
    assert found.words == case["ref_words"]
    assert found.rate == (None if case["wer"] is None else pytest.approx(case["wer"], abs=ORACLE["tolerance_abs"]))
    raw = errors_of(case, normalised=False)
    if raw.words:
        assert raw.rate == pytest.approx(case["jiwer_wer_without_normaliser"], abs=ORACLE["tolerance_abs"])


def test_the_normaliser_alone_does_not_know_curly_quotes_and_ours_does() -> None:
    case = CASES["apostrophe_curly"]
    assert _english()(case["reference"]).strip() == case["normalised_reference"]
    assert _english()(case["hypothesis"]).strip() == case["normalised_hypothesis"]
    library = word_errors(
        reference=case["normalised_reference"], hypothesis=case["normalised_hypothesis"], normalised=False
    )
    assert (library.errors, library.rate) == (case["errors"], pytest.approx(case["wer"]))
    assert errors_of(case).errors == 0
    assert normalise("\u201cHello\u201d") == normalise('"Hello"')


@pytest.mark.parametrize("group", ORACLE["aggregates"], ids=lambda group: str(group["name"]))
def test_averages_of_the_oracle(group: dict[str, Any]) -> None:
    clips = [errors_of(CASES[name]) for name in group["clips"]]
    found = wer(clips, backbone="whisper_large_v3")
    assert found.pooled.value == pytest.approx(group["pooled"], abs=ORACLE["tolerance_abs"])
    assert found.clip_mean.value == pytest.approx(group["mean_over_clips"], abs=ORACLE["tolerance_abs"])
    assert (found.pooled.n, found.pooled.expected) == (group["n_used"], group["n_used"])
    assert found.no_words == group["n_skipped_empty_reference"]
    assert found.pooled.column == "wer.pooled.whisper_large_v3"
    assert found.clip_mean.column == "wer.clip_mean.whisper_large_v3"


def test_pooled_is_what_jiwer_gives_for_two_lists() -> None:
    cases = [case for case in ORACLE["cases"] if case["ref_words"]]
    sides = [[normalise(case[side]) for case in cases] for side in ("reference", "hypothesis")]
    assert wer([errors_of(case) for case in cases]).pooled.value == pytest.approx(jiwer.wer(*sides), abs=1e-12)


def test_a_stage_without_words_is_left_out_and_counted() -> None:
    silent = [word_errors(reference=text, hypothesis="peaceful silence") for text in ("", "  ", "?!", "(wind)")]
    assert {clip.rate for clip in silent} == {None}
    right = word_errors(reference="Go home.", hypothesis="go home")
    found = wer([right, *silent])
    assert (found.pooled.value, found.pooled.n, found.no_words) == (0, 1, 4)
    assert found.insertion_share is None


def test_a_missing_clip_counts_one() -> None:
    found = wer([word_errors(reference="Go home now.", hypothesis=None)], expected=3)
    assert (found.pooled.value, found.clip_mean.value, found.empty_share) == (1, 1, 1)
    assert (found.pooled.n, found.pooled.expected) == (1, 3)


def test_nothing_is_cut_at_one() -> None:
    again = word_errors(reference="turn left now", hypothesis=" ".join(["turn left now"] * 10))
    assert again.rate == pytest.approx(9)
    assert again.looped
    found = wer([again])
    assert (found.pooled.value, found.above_one_share, found.insertion_share) == (9, 1, 1)


def test_no_speech_stage_gives_no_number() -> None:
    found = wer([])
    for measure in (found.pooled, found.clip_mean):
        assert (measure.value, measure.n, measure.reason) == (None, 0, "no_speech_stages")
    assert (found.empty_share, found.above_one_share) == (None, None)


def test_numbers_with_and_without_looped_clips_stand_side_by_side() -> None:
    clips = [word_errors(reference="Stop.", hypothesis="you " * 30), word_errors(reference="Stop.", hypothesis="Stop")]
    found = wer(clips)
    assert (found.looped, found.pooled.value, found.pooled_unlooped.value) == (1, 15, 0)
    assert (found.pooled_unlooped.n, found.pooled_unlooped.expected) == (1, 2)
    assert wer(clips[:1]).clip_mean_unlooped.reason == "all_looped"


@pytest.mark.parametrize(
    ("text", "looped"),
    [
        ("", False),
        ("The dog barked at the mailman and then it slept under the old oak tree.", False),
        ("No, no, no! Not again.", False),
        ("thank you thank you thank you thank you thank you", True),
        ("you " * 30, True),
        ((Path(__file__).parents[2] / "LICENSE").read_text(), False),  # long prose compresses 3 times, no page does
        ("we will meet at the station at noon " * 9, True),
    ],
)
def test_loops_are_found(text: str, looped: bool) -> None:
    assert loops(text) is looped


def test_swapped_sides_differ() -> None:
    there = word_errors(reference="turn left", hypothesis="turn left now please")
    back = word_errors(reference="turn left now please", hypothesis="turn left")
    assert (there.rate, back.rate) == (1, 0.5)
    assert (there.insertions, back.deletions) == (2, 2)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="the hypothesis is no text"):
        word_errors(reference="go", hypothesis=5)  # type: ignore[arg-type]


def test_the_normaliser_names_its_versions() -> None:
    assert "whisper-normalizer 0." in normaliser()
    assert "jiwer 4." in normaliser()


WORDS = st.lists(st.sampled_from(["the", "dog", "barked", "at", "it's", "21", "colour", "gray"]), max_size=8).map(
    " ".join
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS), max_size=6), st.randoms())
def test_counts_hold_and_the_order_of_clips_does_not_matter(pairs: list[tuple[str, str]], random: Any) -> None:
    clips = [word_errors(reference=reference, hypothesis=heard) for reference, heard in pairs]
    for clip in clips:
        assert clip.hits + clip.substitutions + clip.deletions == clip.words
        assert clip.hits + clip.substitutions + clip.insertions == clip.hypothesis_words
    shuffled = list(clips)
    random.shuffle(shuffled)
    assert wer(shuffled).pooled == wer(clips).pooled
