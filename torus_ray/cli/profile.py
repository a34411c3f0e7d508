"""`torus profile`: what a system's hosts take, by size of batch, and what follows from it."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.profiling.rows import ProfileRow
    from torus_ray.profiling.sweep import Open
    from torus_ray.systems import HostSpec, System


def profile(
    name: Annotated[str, typer.Argument(help="A system, the path of a card, or FILE.py:CLASS.", metavar="SYSTEM")],
    operations: Annotated[
        str | None, typer.Option(help="Only these, with commas: generate, edit, caption, answer, measure.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Seconds for each size, warm-up apart.", min=0.1)] = 10.0,
    batches: Annotated[
        str | None,
        typer.Option(
            help="Sizes to try, e.g. 1,2,4,8: of a batch, or in flight at once (style async). Where nothing is said: "
            "powers of two up to what the class takes."
        ),
    ] = None,
    bank: Annotated[
        Path | None, typer.Option(help="The bank whose tests are asked (the project's own).", show_default=False)
    ] = None,
    results: Annotated[Path, typer.Option(help="The profile goes under profiles/ there.")] = Path("results"),
    address: Annotated[
        str | None, typer.Option(help="A running Ray cluster; one of our own where nothing is said.")
    ] = None,
    inline: Annotated[bool, typer.Option(help="In this process, without Ray: one request at a time.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Profile a system: start time, batch or concurrency sweep, latency, rate, memory, where the time goes; and which
    batch and how many replicas to take. One replica of each host, host after host, asked what a run would ask."""
    from torus_ray.bank.load import load_bank
    from torus_ray.cli.borrow import borrow_environment
    from torus_ray.cli.common import default_bank
    from torus_ray.cli.model import system_of_model
    from torus_ray.engine.opening import with_identity
    from torus_ray.profiling.picture import draw_profile
    from torus_ray.profiling.rows import write_rows
    from torus_ray.systems import load_system

    of_a_file = ".py:" in name
    system = system_of_model(name) if of_a_file else load_system(name)
    wanted = chosen_operations(system, operations)
    sizes = chosen_sizes(batches)
    if ":/" in str(results):
        raise InputError(
            "a profile is kept in a folder", where="--results", expected="a folder", mend="give one of this machine"
        )
    loaded = load_bank(bank or default_bank())
    if inline:
        borrow_environment([system])
    system = with_identity(system)
    folder = profile_folder(results, system)
    file = folder / f"{time.strftime('%Y%m%d-%H%M%S')}.parquet"
    rows: list[ProfileRow] = []
    stopped = True
    try:
        opened = _opener(system, inline=inline, address=address, only_python=of_a_file)
        for row in rows_of(system, loaded, opened, folder, wanted, sizes, seconds, inline=inline):
            rows.append(row)
            print(_line(row), file=sys.stderr, flush=True)
        stopped = False
    finally:
        # What is measured stays, whatever ended the rest.
        if rows:
            write_rows(rows, file)
            draw_profile(rows, file.with_suffix(".png"))
            if stopped:
                print(f"what was measured until then: {file}", file=sys.stderr)
    advice = _advice(system, rows, here=address is None)
    if as_json:
        told = [{**dataclasses.asdict(row), "unit_s": row.unit_s, "rate": row.rate} for row in rows]
        print(json.dumps({"system": system.name, "profile": str(file), "rows": told, "advice": advice}, indent=1))
    else:
        _print(system, rows, advice, file)
    return 1 if any(row.status == "failed" for row in rows) else 0


def rows_of(
    system: System,
    bank: Any,
    open_executor: Open,
    folder: Path,
    operations: Sequence[str],
    sizes: tuple[int, ...] | None,
    seconds: float,
    *,
    inline: bool,
) -> Iterator[ProfileRow]:
    """The rows of all hosts that serve what is asked for; first those that render, whose clips the others hear."""
    from torus_ray.audio import decode, encode
    from torus_ray.contract.material import tone
    from torus_ray.profiling.material import Material
    from torus_ray.profiling.sweep import Wish, profile_host
    from torus_ray.store.files import make_folder
    from torus_ray.store.local import LocalRunStore

    material = Material(system, bank, encode(decode(tone())))
    hears = any(operation != "generate" for operation in operations)
    make_folder(folder)
    # A store of its own on the same disk, so that it takes what it takes in a run.
    with (
        tempfile.TemporaryDirectory(dir=folder, prefix=".store-") as place,
        LocalRunStore(Path(place) / "run") as store,
    ):
        for host in sorted(system.hosts.values(), key=lambda host: "generate" not in host.card.heads):
            served = tuple(operation for operation in operations if operation in host.card.heads)
            renders = hears and "generate" in host.card.heads
            if served or renders:
                yield from profile_host(
                    system, host, open_executor, material, store, Wish(served, sizes, seconds, inline)
                )


def profile_folder(results: Path, system: System) -> Path:
    """Where profiles of a system lie: another adapter, environment or weights have a folder of their own."""
    from torus_ray.bank.digest import sha256_of
    from torus_ray.profiling.rows import FOLDER

    heads = sorted(host.head_fingerprint(operation) for host in system.hosts.values() for operation in host.card.heads)
    return results / FOLDER / system.name / sha256_of(heads)[:8]


