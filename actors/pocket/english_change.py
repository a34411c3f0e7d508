"""What is absent, how much, and what is to become more or less, in English text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .english_numbers import NUMBER, number

_NEGATION = re.compile(
    r"[,;]?\s*\b(?:and\s+|but\s+|with\s+)?(?:without(?:\s+any)?|no|not\s+any|free\s+of|lacking|minus|absent|"
    r"there\s+(?:is|are)\s+no|never\s+any|do\s+not\s+(?:use|add|include)|don['’]t\s+(?:use|add|include))\s+"
    r"(?!longer\b|more\s+than\b|one\b|matter\b)"
    r"((?:(?:\w|['’-])+)(?:\s+(?!and\b|but\b|with\b|then\b|while\b|as\b|at\b|in\b|on\b|for\b|is\b|are\b)(?:\w|"
    r"['’-])+){0,3}"
    r"(?:(?:\s*,\s*|\s+)(?:or|nor|and\s+no|no)\s+(?:(?:\w|['’-])+)(?:\s+(?!and\b|but\b|with\b)\w+)?)*)",
    re.I,
)


def without(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with its "no X", "without X or Y" taken out, and what is said to be absent: ("solo piano", ("drums",
    "bass"))."""
    absent: list[str] = []
    for match in _NEGATION.finditer(text):
        for thing in re.split(r"\s*,\s*(?:or|nor|and no|no)?\s*|\s+(?:or|nor|and no|no)\s+", match.group(1)):
            thing = re.sub(r"^(?:any|a|an|the|other)\s+", "", thing.strip().lower())
            if thing:
                absent.append(thing)
    kept = re.sub(r"\s+(?=[,;.])", "", _NEGATION.sub(" ", text))
    return re.sub(r"\s{2,}", " ", kept).strip(" ,"), tuple(absent)


def is_negated(text: str, word: str) -> bool:
    """Whether `word` is among what the text says to be absent."""
    return any(re.search(rf"\b{re.escape(word.lower())}", thing) for thing in without(text)[1])


_DEGREES = (
    (r"\b(?:barely|hardly|faintly|a tiny bit|a hair|just a touch)\b", 0.3),
    (r"\b(?:slightly|a little|a bit|a touch|somewhat|mildly|subtly|gently|a shade)\b", 0.5),
    (r"\b(?:noticeably|clearly|considerably|significantly|distinctly|quite|rather)\b", 1.4),
    (r"\b(?:much|far|very|a lot|greatly|strongly|really|way|dramatically|substantially)\b", 1.8),
    (r"\b(?:extremely|drastically|enormously|incredibly|as \w+ as possible|completely|hugely)\b", 2.5),
)


def degree(text: str) -> float:
    """How strong a change or property is: 0.3 barely, 0.5 slightly, 1 unmarked, 1.4 noticeably, 1.8 much, 2.5
    extremely."""
    text = text.lower()
    for pattern, value in _DEGREES:
        if re.search(pattern, text):
            return value
    return 1.0


@dataclass(frozen=True)
class Amount:
    """A measured amount. unit: dB, semitone (octaves are 12), percent, times, Hz, bpm or second."""

    value: float
    unit: str


_AMOUNTS: tuple[tuple[str, str, float], ...] = (
    (rf"({NUMBER}|an?)\s*-?(?:decibels?|db)\b", "dB", 1.0),
    (rf"({NUMBER}|an?|half an?)[ -]?octaves?\b", "semitone", 12.0),
    (rf"({NUMBER}|a|half a)[ -]?(?:semitones?|half[- ]steps?)\b", "semitone", 1.0),
    (rf"({NUMBER}|a)[ -]?whole[- ](?:tones?|steps?)\b", "semitone", 2.0),
    (rf"({NUMBER})\s*(?:percent\b|%)", "percent", 1.0),
    (rf"({NUMBER})\s*(?:times|x)\b", "times", 1.0),
    (rf"({NUMBER})\s*khz\b", "Hz", 1000.0),
    (rf"({NUMBER})\s*(?:hz|hertz)\b", "Hz", 1.0),
    (rf"({NUMBER})\s*(?:bpm|beats? (?:per|a) minute)\b", "bpm", 1.0),
)
_INTERVAL_NAMES = {
    "minor third": 3,
    "major third": 4,
    "fourth": 5,
    "fifth": 7,
    "tritone": 6,
    "whole tone": 2,
    "half tone": 1,
}


