"""`torus replay`: ask one unit's request again, in this process, and compare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torus_ray.cli.show import At, Unit
from torus_ray.errors import InputError, TorusError

if TYPE_CHECKING:
    from torus_ray.protocol.executor import Outcome
    from torus_ray.protocol.graph import Node
    from torus_ray.protocol.requests import Plan, Protocol
    from torus_ray.report.runs import Run
    from torus_ray.report.units import FoundUnit
    from torus_ray.systems import System

_COMPARED = {
    "renders": ("status", "reason", "clip", "duration_s", "rate_hz", "channels", "peak", "hit_limit"),
    "captions": ("status", "reason", "text"),
    "answers": ("status", "reason", "reply", "letter", "letter_strict", "correct"),
}


def replay(
    run: At,
    unit: Unit,
    model: Annotated[str | None, typer.Option(help="As in `torus run`, for a run made with --model.")] = None,
    generator: Annotated[str | None, typer.Option(help="As in `torus run`, for a composed system.")] = None,
    editor: Annotated[str | None, typer.Option(help="As in `torus run`, for a composed system.")] = None,
    listener: Annotated[str | None, typer.Option(help="As in `torus run`, for a composed system.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Ask a unit's request again, without Ray, and show what is stored beside what comes now. Writes nothing. Exit 1
    if the two differ."""
    from torus_ray.cli.common import runs_at
    from torus_ray.report.runs import open_run
    from torus_ray.report.units import find_unit

    found = find_unit([open_run(folder) for folder in runs_at([run])], unit)
    if found.table not in _COMPARED:
        raise InputError(
            f"{found.id} is a row of {found.table}",
            where=str(found.run.folder),
            expected="a render, a caption or an answer",
            mend="name one of these",
        )
    system = _system(found.run, model=model, generator=generator, editor=editor, listener=listener)
    node, plan, protocol = _plan(found, system)
    now, outcome = _ask(found, system, node, plan, protocol)
    names = _COMPARED[found.table]
    differ = [name for name in names if found.row[name] != now[name]]
    equal = not differ
    notes = _notes(found, now)
    if as_json:
        sides = {side: {name: row[name] for name in names} for side, row in (("stored", found.row), ("now", now))}
        print(json.dumps({"unit_id": found.id, **sides, "equal": equal, "notes": notes}, indent=1))
        return 0 if equal else 1
    from torus_ray.report.terminal import print_side_by_side

    print(f"unit: {found.id}")
    lines = [(name, _shown(found.row[name]), _shown(now[name])) for name in names]
    print_side_by_side(("", "stored", "now"), lines)
    for note in notes:
        print(note)
    for attempt in outcome.attempts:
        if attempt.traceback:
            print(f"attempt {attempt.number}:\n{attempt.traceback}")
    print("equal" if equal else f"NOT equal: {', '.join(differ)}")
    return 0 if equal else 1


def _system(run: Run, **ways: str | None) -> System:
    """The run's system: by its card's name, or as the command line says again."""
    from torus_ray.cli.run import choose_systems

    told = any(way is not None for way in ways.values())
    name = run.manifest.system
    try:
        (system,) = choose_systems(
            [] if told else [name],
            model=ways["model"],
            generator=ways["generator"],
            editor=ways["editor"],
            listener=ways["listener"],
        )
    except TorusError as error:
        if told:
            raise
        raise InputError(
            f"the run's system {name!r} has no card here",
            where=str(run.folder),
            expected="a card of that name, or the system as the run was given it",
            mend="say it as in `torus run`: --model FILE.py:CLASS, or --generator, --editor and --listener",
        ) from error
    if system.name != name:
        raise InputError(
            f"the run is of {name!r}, the command line says {system.name!r}",
            where=str(run.folder),
            expected=f"the system {name!r}",
            mend="name the model that made the run",
        )
    return system


