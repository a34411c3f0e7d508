"""What the benchmarks of the engine share: a driver in a fresh process, what it says of itself, repeats and spread.

python -m benchmarks.measured RUN.json      one run of zero-cost heads, told as one line of JSON (RUN: see Run)
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
ADAPTER = ROOT / "benchmarks" / "zero" / "adapter.py"
CACHE = Path(os.environ.get("TORUS_CACHE") or Path.home() / ".cache" / "torus-ray") / "benchmarks"
"""The baselines' environment, and compiled modules."""
REPEATS = 5
RUN_S = 900.0
MB = 1e6
SAMPLE_S = 0.25
BATCH = 32
TOLD = "told "
"""How the line begins in which a child says what it found."""


@dataclass(frozen=True)
class Run:
    """A run of the engine on zero-cost heads. tests: the first of the bank. clips, frames, rate_hz, noise: see
    zero/adapter.py. replicas: batch actors. sample: whether memory is looked at, which takes a little time itself.
    kill_at: the share of units after which the driver ends itself by SIGKILL; 0: never."""

    bank: str
    results: str
    tests: int
    arm: str = "native"
    control: str | None = None
    clips: int = 512
    frames: int = 1_600
    rate_hz: int = 8_000
    noise: bool = False
    batch: int = BATCH
    replicas: int = 2
    inline: bool = False
    sample: bool = False
    kill_at: float = 0.0


def card(run: Run) -> str:
    """The system card of a run."""
    settings = ", ".join(
        f"{name} = {json.dumps(getattr(run, name))}" for name in ("clips", "frames", "rate_hz", "noise", "batch")
    )
    return f"""
name = "zero"
title = "heads that cost nothing"
[hosts.zero]
adapter = "{ADAPTER}:Zero"
num_cpus = 0.5
memory_gb = 0.5
replicas = {run.replicas}
settings = {{ {settings} }}
heads = {{ generate = {{}}, edit = {{}}, caption = {{}}, answer = {{}} }}
"""


# --- in the child -----------------------------------------------------------------------------------------------------


class Sampler(threading.Thread):
    """Looks at this process's private memory (USS), the object store and what Ray has spilled, until stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.start_mb = 0.0  # the most before the first dispatch
        self.uss_mb: list[float] = []
        self.store_mb: list[float] = []
        self.spilled_mb: list[float] = []
        self._end = threading.Event()

    def run(self) -> None:
        me = psutil.Process()
        while not self._end.wait(SAMPLE_S):
            self.uss_mb.append(me.memory_full_info().uss / MB)
            self.store_mb.append(_store_bytes() / MB)
            self.spilled_mb.append(_spilled_bytes() / MB)

    def stop(self) -> None:
        self._end.set()
        self.join()


def _store_bytes() -> float:
    """Bytes of objects in Ray's store on this node; 0 before Ray is up."""
    import ray

    if not ray.is_initialized():
        return 0.0
    whole: float = ray.cluster_resources().get("object_store_memory", 0.0)
    free: float = ray.available_resources().get("object_store_memory", whole)
    return whole - free


def _spilled_bytes() -> int:
    """Bytes of objects that Ray has put on disk because its store was full."""
    node = sys.modules["ray"]._private.worker._global_node if "ray" in sys.modules else None
    folders = Path(node.get_session_dir_path()).glob("ray_spilled_objects*") if node else ()
    return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


def drive(run: Run) -> dict[str, Any]:
    """Run, and say when what happened (seconds since this process began) and what it took."""
    born = psutil.Process().create_time()
    told: dict[str, Any] = {}

    def mark(name: str) -> None:
        told[name] = time.time() - born

    mark("began")
    from torus_ray.bank.load import load_bank
    from torus_ray.engine.opening import Opening
    from torus_ray.engine.runner import Progress
    from torus_ray.engine.session import RunOptions, run_system
    from torus_ray.protocol.graph import Arm
    from torus_ray.systems import read_card

    mark("imported")
    bank = load_bank(Path(run.bank))
    mark("bank_loaded")
    if not run.inline:
        _time_ray(told, born)
    sampler = Sampler()
    if run.sample:
        sampler.start()

    def watch(progress: Progress) -> None:
        if "dispatched" not in told:
            told["dispatched"] = time.time() - born - progress.elapsed_s
            told["units"], told["kept"] = progress.units, progress.kept
            told["cpu_s"] = -_cpu_s()
            told["uss_mb"] = psutil.Process().memory_full_info().uss / MB
            sampler.start_mb, sampler.uss_mb = max(sampler.uss_mb, default=0.0), [told["uss_mb"]]
        if progress.done > progress.kept + progress.reused and "first_unit" not in told:
            mark("first_unit")
        if run.kill_at and progress.done >= run.kill_at * progress.units:
            os.kill(os.getpid(), signal.SIGKILL)
        if progress.done == progress.units and "durable" not in told:
            mark("durable")
            told["cpu_s"] += _cpu_s()
            told["reused"] = progress.reused

    with tempfile.TemporaryDirectory(prefix="torus-card-") as folder:
        path = Path(folder) / "zero.system.toml"
        path.write_text(card(run), encoding="utf-8")
        options = RunOptions(
            Path(run.results),
            bank.tests[: run.tests],
            (Arm(run.arm, control=run.control),),  # type: ignore[arg-type]
            opening=Opening(inline=run.inline),
        )
        result = run_system(read_card(path), bank, options, watch=watch)
    mark("ended")
    if run.sample:
        sampler.stop()
        told["uss_peak_mb"] = max(sampler.uss_mb)
        told["uss_start_peak_mb"] = sampler.start_mb
        told["store_peak_mb"] = max(sampler.store_mb)
        told["spilled_mb"] = max(sampler.spilled_mb)
    told["computed"] = result.computed
    told["by_status"] = dict(result.by_status)
    told["peak_rss_mb"] = _peak_rss_mb()
    return told


