"""Reading a question: plain text, numbers in words, and which part of the clip the stem speaks of."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property

from torus_ray.heads import Question

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
NUMBERS: dict[str, float] = {word: float(n) for n, word in enumerate(ONES.split())} | {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
    "hundred": 100,
    "once": 1,
    "twice": 2,
    "thrice": 3,
    "single": 1,
    "pair": 2,
    "couple": 2,
    "double": 2,
    "triple": 3,
    "dozen": 12,
    "none": 0,
    "no": 0,
    "never": 0,
    "half": 0.5,
    "quarter": 0.25,
    "several": 5,
    "lone": 1,
    "solo": 1,
    "duet": 2,
    "trio": 3,
    "quartet": 4,
}
ORDINALS: dict[str, int] = {
    "first": 0,
    "opening": 0,
    "initial": 0,
    "earliest": 0,
    "second": 1,
    "third": 2,
    "fourth": 3,
    "fifth": 4,
    "sixth": 5,
    "last": -1,
    "final": -1,
    "closing": -1,
    "latest": -1,
    "ending": -1,
}
_NUMBER = re.compile(r"\d+(?:\.\d+)?|\b(?:" + "|".join(NUMBERS) + r")\b")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:-|–|to|and|or)\s*(\d+(?:\.\d+)?)")


def plain(text: str) -> str:
    """Lower case, straight quotes, single spaces; thousands of look-alikes made one."""
    text = text.lower().replace("\u2019", "'").replace("\u2018", "'").replace("\u201c", '"').replace("\u201d", '"')
    return re.sub(r"\s+", " ", re.sub(r"[\u2013\u2014]", "-", text)).strip()


def digits(text: str) -> str:
    """Number words made figures: "twenty-one" is 21, "one and a half" 1.5, "half a second" 0.5, "a hundred and
    ten" 110.
    """
    text = re.sub(r"\b(\w+) and a half\b", lambda m: _plus(m, 0.5), text)
    text = re.sub(r"\b(\w+) and a quarter\b", lambda m: _plus(m, 0.25), text)
    text = re.sub(r"three[- ]quarters? of an? |three[- ]quarters? ", "0.75 ", text)
    tens = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    ones = "one|two|three|four|five|six|seven|eight|nine"
    text = re.sub(rf"\b({tens})[- ]({ones})\b", lambda m: f"{NUMBERS[m[1]] + NUMBERS[m[2]]:g}", text)
    text = re.sub(r"\b(?:a|one) hundred(?: and)? (\w+)", lambda m: _hundred(m), text)
    return re.sub(r"\b(?:" + "|".join(NUMBERS) + r")\b", lambda m: f"{NUMBERS[m[0]]:g}", text)


def _plus(match: re.Match[str], part: float) -> str:
    word = match[1]
    if word in NUMBERS:
        return f"{NUMBERS[word] + part:g}"
    return f"{float(word) + part:g}" if word.isdigit() else match[0]


def _hundred(match: re.Match[str]) -> str:
    word = match[1]
    number = NUMBERS.get(word, float(word) if word.replace(".", "").isdigit() else None)
    return f"{100 + number:g}" if number is not None and number < 100 else f"100 {word}"


def interval(text: str) -> tuple[float, float] | None:
    """The numbers that a phrase allows, as (least, most): "two or three" is (2, 3), "over five" (5, inf); None
    without a number.
    """
    text = digits(plain(text))
    found = _RANGE.search(text)
    if found:
        low, high = sorted((float(found[1]), float(found[2])))
        return low, high
    number = _NUMBER.search(text)
    if not number:
        return None
    value = float(number[0])
    if re.search(r"\b(more than|over|above|longer than|at least|or more|or longer|upwards)\b|\+", text):
        return value, math.inf
    if re.search(r"\b(less than|under|below|shorter than|at most|fewer|up to|within|barely)\b", text):
        return 0.0, value
    return value, value


@dataclass(frozen=True)
class Asked:
    """A question made ready for scorers: lower-case stem and options."""

    stem: str
    options: tuple[str, ...]

    @cached_property
    def negated(self) -> bool:
        """Whether the stem asks for what is NOT there."""
        return bool(
            re.search(
                r"\bnot\b(?! (clear|sure))|\bnever\b|\babsent\b|\bmissing\b|\bisn't\b|\bdoesn't\b|n't heard|\bexcept\b",
                self.stem,
            )
        )

    @cached_property
    def ordinals(self) -> tuple[int, ...]:
        """Positions that the stem names, in the order named, 0 the first and -1 the last."""
        # "first half" and "a second" (the unit) are not positions of events.
        text = re.sub(
            (
                r"\b(first|second|last|final) (half|third|quarter|part|seconds?|moments?)\b|\b(per|a|each|"
                r"every|half a|one) second\b"
            ),
            " ",
            self.stem,
        )
        return tuple(ORDINALS[w] for w in re.findall(r"[a-z]+", text) if w in ORDINALS)


def read(question: Question) -> Asked:
    return Asked(plain(question.text), tuple(plain(o).rstrip(".") for o in question.options))


_REGIONS: tuple[tuple[str, tuple[float, float]], ...] = (
    (r"\bfirst half\b", (0.0, 0.5)),
    (r"\b(second|last|latter) half\b", (0.5, 1.0)),
    (r"\bfirst (third|part|seconds?|moments?|quarter)\b", (0.0, 0.33)),
    (r"\b(last|final) (third|part|seconds?|moments?|quarter)\b", (0.67, 1.0)),
    (r"\bmiddle\b|\bhalfway\b|\bmidway\b", (0.33, 0.67)),
    (
        (
            r"\b(at|from|in|near|by) the (very )?(start|beginning|opening|outset)\b|\bto begin with\b|"
            r"\bat first\b|\b(opens?|begins?|starts?) (with|the)\b"
        ),
        (0.0, 0.25),
    ),
    (
        (
            r"\b(at|near|by|towards?) the (very )?(end|close|finish)\b|\bfinally\b|\b(ends?|closes?|"
            r"finishe?s?) (with|the)\b"
        ),
        (0.75, 1.0),
    ),
)


def region(stem: str) -> tuple[float, float] | None:
    """The part of the clip that a stem names, as fractions, or None for the whole."""
    for pattern, span in _REGIONS:
        if re.search(pattern, stem):
            return span
    return None
