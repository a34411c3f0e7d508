"""One command's run from its inputs to its rows: checks first, then stores, then hosts, then the loop."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torus_ray.bank.load import Bank, snapshot
from torus_ray.bank.memory import set_aside
from torus_ray.bank.schema import Test
from torus_ray.engine.book import Book
from torus_ray.engine.opening import Opening, open_executor, with_identity
from torus_ray.engine.runner import Runner, Watch
from torus_ray.errors import InputError
from torus_ray.protocol.executor import EngineStop
from torus_ray.protocol.graph import Arm, Node, build_graph, measuring_graph
from torus_ray.protocol.requests import Protocol
from torus_ray.store.bucket import before_start
from torus_ray.store.errors import StoreError
from torus_ray.store.index import ReuseIndex
from torus_ray.store.layout import bank_folder, run_folder, write_snapshot
from torus_ray.store.local import LocalRunStore
from torus_ray.store.mirror import named, prepare
from torus_ray.store.place import place_of
from torus_ray.systems import System

Row = dict[str, Any]
Conclude = Callable[[Mapping[str, LocalRunStore]], None]
"""What is to be written into the runs' stores (by arm) when all their units have rows, while they are still open."""

EXIT_DONE, EXIT_FAILED_UNITS, EXIT_STOPPED = 0, 1, 3


@dataclass(frozen=True)
class RunOptions:
    """What `torus run` was asked for.

    results: a folder, or the mirror of one in a bucket (store.mirror.local_folder). reference: what distances are taken
    to, as run.json names it; None where nothing is said.
    """

    results: Path
    tests: tuple[Test, ...]
    arms: tuple[Arm, ...]
    repeats: int = 1
    opening: Opening = field(default_factory=Opening)
    reference: str | None = None


@dataclass(frozen=True)
class RunResult:
    """How a command ended. runs: the run folder of each arm. by_status: units of this command. setup_s: before the
    first call."""

    runs: Mapping[str, Path]
    by_status: Mapping[str, int]
    computed: int
    setup_s: float
    evaluation_s: float
    exit_code: int = field(default=EXIT_DONE)


@set_aside()
def run_system(
    system: System,
    bank: Bank,
    options: RunOptions,
    *,
    watch: Watch = lambda progress: None,
    tell: Callable[[str], None] = lambda line: None,
    conclude: Conclude = lambda stores: None,
) -> RunResult:
    """Evaluate a system on a bank in the arms asked for; what is done already stays, the rest is computed. What the
    system can measure is measured of each clip beside it.

    Raises InputError before anything starts, EngineStop or StoreError when it cannot go on; rows made until then are
    durable.
    """
    began = time.monotonic()
    graph = build_graph(
        system=system.name,
        bank=bank,
        tests=options.tests,
        arms=options.arms,
        repeats=options.repeats,
        measures=system.metrics,
    )
    home = bank_folder(options.results, bank.card.name, bank.hash)
    prepare(options.results, home)
    try:
        with before_start():
            write_snapshot(home, snapshot(bank), put=place_of(home).put)
    except OSError as error:
        raise InputError(
            f"runs cannot be kept there: {error.strerror or error}",
            where=named(options.results),
            expected="a folder that can be written, or made",
            mend="choose another with --results",
        ) from error
    return _conduct(system, bank, graph, options, began, watch, tell, conclude)


@set_aside()
def measure_runs(
    system: System,
    bank: Bank,
    options: RunOptions,
    *,
    watch: Watch = lambda progress: None,
    tell: Callable[[str], None] = lambda line: None,
    conclude: Conclude = lambda stores: None,
) -> RunResult:
    """Take the measures of clips that runs have already; nothing is rendered, described or asked.

    system: named as the runs' is, its hosts those that measure. options.arms: of the runs, none of them a control.
    Errors as of :func:`run_system`.
    """
    prepare(options.results, bank_folder(options.results, bank.card.name, bank.hash))
    graph = measuring_graph(system=system.name, tests=options.tests, arms=options.arms, measures=system.metrics)
    return _conduct(system, bank, graph, options, time.monotonic(), watch, tell, conclude, measuring=True)


def _conduct(
    system: System,
    bank: Bank,
    graph: Sequence[Node],
    options: RunOptions,
    began: float,
    watch: Watch,
    tell: Callable[[str], None],
    conclude: Conclude,
    *,
    measuring: bool = False,
) -> RunResult:
    system = with_identity(system)
    protocol = Protocol(system, bank)
    arms = dict.fromkeys(node.arm for node in graph)
    folders = {arm.name: run_folder(options.results, bank.card.name, bank.hash, system.name, arm.name) for arm in arms}
    with ExitStack() as stack:
        failures: queue.SimpleQueue[StoreError] = queue.SimpleQueue()
        stores = {
            name: stack.enter_context(LocalRunStore(folder, on_failure=failures.put))
            for name, folder in folders.items()
        }
        known = {unit: row for name in stores for unit, row in _known_rows(stores[name], lost_clips=measuring).items()}
        graph = [node for node in graph if _is_there(node, known)]
        book = Book(system, bank, protocol, graph, stores, options.reference, measuring)
        reuse = ReuseIndex(options.results, protocol.fingerprints, here=list(folders.values()))
        runner = Runner(protocol, graph, stores, _NoExecutor(), reuse, known, watch, failures)
        missing = runner.prime()
        setup_s = time.monotonic() - began
        if missing:
            try:
                executor = stack.enter_context(open_executor(system, options.opening, tell))
                book.take_in(executor.start())
                book.write("running", None)
                runner.executor = executor
                setup_s = time.monotonic() - began
                runner.run()
                book.take_in(executor.described())
            except BaseException as error:
                try:
                    book.write("stopped", EXIT_STOPPED)
                except StoreError as failure:
                    error.add_note(f"and run.json could not be written: {failure}")
                raise
            for store in stores.values():
                store.flush()
        failed = sum(runner.by_status[status] for status in ("failed", "timeout"))
        code = EXIT_FAILED_UNITS if failed else EXIT_DONE
        if missing or book.stale():
            book.write("finished", code)
        conclude(stores)
    evaluation_s = time.monotonic() - began - setup_s
    return RunResult(folders, dict(runner.by_status), runner.written, setup_s, evaluation_s, code)


def _is_there(node: Node, known: Mapping[str, Row]) -> bool:
    """Whether a node can be asked: a clip that is given, and what is measured of it, only where it was rendered."""
    renders = [n for n in (node, *node.parents) if n.given]
    return all(render.units[0].id in known for render in renders)


def _known_rows(store: LocalRunStore, *, lost_clips: bool) -> dict[str, Row]:
    """What earlier commands left, as far as the loop needs it. A render whose clip file is gone does not count as
    done, unless `lost_clips`."""
    columns = {
        "renders": ["unit_id", "key", "status", "reason", "clip", "clip_sha256"],
        "captions": ["unit_id", "key", "status", "reason", "text"],
        "answers": ["unit_id", "key", "status", "reason"],
        "measures": ["unit_id", "key", "status", "reason"],
    }
    known: dict[str, Row] = {}
    for table, names in columns.items():
        for row in store.rows(table, names).iter_rows(named=True):
            if not lost_clips and row.get("clip") and not store.has_clip(row["clip"]):
                continue
            known[row["unit_id"]] = row
    return known


class _NoExecutor:
    """Stands where nothing has been started; a run that needs no call never asks it."""

    def __getattr__(self, name: str) -> Any:
        raise EngineStop(
            f"nothing has been started, so nothing can {name}", where="torus_ray.engine", mend="report this"
        )
