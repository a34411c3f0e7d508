"""How well two cores are used: `torus run pocket` on Ray against the same run inline, both arms, in one go.

    .venv/bin/python benchmarks/pocket_throughput.py [--tests 12] [--repeats 1] [--out FILE.md]

Everything counts from the first dispatch to the last commit, read from `attempts`. Busy = CPU seconds inside heads /
(cores x wall).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import psutil

from torus_ray.store.reader import current_rows

TIMEOUT_S = 3_600


@dataclass(frozen=True)
class Measured:
    """One run. wall_s: first dispatch to last commit. heads_s: CPU seconds inside heads. driver_mb: its largest
    resident memory."""

    name: str
    wall_s: float
    heads_s: float
    units: int
    driver_mb: float

    @property
    def busy(self) -> float:
        return self.heads_s / (CORES * self.wall_s)


CORES = len(os.sched_getaffinity(0))


def measure(name: str, tests: int, *options: str) -> Measured:
    """Run the command in a results folder of its own and read its attempts."""
    with tempfile.TemporaryDirectory(prefix="torus-bench-") as folder:
        command = [
            sys.executable,
            "-m",
            "torus_ray.cli",
            "run",
            "pocket",
            "--json",
            "--limit",
            str(tests),
            "--results",
            folder,
        ]
        driver = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        peak = _watch_memory(driver)
        output = driver.communicate(timeout=TIMEOUT_S)[0]
        if driver.returncode not in (0, 1):
            raise SystemExit(f"{name}: torus ended with {driver.returncode}")
        runs = [Path(run) for system in json.loads(output)["systems"] for run in system["runs"].values()]
        attempts = pl.concat([current_rows(run, "attempts") for run in runs])
    wall = attempts["committed_at"].max() - attempts["submitted_at"].min()  # type: ignore[operator]
    return Measured(name, float(wall), float(attempts["cpu_s"].sum()), attempts["unit_id"].n_unique(), peak / 2**20)


def _watch_memory(driver: subprocess.Popen[str]) -> int:
    peak, process = 0, psutil.Process(driver.pid)
    end = time.monotonic() + TIMEOUT_S
    while driver.poll() is None and time.monotonic() < end:
        try:
            peak = max(peak, process.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.1)
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    lines = ["| repeat | run | units | wall s | CPU s in heads | busy | driver MB |", "|---|---|---|---|---|---|---|"]
    for repeat in range(1, chosen.repeats + 1):
        ray = measure("Ray", chosen.tests)
        inline = measure("inline", chosen.tests, "--inline")
        for run in (ray, inline):
            times = f"{run.wall_s:.1f} | {run.heads_s:.1f} | {run.busy:.2f}"
            lines.append(f"| {repeat} | {run.name} | {run.units} | {times} | {run.driver_mb:.0f} |")
        lines.append(f"| {repeat} | Ray / inline | | {ray.wall_s / inline.wall_s:.2f} | | | |")
    text = f"{CORES} cores, {chosen.tests} tests, both arms\n\n" + "\n".join(lines) + "\n"
    print(text)
    if chosen.out:
        chosen.out.write_text(text)


if __name__ == "__main__":
    main()
