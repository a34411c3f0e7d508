"""The lines of a scene's speech: which voice says each quote, and in what manner."""

from __future__ import annotations

import re

import numpy as np

from . import english, scene_people, space, speech
from .scene_read import Item, Reading
from .speech import Line
from .voices import Voice


def lines_of(reading: Reading, rng: np.random.Generator, limit: float) -> dict[int, tuple[Line, ...]]:
    """The lines of each speech item, by its index: who says what, and how. limit: seconds that all must fit in."""
    said = [(i, item) for i, item in enumerate(reading.items) if item.kind == "speech"]
    people = list(reading.people)
    who: list[tuple[int, ...]] = []
    for _, item in said:
        count = max(1, len(item.quotes))
        told = item.who if len(item.who) == len(item.quotes) and item.who else None
        who.append(told or (scene_people.identify(item.speaker, people, item.text),) * count)
    voices = speech.cast(people or [None], rng)
    seconds = sum(len(" ".join(item.quotes).split()) / 2.7 + 0.3 for _, item in said)
    hurry = float(np.clip(seconds / (limit - 0.3), 1.0, 1.5)) if limit > 1 else 1.0
    return {
        i: tuple(
            _line(item, quote, voices[number], reading, hurry, n)
            for n, (quote, number) in enumerate(zip(item.quotes or (_invented(item),), numbers))
        )
        for (i, item), numbers in zip(said, who)
    }


def _line(item: Item, quote: str, voice: Voice, reading: Reading, hurry: float, place: int) -> Line:
    text = item.text
    manners = english.manners(_without_places(text))
    device = space.room_of(text)
    if device in ("telephone", "radio", "megaphone"):
        manners = (
            *(m for m in manners if m not in ("telephone", "radio")),
            "telephone" if device == "telephone" else "radio",
        )
    rate = hurry
    strong = english.degree(text)
    if {"fast", "slow"} & set(manners) and strong != 1.0:
        rate *= {True: 1.0 + 0.14 * np.sign(strong - 1), False: 1.0 - 0.12 * np.sign(strong - 1)}["fast" in manners]
    pause = english.pause_s(text) if _within(item, text) else None
    curve = english.level_curve(text, "speech")
    if curve is not None and len(item.quotes) > 1:  # each quote is one step of the way
        at, db = zip(*curve)
        level = float(np.interp(place / (len(item.quotes) - 1), at, db))
        curve = ((0.0, level), (1.0, level))
    unique = tuple(dict.fromkeys(manners))
    return Line(
        quote,
        voice,
        unique,
        float(rate),
        0.0,
        pause,
        reading.stressed,
        english.pause_each(text) if pause else None,
        curve,
    )


def _within(item: Item, text: str) -> bool:
    """Whether a stated pause falls inside the line rather than before it or between lines."""
    if re.match(r"\W*(?:and |then )*after (?:a|an|about|around|\w+ seconds)\b", text.lower()):
        return False
    return len(item.quotes) < 2 or english.pause_each(text) == "word"


def _without_places(text: str) -> str:
    """Without the words that are about the surroundings, not the voice ("a quiet room")."""
    return re.sub(
        r"\b(?:in|inside|from|at) (?:a|an|the) (?:\w+[ -]){0,3}(?:room|hall|street|cafe|park|church|cathedral|"
        r"kitchen|office|place|house|library|cave)\b",
        " ",
        text,
    )


def _invented(item: Item) -> str:
    """What somebody says of whom no words are given: a plain sentence from the prompt's own content."""
    match = re.search(
        r"\b(?:about|of|on|describing|explaining|announcing|discussing)\s+((?:[\w'-]+\s*){1,8})", item.text
    )
    topic = match.group(1).strip() if match else ""
    greets = re.search(r"\bgreet|\bwelcom|\bintroduc", item.text.lower())
    if greets:
        return "Hello, and welcome."
    if re.search(r"\bcount", item.text.lower()):
        return "One, two, three, four, five."
    return f"Let me tell you about {topic}." if topic else "This is what I wanted to tell you."