def _plan(found: FoundUnit, system: System) -> tuple[Node, Plan, Protocol]:
    """What the unit's node asks, derived anew from the bank and the rows that it hangs on."""
    from torus_ray.engine.environments import find_environment
    from torus_ray.engine.identity import environment_digest, weights_digest
    from torus_ray.protocol.graph import build_graph
    from torus_ray.protocol.requests import Plan, Protocol

    run, row = found.run, found.row
    names = {host.card.environment for host in system.hosts.values()}
    system = system.with_digests(
        {name: environment_digest(find_environment(name)) for name in names},
        {name: weights_digest(host) for name, host in system.hosts.items()},
    )
    protocol = Protocol(system, run.bank)
    graph = build_graph(
        system=system.name,
        bank=run.bank,
        tests=[run.bank.test(row["test"])],
        arms=[run.arm],
        repeats=1 + (row["repeat"] if found.table == "answers" else 0),
    )
    node = next((node for node in graph if any(unit.id == found.id for unit in node.units)), None)
    if node is None:
        raise InputError(
            f"the protocol has no unit {found.id}",
            where=str(run.folder),
            expected="a unit of this run's bank and arm",
            mend="`torus verify` tells what is wrong with the run",
        )
    plan = protocol.resolve(node, [_parent_row(run, parent) for parent in node.parents])
    if not isinstance(plan, Plan):
        raise InputError(
            f"nothing was asked for {found.id}: {plan.status}, {plan.reason}",
            where=str(run.folder),
            expected="a unit that a head was asked",
            mend="name another unit; `torus show` tells about this one",
        )
    return node, plan, protocol


def _home(run: Run, node: Node) -> Run:
    """The run that a node's row lies in: a control's clips are those of the arm that it controls."""
    from torus_ray.report.runs import open_run

    if node.arm == run.arm:
        return run
    return open_run(run.folder.with_name(node.arm.name))


def _parent_row(run: Run, parent: Node) -> dict[str, Any]:
    import polars as pl

    from torus_ray.protocol.rows import TABLES

    rows = _home(run, parent).rows(TABLES[parent.kind]).filter(pl.col("unit_id") == parent.units[0].id)
    if not rows.height:
        raise InputError(
            f"the unit before it has no row: {parent.units[0].id}",
            where=str(run.folder),
            expected="the render or caption that the unit hangs on",
            mend="run the same `torus run` command again: it makes what is missing",
        )
    return rows.row(0, named=True)


def _ask(
    found: FoundUnit, system: System, node: Node, plan: Plan, protocol: Protocol
) -> tuple[Mapping[str, Any], Outcome]:
    """The row that the unit would have now, and how the call ended. The questions of a clip are asked together, as
    then."""
    from torus_ray.cli.borrow import borrow_environment
    from torus_ray.engine.hosts import HostPlan
    from torus_ray.engine.inline import InlineExecutor
    from torus_ray.heads import request_to_wire
    from torus_ray.protocol.executor import Call
    from torus_ray.protocol.requests import SILENCE
    from torus_ray.protocol.rows import make_row, reply_outcome
    from torus_ray.store.clips import read_clip
    from torus_ray.systems import System

    host = plan.host
    borrow_environment([System(system.card, {host.name: host})])
    clip = None
    if plan.clip is not None:
        heard = node.parents[0] if node.parents else None
        clip = read_clip(_home(found.run, heard).folder, plan.clip) if heard else SILENCE.data
    executor = InlineExecutor({host.name: HostPlan(host, str(host.folder), system.card.bits)})
    executor.start()
    try:
        request = protocol.request(plan, plan.asks, clip, "1")
        executor.submit([Call(1, host.name, plan.operation, request_to_wire(request), found.id)])
        (outcome,) = executor.collect(0.0)
    finally:
        executor.close()
    at = next(at for at, ask in enumerate(plan.asks) if ask.unit.id == found.id)
    told: dict[str, Any] = {"status": outcome.status, "reason": outcome.reason, "message": outcome.message}
    if outcome.reply is not None:
        told = reply_outcome(node.kind, outcome.reply, at)
    return make_row(protocol, node, plan.asks[at].unit, plan, plan.asks[at], told), outcome


def _notes(found: FoundUnit, now: Mapping[str, Any]) -> list[str]:
    notes = []
    if found.row["fingerprint"] != now["fingerprint"]:
        notes.append("the head is not the one of then: its adapter, settings, environment or weights have changed")
    elif found.row["key"] != now["key"]:
        notes.append("the request is not the one of then: its texts, clip or seed have changed")
    if now["message"]:
        notes.append(f"now: {now['message']}")
    return notes


def _shown(value: object) -> str:
    return "-" if value is None else str(value)
