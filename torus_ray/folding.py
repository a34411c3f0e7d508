"""When two texts are the same to a reader: case, spacing and punctuation apart."""

from __future__ import annotations

import re
import unicodedata

_APOSTROPHE = re.compile("['\u2018\u2019\u02bc`\u00b4]")
# A sign before a digit can carry the meaning (2.5 and 25, -3 and 3, 1:30), and so do # + / % & anywhere (C and C#).
_PUNCTUATION = re.compile(
    '[;!?"()\\[\\]{}<>*_~|\u201c\u201d\u00ab\u00bb\u2026\u00a1\u00bf]+|[.,:\\-\u2010-\u2015\u2212](?![0-9])'
)


def fold(text: str) -> str:
    """`text` in NFKC and lower case, without punctuation, single spaces between words."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return " ".join(_PUNCTUATION.sub(" ", _APOSTROPHE.sub("", text.casefold())).split())


def has_phrase(folded: str, phrase: str) -> bool:
    """Whether the folded `phrase` occurs in the `folded` text as whole words. An empty phrase never does."""
    return bool(phrase) and f" {phrase} " in f" {folded} "
