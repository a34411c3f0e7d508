"""What the engine itself costs: durable units a second with heads that cost nothing, beside three other ways.

    python -m benchmarks.overhead [--tests 10000] [--repeats 5] [--bank DIR] [--only rows,clips,one_call,...] [--quick]

A unit is one render or one question: 12 a test, in the native arm. Ours is counted from the first dispatch to the last
durable row; start-up is shown beside it. The baselines (benchmarks/baselines/) run in an environment of their own,
locked in requirements/benchmarks.txt and built once under the cache; each is in the best form that was found for it,
and does less: fewer columns, no keys, no clip files, nothing durable between stages.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measured import (
    CACHE,
    REPEATS,
    ROOT,
    Line,
    Run,
    Spread,
    bank_folder,
    child,
    command_of,
    report,
    scratch,
    spread,
)

BASELINES = ROOT / "benchmarks" / "baselines"
LOCK = ROOT / "requirements" / "benchmarks.txt"
ROWS_A_SECOND, CLIPS_A_SECOND = 8_000, 3_000
TIMES_RAY, TIMES_INSPECT = 3, 50
INSPECT_QUESTIONS = 2_000
QUESTIONS = 9
CHUNK = 500
"""Tests that baseline (a) has under way at once."""
POOL = 2
"""Actors a step of baseline (b)."""


def baseline_python() -> str:
    """The interpreter of the baselines' environment, built when it is not there or its lock has changed."""
    home = CACHE / "baselines"
    python, mark = home / "bin" / "python", home / ".lock"
    lock = LOCK.read_text(encoding="utf-8")
    if not mark.is_file() or mark.read_text(encoding="utf-8") != lock:
        from uv import find_uv_bin

        uv = find_uv_bin()
        for arguments in (
            ["venv", "--quiet", "--clear", "--python", sys.executable, str(home)],
            ["pip", "sync", "--quiet", "--python", str(python), "--require-hashes", str(LOCK)],
        ):
            subprocess.run([uv, *arguments], check=True)
        mark.write_text(lock, encoding="utf-8")
    return str(python)


@dataclass
class Bench:
    """Every figure, each measured in processes of its own and kept for the ratios. found: raw, by name."""

    bank: Path
    tests: int
    repeats: int
    found: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    def ours(self, name: str, **fields: Any) -> list[Mapping[str, Any]]:
        def once(folder: Path) -> Any:
            run = Run(str(self.bank), str(folder / "results"), **{"tests": self.tests, **fields})
            return child(command_of(run, folder))

        return self._times(name, once)

    def baseline(self, name: str, *arguments: object) -> list[Mapping[str, Any]]:
        python = baseline_python()

        def once(folder: Path) -> Any:
            script = BASELINES / f"{name}.py"
            bank, count, *rest = arguments
            return child([python, str(script), str(bank), str(count), str(folder), *map(str, rest)])

        return self._times(name, once)

    def _times(self, name: str, once: Callable[[Path], Any]) -> list[Mapping[str, Any]]:
        if name not in self.found:
            self.found[name] = []
            for _ in range(self.repeats):
                with scratch() as folder:
                    self.found[name].append(once(folder))
        return self.found[name]

    # --- lines ---

    def rows(self) -> Iterator[Line]:
        yield from self._durable("rows", "rows alone (512 different clips)", ROWS_A_SECOND)

    def clips(self) -> Iterator[Line]:
        yield from self._durable("clips", "a clip file for each render", CLIPS_A_SECOND, clips=0)

    def _durable(self, name: str, what: str, limit: float, **fields: Any) -> Iterator[Line]:
        found = self.ours(name, **fields)
        units = found[0]["units"]
        yield Line(what, rates(found, dispatched), f"units/s of {units:,}", limit, note=_setup(found))
        cpu = spread(1e6 * told["cpu_s"] / told["units"] for told in found)
        yield Line(f"{what}: the driver's CPU", cpu, "µs/unit")
        grown = spread(told["peak_rss_mb"] for told in found)
        yield Line(f"{what}: the driver's largest resident set", grown, "MB")

    def one_call(self) -> Iterator[Line]:
        yield from self._beside("one_call", "(a) one call a unit, ordered get", CHUNK)

    def ray_data(self) -> Iterator[Line]:
        yield from self._beside("ray_data", "(b) Ray Data map_batches chain", POOL)

    def _beside(self, name: str, what: str, *arguments: object) -> Iterator[Line]:
        ours, theirs = self.ours("rows"), self.baseline(name, self.bank, self.tests, *arguments)
        start = spread(told["start_s"] for told in theirs)
        yield Line(what, rates(theirs, lambda told: told["run_s"]), "units/s", note=f"start {start.text(1)} s")
        whole = rates(theirs, lambda told: told["run_s"] + told["start_s"])
        yield Line(f"{what}, its start included", whole, "units/s")
        ratio = Spread((rates(ours, dispatched).median / rates(theirs, lambda told: told["run_s"]).median,))
        yield Line(f"ours / {what}", ratio, "times", TIMES_RAY, digits=1)
        both = Spread((rates(ours, lambda told: told["durable"] - told["bank_loaded"]).median / whole.median,))
        yield Line(f"ours / {what}, both with their whole start", both, "times", digits=1)

    def inspect(self) -> Iterator[Line]:
        tests = INSPECT_QUESTIONS // QUESTIONS + 1
        ours = self.ours("answers", tests=tests, control="muted")
        theirs = self.baseline("inspect_mock", self.bank, INSPECT_QUESTIONS)
        mine = rates(ours, dispatched)
        other = spread(told["samples"] / told["run_s"] for told in theirs)
        yield Line(f"answers alone, {ours[0]['units']:,} questions", mine, "units/s", note=_setup(ours))
        yield Line(f"(c) inspect_ai, {INSPECT_QUESTIONS:,} questions", other, "samples/s", digits=1)
        yield Line("ours / (c)", Spread((mine.median / other.median,)), "times", TIMES_INSPECT, digits=0)


def dispatched(told: Mapping[str, Any]) -> float:
    """Seconds from the first dispatch to the last durable row."""
    return float(told["durable"] - told["dispatched"])


def rates(found: Sequence[Mapping[str, Any]], seconds: Callable[[Mapping[str, Any]], float]) -> Spread:
    return spread(told["units"] / seconds(told) for told in found)


def _setup(found: Sequence[Mapping[str, Any]]) -> str:
    prepared = spread(told["dispatched"] - told["bank_loaded"] for told in found)
    ray = spread(told["ray_start_s"] for told in found)
    return f"checks, Ray and hosts before it {prepared.text(1)} s, of which Ray's own start {ray.text(1)} s"


PARTS: Mapping[str, Callable[[Bench], Iterator[Line]]] = {
    "rows": Bench.rows,
    "clips": Bench.clips,
    "one_call": Bench.one_call,
    "ray_data": Bench.ray_data,
    "inspect": Bench.inspect,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--bank", type=Path, help="a bank with so many tests; made when it is not there")
    parser.add_argument("--only", default=",".join(PARTS), help="the parts to run")
    parser.add_argument("--quick", action="store_true", help="500 tests, once: to see that it works")
    given = parser.parse_args()
    tests, repeats = (500, 1) if given.quick else (given.tests, given.repeats)
    with scratch() as folder:
        bench = Bench(bank_folder(given.bank, tests, folder), tests, repeats)
        parts = (line for name in given.only.split(",") for line in PARTS[name](bench))
        return report(f"Overhead, {tests:,} tests", parts, repeats)


if __name__ == "__main__":
    raise SystemExit(main())
