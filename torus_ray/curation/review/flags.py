"""What speaks against a question before a person has looked: the gate's flags, and what `torus bank check` finds."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torus_ray.bank.check import Finding
from torus_ray.bank.digest import question_hash
from torus_ray.bank.schema import STAGES, Test
from torus_ray.curation.folders import FLAGS_FILE

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Flag:
    """One remark. source: gate or check. stage, question: where, None for all of the test or stage.

    current: False where the question was worded otherwise when it was judged.
    """

    source: str
    message: str
    stage: str | None
    question: str | None
    current: bool = True


def read_gate(bank: Path) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """The records of the gate's questions that were flagged or could not be judged, by test id.

    None where there is no file. A line that is no record is logged and left out: flags only advise.
    """
    path = bank / FLAGS_FILE
    found: dict[str, list[Mapping[str, Any]]] = {}
    if not path.is_file():
        return found
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("test"), str):
            logger.warning("%s:%d is no record of the gate and is left out", path, number)
        elif record.get("flagged") is not False:
            found.setdefault(record["test"], []).append(record)
    return found


def gate_flags(test: Test, records: Sequence[Mapping[str, Any]]) -> tuple[Flag, ...]:
    """The gate's records on a test in words."""
    if not records:
        return ()
    now = {f"{name}.{q.id}": question_hash(q) for name in STAGES for q in test.stage(name).questions}
    flags = []
    for record in records:
        stage, question = str(record.get("stage")), str(record.get("question"))
        current = now.get(f"{stage}.{question}") == record.get("question_hash")
        flags.append(Flag("gate", _told(record, current), stage, question, current))
    return tuple(flags)


def check_flags(findings: Sequence[Finding]) -> tuple[Flag, ...]:
    """What the checks say of one test."""
    return tuple(Flag("check", f"{f.message}; {f.mend}", f.stage, f.question) for f in findings)


_SOLVERS = {"muted": "right without hearing anything", "ideal": "wrong with the stage's spec before it"}


def _told(record: Mapping[str, Any], current: bool) -> str:
    rule = f"flagged_{record.get('rule', 'paper')}"
    parts = []
    for solver, what in _SOLVERS.items():
        found = record.get(solver)
        if not isinstance(found, dict):
            continue
        counts = f"{found.get('right')} of {found.get('asks')} right, {found.get('model') or found.get('kind')}"
        if found.get(rule):
            parts.append(f"{what} ({counts})")
        elif found.get(rule) is None:
            parts.append(f"the {solver} solver gave no verdict ({found.get('reason') or counts})")
    repairs = record.get("repairs") or ()
    tried = f"; sent back {len(repairs)} times" if repairs else ""
    earlier = "" if current else "an earlier wording was "
    return earlier + ("; ".join(parts) or "flagged") + tried
