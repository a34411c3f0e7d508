"""Two clips with opposite truth, one question: the answer must follow the clip."""

from __future__ import annotations

import numpy as np
import pytest

from torus_ray.heads import Question

from . import signals as s

EVEN = [0.3 + 0.5 * k for k in range(8)]
FASTER = [0.3, *(0.3 + np.cumsum(np.geomspace(0.9, 0.2, 9))).tolist()]
SLOWER = [0.3, *(0.3 + np.cumsum(np.geomspace(0.2, 0.9, 9))).tolist()]
UNEVEN = [0.3, 0.5, 1.6, 1.85, 2.1, 3.4, 4.3, 4.45, 5.6]
LEFT_RIGHT = np.stack([s.hiss(4) * np.linspace(1, 0, 4 * s.RATE_HZ), s.hiss(4) * np.linspace(0, 1, 4 * s.RATE_HZ)])
UP_DOWN = ("rises", "falls", "stays level", "rises then falls", "falls then rises", "wavers")
DYNAMICS = (
    "It grows louder",
    "It becomes softer",
    "It stays the same",
    "It swells and then fades",
    "It dips and then returns",
    "It has no sound",
)
ORDINALS = ("once", "twice", "three times", "four times", "five times", "six times")
SPACES = (
    "a dry booth",
    "a vast cathedral",
    "through a telephone",
    "under water",
    "a moving car",
    "a small tiled bathroom",
)

