"""Reading letters: the oracle, the reports from the field, and what must hold for any text."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torus_ray.answers.letters import LETTERS, Reason, read_letter
from torus_ray.errors import InputError

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "oracles" / "letters.json").read_text(encoding="utf-8")
)["cases"]
SOUNDS = ("a dog barking", "heavy rain", "a car horn", "thunder", "a door slamming", "rain on a tin roof")
KEYS = ("G major", "C major", "E minor", "A minor", "F major", "B flat major")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_oracle(case: dict[str, Any]) -> None:
    reading = read_letter(case["raw"], [case["options"][letter] for letter in LETTERS])
    assert reading.letter in case["acceptable"]
    if len(case["acceptable"]) == 1:
        assert (reading.letter_strict, reading.rule) == (case["letter_strict"], case["rule"])


FIELD = {
    "markdown": ("ANSWER: **A**", "A"),
    "latex": ("ANSWER: $A$", "A"),
    "none of the above": ("ANSWER: None of the above", None),
    "do not know": ("ANSWER: Don't know", None),
    "lower case": ("ANSWER: b", "B"),
    "two declarations": ("ANSWER: A\nANSWER: B", "B"),
    "two letters in one": ("ANSWER: AB", None),
    "correction": ("ANSWER: A ... actually, ANSWER: B", "B"),
    "article later": ("The answer is B because a car moves.", "B"),
    "first capital": ("Answer: **D**", "D"),
    "considered and final": ("I considered (A), but no dog is there. Final answer: D.", "D"),
    "lower case in prose": ("The correct answer is d.", "D"),
    "reasons after": ("The correct answer is B. Here's why: option B fits, option C does not, option D is wrong.", "B"),
    "full stop": ("A.", "A"),
    "person": ("A person is speaking in a room.", None),
    "alphabet": ("ABCDEF", None),
    "reasons with an article": ("The correct answer is E. A is wrong because there is no dog.", "E"),
    "echo": ("\n".join(f"{letter}) {text}" for letter, text in zip(LETTERS, SOUNDS, strict=True)), None),
    "echo and answer": ("A) a dog barking\nB) heavy rain\nAnswer: B", "B"),
    "negated": ("The answer is not B.", None),
    "neither": ("Neither A nor B", None),
    "one, not the other": ("It's C, not D.", "C"),
    "would not": ("I would not choose B.", None),
    "rejected option": ("Option D fits. Option B is wrong.", "D"),
    "text, not the other": ("There is no car horn, only thunder.", "D"),
    "text without article": ("Car horn", "C"),
    "text in a longer word": ("different thunderstorms", None),
    "for example": ("e.g. something loud", None),
    "weighting": ("A-weighted level", None),
    "initials": ("The U.S.A. anthem", None),
    "json with reasons": ('{"reason": "the answer is D?", "answer": "B) heavy rain"}', "B"),
    "json text": ('{"answer": "thunder"}', "D"),
    "json clash": ('{"letter": "B", "answer": "thunder"}', "B"),
    "json outside": ('{"answer": "G", "why": "A"}', None),
    "boxed text": ("$\\boxed{\\text{B}}$", "B"),
    "open tag": ("<answer>C", "C"),
    "heading": ("## Answer\n\nC", "C"),
    "letter A before because": ("The answer is A because of the bark.", "A"),
    "article after choose": ("I choose a dog", None),
    "either": ("Answer: A or B", None),
    "slash": ("Answer: A/B", None),
    "letter and text clash": ("D, heavy rain. The answer is D, a dog barking.", "D"),
    "nested thinking": ("<think> a <think> B </think> C </think> D", "D"),
    "text before an open block": ("B <think> but then", None),
    "several end tokens": ("C</s></s><|endoftext|>", "C"),
}


@pytest.mark.parametrize("case", FIELD)
def test_reports_from_the_field(case: str) -> None:
    raw, letter = FIELD[case]
    assert read_letter(raw, SOUNDS).letter == letter


@pytest.mark.parametrize(
    ("raw", "letter", "strict"),
    [
        ("The answer is C minor", None, None),
        ("E flat", None, None),
        ("It is B-flat major", "F", None),
        ("The answer is A minor.", "D", None),
        ("The answer is D, A minor.", "D", "D"),
        ("(D) A minor", "D", "D"),
        ("A", "A", "A"),
    ],
)
def test_key_names_are_no_letters(raw: str, letter: str | None, strict: str | None) -> None:
    reading = read_letter(raw, KEYS)
    assert (reading.letter, reading.letter_strict) == (letter, strict)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (None, "empty"),
        (" \n", "empty"),
        ("...", "empty"),
        ('{"answer": null}', "empty"),
        ("<think>It may be C", "unclosed_thinking"),
        ("I'm sorry, I can't listen to audio.", "refusal"),
        ("I cannot determine the answer.", "refusal"),
        ("B or C", "ambiguous"),
        ("thunder or heavy rain", "ambiguous"),
        ("Option G", "no_letter"),
        ("A dog runs by.", "no_letter"),
    ],
)
def test_an_unread_reply_has_its_reason(raw: str | None, reason: str) -> None:
    reading = read_letter(raw, SOUNDS)
    assert (reading.letter, reading.letter_strict, reading.reason) == (None, None, reason)


def test_a_question_has_six_options() -> None:
    with pytest.raises(InputError, match="6 options, got 5"):
        read_letter("A", SOUNDS[:5])


# Words and marks that the rules look for, so that random texts come near to them.
FRAGMENTS = st.sampled_from(
    [
        *("A", "B", "f", "a", "not", "answer", "is", ":", "The", "option", "choose", "final"),
        *("or", "and", ",", ".", ")", "(", "**", "\n", "<think>", "</think>", "{'answer':", '"'),
        *("\\boxed{", "}", "heavy", "rain", "thunder", "#", "<answer>", "because", "wrong"),
        *("I cannot", "cannot be", "-", "\u200b", "\uff22", "major"),
    ]
)
PIECES = st.lists(FRAGMENTS, max_size=16)
TEXTS = st.text(max_size=80) | PIECES.map(" ".join) | PIECES.map("".join)
OPTIONS = st.lists(st.text(min_size=1, max_size=12), min_size=6, max_size=6) | st.just(list(SOUNDS))


@given(TEXTS, OPTIONS)
def test_any_text_gives_a_letter_or_a_reason(raw: str, options: list[str]) -> None:
    reading = read_letter(raw, options)
    assert reading.letter in {*LETTERS, None}
    assert reading.letter_strict in {*LETTERS, None}
    assert (reading.letter is None) == (reading.reason is not None)
    assert reading.reason is None or reading.reason in get_args(Reason)
    assert reading == read_letter(raw, options)


@given(TEXTS)
def test_a_strict_letter_is_a_letter_and_only_a_text_can_overrule_it(raw: str) -> None:
    reading = read_letter(raw, SOUNDS)
    if reading.letter_strict:
        assert reading.letter
    if reading.letter != reading.letter_strict:
        assert reading.rule.endswith(("R5", "R2"))


FORMS = ("{}", "({})", "**{}**", "{}.", "Answer: {}", "The answer is {}.", "\n{}\n")


@given(st.sampled_from(LETTERS), st.sampled_from(FORMS))
def test_a_plain_letter_is_read_whatever_the_options_say(letter: str, form: str) -> None:
    for options in (SOUNDS, KEYS):
        reading = read_letter(form.format(letter), options)
        assert reading.letter == reading.letter_strict == letter


@given(st.permutations(SOUNDS), st.integers(0, 5))
def test_an_option_text_is_read_as_the_letter_it_is_shown_under(options: list[str], index: int) -> None:
    reading = read_letter(f"{options[index].capitalize()}.", options)
    assert (reading.letter, reading.letter_strict) == (LETTERS[index], None)


LOOPS = ("A ", "answer is ", "<think>", "(", '"answer": ', "{", "option B ", "\\boxed{", "not ", "a ", "answer to ")


@pytest.mark.parametrize("part", LOOPS)
def test_a_looping_reply_is_read_in_time(part: str) -> None:
    start = time.process_time()
    read_letter(part * 2000, SOUNDS)
    assert time.process_time() - start < 1
