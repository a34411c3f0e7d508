"""The objective numbers of the lines of a table: those stored in `distances` where they still hold, else made anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from torus_ray.bank.schema import STAGES
from torus_ray.errors import InputError
from torus_ray.report.makers import Transcripts
from torus_ray.report.measured import measured_of, together
from torus_ray.report.number import Number, from_row
from torus_ray.report.numbers import numbers
from torus_ray.report.references import reference_of
from torus_ray.report.runs import Run


def line_numbers(runs: Sequence[Run], reference: str | None = None, *, anew: bool = False) -> tuple[Number, ...]:
    """The numbers of one line: one arm in one or more seeds, no control. Empty where nothing was measured.

    reference: as references.named gives it; None for the one of the runs' own run.json. anew: whatever is stored.
    """
    if runs[0].manifest.control is not None or not any(run.manifest.measures for run in runs):
        return ()
    stored = _stored(runs[0]) if len(runs) == 1 and not anew else {}
    arm = together([measured_of(run) for run in runs])
    return tuple(numbers(arm, reference_of(runs[0], reference), _transcripts(runs[0]), stored))


def rows_to_store(run: Run, reference: str | None = None) -> list[dict[str, Any]]:
    """Rows of `distances` for the numbers of a run that are not stored yet."""
    manifest = run.manifest
    known = {number.key for found in _stored(run).values() for number in found}
    return [
        number.as_row(manifest.system, manifest.arm, manifest.seed)
        for number in line_numbers([run], reference)
        if number.key not in known
    ]


def notes_of(lines: Mapping[str, Sequence[Number]]) -> list[str]:
    """What has to be said below the numbers of some lines (by their label)."""
    every = [number for found in lines.values() for number in found]
    if not every:
        return []
    names = sorted({n.reference for n in every if n.reference})
    notes = []
    if names:
        notes.append(
            f"KL, FAD, FD and MMD2: distances to {', '.join(names)} (- where it is that itself), over the tests of the "
            "line. Floor: what sampling alone makes of two sets of this size. j: delete-one-test jackknife."
        )
    if any(n.reason == "no_reference" for n in every):
        notes.append("No distances without a reference: --reference RUN[:ARM] or a pack.")
    if any(n.stages != "S1-S3" for n in every):
        notes.append("S2+S3: without stage 1, whose clips are the reference's own.")
    for label, found in lines.items():
        why: dict[str, int] = defaultdict(int)
        for number in found:
            for reason, count in number.details.get("why", {}).items():
                why[reason] = max(why[reason], count)
        if why:
            told = ", ".join(f"{count} {reason}" for reason, count in sorted(why.items()))
            notes.append(f"{label}: clips without a measure: {told}.")
    return notes


def _stored(run: Run) -> dict[str, list[Number]]:
    found: dict[str, list[Number]] = defaultdict(list)
    for row in run.rows("distances").iter_rows(named=True):
        found[row["key"]].append(from_row(row))
    return found


def _transcripts(run: Run) -> Transcripts | None:
    """The sealed words of the bank; None where the run's copy of it cannot be read."""
    try:
        bank = run.bank
    except InputError:
        return None
    spoken = {(test.id, stage): test.stage(stage).transcript for test in bank.tests for stage in STAGES}
    return {at: text for at, text in spoken.items() if text is not None}
