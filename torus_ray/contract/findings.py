"""What the contract finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True)
class Finding:
    """One thing asked of one head. found: what came, or why it was not asked; mend: what to do where it failed.

    detail: the traceback of the model's own exception, where there was one.
    """

    host: str
    operation: str
    check: str
    verdict: Verdict
    found: str
    expected: str = ""
    mend: str = ""
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Result:
    """A finding without its place: what a check returns."""

    verdict: Verdict
    found: str
    expected: str = ""
    mend: str = ""
    detail: str = ""


def ok(found: str) -> Result:
    return Result("ok", found)


def skipped(why: str) -> Result:
    return Result("skipped", why)


def failed(found: str, expected: str, mend: str, detail: str = "") -> Result:
    return Result("failed", found, expected, mend, detail)
