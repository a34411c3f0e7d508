"""Shallow English: each fact a table of sentences and what they say."""

from __future__ import annotations

import pytest

from actors.pocket import english


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ('She says "go home" now', ["go home"]),
        ("She says “it’s late” and he says ‘I don’t care’", ["it’s late", "I don’t care"]),
        ("The dogs' bowls aren't here", []),
        ("He says 'it's mine' twice", ["it's mine"]),
        ("", []),
    ],
)
def test_quotes(text: str, spans: list[str]) -> None:
    assert [q.text for q in english.quotes(text)] == spans


def test_masked_quotes_hide_their_words_and_come_back() -> None:
    masked = english.mask('A man says "first, then run." Then a bell rings.')
    assert "run" not in masked.text
    elements = english.split(masked.text)
    assert [e.relation for e in elements] == ["first", "then"]
    assert masked.unmask(elements[0].text) == 'A man says "first, then run."'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("three", 3),
        ("twenty-four", 24),
        ("one hundred and ten", 110),
        ("2.5", 2.5),
        ("1/4", 0.25),
        ("two and a half", 2.5),
        ("half a", 0.5),
        ("cat", None),
    ],
)
def test_number(text: str, value: float | None) -> None:
    assert english.number(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("three knocks", 3),
        ("a dog barks twice", 2),
        ("one dog barks four times", 4),
        ("a single bark", 1),
        ("a couple of taps", 2),
        ("rain for three seconds", None),
        ("at 120 bpm", None),
        ("two short beeps one second apart", 2),
        ("a bell", None),
    ],
)
def test_count(text: str, value: int | None) -> None:
    assert english.count(text) == value


def test_times() -> None:
    assert english.duration_s("a 3-second pause") == 3
    assert english.duration_s("for two and a half seconds") == 2.5
    assert english.duration_s("every two seconds") is None
    assert english.interval_s("every two seconds") == 2
    assert english.interval_s("half a second apart") == 0.5
    assert english.moment("after three seconds, a bell") == english.Moment(3)
    assert english.moment("in the last two seconds") == english.Moment(2, from_end=True)
    assert english.duration_s("after three seconds") is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("A bell rings, then a dog barks", [("A bell rings", "first"), ("a dog barks", "then")]),
        ("A bell rings followed by a dog bark", [("A bell rings", "first"), ("a dog bark", "then")]),
        ("After the thunder, two horns sound", [("the thunder", "first"), ("two horns sound", "then")]),
        ("A door slams before a baby cries", [("A door slams", "first"), ("a baby cries", "then")]),
        ("Rain falls while a cat meows", [("Rain falls", "first"), ("a cat meows", "together")]),
        ("A man speaks over soft rain", [("A man speaks", "first"), ("soft rain", "background")]),
        (
            "A phone rings with wind in the background",
            [("A phone rings", "first"), ("wind in the background", "background")],
        ),
        ("A siren wails. A car passes.", [("A siren wails", "first"), ("A car passes", "next_sentence")]),
        ("A hum, interrupted by a crash", [("A hum", "first"), ("a crash", "during")]),
    ],
)
def test_split(text: str, parts: list[tuple[str, str]]) -> None:
    assert [(e.text, e.relation) for e in english.split(text)] == parts


def test_without() -> None:
    assert english.without("solo piano with no drums or bass") == ("solo piano", ("drums", "bass"))
    assert english.without("a piano without any reverb, slow") == ("a piano, slow", ("reverb",))
    assert english.without("a piano") == ("a piano", ())
    assert english.is_negated("no drums", "drum")
    assert not english.is_negated("drums", "drum")


@pytest.mark.parametrize(
    ("text", "prop", "direction", "factor"),
    [
        ("make it louder", "level", 1, None),
        ("half as fast", "speed", -1, 0.5),
        ("slow it down by 20 percent", "speed", -1, 0.8),
        ("raise the pitch by an octave", "pitch", 1, None),
        ("twice as loud", "level", 1, 2.0),
        ("much further away", "distance", 1, None),
    ],
)
def test_comparatives(text: str, prop: str, direction: int, factor: float | None) -> None:
    (found,) = english.comparatives(text)
    assert (found.property, found.direction, found.factor) == (prop, direction, factor)


def test_degree_and_amount() -> None:
    assert english.degree("slightly louder") < english.degree("louder") < english.degree("much louder")
    assert english.amount("up an octave", "semitone") == 12
    assert english.amount("by 6 dB", "dB") == 6


