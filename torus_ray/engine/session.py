"""One command's run from its inputs to its rows: checks first, then stores, then hosts, then the loop."""

from __future__ import annotations

import os
import platform
import queue
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torus_ray
from torus_ray.bank.load import Bank, snapshot
from torus_ray.bank.schema import Test
from torus_ray.engine.code import stage_code
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
from torus_ray.protocol.graph import Arm, Node, build_graph
from torus_ray.protocol.requests import Protocol
from torus_ray.store.errors import StoreError
from torus_ray.store.index import ReuseIndex
from torus_ray.store.layout import bank_folder, clip_path, run_folder, write_snapshot
from torus_ray.store.local import LocalRunStore
from torus_ray.store.manifest import Driver, HeadInfo, RunManifest
from torus_ray.systems import System

Row = dict[str, Any]

EXIT_DONE, EXIT_FAILED_UNITS, EXIT_STOPPED = 0, 1, 3


@dataclass(frozen=True)
class RunOptions:
    """What `torus run` was asked for. address: a running Ray; None for one of our own. inline: no Ray at all.

    only_python: ship only the Python files beside the adapter (`--model`).
    """

    results: Path
    tests: tuple[Test, ...]
    arms: tuple[Arm, ...]
    repeats: int = 1
    exact: bool = False
    inline: bool = False
    address: str | None = None
    only_python: bool = False


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
) -> RunResult:
    """Evaluate a system on a bank in the arms asked for; what is done already stays, the rest is computed.

    Raises InputError before anything starts, EngineStop or StoreError when it cannot go on; rows made until then are
    durable.
    """
    began = time.monotonic()
    environments = {host.card.environment: find_environment(host.card.environment) for host in system.hosts.values()}
    system = system.with_digests(
        {name: environment_digest(spec) for name, spec in environments.items()},
        {name: weights_digest(host) for name, host in system.hosts.items()},
    )
    protocol = Protocol(system, bank)
    graph = build_graph(system=system.name, bank=bank, tests=options.tests, arms=options.arms, repeats=options.repeats)
    arms = dict.fromkeys(node.arm for node in graph)
    folders = {arm.name: run_folder(options.results, bank.card.name, bank.hash, system.name, arm.name) for arm in arms}
    try:
        write_snapshot(bank_folder(options.results, bank.card.name, bank.hash), snapshot(bank))
    except OSError as error:
        raise InputError(
            f"runs cannot be kept there: {error.strerror or error}",
            where=str(options.results),
            expected="a folder that can be written, or made",
            mend="choose another with --results",
        ) from error
    with ExitStack() as stack:
        failures: queue.SimpleQueue[StoreError] = queue.SimpleQueue()
        stores = {
            name: stack.enter_context(LocalRunStore(folder, on_failure=failures.put))
            for name, folder in folders.items()
        }
        book = _Book(system, bank, protocol, graph, stores)
        known = {unit: row for name in stores for unit, row in _known_rows(stores[name], folders[name]).items()}
        reuse = ReuseIndex(options.results, protocol.fingerprints, here=list(folders.values()))
        runner = Runner(protocol, graph, stores, _NoExecutor(), reuse, known, watch, failures)
        missing = runner.prime()
        setup_s = time.monotonic() - began
        if missing:
            try:
                _preflight(system, environments)
                executor = _executor(system, environments, options, tell, stack)
                stack.callback(executor.close)
                book.take_in(executor.start())
                book.write("running", None)
                runner.executor = executor
                setup_s = time.monotonic() - began
                runner.run()
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
    evaluation_s = time.monotonic() - began - setup_s
    return RunResult(folders, dict(runner.by_status), runner.written, setup_s, evaluation_s, code)


def _known_rows(store: LocalRunStore, folder: Path) -> dict[str, Row]:
    """What earlier commands left, as far as the loop needs it. A render whose clip file is gone does not count as
    done."""
    columns = {
        "renders": ["unit_id", "key", "status", "reason", "clip", "clip_sha256"],
        "captions": ["unit_id", "key", "status", "reason", "text"],
        "answers": ["unit_id", "key", "status", "reason"],
    }
    known: dict[str, Row] = {}
    for table, names in columns.items():
        for row in store.rows(table, names).iter_rows(named=True):
            if row.get("clip") and not clip_path(folder, row["clip"]).is_file():
                continue
            known[row["unit_id"]] = row
    return known