def amounts(text: str) -> tuple[Amount, ...]:
    """Every measured amount of the text, by kind: dB, semitones, percent, times, Hz, bpm."""
    text = text.lower()
    found = []
    for pattern, unit, scale in _AMOUNTS:
        for match in re.finditer(rf"\b{pattern}", text):
            value = number({"half an": "half", "half a": "half"}.get(match.group(1), match.group(1)))
            if value is not None:
                found.append(Amount(value * scale, unit))
    for name, semitones in _INTERVAL_NAMES.items():
        if re.search(rf"\b(?:a|by a|up a|down a|an?) (?:perfect )?{name}\b", text):
            found.append(Amount(float(semitones), "semitone"))
    return tuple(found)


def amount(text: str, unit: str) -> float | None:
    """The first amount of that unit (see :class:`Amount`), or None."""
    return next((a.value for a in amounts(text) if a.unit == unit), None)


def ratio(text: str) -> float | None:
    """A factor: "twice as fast" 2, "half speed" 0.5, "double the tempo" 2, "three times as loud" 3, "by 20 percent"
    more or less 1.2 or 0.8, "to 80%" 0.8; None when no factor is named."""
    text = text.lower()
    match = re.search(rf"\b({NUMBER})\s*times\s+(?:as|the|its|slower|faster|more|normal)", text)
    if match:
        value = number(match.group(1))
        slower = re.search(r"times\s+(?:as slow|slower)", text)
        return None if not value else (1 / value if slower else value)
    percent = amount(text, "percent")
    if percent is not None:
        if re.search(r"\b(?:to|at)\s+(?:about |around |only )?\S+\s*(?:percent|%)", text):
            return percent / 100
        down = re.search(
            r"\b(?:slow(?:er|s)?|quiet\w*|soft\w*|lower\w*|less|reduc\w+|decreas\w+|shorter|down|drop\w*|cut|weaker|"
            r"dimmer)\b",
            text,
        )
        return max(0.05, 1 - percent / 100) if down else 1 + percent / 100
    if re.search(
        r"\b(?:half|halve[sd]?|halving)\b(?![ -](?:a|an|way|second|step|of|the way|beat|note))|\bhalf (?:as|the|its|"
        r"of its|of the) (?:fast|slow|loud|quiet|high|long|short|speed|tempo|volume|rate|pace|length|level)",
        text,
    ):
        return 0.5
    if re.search(r"\bquarter (?:speed|of (?:the|its) (?:speed|tempo|volume))|\ba quarter as\b", text):
        return 0.25
    if re.search(r"\btwice\s+(?:as|the|its)\s+slow\w*|\btwice as slow", text):
        return 0.5
    if re.search(r"\btwice\s+(?:as|the|its)\b|\bdoubl(?:e|es|ed|ing)\b(?! bass| reed)", text):
        return 2.0
    if re.search(r"\btripl(?:e|es|ed|ing)\b(?! meter| time)", text):
        return 3.0
    return None


@dataclass(frozen=True)
class Comparative:
    """A wish for more or less of a property.

    property: level, speed, pitch, brightness, distance, duration, reverb, warmth. direction: +1 more, -1 less.
    strength: see :func:`degree`. factor: a named ratio (:func:`ratio`), or None.
    """

    property: str
    direction: int
    strength: float
    factor: float | None


