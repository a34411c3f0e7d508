"""How close the engine comes to the shortest possible run: simulated replicas with declared latencies.

    .venv/bin/python -m benchmarks.efficiency [--repeats 5] [--only NAME,...] [--quick] [--out FILE.md]

Makespan: from the first dispatch to the last commit, read from `attempts`; everything is durable in it. Bound: the
longer of a test's critical path and the work spread evenly, in full batches; for two pools with the ramp (U waits for
the first clip, the last answers wait for the last clip) and whole batches a replica. Replicas are lanes of two
processes (benchmarks/lanes.py), warm. `actors`, once: 32 real actor processes start and answer.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.bank_10k import write_bank
from benchmarks.lanes import LaneSite, lane_hosts, runs_on
from torus_ray.bank.load import Bank, load_bank
from torus_ray.engine.opening import Opening
from torus_ray.engine.session import RunOptions, run_system
from torus_ray.protocol.graph import Arm
from torus_ray.store.reader import current_rows
from torus_ray.systems import System, read_card

ROOT = Path(__file__).resolve().parents[1]
ADAPTER = ROOT / "actors" / "simulated" / "adapter.py"
RENDERS = ("generate", "edit")
CLIPS = 3
"""Clips of a test, and calls that ask about them: the three questions of a clip are one call."""


@dataclass(frozen=True)
class Case:
    """replicas: of each pool; one pool serves everything. latency_s: seconds of a batch, (base, each request), and
    max_batch, for renders and for answers. slower: the first replica's factor."""

    name: str
    tests: int
    replicas: Mapping[str, int]
    render_s: tuple[float, float]
    answer_s: tuple[float, float]
    render_batch: int
    answer_batch: int
    limit: float
    slower: float = 1.0

    @property
    def pools(self) -> Mapping[str, tuple[str, ...]]:
        return {"all": (*RENDERS, "answer")} if len(self.replicas) == 1 else {"G": RENDERS, "U": ("answer",)}

    def seconds(self, operation: str, count: int) -> float:
        base, each = self.answer_s if operation == "answer" else self.render_s
        return base + each * count

    @property
    def bound_s(self) -> float:
        calls = self.tests * CLIPS
        path = CLIPS * self.seconds("generate", 1) + self.seconds("answer", 1)
        render = self.seconds("generate", self.render_batch)
        answer = self.seconds("answer", self.answer_batch)
        if len(self.replicas) == 1:
            work = calls / self.render_batch * render + calls / self.answer_batch * answer
            speed = self.replicas["all"] - 1 + 1 / self.slower
            return max(path, work / speed)
        renders = math.ceil(calls / self.render_batch / self.replicas["G"]) * render
        answers = math.ceil(calls / self.answer_batch / self.replicas["U"]) * answer
        return max(path, renders + self.seconds("answer", 1), self.seconds("generate", 1) + answers)


CASES = (
    Case("2,000 tests on 32", 2_000, {"all": 32}, (0.15, 0.05), (0.05, 0.02), 4, 4, 1.05),
    Case("48 tests on 8", 48, {"all": 8}, (0.3, 0.1), (0.1, 0.04), 1, 4, 1.08),
    Case("48 tests on 8, one 3 times slower", 48, {"all": 8}, (0.3, 0.1), (0.1, 0.04), 1, 4, 1.10, 3.0),
    Case("2,000 tests on 32, one 3 times slower", 2_000, {"all": 32}, (0.15, 0.05), (0.05, 0.02), 4, 4, 1.10, 3.0),
    Case("48 tests, G on 7 and U on 1", 48, {"G": 7, "U": 1}, (0.3, 0.1), (0.1, 0.04), 1, 3, 1.12),
    Case("2,000 tests, G on 23 and U on 9", 2_000, {"G": 23, "U": 9}, (0.15, 0.05), (0.05, 0.02), 4, 4, 1.12),
)


def system_of(case: Case, folder: Path) -> System:
    """The case as a card of the simulated system; clips are as small as they can be."""
    latency = {op: list(case.answer_s if op == "answer" else case.render_s) for op in (*RENDERS, "answer")}
    sizes = dict.fromkeys(RENDERS, case.render_batch) | {"answer": case.answer_batch}
    lines = ['name = "simulated"', 'title = "simulated, for efficiency"', 'arms = ["native"]']
    for pool, operations in case.pools.items():
        lines += [
            f"[hosts.{pool}]",
            f'adapter = "{ADAPTER}:Simulated"',
            f"num_cpus = 0.01\nmemory_gb = 0.01\nreplicas = {case.replicas[pool]}",
            f"settings = {{ clip_s = 0.01, latency_s = {_toml(latency)}, max_batch = {_toml(sizes)} }}",
            f"heads = {{ {', '.join(f'{operation} = {{}}' for operation in operations)} }}",
        ]
    path = folder / "simulated.system.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_card(path)


