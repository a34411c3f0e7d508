"""Words to speak: what a text-to-speech head is given (DESIGN 4). The authored transcript is never sent."""

from __future__ import annotations

import re

_QUOTED = re.compile(r"\"([^\"]*)\"|\u201c([^\u201d]*)\u201d")


def quoted_words(text: str) -> str | None:
    """The spans in double quotes (straight or curly), joined by spaces; None where there are none."""
    spans = [" ".join((straight or curly).split()) for straight, curly in _QUOTED.findall(text)]
    return " ".join(span for span in spans if span) or None


def words_to_speak(*, prompt: str, before: str | None, caption: str | None) -> str | None:
    """The words for one stage: those quoted in its prompt, else `before` (native arm: the words of the stage before),
    else those quoted in the caption (self-caption arm). None: `refused: no_words`."""
    return quoted_words(prompt) or before or (quoted_words(caption) if caption else None)
