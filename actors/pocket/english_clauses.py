"""Quotes, sentences, and the order in time of the clauses of a prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .english_numbers import moment

FIRST_MASK = 0xE000
"""The character that stands for the first quote: Unicode private use, which no prompt holds."""
_QUOTE = re.compile(
    r"\"([^\"]+)\"|“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|‘((?:[^’]|’(?=\w))+)’(?!\w)"
    r"|(?<![\w’'])'((?:[^']|'(?=\w))+)'(?!\w)"
)


@dataclass(frozen=True)
class Quote:
    """A quoted span: its words without the marks, and where the marked span lies in the text [start, end)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Masked:
    """A text whose quotes are replaced by one private character each (quote i is chr(0xE000 + i))."""

    text: str
    quotes: tuple[Quote, ...]

    def quotes_in(self, part: str) -> tuple[Quote, ...]:
        """The quotes whose mask stands in `part`, in the order they stand there."""
        return tuple(self.quotes[ord(c) - FIRST_MASK] for c in part if 0 <= ord(c) - FIRST_MASK < len(self.quotes))

    def unmask(self, part: str) -> str:
        """`part` with its quotes put back, in straight double marks."""
        return "".join(
            f'"{self.quotes[ord(c) - FIRST_MASK].text}"' if 0 <= ord(c) - FIRST_MASK < len(self.quotes) else c
            for c in part
        )


def quotes(text: str) -> tuple[Quote, ...]:
    """Every quoted span in order: straight or curly, double or single (an apostrophe inside a word opens nothing)."""
    found = []
    for match in _QUOTE.finditer(text):
        inner = next(group for group in match.groups() if group is not None).strip()
        if inner:
            found.append(Quote(inner, match.start(), match.end()))
    return tuple(found)


def mask(text: str) -> Masked:
    """The text with quotes masked. A quote that ends its sentence (stop inside the marks, capital after) leaves the
    stop."""
    found, parts, at = quotes(text), [], 0
    for index, quote in enumerate(found):
        parts.append(text[at : quote.start])
        parts.append(chr(FIRST_MASK + index))
        rest = text[quote.end :].lstrip()
        if quote.text[-1] in ".!?" and rest[:1].isupper():
            parts.append(".")
        at = quote.end
    parts.append(text[at:])
    return Masked("".join(parts), found)


def is_masked_quote(char: str) -> bool:
    """Whether a character stands for a quote."""
    return FIRST_MASK <= ord(char) < FIRST_MASK + 6400


@dataclass(frozen=True)
class Element:
    """A stretch of a prompt and how it stands in time to the element before it.

    relation: `first` (opens the scene), `then` (starts when the one before has ended), `together` (starts with the one
    before), `during` (falls inside the one before), `background` (lies under everything), `next_sentence` (a new
    sentence with no marker: the reader decides whether it is a new event, usually after the one before, or says more
    about it).
    """

    text: str
    relation: str