def chosen_operations(system: System, asked: str | None) -> tuple[str, ...]:
    """The operations to profile, in the order of a run. Raises InputError for a word that the system has not."""
    from torus_ray.bank.near import near_names
    from torus_ray.heads import OPERATIONS

    served = [name for name in OPERATIONS if any(name in host.card.heads for host in system.hosts.values())]
    if asked is None:
        return tuple(served)
    words = [word.strip() for word in asked.split(",") if word.strip()]
    unknown = [word for word in words if word not in served]
    if unknown or not words:
        near = near_names(unknown[0], served) if unknown else []
        raise InputError(
            f"{system.name} has no {', '.join(unknown)}" if unknown else "--operations has nothing",
            where="--operations",
            expected=(f"near: {', '.join(near)}; " if near else "") + f"some of {', '.join(served)}",
            mend="mend the word, or leave --operations out for all",
        )
    return tuple(name for name in served if name in words)


def chosen_sizes(asked: str | None) -> tuple[int, ...] | None:
    """The sizes to try, smallest first. Raises InputError for what is no number of 1 or more."""
    if asked is None:
        return None
    words = [word.strip() for word in asked.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and int(word) > 0 for word in words):
        raise InputError(
            f"{asked!r} are no sizes",
            where="--batches",
            expected="whole numbers from 1 on, e.g. 1,2,4,8",
            mend="mend it",
        )
    return tuple(sorted({int(word) for word in words}))


def _opener(system: System, *, inline: bool, address: str | None, only_python: bool) -> Open:
    from torus_ray.engine.opening import Opening, open_executor
    from torus_ray.protocol.executor import Executor
    from torus_ray.systems import System

    @contextmanager
    def opened(host: HostSpec) -> Iterator[Executor]:
        one = dataclasses.replace(host, card=host.card.model_copy(update={"replicas": 1}))
        alone = System(system.card, {host.name: one})
        how = Opening(inline=inline, address=address, only_python=only_python)
        with open_executor(alone, how, _tell) as executor:
            yield executor

    return opened


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _advice(system: System, rows: Sequence[ProfileRow], *, here: bool) -> dict[str, dict[str, Any]]:
    """What to take, by host. here: the host's machine is this one, so that replicas can be reckoned."""
    import psutil

    from torus_ray.profiling.memory import GIB, gpus_here
    from torus_ray.profiling.rows import advise, replicas_advised

    machine = {
        "cpus": float(os.cpu_count() or 1),
        "gpus": float(gpus_here()),
        "memory_gib": psutil.virtual_memory().total / GIB,
    }
    sizes = advise(rows)
    advice: dict[str, dict[str, Any]] = {}
    for host in dict.fromkeys(row.host for row in rows):
        card = system.hosts[host].card
        needs = {"cpus": card.num_cpus, "gpus": card.num_gpus, "memory_gib": card.memory_gb}
        count, why = replicas_advised([row for row in rows if row.host == host], needs, machine)
        advice[host] = {
            "sizes": {each.operation: {"size": each.size, "why": each.why} for each in sizes if each.host == host},
            "replicas": count if here else None,
            "replicas_why": why if here else "the machines of a cluster are not looked at",
        }
    return advice


def _line(row: ProfileRow) -> str:
    """A row as soon as it is known."""
    place = f"{row.host} {row.operation} {row.size}"
    if row.status != "ok":
        return f"{place}: {row.status}: {row.reason}"
    return f"{place}: {row.calls} calls, {_number(row.latency_p50_s)} s a call, {_number(row.rate)} {_unit(row)}"


def _unit(row: ProfileRow) -> str:
    return "audio s/s" if row.audio_s is not None else "units/s"


def _print(system: System, rows: Sequence[ProfileRow], advice: dict[str, dict[str, Any]], file: Path) -> None:
    from torus_ray.report.grids import Grid
    from torus_ray.report.terminal import print_grids

    header = ("host", "operation", "size", "calls", "rate", "p50 s", "p95 s", "p99 s", "GiB", "GPU GiB")
    times = ("host", "operation", "size", "calls", "queue ms", "transfer ms", "model ms", "store ms", "CPU ms a unit")
    good = [row for row in rows if row.status == "ok"]
    print_grids(
        [
            Grid(
                f"{system.name}: rate in seconds of audio a second (generate, edit) or units a second",
                header,
                tuple(
                    (
                        *(row.host, row.operation, str(row.size), str(row.calls)),
                        *map(_number, (row.rate, row.latency_p50_s, row.latency_p95_s, row.latency_p99_s)),
                        *map(_number, (row.memory_gib, row.gpu_memory_gib)),
                    )
                    for row in good
                ),
                left=2,
            ),
            Grid(
                "where the time of a call goes",
                times,
                tuple(
                    (
                        *(row.host, row.operation, str(row.size), str(row.calls)),
                        *map(_ms, (row.queue_s, row.transfer_s, row.model_s, row.store_s, row.cpu_s)),
                    )
                    for row in good
                ),
                left=2,
            ),
        ],
        _notes(rows, advice, file),
    )


def _notes(rows: Sequence[ProfileRow], advice: dict[str, dict[str, Any]], file: Path) -> list[str]:
    notes = []
    for host, told in advice.items():
        start = next(row for row in rows if row.host == host)
        load = "" if start.load_s is None else f", {start.load_s:.1f} s of it since its process began"
        notes.append(f"host {host}: up after {_number(start.start_s)} s{load}")
        for operation, size in told["sizes"].items():
            notes.append(f"host {host}: {operation} {size['why']}")
        notes.append(f"host {host}: {told['replicas_why']}")
    notes += [
        f"{row.host} {row.operation} {row.size}: {row.status}: {row.reason}" for row in rows if row.status != "ok"
    ]
    if any(row.inline for row in rows):
        notes.append("--inline: memory is that of this whole process, and nothing is transferred")
    return [*notes, "p95 needs 20 calls, p99 100", f"rows: {file}"]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _ms(value: float | None) -> str:
    return _number(None if value is None else 1000 * value)