@pytest.mark.parametrize(
    ("text", "bpm"),
    [
        ("at 120 bpm", 120),
        ("ninety-six beats per minute", 96),
        ("a tempo of 72", 72),
        ("adagio", 66),
        ("the piece slows down", None),
        ("a chair", None),
    ],
)
def test_tempo(text: str, bpm: float | None) -> None:
    found = english.tempo(text)
    assert (found and found.bpm) == bpm


@pytest.mark.parametrize(
    ("text", "tonic", "mode"),
    [
        ("in D minor", 2, "minor"),
        ("E-flat major", 3, "major"),
        ("F# dorian", 6, "dorian"),
        ("in the key of G", 7, "major"),
        ("in A minor", 9, "minor"),
        ("Bb major", 10, "major"),
    ],
)
def test_key(text: str, tonic: int, mode: str) -> None:
    found = english.key(text)
    assert found is not None
    assert (found.tonic, found.mode) == (tonic, mode)


def test_an_article_is_no_key() -> None:
    assert english.key("a minor change") is None
    assert english.key("in a minor key") is None
    assert english.mode("in a minor key") == "minor"


@pytest.mark.parametrize(
    ("text", "beats", "unit"), [("a waltz", 3, 4), ("in 6/8", 6, 8), ("in five", 5, 4), ("a march", 2, 4)]
)
def test_meter(text: str, beats: int, unit: int) -> None:
    assert english.meter(text) == english.Meter(beats, unit)


def test_places_and_voices() -> None:
    assert english.room("in a cathedral").name == "cathedral"  # type: ignore[union-attr]
    assert english.distance("a dog barks far away").meters > 10  # type: ignore[union-attr]
    assert english.distance("a train approaching").moving == "approaching"  # type: ignore[union-attr]
    assert english.pan("from left to right") == english.Pan(-0.9, 0.9)
    old = english.speaker("an elderly woman mutters")
    assert old is not None
    assert (old.age, old.sex) == ("old", "female")
    assert english.speaker("a door") is None
    assert english.manners("whispers hesitantly over the phone") == ("whisper", "hesitant", "telephone")


def test_dynamics() -> None:
    assert english.dynamics("gradually gets louder").shape == "crescendo"
    assert english.dynamics("fades out").slope == -1
    assert english.dynamics("softly").level_db < 0


@pytest.mark.parametrize(
    ("text", "seconds", "each"),
    [
        ("leaving about a second after each word", 1.0, "word"),
        ("with one and a half seconds between the numbers", 1.5, "item"),
        ("a two-second pause", 2.0, None),
        ("half a second of silence between them", 0.5, "item"),
        ("after a brief pause", 0.4, None),
        ("a long silence follows", 1.2, None),
        ("without pausing", None, None),
        ("he speaks slowly", None, None),
    ],
)
def test_pauses(text: str, seconds: float | None, each: str | None) -> None:
    assert english.pause_s(text) == seconds
    assert english.pause_each(text) == each


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("three taps a second for four seconds", (1 / 3, 12)),
        ("a spoon taps twice a second for three seconds", (0.5, 6)),
        ("a beep every half second", (0.5, None)),
        ("a drum struck once a second, seven times", (1.0, 7)),
        ("four claps evenly spread over two seconds", (0.5, 4)),
        ("two knocks one second apart", (1.0, 2)),
        ("three knocks", None),
        ("a horn sounds for a second", None),
    ],
)
def test_repetition(text: str, expected: tuple[float, int | None] | None) -> None:
    found = english.repetition(text)
    assert (found and (found.gap_s, found.count)) == (expected and (pytest.approx(expected[0]), expected[1]))


@pytest.mark.parametrize(
    ("text", "kind", "levels"),
    [
        ("a motorbike approaches, passes and leaves", "sound", "low high low"),
        ("the breeze builds up into a gale", "sound", "low high"),
        ("the rumble dies away", "sound", "high low"),
        ("she begins quietly and ends up yelling", "speech", "low high"),
        ("strings that swell and then sink back", "music", "low high low"),
        ("a rising melody", "music", ""),
        ("steady rain", "sound", ""),
    ],
)
def test_level_curves(text: str, kind: str, levels: str) -> None:
    curve = english.level_curve(text, kind) or ()
    ends = [curve[0], curve[len(curve) // 2], curve[-1]] if levels.count(" ") == 2 else [*curve[:1], *curve[-1:]]
    assert " ".join("high" if db > -6 else "low" for _, db in ends) == levels


def test_counts_in_words_and_order_without_articles() -> None:
    assert english.count("half a dozen raps") == 6
    assert english.count("a dozen drips") == 12
    assert [e.text for e in english.split("Splintering wood before heavy footsteps")] == [
        "Splintering wood",
        "heavy footsteps",
    ]
    assert [e.text for e in english.split("Footsteps after a door slam")] == ["a door slam", "Footsteps"]
