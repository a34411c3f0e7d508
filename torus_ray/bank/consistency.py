"""What the schema cannot say of a test: ids that differ, six different options, an answer among them."""

from __future__ import annotations

import difflib
import string
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from torus_ray.bank.characters import shown
from torus_ray.bank.positions import Path as JsonPath
from torus_ray.bank.schema import LETTERS, STAGES, Test
from torus_ray.folding import fold

Found = tuple[JsonPath, str, str, str]


def inner_problems(test: Test) -> Iterator[Found]:
    """(path, message, expected, mend) of what is wrong with a test that fits the schema."""
    for stage_name in STAGES:
        stage = test.stage(stage_name)
        seen: set[str] = set()
        for index, question in enumerate(stage.questions):
            at: JsonPath = ("stages", stage_name, "questions", index)
            if question.id in seen:
                message = f"two questions of the stage have the id {question.id!r}"
                yield (*at, "id"), message, "ids q1, q2, q3", "give each its own"
            seen.add(question.id)
            yield from _option_problems(question.options, question.answer, at)


_LOOSE = (string.punctuation + string.whitespace).encode()


def _surely_differ(options: Sequence[str]) -> bool:
    """Whether letters and digits alone tell the options apart: a quick look that spares most of them the folding."""
    together = "\0".join(options)
    if not together.isascii():
        return False
    # Bytes lose characters ten times faster than texts do.
    return len(set(together.lower().encode().translate(None, _LOOSE).split(b"\0"))) == len(options)


def loose_problems(document: Any) -> Iterator[Found]:
    """What options and answers say in a JSON document that does not fit the schema, where they are texts all the
    same."""
    for stage, content in _members(document, "stages", dict):
        for index, question in _members(content, "questions", list):
            options = [option for _, option in _members(question, "options", list)]
            texts = [*options, question.get("answer")] if options else []
            # Of more or fewer options the schema has spoken.
            if len(texts) == len(LETTERS) + 1 and all(isinstance(text, str) and text.strip() for text in texts):
                *six, answer = (text.strip() for text in texts)
                yield from _option_problems(six, answer, ("stages", stage, "questions", index))


def _members(value: Any, name: str, kind: type[dict[str, Any]] | type[list[Any]]) -> Iterator[tuple[Any, Any]]:
    """(key or index, member) of the object or list `name` in the object `value`; nothing where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    if isinstance(found, kind):
        yield from found.items() if isinstance(found, dict) else enumerate(found)


def _option_problems(options: Sequence[str], answer: str, at: JsonPath) -> Iterator[Found]:
    if not _surely_differ(options):
        groups: dict[str, list[int]] = defaultdict(list)
        for index, option in enumerate(options):
            groups[fold(option)].append(index)
        for same in (group for group in groups.values() if len(group) > 1):
            texts = " and ".join(shown(options[index]) for index in same)
            message = f"equal options: {texts} (case, spacing and punctuation do not count)"
            yield (*at, "options", same[1]), message, "six different texts", "change all but one"
    if answer not in options:
        near = [option for option in options if fold(option) == fold(answer)]
        near = near or difflib.get_close_matches(answer, options, n=1)
        mend = f"write it as the option is written: {shown(near[0])}" if near else "copy the text of the right option"
        yield (*at, "answer"), f"the answer {shown(answer)} is none of the options", "the text of one", mend
