"""The objective numbers of an arm: WER, CM, KL, FAD, FD and the kernel distance, from its measures (METRICS 3-7, 11).

Each number carries its convention and backbone as its name, what it rests on (n of expected, failed), an interval over
tests, and its reference. What is undefined is None with a reason. Those stored in `distances` stand while the key of
all that they are made of holds; the others are made by MAKERS.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torus_ray.bank.digest import sha256_of
from torus_ray.bank.schema import STAGES
from torus_ray.errors import InputError
from torus_ray.report.makers import MAKERS, SET_METRICS, Transcripts, is_itself
from torus_ray.report.measured import Measured, Place, measured_of, together
from torus_ray.report.number import ALL_STAGES, HEADINGS, LATER_STAGES, Number, from_row
from torus_ray.report.references import reference_of
from torus_ray.report.runs import Run

FORMULAS = 1
"""Counted up when a number changes for the same rows: stored numbers are then made anew."""


# --- of runs ----------------------------------------------------------------------------------------------------------


def line_numbers(runs: Sequence[Run], reference: str | None = None) -> tuple[Number, ...]:
    """The numbers of one line: one arm in one or more seeds, no control. Empty where nothing was measured.

    reference: as references.named gives it; None for the one of the runs' own run.json.
    """
    return _line_numbers(runs, reference, _stored(runs[0]) if len(runs) == 1 else {})


def _line_numbers(
    runs: Sequence[Run], reference: str | None, stored: Mapping[str, Sequence[Number]]
) -> tuple[Number, ...]:
    if runs[0].manifest.control is not None or not any(run.manifest.measures for run in runs):
        return ()
    arm = together([measured_of(run) for run in runs])
    return tuple(numbers(arm, reference_of(runs[0], reference), _transcripts(runs[0]), stored))


def rows_to_store(run: Run) -> list[dict[str, Any]]:
    """Rows of `distances` for the numbers of a run that are not stored yet."""
    manifest, stored = run.manifest, _stored(run)
    return [
        number.as_row(manifest.system, manifest.arm, manifest.seed)
        for number in _line_numbers([run], None, stored)
        if number.key not in stored
    ]


def stored_and_anew(run: Run) -> list[tuple[Number, Number]]:
    """The stored numbers of a run that still belong to its rows, each beside the same made anew."""
    stored = {(n.key, n.convention): n for found in _stored(run).values() for n in found}
    anew = _line_numbers([run], None, {}) if stored else ()
    return [
        (stored[number.key, number.convention], number) for number in anew if (number.key, number.convention) in stored
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
    if any(n.stages != ALL_STAGES for n in every):
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


# --- of an arm's measures ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Numbers that are made together, and the key of all that they are made of."""

    key: str
    make: Callable[[], list[Number]]


def tasks(measured: Measured, reference: Measured | None, transcripts: Transcripts | None) -> list[Task]:
    """All that can be made of an arm's measures. reference: None where distances have nothing to be taken to.
    transcripts: None where they are not to be had."""
    made = []
    for measure, info in measured.measures.items():
        for metric in info.metrics:
            for stages, part, other in _parts(metric, measured, reference):
                places = sorted(part.clips)
                content = {
                    "formulas": FORMULAS,
                    "metric": metric,
                    "measure": measure,
                    "stages": stages,
                    "clips": _content(part, measure, places),
                    "transcripts": _words(transcripts) if metric == "wer" else None,
                    "reference": _reference_content(other, measure) if metric in SET_METRICS else None,
                }
                make = partial(MAKERS[metric], part, other, transcripts, measure, stages)
                made.append(Task(sha256_of(content), make))
    return made


def numbers(
    measured: Measured,
    reference: Measured | None,
    transcripts: Transcripts | None,
    stored: Mapping[str, Sequence[Number]] | None = None,
) -> list[Number]:
    """The numbers of an arm, those already made (`stored`, by key) as they are."""

    def made(task: Task) -> Sequence[Number]:
        known = (stored or {}).get(task.key)
        return known or [replace(number, key=task.key) for number in task.make()]

    # Nearly all of it is spent inside numpy, which lets other threads run.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [number for part in pool.map(made, tasks(measured, reference, transcripts)) for number in part]
    order = {metric: at for at, metric in enumerate(HEADINGS)}
    return sorted(found, key=lambda n: (order.get(n.metric, len(order)), n.stages != ALL_STAGES))


# --- which clips ------------------------------------------------------------------------------------------------------


def _parts(
    metric: str, measured: Measured, reference: Measured | None
) -> Iterator[tuple[str, Measured, Measured | None]]:
    """All stages; and for distances the later two, where stage 1 has clips in common with the reference (DESIGN 8)."""
    tests = {place[0] for place in measured.clips}
    other = reference.only(tests) if reference else None
    yield ALL_STAGES, measured, other
    if metric not in SET_METRICS or other is None or is_itself(measured, other):
        return
    theirs = {facts.clip for place, facts in other.clips.items() if place[1] == STAGES[0] and facts.clip}
    shared = any(facts.clip in theirs for place, facts in measured.clips.items() if place[1] == STAGES[0])
    if shared:
        yield LATER_STAGES, measured.only(tests, STAGES[1:]), other.only(tests, STAGES[1:])


def _words(transcripts: Transcripts | None) -> list[Any] | None:
    return None if transcripts is None else sorted([*at, text] for at, text in transcripts.items())


def _content(side: Measured, measure: str, places: Sequence[Place]) -> list[Any]:
    found = []
    for place in places:
        row, facts = side.row(measure, place), side.clips[place]
        outcome = [row["key"], row["status"], row["reason"]] if row else None
        found.append([*place, facts.audio_type, facts.clip, facts.rendered, outcome])
    return found


def _reference_content(reference: Measured | None, measure: str) -> list[Any] | None:
    if reference is None:
        return None
    info = reference.measures.get(measure)
    return [reference.name, info.fingerprint if info else None, _content(reference, measure, sorted(reference.clips))]