def _toml(table: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{name} = {value}" for name, value in table.items()) + " }"


@contextmanager
def bank_of(tests: int) -> Iterator[Bank]:
    with tempfile.TemporaryDirectory(prefix="torus-bench-bank-") as folder:
        write_bank(Path(folder), tests)
        yield load_bank(Path(folder))


def makespan_s(case: Case, bank: Bank, hosts: Sequence[Any]) -> float:
    """One run into an empty folder."""
    with tempfile.TemporaryDirectory(prefix="torus-bench-") as name, runs_on(LaneSite(hosts, case.slower)):
        options = RunOptions(Path(name), bank.tests, (Arm("native"),))
        result = run_system(system_of(case, Path(name)), bank, options)
        if result.by_status != {"ok": case.tests * CLIPS * 4}:
            raise SystemExit(f"{case.name}: not every unit is ok: {result.by_status}")
        attempts = current_rows(result.runs["native"], "attempts", ["submitted_at", "committed_at"])
    return float(attempts.select(pl.col("committed_at").max() - pl.col("submitted_at").min()).item())


def measure(cases: Sequence[Case], repeats: int) -> list[str]:
    """A Markdown row for each case; after each repeat the next case's, so that a busy minute hits all alike."""
    spans: dict[str, list[float]] = {case.name: [] for case in cases}
    with tempfile.TemporaryDirectory(prefix="torus-code-") as name:
        folder = Path(name)
        with lane_hosts(system_of(cases[0], folder), folder) as hosts:
            warm = Case("warm-up", 8, {"all": 32}, (0.1, 0.0), (0.1, 0.0), 1, 1, 9.0)
            banks: dict[int, Bank] = {}
            for tests in {warm.tests, *(case.tests for case in cases)}:
                with bank_of(tests) as bank:
                    banks[tests] = bank
            makespan_s(warm, banks[warm.tests], hosts)
            for _ in range(repeats):
                for case in cases:
                    spans[case.name].append(makespan_s(case, banks[case.tests], hosts))
    return [_row(case, spans[case.name]) for case in cases]


def _row(case: Case, spans: Sequence[float]) -> str:
    ratios = [span / case.bound_s for span in spans]
    middle = statistics.median(ratios)
    held = "yes" if middle <= case.limit else "NO"
    return (
        f"| {case.name} | {case.bound_s:.1f} | {statistics.median(spans):.2f} | {middle:.3f} "
        f"| {min(ratios):.3f} to {max(ratios):.3f} | {case.limit:.2f} | {held} |"
    )


def real_actors(count: int) -> str:
    """Real processes: how long they take to start, and a run on them with every replica at work."""
    tests = 4 * count
    case = Case("actors", tests, {"all": count}, (0.1, 0.0), (0.1, 0.0), 1, 1, 9.0)
    with tempfile.TemporaryDirectory(prefix="torus-bench-") as name, bank_of(tests) as bank:
        began = time.time()
        result = run_system(
            system_of(case, Path(name)), bank, RunOptions(Path(name), bank.tests, (Arm("native"),), opening=Opening())
        )
        attempts = current_rows(result.runs["native"], "attempts", ["worker", "pid", "submitted_at", "committed_at"])
    start_s = float(attempts["submitted_at"].min() or 0.0) - began  # type: ignore[arg-type]
    span = float(attempts["committed_at"].max() - attempts["submitted_at"].min())  # type: ignore[operator]
    return (
        f"{attempts['pid'].n_unique()} of {count} real actor processes answered {attempts.height:,} units; Ray and all "
        f"of them were up after {start_s:.0f} s, the run itself took {span:.1f} s (bound {case.bound_s:.1f} s)."
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="parts of case names, comma-separated; `actors` is one")
    parser.add_argument("--quick", action="store_true", help="the cases of 48 tests, once")
    parser.add_argument("--actors", type=int, default=32)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    wanted = [word for word in asked.only.split(",") if word]
    cases = [case for case in CASES if not wanted or any(word in case.name for word in wanted)]
    cases = [case for case in cases if case.tests < 100] if asked.quick else cases
    repeats = 1 if asked.quick else asked.repeats
    lines = [
        f"{repeats} repeats, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} at the start.",
        "",
        "| case | bound, s | makespan, s | ratio | spread | limit | held |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += measure(cases, repeats) if cases else []
    if (not wanted and not asked.quick) or "actors" in wanted:
        lines += ["", real_actors(asked.actors)]
    text = "\n".join(lines)
    print(text)
    if asked.out:
        asked.out.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
