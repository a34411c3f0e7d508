"""Where in a JSON text each value stands, so that an error can name a line, and which keys an object holds twice."""

from __future__ import annotations

import bisect
import json
import re

Path = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET = re.compile(_STRING.pattern + r"|[\[\]{}]", re.DOTALL)
_ATOM = re.compile(r"[^\s,\]}]+")


def show_path(path: Path) -> str:
    """A JSON path as people write it: ``stages.edit.questions[1].options``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def deepest(text: str) -> int:
    """The line on which the brackets of a JSON text are first as deep as they ever are."""
    depth = most = at = 0
    for found in _BRACKET.finditer(text):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(found.group(), 0)
        if depth > most:
            most, at = depth, found.start()
    return text.count("\n", 0, at) + 1


class Positions:
    """Lines (from 1) of all values of a well-formed JSON text; `twice` lists (path, line) of repeated keys."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks = [found.start() for found in re.finditer("\n", text)]
        self._offsets: dict[Path, int] = {}
        self.twice: list[tuple[Path, int]] = []
        self._value(0, ())

    def line(self, path: Path) -> int:
        """The line of the value at `path`, or of the nearest thing around it that is there."""
        while path not in self._offsets:
            path = path[:-1]
        return self._line_at(self._offsets[path])

    def _line_at(self, offset: int) -> int:
        return bisect.bisect_left(self._breaks, offset) + 1

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def _value(self, at: int, path: Path) -> int:
        """Record the value that starts at or after `at`; return where it ends."""
        at = self._skip(at)
        self._offsets[path] = at
        opening = self._text[at]
        if opening in "{[":
            return self._members(at + 1, path, keyed=opening == "{")
        found = (_STRING if opening == '"' else _ATOM).match(self._text, at)
        return found.end() if found else at + 1

    def _members(self, at: int, path: Path, *, keyed: bool) -> int:
        """Record the members of an object or a list; return the offset behind its closing bracket."""
        seen: set[str] = set()
        index = 0
        at = self._skip(at)
        while self._text[at] not in "}]":
            step: str | int = index
            if keyed:
                found = _STRING.match(self._text, at)
                assert found is not None, "an object's member begins with its name"
                name: str = json.loads(found.group(), strict=False)
                if name in seen:
                    self.twice.append(((*path, name), self._line_at(at)))
                seen.add(name)
                step = name
                at = self._skip(found.end()) + 1
            at = self._skip(self._value(at, (*path, step)))
            if self._text[at] == ",":
                at = self._skip(at + 1)
            index += 1
        return at + 1
