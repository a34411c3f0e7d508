"""A driver that a test kills: `python -m tests.store.kill_driver RUN UNITS ACKED` renders and answers what is missing.

Each render is urgent, its two answers follow its commit. ACKED gets a line a unit once it is durable, so the test knows
what must not be lost. TORUS_FAULT says where the process ends itself.
"""

from __future__ import annotations

import os
import queue
import sys
from pathlib import Path

from tests.store.sample import answer, render, tone
from torus_ray.store import LocalRunStore


def missing_after(run: Path, units: int) -> list[int]:
    """Finish a run without being killed; the numbers of the renders that were still to do."""
    with LocalRunStore(run) as store:
        have = set(store.rows("renders", ["test"])["test"])
    main(run, units, Path(os.devnull))
    return [number for number in range(units) if f"t{number}" not in have]


def main(run: Path, units: int, acked: Path) -> None:
    events: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()
    with LocalRunStore(run) as store, open(acked, "a", encoding="utf-8") as log:
        have = set(store.rows("renders", ["unit_id"])["unit_id"]) | set(store.rows("answers", ["unit_id"])["unit_id"])
        waiting = 0
        for number in range(units):
            row = render(f"t{number}", tone(number))
            if row["unit_id"] in have:
                events.put(("render", number))
            else:
                store.append(
                    "renders",
                    [row],
                    clips=[tone(number)],
                    attempts=[{"unit_id": row["unit_id"], "attempt": 1, "status": "ok"}],
                    on_durable=lambda at, rows, number=number: events.put(("render", number)),  # type: ignore[misc]
                    urgent=True,
                )
            waiting += 1
        while waiting:
            kind, number = events.get(timeout=30)
            waiting -= 1
            if kind == "answer":
                log.write(f"answer {number}\n")
                log.flush()
                continue
            log.write(f"render {number}\n")
            log.flush()
            rows = [answer(f"t{number}", question, tone(number).id) for question in ("q1", "q2")]
            if rows[0]["unit_id"] not in have:
                store.append("answers", rows, on_durable=lambda at, rows, number=number: events.put(("answer", number)))  # type: ignore[misc]
                waiting += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
