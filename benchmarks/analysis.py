"""How long coherence by every slice takes, with both intervals: 10,000 tests, 7 systems, 630,000 answers in memory.

    python -m benchmarks.analysis [--tests 10000] [--systems 7] [--repeats 5] [--quick]

Slices: all, stage, audio type, family, and each two of them crossed, for every system.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator

import numpy as np
import polars as pl

from benchmarks.measured import REPEATS, Line, report, spread
from torus_ray.bank.schema import AUDIO_TYPES, FAMILIES, STAGES
from torus_ray.stats.coherence import coherences

LIMITS_S = {1_000: 2, 10_000: 10}
COLUMNS = ("stage", "audio_type", "family")
SLICES = [("system",), *(("system", *by) for count in (1, 2) for by in itertools.combinations(COLUMNS, count))]
QUESTIONS = 3


def answers(tests: int, systems: int) -> pl.DataFrame:
    """Answers as runs leave them: each test with its own difficulty, its type, and families drawn for its questions."""
    rng = np.random.default_rng(0)
    each = len(STAGES) * QUESTIONS
    test = np.repeat(np.arange(tests), each)
    place = np.tile(np.arange(each), tests)
    family = rng.integers(len(FAMILIES), size=tests * each)
    frames = []
    for system in range(systems):
        share = rng.beta(2, 2, size=tests)[test]
        frames.append(
            pl.DataFrame(
                {
                    "system": pl.Series([f"system-{system}"]).new_from_index(0, tests * each),
                    "arm": pl.Series(["native"]).new_from_index(0, tests * each),
                    "test": pl.Series([f"test-{number:05d}" for number in range(tests)]).gather(test),
                    "audio_type": pl.Series(AUDIO_TYPES).gather(test % len(AUDIO_TYPES)),
                    "stage": pl.Series(STAGES).gather(place // QUESTIONS),
                    "question": pl.Series(["q1", "q2", "q3"]).gather(place % QUESTIONS),
                    "family": pl.Series(FAMILIES).gather(family),
                    "status": pl.Series(["ok"]).new_from_index(0, tests * each),
                    "correct": rng.random(tests * each) < share,
                }
            )
        )
    return pl.concat(frames)


def lines(tests: int, systems: int, repeats: int) -> Iterator[Line]:
    frame = answers(tests, systems)
    for resamples, limit in LIMITS_S.items():
        seconds, cpu = [], []
        for _ in range(repeats):
            start, spent = time.perf_counter(), time.process_time()
            found = coherences(frame, SLICES, resamples=resamples)
            seconds.append(time.perf_counter() - start)
            cpu.append(time.process_time() - spent)
        groups = sum(table.height for table in found)
        note = f"{groups} groups, {frame.height:,} answers; CPU {spread(cpu).text(1)} s"
        yield Line(f"coherence by every slice, {resamples:,} resamples", spread(seconds), "s", limit, True, 2, note)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=10_000)
    parser.add_argument("--systems", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--quick", action="store_true", help="500 tests, once")
    given = parser.parse_args()
    tests, repeats = (500, 1) if given.quick else (given.tests, given.repeats)
    return report(f"Analysis, {tests:,} tests, {given.systems} systems", lines(tests, given.systems, repeats), repeats)


if __name__ == "__main__":
    raise SystemExit(main())
