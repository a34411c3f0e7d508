"""Errors that are meant for people: what is wrong, where, what was expected, how to mend it."""

from __future__ import annotations

from typing import ClassVar


class TorusError(Exception):
    """A condition that a person has to put right. The command line prints :meth:`render` and exits with `exit_code`.

    message: what is wrong. where: file, JSON path, unit or option. expected: what would be right. mend: what to do.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, where: str = "", expected: str = "", mend: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected
        self.mend = mend

    def render(self) -> str:
        """One block of text, a line for each thing that is known, without a traceback."""
        told = (("  where", self.where), ("  expected", self.expected), ("  mend", self.mend))
        return "\n".join([f"error: {self.message}", *(f"{name}: {value}" for name, value in told if value)])

    def __str__(self) -> str:
        return self.render().removeprefix("error: ")


class InputError(TorusError, ValueError):
    """Something given to a command or a function is wrong: nothing has been started. To Python it is a ValueError."""
