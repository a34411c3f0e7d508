"""Where clips and answers made elsewhere belong: a run of its own, whose one head is called `imported`."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

import torus_ray
from torus_ray.bank.load import CARD_FILE, Bank, load_bank, snapshot
from torus_ray.errors import InputError
from torus_ray.protocol.graph import Arm, Node, build_graph
from torus_ray.protocol.requests import Protocol
from torus_ray.protocol.rows import TABLES
from torus_ray.report.runs import Run, open_run
from torus_ray.store.layout import MANIFEST, bank_folder, find_runs, run_folder, write_snapshot
from torus_ray.store.local import LocalRunStore
from torus_ray.store.manifest import Driver, HeadInfo, RunManifest, read_manifest
from torus_ray.store.mirror import local_folder, look_into, named, prepare
from torus_ray.store.place import place_of
from torus_ray.store.reader import current_rows
from torus_ray.systems import HostCard, HostSpec, System, SystemCard, TextsCard

HEAD = "imported"
_OPERATIONS = ("generate", "edit", "answer")
_ARM = re.compile(r"^native(?:\.seed([1-9][0-9]*))?$")

Row = dict[str, Any]


@dataclass(frozen=True)
class _ImportedHost(HostSpec):
    """A host that is not here: whoever it is has one identity, its name."""

    def head_fingerprint(self, operation: str) -> str:
        return hashlib.sha256(f"{self.module}{HEAD}".encode()).hexdigest()


def imported_system(name: str, texts: TextsCard | None = None) -> System:
    """The system of a name, as the protocol sees it; texts: where it is asked in other words.

    Raises InputError for a name that no system can have.
    """
    try:
        host = HostCard.model_validate({"adapter": HEAD, "heads": {operation: {} for operation in _OPERATIONS}})
        title = f"{name}, run elsewhere"
        card = SystemCard(name=name, title=title, texts=texts or TextsCard(), hosts={HEAD: host})
    except ValueError as error:
        raise InputError(
            f"{name!r} cannot be a system's name",
            where="--system",
            expected="lower-case letters and digits, joined by . + or -",
            mend="e.g. --system my-model",
        ) from error
    return System(card, {HEAD: _ImportedHost(HEAD, host, Path(), name, HEAD, "")})


@dataclass(frozen=True)
class Place:
    """A run that is exchanged with, there or still to come: its folder, bank, arm, and the protocol of its system."""

    folder: Path
    results: Path
    bank: Bank
    arm: Arm
    protocol: Protocol
    run: Run | None

    @property
    def system(self) -> str:
        return self.protocol.system.name

    @cached_property
    def graph(self) -> list[Node]:
        """Renders, captions and answers of this arm, parents first; in a control also the renders that it hears."""
        tests = [t for t in self.bank.tests if self.run is None or self.is_imported or t.id in set(self.run.tests)]
        return build_graph(system=self.system, bank=self.bank, tests=tests, arms=[self.arm])

    @property
    def is_imported(self) -> bool:
        """Whether the clips of the run were imported, not rendered by `torus run`."""
        return self.run is None or any(
            head.host == HEAD and "generate" in n for n, head in self.run.manifest.heads.items()
        )

    @cached_property
    def fingerprint(self) -> str:
        return self.protocol.fingerprint(self.protocol.system.hosts[HEAD], "answer")

    def rows(self, table: str) -> dict[str, Row]:
        """The current rows of the arm, and of the arm that a control hears, by unit."""
        folders = [self.folder, self.folder.with_name(self.arm.rendering.name)]
        frames = [current_rows(folder, table) for folder in dict.fromkeys(folders)]
        return {row["unit_id"]: row for row in pl.concat(frames).to_dicts()}

    def home(self, node: Node) -> Path:
        """The folder that a node's row and clip lie in."""
        return self.folder.with_name(node.arm.name)

    def write(self, table: str, rows: Sequence[Row], clips: Sequence[Any] = ()) -> None:
        """Make rows and clips durable, and run.json say so."""
        home = bank_folder(self.results, self.bank.card.name, self.bank.hash)
        write_snapshot(home, snapshot(self.bank), put=place_of(home).put)
        with LocalRunStore(self.folder) as store:
            store.append(table, rows, clips=clips, urgent=True)
            store.flush()
            store.write_manifest(self._manifest(store))

    def _manifest(self, store: LocalRunStore) -> RunManifest:
        before = read_manifest(self.folder)
        counts, have, tests = {}, set(), set()
        for table in TABLES.values():
            rows = store.rows(table, ["unit_id", "status", "test"])
            have |= set(rows["unit_id"])
            tests |= set(rows["test"])
            if rows.height:
                counts[table] = dict(Counter(rows["status"].to_list()))
        mine = [node for node in self.graph if node.arm == self.arm and node.test.id in tests]
        done = all(unit.id in have for node in mine for unit in node.units)
        now = time.time()
        return RunManifest(
            bank=self.bank.card.name,
            bank_hash=self.bank.hash,
            tests=before.tests if before and not self.is_imported else tuple(sorted(tests)),
            system=self.system,
            arm=self.arm.name,
            edit_mode=self.arm.edit_mode,
            seed=self.arm.seed,
            control=self.arm.control,
            heads={**(before.heads if before else {}), **self._heads(before)},
            versions=before.versions if before else {},
            card=before.card if before else self.protocol.system.card.model_dump(mode="json"),
            created=before.created if before else now,
            updated=now,
            state="finished" if done else "stopped",
            exit_code=0,
            counts=counts,
            engine=torus_ray.__version__,
            epoch=store.epoch,
            driver=Driver(pid=os.getpid(), host=platform.node()),
        )

    def _heads(self, before: RunManifest | None) -> Mapping[str, HeadInfo]:
        """The imported heads: all of them in a run of its own, the listener in a run whose clips were made here."""
        operations = _OPERATIONS if before is None or self.is_imported else ("answer",)
        return {
            f"{HEAD}.{operation}": HeadInfo(fingerprint=self.fingerprint, host=HEAD, seeded=False)
            for operation in operations
        }


