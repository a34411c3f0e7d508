"""What a run survives: SIGKILL of its driver, a host, the raylet and gcs_server, at fixed points and at random times.

    python benchmarks/kills.py grid [--times N] [--seed S] [--only PROCESS ...]      the grid, as a Markdown table

After every kill the same command (of a killed driver) or the same process (of all else) must finish; the outcome tables
must equal those of a run that nobody disturbed, every unit must have one current row, and nothing of a dead run may be
left once the next one has started. The seconds are those from the kill to the first new finished unit.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.driven import Drive, Place, at_least, place, units_of  # noqa: E402

BANK = ROOT / "bank" / "torus_open_48"
RECOVERY_S = 30.0

POINTS = ("clip_written:9", "part_written:4", "part_renamed:4", "compaction_written:1", "compaction_renamed:1")
"""Where the store kills its process, and the how-manieth time it passes there."""
PROCESSES = ("driver", "host", "raylet", "gcs_server")


def victims(run: Drive, what: str) -> list[psutil.Process]:
    """The processes of a run that `what` names."""
    if what == "driver":
        return [psutil.Process(run.process.pid)]
    children = psutil.Process(run.process.pid).children(recursive=True)
    wanted: Mapping[str, Callable[[psutil.Process], bool]] = {
        "host": lambda process: (process.cmdline() or [""])[0].startswith("ray::BatchHost"),
        "raylet": lambda process: process.name() == "raylet",
        "gcs_server": lambda process: process.name() == "gcs_server",
    }
    found = []
    for child in children:
        try:
            if wanted[what](child):
                found.append(child)
        except psutil.Error:
            continue
    return found


def await_victim(run: Drive, what: str, *, timeout_s: float = 120.0) -> psutil.Process:
    """A process of a run, as soon as it is there. Raises TimeoutError."""
    end = time.monotonic() + timeout_s
    while not (found := victims(run, what)):
        if time.monotonic() > end or run.process.poll() is not None:
            raise TimeoutError(f"the run has no {what}; last: {run.told[-8:]}")
        time.sleep(0.1)
    return found[0]


def kill(run: Drive, what: str) -> float:
    """SIGKILL one process of a run; when, by time.monotonic()."""
    await_victim(run, what).kill()
    return time.monotonic()


def left_of(session_folders: list[Path], processes: list[psutil.Process]) -> list[str]:
    """What is still there of a dead run."""
    folders = [str(folder) for folder in session_folders if folder.exists()]
    return folders + [f"{process.pid}" for process in processes if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


Outcome = Mapping[tuple[str, str], pl.DataFrame]


def assert_same(found: Outcome, wanted: Outcome, *, without: Collection[str] = ()) -> None:
    """Raises AssertionError with the table and the columns that differ, those in `without` apart."""
    for key, rows in wanted.items():
        if not found[key]["unit_id"].is_unique().all():
            raise AssertionError(f"{key}: a unit has two current rows")
        if found[key].height != rows.height:
            raise AssertionError(f"{key}: {found[key].height} rows, undisturbed {rows.height}")
        compared = [name for name in rows.columns if name not in without]
        differing = [name for name in compared if not rows[name].equals(found[key][name])]
        if differing:
            raise AssertionError(f"{key}: {', '.join(differing)} differ from the undisturbed run")


@dataclass(frozen=True)
class Survived:
    """A kill and what came of it. kill_to_unit_s: None where nothing was left to compute."""

    what: str
    when: str
    units_kept: int
    kill_to_unit_s: float | None
    finished_s: float


def survive_driver_kill(
    at: Place, results: str, first: Drive, killed_at: float, label: str, address: str = ""
) -> Survived:
    """The same command again after its driver was killed; what is left of the dead one must go."""
    first.wait(60)
    folders = [path for path in at.temporary.iterdir() if path.name.startswith(("torus-ray-", "torus-code-"))]
    orphans = at.processes()
    kept = max(first.units_done(), 0)
    again = at.start(results, address=address)
    code = again.wait()
    if code != 0:
        raise AssertionError(f"the same command ended with {code}: {again.told[-20:]}")
    if left := left_of(folders, orphans):
        raise AssertionError(f"left of the dead run: {left}")
    ended = again.lines[-1][0]
    new = [moment for moment, line in again.lines if units_of(line) > _first_units(again)]
    return Survived("driver", label, kept, new[0] - killed_at if new else None, ended - killed_at)


def _first_units(run: Drive) -> int:
    return next((units_of(line) for line in run.told if units_of(line) >= 0), 0)


def survive_in_process(run: Drive, what: str, units: int) -> Survived:
    """Kill one process of a run that goes on by itself, when so many units are done."""
    run.wait_for(at_least(units))
    killed_at = kill(run, what)
    kept = run.units_done()
    # Replies that were on their way still become rows: a unit is new when its call was sent after the mend.
    mended = run.wait_for(lambda line: line.startswith("told"), after=killed_at)
    back = run.wait_for(lambda line: units_of(line) > kept, after=mended)
    code = run.wait()
    if code != 0:
        raise AssertionError(f"the run ended with {code}: {run.told[-20:]}")
    return Survived(what, f"at {kept} units", kept, back - killed_at, run.lines[-1][0] - killed_at)


# --- the grid ---------------------------------------------------------------------------------------------------------


def grid(times: int, seed: int, processes: Sequence[str] = PROCESSES) -> Iterator[Survived]:
    """All points once, a driver while its host starts (both with "driver" among `processes`), and every process
    `times` times at random."""
    chance = random.Random(seed)
    with place(BANK) as at:
        undisturbed = at.start("undisturbed", address="inline")
        if undisturbed.wait() != 0:
            raise RuntimeError(f"the undisturbed run failed: {undisturbed.told[-20:]}")
        wanted = at.outcome("undisturbed")
        total = undisturbed.units_done()
        for point in POINTS if "driver" in processes else ():
            results = point.replace(":", "-")
            run = at.start(results, fault=point)
            run.wait()
            yield survive_driver_kill(at, results, run, run.lines[-1][0], point)
            assert_same(at.outcome(results), wanted)
        if "driver" in processes:
            run = at.start("starting")
            await_victim(run, "host")
            yield survive_driver_kill(at, "starting", run, kill(run, "driver"), "while a host starts")
            assert_same(at.outcome("starting"), wanted)
        for what in processes:
            for number in range(times):
                results = f"{what}-{number}"
                units = chance.randrange(1, total * 3 // 4)
                run = at.start(results)
                if what == "driver":
                    run.wait_for(at_least(units))
                    yield survive_driver_kill(at, results, run, kill(run, what), f"at {run.units_done()} units")
                else:
                    yield survive_in_process(run, what, units)
                assert_same(at.outcome(results), wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    whole = parser.add_subparsers(required=True).add_parser("grid")
    whole.add_argument("--times", type=int, default=6)
    whole.add_argument("--seed", type=int, default=0)
    whole.add_argument("--only", nargs="+", choices=PROCESSES, default=PROCESSES, help="these processes alone")
    asked = parser.parse_args()
    print("| killed | when | units kept | kill to first new unit, s | kill to the end, s |")
    print("|---|---|---:|---:|---:|", flush=True)
    slowest = 0.0
    for row in grid(asked.times, asked.seed, asked.only):
        if row.what != "driver":
            slowest = max(slowest, row.kill_to_unit_s or 0.0)
        seconds = "none left" if row.kill_to_unit_s is None else f"{row.kill_to_unit_s:.1f}"
        print(f"| {row.what} | {row.when} | {row.units_kept} | {seconds} | {row.finished_s:.1f} |", flush=True)
    print(f"\nslowest recovery without a new command: {slowest:.1f} s; wanted: at most {RECOVERY_S:.0f} s")
    return 0 if slowest <= RECOVERY_S else 1


if __name__ == "__main__":
    sys.exit(main())
