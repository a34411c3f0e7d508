"""`torus check`: the contract that a system's hosts keep, asked of the real host processes."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.contract import Finding
    from torus_ray.protocol.executor import Executor
    from torus_ray.systems import HostSpec, System

_MARKS = {"ok": "ok  ", "failed": "BAD ", "skipped": "skip"}


def check(
    name: Annotated[str, typer.Argument(help="A system, the path of a card, or FILE.py:CLASS.", metavar="SYSTEM")],
    calls: Annotated[
        int, typer.Option(min=0, help="Calls over which memory stays flat; 0: neither that nor a hang.")
    ] = 100,
    deadline: Annotated[float, typer.Option(min=1, help="Seconds for everything.")] = 3600.0,
    inline: Annotated[
        bool, typer.Option(help="In this process, without Ray: no batches, no hang; a breakpoint works.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Check that a system keeps the contract: shapes, rates, order, batches, seeds, silence, short and long clips, flat
    memory, a request that raises, one that hangs. Exit 1 if it does not."""
    found: list[Finding] = []
    for finding in findings(name, calls=calls, deadline_s=deadline, inline=inline):
        found.append(finding)
        if not as_json:
            _print(finding)
    bad = sum(finding.verdict == "failed" for finding in found)
    if as_json:
        print(json.dumps({"system": name, "ok": not bad, "findings": [dataclasses.asdict(f) for f in found]}, indent=1))
    else:
        print(f"{name}: " + (f"{bad} of {len(found)} checks failed" if bad else "keeps the contract"))
    return 1 if bad else 0


def findings(
    reference: str, *, calls: int = 100, deadline_s: float = 3600.0, inline: bool = False
) -> Iterator[Finding]:
    """What the contract finds of a system (its name, its card's path, FILE.py:CLASS), host after host. Raises
    InputError, and EngineStop where a host cannot be started or the time is up."""
    from torus_ray.cli.borrow import borrow_environment
    from torus_ray.cli.model import system_of_model
    from torus_ray.contract import check_host
    from torus_ray.systems import load_system

    ends_at = time.monotonic() + deadline_s
    of_a_file = ".py:" in reference
    system = system_of_model(reference) if of_a_file else load_system(reference)
    if inline:
        borrow_environment([system])

    def opened(host: HostSpec, limit_s: float | None) -> _Opened:
        return _open(system, _limited(host, limit_s), inline=inline, only_python=of_a_file)

    _weights_there(system, reference)
    for host in system.hosts.values():
        yield from check_host(system, host, opened, calls=calls, ends_at=ends_at)


def _weights_there(system: System, reference: str) -> None:
    from torus_ray.systems.weights import weights_of

    missing = [weight for weight in weights_of(system, reference) if not weight.there]
    if missing:
        raise InputError(
            f"weights are missing: {', '.join(weight.card.path for weight in missing)}",
            where=missing[0].where,
            expected="the weights that the card names",
            mend=missing[0].how_to_get(),
        )


def _limited(host: HostSpec, limit_s: float | None) -> HostSpec:
    """One replica of the host; with a limit, every request of it gets so many seconds."""
    heads = host.card.heads
    if limit_s is not None:
        heads = {operation: head.model_copy(update={"deadline_s": limit_s}) for operation, head in heads.items()}
    return dataclasses.replace(host, card=host.card.model_copy(update={"heads": heads, "replicas": 1}))


if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    _Opened = AbstractContextManager[Executor]


@contextmanager
def _open(system: System, host: HostSpec, *, inline: bool, only_python: bool) -> Iterator[Executor]:
    """An executor with this host alone, started; its environment tried first."""
    from torus_ray.engine.opening import Opening, open_executor
    from torus_ray.systems import System

    alone = System(system.card, {host.name: host})
    with open_executor(alone, Opening(inline=inline, only_python=only_python), _tell) as executor:
        executor.start()
        yield executor


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print(finding: Finding) -> None:
    place = " ".join(part for part in (finding.host, finding.operation, finding.check) if part)
    print(f"{_MARKS[finding.verdict]} {place}: {finding.found} ({finding.seconds:.1f} s)", flush=True)
    if finding.verdict == "failed":
        lines = [f"expected: {finding.expected}", f"mend: {finding.mend}", *finding.detail.rstrip().splitlines()]
        print("\n".join(f"     {line}" for line in lines), flush=True)
