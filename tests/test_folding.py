"""When two texts are the same to a reader."""

from __future__ import annotations

import pytest

from torus_ray.folding import fold, has_phrase


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A dog, barking.", "a  dog barking"),
        ("E-flat", "e flat"),
        ("it\u2019s \u201cloud\u201d", "its loud"),
        ("\uff22 minor", "b minor"),
    ],
)
def test_case_spacing_and_punctuation_do_not_count(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("C", "C#"), ("2.5 s", "25 s"), ("-3 dB", "3 dB"), ("1:30", "130")])
def test_what_carries_meaning_stays(one: str, other: str) -> None:
    assert fold(one) != fold(other)


def test_a_phrase_is_found_as_whole_words_only() -> None:
    assert has_phrase("heavy rain falls", "rain falls")
    assert not has_phrase("heavy rainfall", "rain")
    assert not has_phrase("heavy rain", "")