_COMPARATIVES: tuple[tuple[str, str, int], ...] = (
    (
        r"louder|amplif\w+|boost(?:ed|s|ing)?|turn(?:ed)? (?:it |them |the \w+ )?up|(?:raise|increase|crank|bring "
        r"up)\w* (?:up )?the (?:volume|level|loudness|gain)",
        "level",
        1,
    ),
    (
        r"quieter|softer|fainter|attenuat\w+|turn(?:ed)? (?:it |them |the \w+ )?down|(?:lower|reduce|decrease|drop|"
        r"bring down)\w* the (?:volume|level|loudness|gain)",
        "level",
        -1,
    ),
    (
        r"faster|quicker|speed(?:s|ed|ing)?[ -]?(?:it |them |the \w+ )?up|sped[ -]?up|accelerat\w+|(?:raise|"
        r"increase)\w* the (?:tempo|speed|pace)|double[- ]time|double\w* the (?:tempo|speed|pace)|twice the "
        r"(?:speed|tempo)|more rapid(?:ly)?",
        "speed",
        1,
    ),
    (
        r"slower|slow(?:s|ed|ing)?[ -]?(?:it |them |the \w+ )?down|decelerat\w+|(?:lower|reduce|decrease)\w* the "
        r"(?:tempo|speed|pace)|half[- ](?:time|speed)|halve\w* the (?:tempo|speed|pace)|more slowly|slow motion",
        "speed",
        -1,
    ),
    (
        r"higher(?![- ]?(?:volume|tempo|speed))|pitch(?:ed)?[- ]?(?:it |them |the \w+ )?up|(?:raise|increase)\w* "
        r"the (?:pitch|key|voice)|shriller|squeakier|transpose\w* (?:it |them |the \w+ )?up|up an octave",
        "pitch",
        1,
    ),
    (
        r"(?<!the )lower(?!(?: the|ing the)? (?:volume|tempo|speed|level))|deeper|pitch(?:ed)?[- ]?(?:it |them |the "
        r"\w+ )?down|(?:lower|drop|reduce|decrease)\w* the (?:pitch|key|voice)|transpose\w* (?:it |them |the \w+ "
        r")?down|down an octave",
        "pitch",
        -1,
    ),
    (r"brighter|crisper|sharper|tinnier|more treble|clearer", "brightness", 1),
    (r"darker|duller|muffle\w*|more muted|less treble|more muffled", "brightness", -1),
    (r"warmer|fuller|more bass|bassier|boomier", "warmth", 1),
    (r"thinner|colder|less bass", "warmth", -1),
    (r"farther|further(?: away| off| back)|more distant|move\w* away", "distance", 1),
    (r"closer|nearer", "distance", -1),
    (r"longer|lengthen\w*|extend\w*|prolong\w*|stretch\w*", "duration", 1),
    (r"shorter|shorten\w*|trim\w*|briefer", "duration", -1),
    (r"more (?:reverb\w*|echo\w*|spacious)|echoier|wetter", "reverb", 1),
    (r"less (?:reverb\w*|echo\w*|spacious)|dr(?:ier|yer)", "reverb", -1),
)


def comparatives(text: str) -> tuple[Comparative, ...]:
    """Every wish for more or less, in the order of the text."""
    found: list[tuple[int, Comparative]] = []
    lowered = text.lower()
    for pattern, prop, direction in _COMPARATIVES:
        for match in re.finditer(rf"\b(?:{pattern})\b", lowered):
            found.append((match.start(), Comparative(prop, direction, degree(lowered), ratio(lowered))))
    for match in re.finditer(
        r"\b(?:twice|half|\w+ times) as (fast|slow|loud|quiet|high|low|long|short)(?:ly)?\b", lowered
    ):
        prop, sign = {
            "fast": ("speed", 1),
            "slow": ("speed", -1),
            "loud": ("level", 1),
            "quiet": ("level", -1),
            "high": ("pitch", 1),
            "low": ("pitch", -1),
            "long": ("duration", 1),
            "short": ("duration", -1),
        }[match.group(1)]
        factor = ratio(lowered)
        if match.group().startswith("half"):
            sign = -sign
        found.append((match.start(), Comparative(prop, sign, degree(lowered), factor)))
    return tuple(c for _, c in sorted(found, key=lambda pair: pair[0]))