PAIRS = {
    "count": (
        s.strokes(EVEN[:3]),
        s.strokes(EVEN[:5]),
        "How often is the object struck?",
        ORDINALS,
        "three times",
        "five times",
    ),
    "count of tones": (
        s.place(3, (0.3, s.tone(700, 0.4)), (1.4, s.tone(700, 0.4))),
        s.place(5, *((0.3 + k, s.tone(700, 0.4)) for k in range(4))),
        "How many tones sound?",
        ("1", "2", "3", "4", "5", "6"),
        "2",
        "4",
    ),
    "groups": (
        s.strokes([0.3, 0.5, 2.0, 2.2]),
        s.strokes([0.3, 0.5, 2.0, 2.2, 3.7, 3.9, 5.4, 5.6]),
        "In how many groups do the taps come?",
        ("one", "two", "three", "four", "five", "six"),
        "two",
        "four",
    ),
    "gap": (
        s.place(2.6, (0.3, s.hiss(0.4)), (1.2, s.hiss(0.4))),
        s.place(5.0, (0.3, s.hiss(0.4)), (3.7, s.hiss(0.4))),
        "How long is the silence that separates the two?",
        (
            "none",
            "about half a second",
            "about a second and a half",
            "about three seconds",
            "about five seconds",
            "about seven seconds",
        ),
        "about half a second",
        "about three seconds",
    ),
    "loudness": (
        s.ramp(s.hiss(5), -24, 0),
        s.ramp(s.hiss(5), 0, -24),
        "What happens to the volume?",
        DYNAMICS,
        DYNAMICS[0],
        DYNAMICS[1],
    ),
    "loudness course": (
        s.ramp(s.siren(5), -24, 0, -24),
        s.ramp(s.siren(5), 0, 0),
        "How does the loudness change?",
        DYNAMICS,
        DYNAMICS[3],
        DYNAMICS[2],
    ),
    "loudest part": (
        s.ramp(s.hiss(6), 0, -6, -20, -20),
        s.ramp(s.hiss(6), -20, -20, -6, 0),
        "When is the clip at its loudest?",
        ("at the start", "in the middle", "at the end", "equally throughout", "never", "a quarter in"),
        "at the start",
        "at the end",
    ),
    "pitch": (
        s.glide(300, 900, 4),
        s.glide(900, 300, 4),
        "In which direction does the pitch go?",
        UP_DOWN,
        "rises",
        "falls",
    ),
    "pitch held": (
        s.glide(500, 500, 4),
        s.glide(300, 900, 4),
        "How does the tone's pitch move?",
        UP_DOWN,
        "stays level",
        "rises",
    ),
    "pace": (
        s.strokes(FASTER),
        s.strokes(SLOWER),
        "What happens to the pace?",
        (
            "it speeds up",
            "it slows down",
            "it stays even",
            "it speeds up and then slows down",
            "it slows down and then speeds up",
            "it is random",
        ),
        "it speeds up",
        "it slows down",
    ),
    "regularity": (
        s.strokes(EVEN),
        s.strokes(UNEVEN),
        "How are the strokes spaced?",
        (
            "evenly",
            "irregularly",
            "closer and closer together",
            "farther and farther apart",
            "only one stroke",
            "without any gap",
        ),
        "evenly",
        "irregularly",
    ),
    "order": (
        np.concatenate([s.siren(4), np.zeros(s.RATE_HZ // 2), s.hiss(4)]),
        np.concatenate([s.hiss(4), np.zeros(s.RATE_HZ // 2), s.siren(4)]),
        "In what order do they come?",
        (
            "a siren, then white noise",
            "white noise, then a siren",
            "a siren, then a dog",
            "a dog, then a siren",
            "white noise, then a dog",
            "a dog, then white noise",
        ),
        "a siren, then white noise",
        "white noise, then a siren",
    ),
    "source": (
        s.siren(4),
        s.hiss(4),
        "Which of these is heard?",
        ("a siren", "static hiss", "a dog", "a piano", "footsteps", "laughter"),
        "a siren",
        "static hiss",
    ),
    "room": (
        s.place(4, *((t, s.stroke()) for t in (0.3, 1.2, 2.1))),
        s.hall(s.strokes([0.3, 1.2, 2.1]), 2.8),
        "What kind of space is it in?",
        SPACES,
        SPACES[0],
        SPACES[1],
    ),
    "movement": (
        s.ramp(s.hiss(6), -26, 0),
        s.ramp(s.hiss(6), 0, -26),
        "How does the source move?",
        ("it comes closer", "it moves away", "it passes by", "it stays in place", "it circles around", "it jumps"),
        "it comes closer",
        "it moves away",
    ),
    "side": (
        LEFT_RIGHT,
        LEFT_RIGHT[::-1].copy(),
        "How does it move between the speakers?",
        (
            "from left to right",
            "from right to left",
            "it stays left",
            "it stays right",
            "it stays in the centre",
            "it alternates",
        ),
        "from left to right",
        "from right to left",
    ),
    "comparison": (
        s.place(3, (0.3, s.tone(400, 0.6, 0.1)), (1.7, s.tone(400, 0.6, 0.6))),
        s.place(3, (0.3, s.tone(400, 0.6, 0.6)), (1.7, s.tone(400, 0.6, 0.1))),
        "How does the second tone compare with the first?",
        ("it is louder", "it is softer", "it is higher", "it is lower", "it is longer", "it is the same"),
        "it is louder",
        "it is softer",
    ),
    "compared pitch": (
        s.place(3, (0.3, s.tone(300, 0.6)), (1.7, s.tone(620, 0.6))),
        s.place(3, (0.3, s.tone(620, 0.6)), (1.7, s.tone(300, 0.6))),
        "How does the second tone differ from the first?",
        ("it is louder", "it is softer", "it is higher", "it is lower", "it is longer", "it is the same"),
        "it is higher",
        "it is lower",
    ),
    "pattern": (
        s.place(4, (0.3, s.tone(350, 0.4)), (1.3, s.tone(800, 0.4)), (2.3, s.tone(350, 0.4))),
        s.place(4, (0.3, s.tone(800, 0.4)), (1.3, s.tone(350, 0.4)), (2.3, s.tone(350, 0.4))),
        "What pattern do the tones form?",
        ("low, high, low", "high, low, low", "low, low, high", "high, high, low", "low, high, high", "high, low, high"),
        "low, high, low",
        "high, low, low",
    ),
    "accents": (
        s.strokes([0.3, 1.3, 2.3], levels=[1, 0.12, 0.12]),
        s.strokes([0.3, 1.3, 2.3], levels=[0.12, 0.12, 1]),
        "Which stroke pattern is it?",
        (
            "loud, soft, soft",
            "soft, soft, loud",
            "soft, loud, soft",
            "loud, loud, soft",
            "soft, loud, loud",
            "loud, soft, loud",
        ),
        "loud, soft, soft",
        "soft, soft, loud",
    ),
    "register": (
        s.scale(36, [0, 2, 4, 5, 4, 2, 0, 2, 4, 0], 0.4),
        s.scale(86, [0, 2, 4, 5, 4, 2, 0, 2, 4, 0], 0.4),
        "In which register do the notes lie?",
        ("very low", "low-middle", "in the middle", "very high", "it has no pitch", "it changes all the time"),
        "very low",
        "very high",
    ),
    "melody": (
        s.scale(60, [0, 2, 4, 5, 7, 9, 11, 12], 0.5),
        s.scale(60, [12, 11, 9, 7, 5, 4, 2, 0], 0.5),
        "In which direction does the melody go?",
        ("ascending", "descending", "up and then down", "down and then up", "repeating one note", "wavering"),
        "ascending",
        "descending",
    ),
    "tempo": (
        s.scale(60, [0, 4, 7, 4, 5, 9, 7, 4, 0], 1.0, accents=4),
        s.scale(60, [0, 4, 7, 4] * 6, 0.375, accents=4),
        "What is the tempo?",
        (
            "about 40 beats per minute",
            "about 60 beats per minute",
            "about 80 beats per minute",
            "about 110 beats per minute",
            "about 160 beats per minute",
            "about 210 beats per minute",
        ),
        "about 60 beats per minute",
        "about 160 beats per minute",
    ),
    "meter": (
        s.scale(60, [0, 4, 7] * 7, 0.45, accents=3),
        s.scale(60, [0, 4, 7, 4] * 5, 0.45, accents=4),
        "How many beats make up a bar?",
        ("two", "three", "four", "five", "six", "seven"),
        "three",
        "four",
    ),
    "ending": (
        np.concatenate([s.siren(4), np.zeros(s.RATE_HZ)]),
        s.ramp(s.hiss(6), 0, 0, -12, -50),
        "How does it end?",
        (
            "it stops abruptly",
            "it fades out",
            "with a long ringing echo",
            "with a shout",
            "with a splash",
            "with music",
        ),
        "it stops abruptly",
        "it fades out",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_opposite_truth_flips_the_answer(ears, name):  # type: ignore[no-untyped-def]
    first, second, stem, options, if_first, if_second = PAIRS[name]
    for shift in (0, 2):
        shown = options[shift:] + options[:shift]
        question = [Question(stem, shown, "")]
        heard = [shown["ABCDEF".index(ears.answer(s.clip(wave), question)[0])] for wave in (first, second)]
        assert heard == [if_first, if_second]


def test_there_are_at_least_twenty_pairs() -> None:
    assert len(PAIRS) >= 20
