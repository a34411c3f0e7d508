"""One command's run from its inputs to its rows: checks first, then stores, then hosts, then the loop."""

from __future__ import annotations

import os
import queue
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torus_ray.bank.load import Bank, snapshot
from torus_ray.bank.schema import Test
from torus_ray.engine.book import Book
from torus_ray.engine.code import stage_code
from torus_ray.engine.env_build import EnvironmentStop
from torus_ray.engine.environments import (
    EnvironmentSpec,
    compile_runtime_env,
    environments_root,
    find_environment,
    preflight,
)
from torus_ray.engine.hosts import HostPlan
from torus_ray.engine.identity import environment_digest, weights_digest
from torus_ray.engine.inline import InlineExecutor
from torus_ray.engine.ray_variables import set_ray_variables
from torus_ray.engine.runner import Runner, Watch
from torus_ray.errors import InputError
from torus_ray.protocol.executor import EngineStop, Executor
from torus_ray.protocol.graph import Arm, Node, build_graph, measuring_graph
from torus_ray.protocol.requests import Protocol
from torus_ray.store.errors import StoreError
from torus_ray.store.index import ReuseIndex
from torus_ray.store.layout import bank_folder, clip_path, run_folder, write_snapshot
from torus_ray.store.local import LocalRunStore
from torus_ray.systems import System

Row = dict[str, Any]
Conclude = Callable[[Mapping[str, LocalRunStore]], None]
"""What is to be written into the runs' stores (by arm) when all their units have rows, while they are still open."""

EXIT_DONE, EXIT_FAILED_UNITS, EXIT_STOPPED = 0, 1, 3


@dataclass(frozen=True)
class RunOptions:
    """What `torus run` was asked for. address: a running Ray; None for one of our own. inline: no Ray at all.

    only_python: ship only the Python files beside the adapter (`--model`). reference: what distances are taken to, as
    run.json names it; None where nothing is said.
    """

    results: Path
    tests: tuple[Test, ...]
    arms: tuple[Arm, ...]
    repeats: int = 1
    exact: bool = False
    inline: bool = False
    address: str | None = None
    only_python: bool = False
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
    try:
        write_snapshot(bank_folder(options.results, bank.card.name, bank.hash), snapshot(bank))
    except OSError as error:
        raise InputError(
            f"runs cannot be kept there: {error.strerror or error}",
            where=str(options.results),
            expected="a folder that can be written, or made",
            mend="choose another with --results",
        ) from error
    return _conduct(system, bank, graph, options, began, watch, tell, conclude)


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
    environments = {host.card.environment: find_environment(host.card.environment) for host in system.hosts.values()}
    system = system.with_digests(
        {name: environment_digest(spec) for name, spec in environments.items()},
        {name: weights_digest(host) for name, host in system.hosts.items()},
    )
    protocol = Protocol(system, bank)
    arms = dict.fromkeys(node.arm for node in graph)
    folders = {arm.name: run_folder(options.results, bank.card.name, bank.hash, system.name, arm.name) for arm in arms}
    with ExitStack() as stack:
        failures: queue.SimpleQueue[StoreError] = queue.SimpleQueue()
        stores = {
            name: stack.enter_context(LocalRunStore(folder, on_failure=failures.put))
            for name, folder in folders.items()
        }
        known = {
            unit: row
            for name in stores
            for unit, row in _known_rows(stores[name], folders[name], lost_clips=measuring).items()
        }
        graph = [node for node in graph if _is_there(node, known)]
        book = Book(system, bank, protocol, graph, stores, options.reference, measuring)
        reuse = ReuseIndex(options.results, protocol.fingerprints, here=list(folders.values()))
        runner = Runner(protocol, graph, stores, _NoExecutor(), reuse, known, watch, failures)
        missing = runner.prime()
        setup_s = time.monotonic() - began
        if missing:
            try:
                down = _preflight(system, environments)
                for message in dict.fromkeys(down.values()):
                    tell(f"{message}; the run goes on without what it measures")
                executor = _executor(system, environments, options, down, tell, stack)
                stack.callback(executor.close)
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


def _known_rows(store: LocalRunStore, folder: Path, *, lost_clips: bool) -> dict[str, Row]:
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
            if not lost_clips and row.get("clip") and not clip_path(folder, row["clip"]).is_file():
                continue
            known[row["unit_id"]] = row
    return known


def _preflight(system: System, environments: Mapping[str, EnvironmentSpec]) -> dict[str, str]:
    """Each environment tried once with what its hosts need, before Ray starts. Raises EnvironmentStop; hosts that only
    measure come back instead, each with why it cannot run."""
    down: dict[str, str] = {}
    for name, spec in environments.items():
        here = [host for host in system.hosts.values() if host.card.environment == name]
        needed = [host for host in here if not host.background]
        # Files of hosts that the run can do without are looked at apart: their lack must not stop the others.
        for hosts in ([needed] if needed else []) + [[host] for host in here if host.background]:
            files = [weight.path for host in hosts for weight in host.card.weights.values()]
            num_gpus = max(host.card.num_gpus for host in hosts)
            memory_gib = max(host.card.gpu_memory_gb for host in hosts)
            nothing_new = hosts[0].background and needed and not files and not num_gpus
            if nothing_new or (spec.kind == "inherit" and not files and not num_gpus):
                continue  # this very interpreter, or one just tried: there is nothing to find out
            try:
                preflight(spec, files=files, num_gpus=num_gpus, gpu_memory_gib=memory_gib).raise_for_findings()
            except EnvironmentStop as stop:
                if not hosts[0].background:
                    raise
                down[hosts[0].name] = f"host {hosts[0].name!r} cannot run: {stop.message}"
    return down


def _executor(
    system: System,
    environments: Mapping[str, EnvironmentSpec],
    options: RunOptions,
    down: Mapping[str, str],
    tell: Callable[[str], None],
    stack: ExitStack,
) -> Executor:
    bits = system.card.bits
    if options.inline:
        plans = {
            name: HostPlan(host, str(host.folder), bits) for name, host in system.hosts.items() if name not in down
        }
        return InlineExecutor(plans, down=down, tell=tell)
    set_ray_variables()
    from torus_ray.engine.cluster import Cluster, reap_dead_sessions
    from torus_ray.engine.ray_executor import RayExecutor

    for line in reap_dead_sessions():
        tell(line)
    code = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torus-code-")))
    places = stage_code(code, system.hosts, whole_folder=not options.only_python)
    root = environments_root()
    plans = {
        name: HostPlan(host, places[name], bits, compile_runtime_env(environments[host.card.environment], root=root))
        for name, host in system.hosts.items()
    }
    needed = sum(plan.ray_cpus for plan in plans.values())
    cluster = Cluster(code, options.address, num_cpus=max(os.cpu_count() or 1, int(needed + 0.999)))
    return RayExecutor(plans, cluster, exact=options.exact, down=down, tell=tell)


class _NoExecutor:
    """Stands where nothing has been started; a run that needs no call never asks it."""

    def __getattr__(self, name: str) -> Any:
        raise EngineStop(
            f"nothing has been started, so nothing can {name}", where="torus_ray.engine", mend="report this"
        )
