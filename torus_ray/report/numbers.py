"""The objective numbers of an arm: WER, CM, KL, FAD, FD and the kernel distance, from its measures (METRICS 3-7, 11).

Each number carries its convention and backbone as its name, what it rests on (n of expected, failed), an interval over
tests, and its reference. What is undefined is None with a reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from torus_ray.bank.digest import sha256_of
from torus_ray.bank.schema import STAGES
from torus_ray.report.makers import MAKERS, SET_METRICS, Transcripts, is_itself
from torus_ray.report.measured import Measured, Place
from torus_ray.report.number import ALL_STAGES, HEADINGS, LATER_STAGES, Number

FORMULAS = 1
"""Counted up when a number changes for the same rows: stored numbers are then made anew."""


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
                make = MAKERS[metric]
                made.append(Task(sha256_of(content), _made(make, part, other, transcripts, measure, stages)))
    return made


def _made(
    make: Any, part: Measured, other: Measured | None, transcripts: Transcripts | None, measure: str, stages: str
) -> Any:
    return lambda: make(part, other, transcripts, measure, stages)


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
    return sorted(found, key=lambda n: (_order(n.metric), n.stages != ALL_STAGES))


def _order(metric: str) -> int:
    return HEADINGS.index(metric) if metric in HEADINGS else len(HEADINGS)


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
