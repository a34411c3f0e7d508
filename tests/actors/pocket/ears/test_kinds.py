"""Kinds of question that need more than the whole clip: which of several, what follows, what lies behind, layers."""

from __future__ import annotations

import numpy as np
import pytest

from torus_ray.heads import Question

from . import signals as s

PLACES = ("the first", "the second", "the third", "the fourth", "all are alike", "there is only one")


def bell(hz: float = 800.0, seconds: float = 3.5) -> np.ndarray:
    t = s.time(seconds)
    partials = ((0.5, 0.4), (1, 1), (1.19, 0.6), (1.56, 0.5), (2, 0.5), (2.66, 0.3), (3.76, 0.2))
    return sum(a * np.sin(2 * np.pi * hz * r * t) * np.exp(-t * r**0.5 / 1.4) for r, a in partials)


def letter(ears, wave, stem, options):  # type: ignore[no-untyped-def]
    return options["ABCDEF".index(ears.answer(s.clip(wave), [Question(stem, options, "")])[0])]


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize(("stem", "gain"), [("Which stroke is the loudest?", 2.0), ("Which one is the softest?", 0.4)])
def test_the_extreme_of_four_strokes_that_ring_into_each_other(ears, which, stem, gain) -> None:  # type: ignore[no-untyped-def]
    gains = [gain if k == which else 1.0 for k in range(4)]
    wave = s.place(6.5, *((0.3 + 0.9 * k, 0.3 * g * bell()) for k, g in enumerate(gains)))
    assert letter(ears, wave, stem, PLACES) == PLACES[which]


@pytest.mark.parametrize("which", [0, 2])
def test_longest_and_odd_one_out(ears, which) -> None:  # type: ignore[no-untyped-def]
    long = s.place(5.5, *((0.3 + 1.2 * k, s.tone(800, 0.8 if k == which else 0.25)) for k in range(4)))
    odd = s.place(5.5, *((0.3 + 1.2 * k, s.tone(900 if k == which else 600, 0.4)) for k in range(4)))
    assert letter(ears, long, "Which tone lasts longest?", PLACES) == PLACES[which]
    assert letter(ears, odd, "Which tone differs from the rest?", PLACES) == PLACES[which]


def test_groups_in_neutral_wording(ears) -> None:  # type: ignore[no-untyped-def]
    options = ("the long sound", "the short sounds", "both are equal", "nothing is loud")
    for gain, answer in ((0.2, options[1]), (4.0, options[0])):
        short = [(t, s.hiss(0.12)) for t in (3.0, 3.4, 3.8)]
        wave = s.place(5.0, (0.2, gain * s.hiss(2.3)), *short)
        assert letter(ears, wave, "Which are louder?", options) == answer


AFTER = ("a knock", "silence", "a second bell stroke", "a voice", "rain", "a siren")


@pytest.mark.parametrize(
    ("then", "answer"), [(s.stroke() * 0.25, 0), (None, 1), (bell(900) * 0.6, 2)], ids=["knock", "nothing", "again"]
)
def test_what_follows_within_the_decay_of_a_bell(ears, then, answer) -> None:  # type: ignore[no-untyped-def]
    wave = s.place(6.0, (0.3, bell(900, 4.5)), *([] if then is None else [(2.4, then)]))
    assert letter(ears, wave, "What comes after the bell?", AFTER) == AFTER[answer]


@pytest.mark.parametrize(
    ("bpm", "options"),
    [(60, ("40", "60", "80", "110", "160", "200")), (110, ("30", "45", "75", "110", "165", "220"))],
)
def test_even_strokes_give_the_tempo(ears, bpm, options) -> None:  # type: ignore[no-untyped-def]
    wave = s.strokes([0.2 + k * 60 / bpm for k in range(round(10 * bpm / 60))])
    assert letter(ears, wave, "How many strokes come in a minute?", options) == str(bpm)


def test_rates_in_words() -> None:
    from actors.pocket.ears.quantities import rate_of

    assert rate_of("one every three seconds") == (pytest.approx(1 / 3),) * 2
    assert rate_of("four notes a second") == (4, 4)
    assert rate_of("a steady rate") is None


def test_a_sound_after_it_is_the_later_step() -> None:
    from actors.pocket.ears.order import steps

    assert steps("a bell and after it a knock") == ["a bell", "a knock"]
    assert steps("a bell after a knock") == ["a knock", "a bell"]


def test_silence_between_the_words_is_no_background(ears) -> None:  # type: ignore[no-untyped-def]
    from actors.pocket.ears.after import bare_background

    quiet = s.place(3, (0.3, s.siren(0.8)), (1.9, s.siren(0.8)))
    assert bare_background(ears.hear(s.clip(quiet))) is None
    assert bare_background(ears.hear(s.clip(quiet + 0.3 * s.hiss(3)))) is not None


@pytest.mark.parametrize(
    ("wave", "word"),
    [(s.strokes([0.3, 0.9, 1.5]), "Three"), (s.hiss(4), "hiss"), (s.glide(300, 900, 4), "pitch rises")],
    ids=["strokes", "noise", "glide"],
)
def test_a_caption_tells_how_it_sounds(ears, wave, word) -> None:  # type: ignore[no-untyped-def]
    assert word in ears.caption(s.clip(wave))


def test_odd_questions_about_pieces_never_fail(ears) -> None:  # type: ignore[no-untyped-def]
    stems = ("Which of the nine is loudest?", "After the ninth bell, what?", "What is behind it?", "How many after it?")
    options = ("the ninth", "number 0", "voices near, knocks far", "nothing", "one every 0 seconds", "both far")
    for wave in (np.zeros(8_000), s.hiss(0.1), s.place(1, (0.5, s.stroke())), s.hiss(3)):
        letters = ears.answer(s.clip(wave), [Question(stem, options, "") for stem in stems])
        assert set(letters) <= set("ABCDEF")
