"""Numbers, counts, ordinals, durations, intervals and moments in English text."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_NUMBER_WORDS = {word: value for value, word in enumerate(_UNITS)} | {
    word: 10 * value for value, word in enumerate(_TENS, start=2)
}
_ORDINALS = {
    word: value
    for value, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
        ],
        start=1,
    )
}
_VAGUE = {
    "couple": 2,
    "pair": 2,
    "few": 3,
    "several": 4,
    "some": 3,
    "handful": 5,
    "many": 7,
    "dozen": 12,
    "half-dozen": 6,
}
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_ONE_OF = "|".join(sorted([*_NUMBER_WORDS, "a hundred", "hundred"], key=len, reverse=True))
NUMBER = rf"(?:\d+(?:\.\d+)?(?:/\d+)?|(?:(?:{_ONE_OF})\b(?:[ -](?:{_ONE_OF})\b)*(?: and a (?:half|quarter))?))"
"""A pattern for a number in digits or words; :func:`number` reads what it matched."""


def number(text: str) -> float | None:
    """A number from digits or words: "3", "1/2", "2.5", "twenty-four", "one hundred and ten", "two and a half",
    "half"."""
    text = text.strip().lower()
    if re.fullmatch(r"\d+/[1-9]\d*", text):
        over, under = text.split("/")
        return int(over) / int(under)
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    fixed = {
        "a": 1.0,
        "an": 1.0,
        "a single": 1.0,
        "single": 1.0,
        "half": 0.5,
        "half a": 0.5,
        "a half": 0.5,
        "quarter": 0.25,
    }
    fixed |= {"a quarter": 0.25, "quarter of a": 0.25, "a quarter of a": 0.25}
    if text in fixed:
        return fixed[text]
    extra = 0.0
    for tail, value in ((" and a half", 0.5), (" and a quarter", 0.25)):
        if text.endswith(tail):
            text, extra = text[: -len(tail)], value
    total = 0
    words = [w for w in re.split(r"[ -]+", text) if w not in ("and", "a")]
    if not words:
        return None
    for word in words:
        if word == "hundred":
            total = max(total, 1) * 100
        elif word in _NUMBER_WORDS:
            total += _NUMBER_WORDS[word]
        else:
            return None
    return total + extra


def ordinal(word: str) -> int | None:
    """1 for "first" or "1st", ..., -1 for "last" or "final", -2 for "second to last"; None for anything else."""
    word = word.strip().lower()
    if word in ("last", "final"):
        return -1
    if word in ("second to last", "second-to-last", "penultimate", "next to last"):
        return -2
    match = re.fullmatch(r"(\d+)(?:st|nd|rd|th)", word)
    return int(match.group(1)) if match else _ORDINALS.get(word)


def ordinals(text: str) -> tuple[int, ...]:
    """Every ordinal in the text in order; "second" is one only where it is no unit of time ("the second knock")."""
    text = text.lower()
    found = []
    pattern = (
        r"\b(second[- ]to[- ]last|penultimate|\d+(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|"
        r"eighth|last|final)\b"
    )
    for match in re.finditer(pattern, text):
        before, after = text[: match.start()].split()[-1:], text[match.end() :].split()[:1]
        word = match.group(1)
        if word == "second" and not (before and before[0] in ("the", "a", "this", "that") and after):
            continue
        if word in ("first", "second", "last") and after and re.match(r"seconds?\b|half|few|\d", after[0]):
            continue
        value = ordinal(word)
        if value is not None:
            found.append(value)
    return tuple(found)


def count(text: str) -> int | None:
    """How many events a phrase asks for: "three knocks", "barks twice", "a couple of", "four times", "a single"; else
    None.

    Numbers that are times, tempos, meters or ordinals do not count.
    """
    text = re.sub(r"\bhalf a dozen\b", "six", text.lower())
    text = re.sub(r"\b(?:a|one) dozen\b", "twelve", text)
    match = re.search(r"\b(once|twice|thrice)\b(?! as)", text)
    if match:
        return _TIMES[match.group(1)]
    match = re.search(rf"\b({NUMBER})[ -](?:more )?times?\b(?! as)", text)
    if match:
        value = number(match.group(1))
        return None if value is None else int(value)
    if re.search(
        r"\b(?:a )?(?:single|lone|solitary|one)\b(?![- ]?(?:second|minute|half|hundred|beat|octave|semitone))", text
    ):
        other = _plain_number(re.sub(r"\bone\b", " ", text))
        return 1 if other is None else other
    other = _plain_number(text)
    if other is not None:
        return other
    match = re.search(r"\b(couple|pair|few|several|handful|many|half-dozen|dozen)\b(?! of seconds| seconds)", text)
    return _VAGUE[match.group(1)] if match else None


_MEASURES = (
    r"seconds?|secs?|s\b|ms\b|milliseconds?|minutes?|bpm|beats? per|hz|khz|db|decibels?|percent|%|semitones?|"
    r"octaves?|meters?|"
    r"metres?|feet|miles?|bars?\b|beats? (?:per|to)|/|quarter|half|o'clock|times|voices?|years?|part\b"
)


def _plain_number(text: str) -> int | None:
    for match in re.finditer(rf"\b({NUMBER})\b(?![-.]?\d)[- ]*", text):
        rest = text[match.end() :]
        before = text[: match.start()].rstrip()
        if (
            re.match(_MEASURES, rest)
            or before.endswith(("/", "every", "#", "at"))
            or re.match(r"(?:st|nd|rd|th)\b", rest)
        ):
            continue
        value = number(match.group(1))
        if value is not None and value == int(value) and 0 < value <= 40:
            return int(value)
    return None


_SECONDS = {"second": 1.0, "sec": 1.0, "s": 1.0, "minute": 60.0, "min": 60.0, "millisecond": 1e-3, "ms": 1e-3}
_UNIT = r"(milliseconds?|ms|seconds?|secs?|minutes?|mins?|s)\b"
LENGTH = rf"({NUMBER}|half(?: of)? a|a quarter of a|quarter of a|half|a half|a couple of|a few|a|an|one)[- ]*{_UNIT}"


def seconds_of(amount: str, unit: str) -> float | None:
    """Seconds of the two groups that :data:`LENGTH` matched."""
    vague = {"a couple of": 2.0, "a few": 3.0, "half of a": 0.5}
    value = vague.get(amount, number(amount))
    unit = unit if unit in ("s", "ms") else unit.rstrip("s")
    return None if value is None else value * _SECONDS[unit]


def duration_s(text: str) -> float | None:
    """How long something lasts, in seconds: "for two seconds", "a 3-second pause", "lasting half a second"; else None.

    A time at which, or every which, something happens is no duration (see :func:`moment_s`, :func:`interval_s`).
    """
    text = text.lower()
    for match in re.finditer(rf"\b{LENGTH}", text):
        before, after = text[: match.start()].rstrip(), text[match.end() :].lstrip(" -")
        if re.search(r"\b(every|each|after|at|by|within)$|\b(?:first|last|final)$", before):
            continue
        if re.match(
            r"(?:apart|between|mark|in\b|into|later|interval|earlier|intervals|after|before the end|from)", after
        ):
            continue
        return seconds_of(match.group(1), match.group(2))
    return None


def interval_s(text: str) -> float | None:
    """Seconds from one event to the next: "every two seconds", "half a second apart", "at one-second intervals"; else
    None."""
    text = text.lower()
    match = re.search(r"\b(?:every|each) second\b", text)
    if match:
        return 1.0
    for pattern in (
        rf"\b(?:every|each)\s+{LENGTH}",
        rf"\b{LENGTH}[ -]*(?:apart|between|intervals?|gaps?|pauses? between|spacing|of silence between)",
    ):
        match = re.search(pattern, text)
        if match:
            return seconds_of(match.group(1), match.group(2))
    if re.search(r"\bin (?:quick|rapid) succession\b|\brapid(?:ly)?\b|\bquick(?:ly)?\b", text):
        return 0.22
    return None


@dataclass(frozen=True)
class Moment:
    """A place in time: `seconds` from the start, or from the end when `from_end`."""

    seconds: float
    from_end: bool = False


def moment(text: str) -> Moment | None:
    """When something happens: "after two seconds", "at the three-second mark", "two seconds in", "in the last
    second"."""
    text = text.lower()
    match = re.search(rf"\b(?:in|during|for|over|from|of)?\s*the (?:last|final)\s+(?:{LENGTH}|(second)\b)", text)
    if match:
        value = 1.0 if match.group(3) else seconds_of(match.group(1), match.group(2))
        return None if value is None else Moment(value, from_end=True)
    match = re.search(rf"\b{LENGTH}\s+(?:before the end|from the end)", text)
    if match:
        value = seconds_of(match.group(1), match.group(2))
        return None if value is None else Moment(value, from_end=True)
    for pattern in (
        rf"\b(?:after|at)\s+(?:the |about |around |roughly )?{LENGTH}",
        rf"\b{LENGTH}[ -]+(?:mark|in\b|into|later)",
    ):
        match = re.search(pattern, text)
        if match:
            value = seconds_of(match.group(1), match.group(2))
            return None if value is None else Moment(value)
    if re.search(r"\bhalf ?way (?:through|in)\b|\bin the middle\b|\bmid(?:point|way)\b", text):
        return Moment(5.0)
    return None