def _time_ray(told: dict[str, Any], born: float) -> None:
    """Let the cluster's start be timed: it is Ray's own."""
    from torus_ray.engine.ray_variables import set_ray_variables

    set_ray_variables()  # before Ray is imported
    from torus_ray.engine import cluster

    start = cluster.Cluster.start

    def timed(self: Any, **options: Any) -> None:
        began = time.time()
        start(self, **options)
        told["ray_start_s"] = time.time() - began
        told["ray_up"] = time.time() - born

    cluster.Cluster.start = timed  # type: ignore[method-assign]


def _cpu_s() -> float:
    spent = psutil.Process().cpu_times()
    return float(spent.user + spent.system)


def _peak_rss_mb() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB


# --- in the parent ----------------------------------------------------------------------------------------------------


def child(command: Sequence[str], *, timeout_s: float = RUN_S) -> Any:
    """What a process of its own tells in a line of JSON. Raises SystemExit with its output where it fails."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(CACHE / "pycache")}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # whoever runs `torus` often finds its modules compiled
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, env=variables)
    lines = [line for line in done.stdout.splitlines() if line.startswith(TOLD)]
    if done.returncode or not lines:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-3_000:]}\n{done.stderr[-3_000:]}")
    return json.loads(lines[-1].removeprefix(TOLD))


def command_of(run: Run, folder: Path) -> list[str]:
    """The command of a run, described in a file in `folder`."""
    file = folder / f"run-{len(list(folder.glob('run-*.json')))}.json"
    file.write_text(json.dumps(asdict(run)), encoding="utf-8")
    return [sys.executable, "-m", "benchmarks.measured", str(file)]


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one measurement; its path is short, for Ray's sockets lie below the temporary directory."""
    with tempfile.TemporaryDirectory(prefix="tb-") as folder:
        yield Path(folder)


def bank_folder(given: Path | None, tests: int, scratch_folder: Path) -> Path:
    """A bank with at least so many tests: the one given, or our own one varied (bank_10k.py)."""
    from benchmarks.bank_10k import write_bank

    folder = given or scratch_folder / "bank"
    if not (folder / "bank.json").exists():
        write_bank(folder, tests)
    return folder


@dataclass(frozen=True)
class Spread:
    """The repeats of one figure."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def text(self, digits: int = 0) -> str:
        """The median, and in brackets the least and the largest."""
        low, high = min(self.values), max(self.values)
        one = f"{self.median:,.{digits}f}"
        return one if len(self.values) == 1 else f"{one} ({low:,.{digits}f}–{high:,.{digits}f})"


def spread(values: Iterable[float]) -> Spread:
    return Spread(tuple(values))


@dataclass(frozen=True)
class Line:
    """One line of a table: a figure beside its limit. most: whether the limit is the most, else the least."""

    what: str
    figure: Spread
    unit: str
    limit: float | None = None
    most: bool = False
    digits: int = 0
    note: str = ""

    @property
    def holds(self) -> bool:
        if self.limit is None:
            return True
        return self.figure.median <= self.limit if self.most else self.figure.median >= self.limit

    def markdown(self) -> str:
        bound = "" if self.limit is None else f"{'at most' if self.most else 'at least'} {self.limit:,g}"
        kept = "" if self.limit is None else ("yes" if self.holds else "**no**")
        return f"| {self.what} | {self.figure.text(self.digits)} | {self.unit} | {bound} | {kept} | {self.note} |"


def report(title: str, lines: Iterable[Line], repeats: int) -> int:
    """Print the lines as Markdown as they come; 0 when every limit holds, else 1."""
    cores, load = os.cpu_count(), os.getloadavg()[0]
    print(f"{title}: {cores} cores, load {load:.1f} before, {repeats} repeats: median (least–most)\n", flush=True)
    print("| what | figure | unit | limit | holds | note |\n|---|---|---|---|---|---|", flush=True)
    good = True
    for line in lines:
        print(line.markdown(), flush=True)
        good &= line.holds
    return 0 if good else 1


def repeated(count: int, once: Callable[[], Any]) -> list[Any]:
    return [once() for _ in range(count)]


if __name__ == "__main__":
    given = Run(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    print(TOLD + json.dumps(drive(given)), flush=True)
