"""All checks of one host, in order, each told as soon as it is known."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

from torus_ray.contract.asking import Asker
from torus_ray.contract.checks import checks_of
from torus_ray.contract.endurance import hang, memory
from torus_ray.contract.findings import Finding, Result, ok, skipped
from torus_ray.contract.material import Head
from torus_ray.protocol.executor import Executor
from torus_ray.systems import HostSpec, System

HANG_FLOOR_S, HANG_FACTOR = 5.0, 4.0
"""How long a stopped host is waited for: the floor, and so many times what its quickest head took."""

Open = Callable[[HostSpec, float | None], AbstractContextManager[Executor]]
"""Starts one replica of a host and ends it. The number: seconds that a request may take; None: what the card says."""


def check_host(system: System, host: HostSpec, open_executor: Open, *, calls: int, ends_at: float) -> Iterator[Finding]:
    """The findings on one host of a system. calls: for flat memory; 0 leaves it and the hang out.

    Raises what the executor raises when the host cannot be started, OutOfTime at `ends_at` (of time.monotonic()).
    """
    heads = [Head(operation, card, system.card.texts) for operation, card in host.card.heads.items()]
    working: list[tuple[float, Head]] = []
    with open_executor(host, None) as executor:
        asker = Asker(executor, host.name, ends_at)
        yield _finding(host, "", "capabilities", partial(_capabilities, host, asker))
        for head in heads:
            sound = True
            for name, check in checks_of(head).items():
                finding = _finding(host, head.operation, name, partial(check, head, asker) if sound else _UNSOUND)
                yield finding
                if name == "shape":
                    sound = finding.verdict == "ok"
            if sound:
                working.append((_seconds(head, asker), head))
        if working and calls:
            yield _finding(host, "", "memory", partial(memory, [head for _, head in working], asker, calls))
    if not (working and calls):
        return
    seconds, quickest = min(working, key=lambda entry: entry[0])
    deadline_s = HANG_FLOOR_S + HANG_FACTOR * seconds
    with open_executor(host, deadline_s) as executor:
        asker = Asker(executor, host.name, ends_at)
        yield _finding(host, quickest.operation, "hangs", partial(hang, quickest, asker, deadline_s))


_UNSOUND = partial(skipped, "its plain request did not pass")


def _finding(host: HostSpec, operation: str, name: str, check: Callable[[], Result]) -> Finding:
    began = time.monotonic()
    result = check()
    seconds = round(time.monotonic() - began, 3)
    return Finding(host.name, operation, name, **dataclasses.asdict(result), seconds=seconds)


def _seconds(head: Head, asker: Asker) -> float:
    attempt = asker.once(head.request()).attempts[-1]
    return (attempt.returned_at or 0.0) - (attempt.submitted_at or 0.0)


def _capabilities(host: HostSpec, asker: Asker) -> Result:
    """What the host serves and where it runs; a head that the card claims and the class lacks stops it from loading."""
    described = asker.described()
    unsaid = sorted(set(described["operations"]) - set(host.card.heads))
    note = f"; the card leaves out {', '.join(unsaid)}" if unsaid else ""
    python, device = described["python"], described["device"]
    return ok(f"{', '.join(host.card.heads)}, {described['style']}, Python {python}, {device}{note}")
