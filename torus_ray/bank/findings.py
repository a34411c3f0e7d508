"""What a check of a bank has to say, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torus_ray.bank.schema import StageName

Severity = Literal["error", "warning"]
NAMED = 12


@dataclass(frozen=True)
class Finding:
    """One thing to look at. An `error` breaks a rule that scores depend on; a `warning` is for an author.

    test, stage, question: where, as far as it is about one. questions: all that it is about, as "test.stage.question"
    (or "test", "test.stage" where it is about seeds or prompts); empty where test and so on say it.
    """

    severity: Severity
    message: str
    mend: str
    test: str | None = None
    stage: StageName | None = None
    question: str | None = None
    questions: tuple[str, ...] = ()

    def render(self) -> str:
        """One line; of many questions the first dozen."""
        where = ".".join(part for part in (self.test, self.stage, self.question) if part) or "bank"
        more = f" and {len(self.questions) - NAMED} more" if len(self.questions) > NAMED else ""
        named = f" [{', '.join(self.questions[:NAMED])}{more}]" if self.questions else ""
        return f"{self.severity}: {where}: {self.message}{named}; mend: {self.mend}"
