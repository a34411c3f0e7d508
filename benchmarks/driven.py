"""A run as it is watched and killed (benchmarks/kills.py): its driver is a child that tells how far it is.

python benchmarks/driven.py CARD BANK RESULTS [ADDRESS]      one run; ADDRESS may be `inline`
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import psutil

ROOT = Path(__file__).resolve().parents[1]
ADAPTER = ROOT / "actors" / "simulated" / "adapter.py"
ARMS = ("native", "self-caption")
TABLES = ("renders", "captions", "answers")
RUN_S = 240.0
"""How long a run may take before it counts as hanging; a loaded machine needs up to 40 s for a start of Ray."""


def card(latency_s: float = 0.05, load_s: float = 0.0) -> str:
    """The simulated system with latencies, one replica, few CPUs."""
    operations = ("generate", "edit", "caption", "answer")
    latency = ", ".join(f"{name} = [{latency_s}, 0.0]" for name in operations)
    return f"""
name = "simulated"
title = "simulated, for kills"
[hosts.simulated]
adapter = "{ADAPTER}:Simulated"
num_cpus = 0.5
memory_gb = 0.2
replicas = 1
settings = {{ load_s = {load_s}, latency_s = {{ {latency} }} }}
heads = {{ {", ".join(f"{name} = {{}}" for name in operations)} }}
"""


def drive(card_file: Path, bank_folder: Path, results: Path, address: str | None) -> int:
    """One run; a line `done N` whenever more units are durable, a line `told ...` for what the engine says."""
    from torus_ray.bank.load import load_bank
    from torus_ray.engine.opening import Opening
    from torus_ray.engine.runner import Progress
    from torus_ray.engine.session import RunOptions, run_system
    from torus_ray.protocol.graph import Arm
    from torus_ray.systems import read_card

    done = -1

    def watch(progress: Progress) -> None:
        nonlocal done
        if progress.done != done:
            done = progress.done
            print(f"done {done}", flush=True)

    bank = load_bank(bank_folder)
    arms = (Arm("native"), Arm("self-caption"))
    opening = Opening(inline=True) if address == "inline" else Opening(address=address)
    options = RunOptions(results, bank.tests, arms, opening=opening)
    result = run_system(
        read_card(card_file), bank, options, watch=watch, tell=lambda line: print("told", line, flush=True)
    )
    print(f"computed {result.computed}", flush=True)
    return result.exit_code


@dataclass
class Drive:
    """A driver as a child. lines: what it has said, each with its time by time.monotonic()."""

    process: subprocess.Popen[str]
    lines: list[tuple[float, str]] = field(default_factory=list)
    _said: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._said:
                self.lines.append((time.monotonic(), line.strip()))
                self._said.notify_all()
        with self._said:
            self._said.notify_all()

    def wait_for(self, wanted: Callable[[str], bool], *, after: float = 0.0, timeout_s: float = RUN_S) -> float:
        """When the first line that is wanted was said. Raises TimeoutError, naming what was said instead."""
        with self._said:
            self._said.wait_for(
                lambda: self._found(wanted, after) is not None or not self._reader.is_alive(), timeout_s
            )
            found = self._found(wanted, after)
        if found is None:
            raise TimeoutError(f"not said in {timeout_s:.0f} s; last: {self.lines[-8:]}")
        return found

    def _found(self, wanted: Callable[[str], bool], after: float) -> float | None:
        return next((at for at, line in self.lines if at > after and wanted(line)), None)

    def wait(self, timeout_s: float = RUN_S) -> int:
        code = self.process.wait(timeout_s)
        self._reader.join(10)
        return code

    @property
    def told(self) -> list[str]:
        return [line for _, line in self.lines]

    def units_done(self) -> int:
        return max((units_of(line) for line in self.told), default=-1)


def units_of(line: str) -> int:
    match = re.fullmatch(r"done (\d+)", line)
    return int(match[1]) if match else -1


def at_least(units: int) -> Callable[[str], bool]:
    return lambda line: units_of(line) >= units


@dataclass(frozen=True)
class Place:
    """Where the runs of one test lie: folder (short: unix sockets live in it), bank, card."""

    folder: Path
    bank: Path
    card: Path

    @property
    def temporary(self) -> Path:
        return self.folder / "t"

    def start(self, results: str, *, fault: str = "", address: str = "") -> Drive:
        """The command. Its sessions are noted, and its temporary folders made, inside this place."""
        self.temporary.mkdir(exist_ok=True)
        command = [sys.executable, __file__, str(self.card), str(self.bank), str(self.folder / results)]
        environment = {
            **{name: value for name, value in os.environ.items() if name != "TORUS_SESSION"},
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.temporary),
            "TORUS_CACHE": str(self.folder / "cache"),
            "TORUS_FAULT": fault,
        }
        return Drive(
            subprocess.Popen(
                [*command, *([address] if address else [])],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
            )
        )

    def outcome(self, results: str) -> dict[tuple[str, str], pl.DataFrame]:
        """(arm, table) -> what must be equal however the run went."""
        from torus_ray.store.reader import current_rows
        from torus_ray.store.tables import outcome_columns

        (system,) = (self.folder / results).glob("*@*/simulated")
        return {
            (arm, table): current_rows(system / arm, table, outcome_columns(table)).sort("unit_id")
            for arm in ARMS
            for table in TABLES
        }

    def processes(self) -> list[psutil.Process]:
        """Every process that came of a run in this place, its driver or Ray's."""
        return [process for process in psutil.process_iter() if _variable(process, "TMPDIR") == str(self.temporary)]

    def close(self) -> None:
        left = self.processes()
        for process in left:
            process.kill()
        psutil.wait_procs(left, timeout=10)
        shutil.rmtree(self.folder, ignore_errors=True)


def _variable(process: psutil.Process, name: str) -> str | None:
    try:
        value: str | None = process.environ().get(name)
        return value
    except (psutil.Error, OSError):
        return None


@contextmanager
def place(bank: Path, *, latency_s: float = 0.05, load_s: float = 0.0) -> Iterator[Place]:
    """A folder for runs on one bank; all of it, processes too, is gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="tk-", dir="/tmp"))
    (folder / "simulated.system.toml").write_text(card(latency_s, load_s))
    made = Place(folder, bank, folder / "simulated.system.toml")
    try:
        yield made
    finally:
        made.close()


if __name__ == "__main__":
    card_file, bank_folder, results_folder = map(Path, sys.argv[1:4])
    sys.exit(drive(card_file, bank_folder, results_folder, *(sys.argv[4:] or [None])))