def _preflight(system: System, environments: Mapping[str, EnvironmentSpec]) -> None:
    """Each environment tried once with what its hosts need, before Ray starts. Raises EnvironmentStop."""
    for name, spec in environments.items():
        hosts = [host for host in system.hosts.values() if host.card.environment == name]
        files = [weight.path for host in hosts for weight in host.card.weights.values()]
        if spec.kind == "inherit" and not files and not any(host.card.num_gpus for host in hosts):
            continue  # this very interpreter: there is nothing to find out
        preflight(spec, files=files, num_gpus=max(host.card.num_gpus for host in hosts)).raise_for_findings()


def _executor(
    system: System,
    environments: Mapping[str, EnvironmentSpec],
    options: RunOptions,
    tell: Callable[[str], None],
    stack: ExitStack,
) -> Executor:
    bits = system.card.bits
    if options.inline:
        plans = {name: HostPlan(host, str(host.folder), bits) for name, host in system.hosts.items()}
        return InlineExecutor(plans)
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
    needed = sum(host.card.num_cpus for host in system.hosts.values())
    cluster = Cluster(code, options.address, num_cpus=max(os.cpu_count() or 1, int(needed + 0.999)))
    return RayExecutor(plans, cluster, exact=options.exact, tell=tell)


@dataclass
class _Book:
    """Keeps run.json of every arm."""

    system: System
    bank: Bank
    protocol: Protocol
    graph: Sequence[Node]
    stores: Mapping[str, LocalRunStore]
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    observed: dict[str, dict[str, Any]] = field(default_factory=dict)

    def take_in(self, described: Mapping[str, Mapping[str, Any]]) -> None:
        """What the hosts said of themselves when they were up. Raises EngineStop where earlier rows say otherwise."""
        self.versions = {name: {"python": told["python"], **told["versions"]} for name, told in described.items()}
        self.observed = {name: dict(told["observed"]) for name, told in described.items()}
        for store in self.stores.values():
            before = store.read_manifest()
            for name, head in self._heads().items():
                old = before.heads.get(name) if before else None
                if old and old.fingerprint == head.fingerprint and old.observed and old.observed != head.observed:
                    raise EngineStop(
                        f"head {name} has changed: its settings after loading differ from those of earlier rows",
                        where=store.location,
                        expected=f"{old.observed}, found {head.observed}",
                        mend="put back what was changed outside the card, or use another --results folder",
                    )

    def write(self, state: Any, exit_code: int | None) -> None:
        for arm in dict.fromkeys(node.arm for node in self.graph):
            store = self.stores[arm.name]
            before = store.read_manifest()
            tests = sorted(
                {node.test.id for node in self.graph if node.arm == arm} | set(before.tests if before else ())
            )
            now = time.time()
            manifest = RunManifest(
                bank=self.bank.card.name,
                bank_hash=self.bank.hash,
                tests=tuple(tests),
                system=self.system.name,
                arm=arm.name,
                edit_mode=arm.edit_mode,
                seed=arm.seed,
                control=arm.control,
                heads=self._heads(),
                versions=self.versions or (before.versions if before else {}),
                card=self.system.card.model_dump(mode="json"),
                created=before.created if before else now,
                updated=now,
                state=state,
                exit_code=exit_code,
                counts=_counts(store) if state != "running" else (before.counts if before else {}),
                engine=torus_ray.__version__,
                epoch=store.epoch,
                driver=Driver(pid=os.getpid(), host=platform.node()),
            )
            store.write_manifest(manifest)

    def stale(self) -> bool:
        """Whether some run.json does not say that its run is finished, though it is."""
        manifests = [store.read_manifest() for store in self.stores.values()]
        return any(manifest is None or manifest.state != "finished" for manifest in manifests)

    def _heads(self) -> dict[str, HeadInfo]:
        return {
            f"{host.name}.{operation}": HeadInfo(
                fingerprint=self.protocol.fingerprint(host, operation),
                host=host.name,
                adapter=host.card.adapter,
                environment=host.card.environment,
                settings={**host.card.settings, **head.settings},
                observed=self.observed.get(host.name, {}),
                seeded=head.seeded,
            )
            for host in self.system.hosts.values()
            for operation, head in host.card.heads.items()
        }


def _counts(store: LocalRunStore) -> dict[str, dict[str, int]]:
    store.flush()
    counts = {}
    for table in ("renders", "captions", "answers"):
        found = Counter(store.rows(table, ["status"])["status"].to_list())
        if found:
            counts[table] = dict(found)
    return counts


class _NoExecutor:
    """Stands where nothing has been started; a run that needs no call never asks it."""

    def __getattr__(self, name: str) -> Any:
        raise EngineStop(
            f"nothing has been started, so nothing can {name}", where="torus_ray.engine", mend="report this"
        )
