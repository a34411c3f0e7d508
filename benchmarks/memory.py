"""What a long run holds: the driver's private memory, the object store, and large clips to disk.

    python -m benchmarks.memory [--tests 10000] [--clips 1000] [--repeats 5] [--bank DIR] [--quick]

Growth is the largest private memory (USS, looked at four times a second) of a driver with many tests minus that of one
with 48, each a whole run on zero-cost heads in a process of its own, from the first dispatch on, its bank included.
What of it is there at the first dispatch (the bank, the graph) and what the run adds stand beside it. Large clips are
noise of 600 KB a file, each rendered, sent out again for its edit and its questions, and synced to disk.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measured import REPEATS, Line, Run, bank_folder, child, command_of, report, scratch, spread

FEW = 48
GROWTH_MB = 150
STORE_GROWTH_MB = 50
CLIPS_A_SECOND = 150
CLIP_FRAMES = 300_000
"""Of 16-bit noise: 600 KB."""


def run(bank: Path, tests: int, **fields: Any) -> Any:
    with scratch() as folder:
        results = folder / "results"
        told = child(command_of(Run(str(bank), str(results), tests=tests, sample=True, **fields), folder))
        files = list(results.glob("*@*/zero/native/clips/*/*.flac"))
        told["clip_files"] = len(files)
        told["clip_bytes"] = sum(file.stat().st_size for file in files)
        return told


def lines(bank: Path, tests: int, clips: int, repeats: int) -> Iterator[Line]:
    few = [run(bank, FEW) for _ in range(repeats)]
    many = [run(bank, tests) for _ in range(repeats)]
    name = f"from {FEW} to {tests:,} tests"
    grown = spread(b["uss_peak_mb"] - a["uss_peak_mb"] for a, b in zip(few, many, strict=True))
    ready = spread(b["uss_mb"] - a["uss_mb"] for a, b in zip(few, many, strict=True))
    level = spread(told["uss_peak_mb"] for told in few)
    yield Line(f"driver, private memory, {name}", grown, "MB", GROWTH_MB, most=True, note=f"at {FEW}: {level.text()}")
    yield Line("of it there at the first dispatch: the bank, the graph", ready, "MB")
    added = spread(a - b for a, b in zip(grown.values, ready.values, strict=True))
    yield Line("of it added by the run", added, "MB")
    start = spread(b["uss_start_peak_mb"] - a["uss_start_peak_mb"] for a, b in zip(few, many, strict=True))
    yield Line("at most before the first dispatch, while the bank's copy is made", start, "MB")
    stored = spread(b["store_peak_mb"] - a["store_peak_mb"] for a, b in zip(few, many, strict=True))
    yield Line(f"object store, {name}", stored, "MB", STORE_GROWTH_MB, most=True)
    large = [
        run(bank, clips // 3, clips=0, noise=True, frames=CLIP_FRAMES, rate_hz=48_000, batch=4) for _ in range(repeats)
    ]
    size = large[0]["clip_bytes"] / max(1, large[0]["clip_files"]) / 1e3
    rate = spread(told["clip_files"] / (told["durable"] - told["dispatched"]) for told in large)
    yield Line(f"clips of {size:.0f} KB, {large[0]['clip_files']} of them", rate, "clips/s", CLIPS_A_SECOND)
    yield Line("object store with them", spread(told["store_peak_mb"] for told in large), "MB")
    yield Line("spilled with them", spread(told["spilled_mb"] for told in large), "MB", 0, most=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=10_000)
    parser.add_argument("--clips", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--bank", type=Path, help="a bank with so many tests; made when it is not there")
    parser.add_argument("--quick", action="store_true", help="500 tests, 60 clips, once")
    given = parser.parse_args()
    tests, clips, repeats = (500, 60, 1) if given.quick else (given.tests, given.clips, given.repeats)
    with scratch() as folder:
        bank = bank_folder(given.bank, tests, folder)
        return report(f"Memory, {tests:,} tests", lines(bank, tests, clips, repeats), repeats)


if __name__ == "__main__":
    raise SystemExit(main())
