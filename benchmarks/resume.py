"""A run killed halfway and the same command again: what is done is not done again, and how soon it goes on.

    python -m benchmarks.resume [--tests 10000] [--repeats 5] [--bank DIR] [--quick]

The driver gets SIGKILL when half of its units are durable. The seconds are those from the start of the second command's
process to its first new durable unit, without what Ray's own start took (timed inside the same process). Reading the
bank, the rows and the keys of what is done, ending what the dead driver left, and starting the hosts are all in it.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measured import REPEATS, RUN_S, Line, Run, bank_folder, child, command_of, report, scratch, spread

LIMIT_S = 15
HALF = 0.5


def killed_and_resumed(bank: Path, tests: int) -> dict[str, Any]:
    """What the second command told, with `finished` (units durable at the kill) and `again` (of those, asked again)."""
    from torus_ray.store.reader import current_rows

    with scratch() as folder:
        results = folder / "results"
        first = command_of(Run(str(bank), str(results), tests=tests, kill_at=HALF), folder)
        dead = subprocess.run(first, capture_output=True, text=True, timeout=RUN_S)
        if dead.returncode != -9:
            raise SystemExit(f"the first run was not killed but ended with {dead.returncode}:\n{dead.stderr[-3_000:]}")
        (run,) = results.glob("*@*/zero/native")
        tables = ("renders", "answers")
        finished = {unit for table in tables for unit in current_rows(run, table, ["unit_id"])["unit_id"]}
        second = time.time()
        told = child(command_of(Run(str(bank), str(results), tests=tests), folder))
        attempts = current_rows(run, "attempts", ["unit_id", "submitted_at"])
        asked = set(attempts.filter(attempts["submitted_at"] > second)["unit_id"])
        rows = sum(current_rows(run, table, ["unit_id"]).height for table in tables)
        if rows != 12 * tests:
            raise SystemExit(f"{rows} rows after the second command, expected {12 * tests}")
        return {**told, "finished": len(finished), "again": len(asked & finished)}


def lines(bank: Path, tests: int, repeats: int) -> Iterator[Line]:
    found = [killed_and_resumed(bank, tests) for _ in range(repeats)]
    kept = spread(told["finished"] for told in found)
    again = spread(told["again"] for told in found)
    yield Line(f"finished units asked again, {kept.text()} finished", again, "units", 0, most=True)
    whole = spread(told["first_unit"] for told in found)
    ray = spread(told["ray_start_s"] for told in found)
    beyond = spread(told["first_unit"] - told["ray_start_s"] for told in found)
    bank_s = spread(told["bank_loaded"] for told in found)
    hosts = spread(told["dispatched"] - told["ray_up"] for told in found)
    note = f"whole {whole.text(1)}; reading the bank {bank_s.text(1)}; hosts {hosts.text(1)}; Ray's own {ray.text(1)}"
    yield Line("command to first new unit, Ray's own start taken off", beyond, "s", LIMIT_S, True, 1, note)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--bank", type=Path, help="a bank with so many tests; made when it is not there")
    parser.add_argument("--quick", action="store_true", help="500 tests, once")
    given = parser.parse_args()
    tests, repeats = (500, 1) if given.quick else (given.tests, given.repeats)
    with scratch() as folder:
        bank = bank_folder(given.bank, tests, folder)
        return report(f"Resume, {tests:,} tests", lines(bank, tests, repeats), repeats)


if __name__ == "__main__":
    raise SystemExit(main())
