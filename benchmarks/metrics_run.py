"""How long all five metrics of a finished run take: `torus measure` on a copy of one arm that was never measured.

    .venv/bin/python -m benchmarks.metrics_run [--results results] [--arm self-caption] [--repeats 1] [--out FILE.md]

Needs a measured run of two arms, as `torus run pocket` leaves it: one arm's clips are measured anew, the other arm is
what KL, FAD and FD are taken to. Everything counts: the command's own start, Ray's, the hosts', and the intervals.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from torus_ray.report.number import HEADINGS
from torus_ray.store.layout import MANIFEST, SNAPSHOT, find_runs
from torus_ray.store.reader import current_rows

TIMEOUT_S = 1_800


@dataclass(frozen=True)
class Took:
    """One `torus measure`. wall_s: of the whole command. setup_s: until its hosts were up. driver_s, heads_s: CPU
    seconds of the command itself and inside the heads. numbers: of all stages, one for each of HEADINGS."""

    clips: int
    units: int
    wall_s: float
    setup_s: float
    driver_s: float
    heads: dict[str, float]
    numbers: list[dict[str, Any]]

    @property
    def heads_s(self) -> float:
        return sum(self.heads.values())


def unmeasured(run: Path, results: Path) -> Path:
    """A copy of a run as it was before it was measured, in a results folder where nothing can be taken over."""
    bank = run.parents[1]
    copy = results / bank.name / run.parent.name / run.name
    copy.mkdir(parents=True)
    shutil.copy(bank / SNAPSHOT, copy.parents[1])
    shutil.copy(run / MANIFEST, copy)
    shutil.copytree(run / "clips", copy / "clips")
    shutil.copytree(run / "tables", copy / "tables", ignore=shutil.ignore_patterns("measures", "distances", "attempts"))
    return copy


def measure(run: Path, reference: Path, *options: str) -> Took:
    with tempfile.TemporaryDirectory(prefix="torus-bench-") as folder:
        copy = unmeasured(run, Path(folder))
        command = [sys.executable, "-m", "torus_ray.cli", "measure", str(copy), "--json", *options]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [*command, "--reference", str(reference)], stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False
        )
        wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 1):
            raise SystemExit(f"torus measure ended with {done.returncode}")
        told = json.loads(done.stdout)
        attempts = current_rows(copy, "attempts").with_columns(pl.col("unit_id").str.split("measure:").list.last())
        heads = attempts.group_by("unit_id").agg(pl.col("cpu_s").sum()).sort("unit_id")
        clips = current_rows(copy, "renders").filter(pl.col("status") == "ok").height
    (row,) = told["table"]
    numbers = [n for n in row["objective"] if n["metric"] in HEADINGS and n["stages"] == "S1-S3"]
    return Took(
        clips=clips,
        units=attempts.height,
        wall_s=wall_s,
        setup_s=told["systems"][0]["setup_s"],
        driver_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        heads=dict(heads.iter_rows()),
        numbers=numbers,
    )


def lines(found: list[Took]) -> list[str]:
    first, cores = found[0], len(os.sched_getaffinity(0))
    heads = ", ".join(f"{name} {seconds:.1f}" for name, seconds in first.heads.items())
    return [
        f"{first.clips} clips, {first.units} measures, {cores} cores\n",
        "| run | whole command, s | of it until hosts are up, s | CPU in heads, s | CPU of the command, s |",
        "|---|---|---|---|---|",
        *(
            f"| {at} | {took.wall_s:.1f} | {took.setup_s:.1f} | {took.heads_s:.1f} | {took.driver_s:.1f} |"
            for at, took in enumerate(found, 1)
        ),
        f"\nCPU in heads of run 1: {heads}.\n",
        "| number | value | clips |\n|---|---|---|",
        *(f"| `{n['convention']}` | {_shown(n)} | {n['n']}/{n['expected']} |" for n in first.numbers),
    ]


def _shown(number: dict[str, Any]) -> str:
    return str(number["reason"]) if number["value"] is None else f"{number['value']:.4g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--results", type=Path, default=Path("results"), help="a results or system's folder")
    parser.add_argument("--arm", default="self-caption", help="whose clips are measured")
    parser.add_argument("--measures", default="embedded", help="the cards that measure")
    parser.add_argument("--inline", action="store_true", help="without Ray: to try this script")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    runs = {run.name: run.absolute() for run in find_runs(asked.results) if run.name in ("native", "self-caption")}
    if asked.arm not in runs or len(runs) < 2:
        raise SystemExit(f"{asked.results} holds no run of two arms; `torus run pocket` makes one")
    (reference,) = (run for arm, run in runs.items() if arm != asked.arm)
    options = ["--measures", asked.measures, *(["--inline"] if asked.inline else [])]
    found = [measure(runs[asked.arm], reference, *options) for _ in range(asked.repeats)]
    text = "\n".join(lines(found)) + "\n"
    print(text, end="")
    if asked.out:
        asked.out.write_text(text, encoding="utf-8")
    if any(number["value"] is None for took in found for number in took.numbers):
        raise SystemExit("a number is missing: the time is not that of all five metrics")


if __name__ == "__main__":
    main()