_THEN = re.compile(
    r"""[,;:]?\s*\b(?:
        (?:and\s+|but\s+)?(?:immediately\s+|right\s+|shortly\s+|soon\s+)?(?:followed|succeeded)(?:\s+(?:immediately|shortly|closely|quickly|directly))?\s+by
      | (?:and\s+|but\s+)?(?:only\s+)?then(?!\s+on)
      | (?:and\s+)?(?:shortly\s+|soon\s+|right\s+|immediately\s+)?after\s+(?:that|this|which|it)
      | (?:and\s+)?after\s*wards?
      | (?:and\s+)?(?:finally|lastly|subsequently)
      | (?:and\s+)?next(?=[,\s]+(?:a|an|the|comes|there|someone|he|she|they|we)\b)
      | (?:and\s+)?(?:ends|ending|finishes|finishing|concludes|concluding|closes|closing)\s+with
          (?=\s+(?:a|an|the|one|two|three|\d)\b)
      | (?:and\s+|just\s+|right\s+)?(?:before|until)
          (?=\s+(?!long\b|the\s+(?:end|next|voice|words?)\b|each\b|every\b|
          (?:dawn|noon|midnight|dinner|breakfast|bed|him|her|it\.)\b)[a-z])
      | (?:and\s+)?(?:leading|giving\s+way|turning|changing)\s+(?:in)?to(?=\s+(?:a|an|the)\b)
    )\b[,:]?\s*""",
    re.I | re.X,
)
_AFTER = re.compile(r"^\s*after\s+(?!that\b|this\b|which\b|it\b)(.+?),\s+(.+)$", re.I)
_LATER = re.compile(
    r"^((?:(?!\bthen\b|\bbefore\b|\bfollowed\b|\bpaus|\bsilence).)+?)\s+(?:right |shortly |just |soon )?after\s+"
    r"(?!that\b|this\b|which\b|it\b|each\b|every\b|another\b|hours\b|dark\b|about\b|around\b|roughly\b|"
    r"(?:\S+ ){0,3}(?:pause|silence|seconds?|moment|beat|gap|while|bars?|measures?)\b)(.+)$",
    re.I,
)
_TOGETHER = re.compile(
    r"""[,;]?\s*\b(?:
        (?:and\s+)?(?:all\s+)?(?:while|whilst|meanwhile|at\s+the\s+same\s+time(?:\s+as)?|simultaneously(?:\s+with)?)
      | as(?=\s+(?:a|an|the|someone|somebody|people|rain|wind|he|she|they|another|two|three|water|birds|
          thunder|traffic)\b)
      | (?:accompanied|joined|backed)\s+by
      | along\s+with | together\s+with | alongside
    )\b[,]?\s*""",
    re.I | re.X,
)
_OVER = re.compile(
    r"""[,;]?\s*\b(?:over|above|on\s+top\s+of|amid|amidst|against(?=\s+(?:(?:a|an|the)\s+)?(?:\w+\s+){0,2}(?:sounds?|noise|roar|
            hum|rain|wind|background|backdrop|crowd|music|traffic|murmur|waves|chatter|static|street|storm|sea|wall\s+of)\b))\s+
        (?=(?:the\s+sound\s+of\s+|sounds\s+of\s+|a\s+(?:background|backdrop|bed)\s+of\s+|a\b|an\b|the\b|some\b|steady\b|gentle\b|soft\b|light\b|heavy\b|quiet\b|
            rain|wind|music|traffic|crickets|waves|birds|birdsong|thunder|static|drums|piano|guitar|strings|crowd|ocean|distant|street|cafe)
        )(?!(?:the|a)\s+(?:phone|telephone|radio|intercom|loudspeaker|course|span|period|first|last|next|whole|megaphone|pa|top)\b)""",
    re.I | re.X,
)
_BACKGROUND = re.compile(
    r"\b(?:in|as) (?:the |a )?(?:far |distant )?(?:back ?ground|backdrop)\b|\bthroughout\b|\bbehind (?:the |a |her|"
    r"him|it|them)|\bunder(?:neath)? (?:it|them|everything|the (?:voice|speech|words|dialogue))"
    r"|\bbeneath\b|\b(?:constant|continuous|steady) (?:background|bed)\b|\bthe whole time\b|\ball along\b|"
    r"\bbackground\b",
    re.I,
)
_DURING = re.compile(r"[,;]?\s*\b(?:interrupted(?:\s+\w+)?\s+by|punctuated\s+by|broken\s+by|during\s+which)\b\s*", re.I)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|;\s+|\n+")


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a (masked) text, without their stops."""
    parts = (part.strip().rstrip(".!?").strip() for part in _SENTENCE.split(text))
    return tuple(part for part in parts if part)


def split(text: str) -> tuple[Element, ...]:
    """The elements of a masked prompt in order of time, each with its relation to the one before.

    Splits at sentence ends and at explicit markers only (then, followed by, before, while, over, with ... in the
    background); "A after B" and "after B, A" come out as B, A. Lists joined by "and" stay whole: see
    :func:`coordinated`.
    """
    found: list[Element] = []
    for sentence in sentences(text):
        pieces = _order_sentence(sentence)
        for index, piece in enumerate(pieces):
            relation = piece.relation
            if index == 0 and relation == "first":
                relation = "next_sentence" if found else "first"
            found.append(Element(piece.text, relation))
    return tuple(found)


def _order_sentence(sentence: str) -> list[Element]:
    leading = _AFTER.match(sentence)
    if leading and moment(sentence) is None and not re.search(r"\bpause|\bsilence", leading.group(1), re.I):
        return _order_sentence(leading.group(1)) + _relabel(_order_sentence(leading.group(2)), "then")
    later = _LATER.match(sentence)
    if later and moment(sentence) is None and not any(map(is_masked_quote, sentence)):
        return _order_sentence(later.group(2)) + _relabel(_order_sentence(later.group(1)), "then")
    leading = re.match(r"^\s*(?:while|as)\s+(.+?),\s+(.+)$", sentence, re.I)
    if leading:
        return _order_sentence(leading.group(1)) + _relabel(_order_sentence(leading.group(2)), "together")
    leading = re.match(r"^\s*(?:over|under|against|behind)\s+(.+?),\s+(.+)$", sentence, re.I)
    if leading:
        return [*_relabel(_order_sentence(leading.group(2)), "first"), Element(leading.group(1), "background")]
    leading = re.match(r"^\s*before\s+(.+?),\s+(.+)$", sentence, re.I)
    if leading:
        return _order_sentence(leading.group(2)) + _relabel(_order_sentence(leading.group(1)), "then")
    elements: list[Element] = []
    for part, marker in _cut(_THEN, sentence):
        relation = "first" if marker is None else "then"
        for piece in _overlaps(part):
            elements.append(Element(piece.text, relation if piece.relation == "first" else piece.relation))
    return elements


def _relabel(elements: list[Element], relation: str) -> list[Element]:
    return [Element(elements[0].text, relation), *elements[1:]] if elements else []


def _cut(pattern: re.Pattern[str], text: str) -> list[tuple[str, str | None]]:
    """Pieces of a text between matches, each with the marker before it; empty pieces are dropped."""
    pieces: list[tuple[str, str | None]] = []
    at, marker = 0, None
    for match in pattern.finditer(text):
        piece = text[at : match.start()].strip(" ,;")
        if piece:
            pieces.append((piece, marker))
        marker, at = match.group().strip(" ,;:").lower(), match.end()
    piece = text[at:].strip(" ,;")
    if piece:
        pieces.append((piece, marker))
    return pieces


def _overlaps(part: str) -> list[Element]:
    found: list[Element] = []
    for during, mark in _cut(_DURING, part):
        for piece, marker in _cut(_TOGETHER, during):
            for core, over in _cut(_OVER, piece):
                relation = "together" if marker else "first"
                relation = "during" if mark and not marker else relation
                if over is not None:
                    relation = "background"
                found.extend(_with_background(core, relation))
    return found


def _with_background(text: str, relation: str) -> list[Element]:
    """In time, "A, with B in the background" is A and B under it; "B in the background" alone is B under everything."""
    match = re.match(
        r"^(.*?\S)[,]?\s+(?:with|and|plus)\s+((?:(?!\bwith\b).)*?\b(?:in the (?:far |distant )?background|behind "
        r"(?:it|her|him|them|the \w+)|underneath|"
        r"under(?:neath)? (?:it|them|the \w+)|throughout|in the distance))\b(.*)$",
        text,
        re.I,
    )
    if match and match.group(1).strip():
        said = f"{match.group(2)}{match.group(3)}".strip()
        rest = [Element(said, "background" if "distance" not in match.group(2) else "together")]
        return [Element(match.group(1), relation), *rest]
    if relation in ("first", "together") and _BACKGROUND.search(text) and not any(map(is_masked_quote, text)):
        return [Element(text, "background")]
    return [Element(text, relation)]


def coordinated(text: str) -> tuple[str, ...]:
    """The members of a list: "a dog barks, a car passes and a bell rings" gives three; a text without a list gives
    itself.

    It cuts at commas and "and"/"plus" before an article, a number or a person; whether the members are events of their
    own is the caller's to judge.
    """
    lead = r"(?=(?:a|an|the|one|two|three|four|five|six|another|some|someone|somebody|people|several|distant|then)\b)"
    parts = re.split(rf"\s*,\s*(?:and\s+|plus\s+|with\s+)?{lead}|\s+(?:and|plus|with)\s+{lead}", text, flags=re.I)
    return tuple(part.strip(" ,") for part in parts if part and part.strip(" ,"))
