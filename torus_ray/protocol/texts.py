"""The versioned texts that heads are sent: the six-option template, the caption instruction, the self-caption prompt.

They lie as files beside this module; a card may override each. A text is part of the request, so of its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

VERSIONS = {"question": "v1", "caption_instruction": "v1", "self_caption": "v1"}

SILENT_CONTROL_S = 1.0
"""Seconds of digital silence that the muted control plays (paper 3.2)."""


@cache
def _shipped(name: str) -> str:
    file = resources.files("torus_ray.protocol").joinpath("wording", f"{name}.{VERSIONS[name]}.txt")
    return file.read_text(encoding="utf-8").strip()


@dataclass(frozen=True)
class Texts:
    """The three texts in force for one system."""

    question: str
    caption_instruction: str
    self_caption: str

    def ask(self, question: str, options: Sequence[str]) -> str:
        """A question and its six options, in the order shown, as they are sent."""
        return _fill(self.question, question=question, **dict(zip("abcdef", options, strict=True)))

    def edit_by_caption(self, caption: str, edit_prompt: str) -> str:
        """What G gets in a self-caption arm: U's caption of the clip before, and the edit prompt (paper 4.3)."""
        return _fill(self.self_caption, caption=caption.strip(), edit_prompt=edit_prompt)


def texts_of(
    question: str | None = None, caption_instruction: str | None = None, self_caption: str | None = None
) -> Texts:
    """The shipped texts, each replaced where a card says so."""
    return Texts(
        question or _shipped("question"),
        caption_instruction or _shipped("caption_instruction"),
        self_caption or _shipped("self_caption"),
    )


def _fill(template: str, **values: str) -> str:
    pieces = _pieces(template, tuple(values))
    return "".join([values[piece] if at % 2 else piece for at, piece in enumerate(pieces)])


@lru_cache(maxsize=32)
def _pieces(template: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The text before the first field, that field, the text after it, and so on. What names no field is text."""
    # The template alone is looked through: a brace inside a caption or an option is text, never a field.
    pieces = [""]
    rest = template
    while rest:
        before, brace, after = rest.partition("{")
        pieces[-1] += before
        name, closed, tail = after.partition("}")
        if closed and name in names:
            pieces += [name, ""]
            rest = tail
        else:
            pieces[-1] += brace
            rest = after
    return tuple(pieces)