def place(origin: Path, *, system: str | None = None, arm: str | None = None, results: Path | None = None) -> Place:
    """The run at `origin`; or, where that is a bank's folder, the run of `system` and `arm` under `results`.

    With a run and another `system` or `arm`: the run of those on the same bank, beside it. Raises InputError.
    """
    if (origin / CARD_FILE).is_file():
        bank = load_bank(origin)
        there = local_folder(results or Path("results")).absolute()
        prepare(there, bank_folder(there, bank.card.name, bank.hash))
        return _on_bank(bank, there, system, arm)
    origin = local_folder(origin)
    look_into(origin)
    if not (origin / MANIFEST).is_file():
        inside = find_runs(origin)
        raise InputError(
            f"neither a run nor a bank: {named(origin)}",
            where=named(origin.absolute()),
            expected="a run folder (it holds run.json) or a bank's folder (it holds bank.json)",
            mend=f"name one run, e.g. {named(inside[0])}" if inside else "check the path; `torus run` prints it",
        )
    run = open_run(origin.absolute())
    name, its_arm = system or run.manifest.system, arm or run.manifest.arm
    results = run.folder.parents[2]
    if (name, its_arm) != (run.manifest.system, run.manifest.arm):
        return _on_bank(run.bank, results, name, its_arm)
    texts = TextsCard.model_validate(run.manifest.card.get("texts") or {})
    return Place(run.folder, results, run.bank, run.arm, Protocol(imported_system(name, texts), run.bank), run)


def _on_bank(bank: Bank, results: Path, system: str | None, arm: str | None) -> Place:
    if system is None:
        raise InputError(
            "whose clips?", where="--system", expected="a name for the system that runs elsewhere", mend="--system NAME"
        )
    matched = _ARM.match(arm or "native")
    if matched is None:
        raise InputError(
            f"clips cannot be exchanged for the arm {arm!r}",
            where="--arm",
            expected="native, or native.seed1 and so on: a self-caption arm needs captions, a control has no clips",
            mend="--arm native",
        )
    chosen = Arm("native", int(matched[1] or 0))
    protocol = Protocol(imported_system(system), bank)
    folder = run_folder(results, bank.card.name, bank.hash, system, chosen.name)
    run = open_run(folder) if (folder / MANIFEST).is_file() else None
    return Place(folder, results, bank, chosen, protocol, run)
