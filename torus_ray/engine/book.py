"""What run.json says while a run goes on and when it ends."""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torus_ray
from torus_ray.bank.load import Bank
from torus_ray.protocol.executor import EngineStop
from torus_ray.protocol.graph import Node
from torus_ray.protocol.requests import Protocol
from torus_ray.protocol.rows import TABLES
from torus_ray.store.local import LocalRunStore
from torus_ray.store.manifest import Driver, HeadInfo, MeasureInfo, RunManifest
from torus_ray.systems import System


@dataclass
class Book:
    """Keeps run.json of every arm. measuring: the runs are there already, and only what measures them is noted."""

    system: System
    bank: Bank
    protocol: Protocol
    graph: Sequence[Node]
    stores: Mapping[str, LocalRunStore]
    reference: str | None
    measuring: bool
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    observed: dict[str, dict[str, Any]] = field(default_factory=dict)

    def take_in(self, described: Mapping[str, Mapping[str, Any]]) -> None:
        """What the hosts said of themselves when they were up. Raises EngineStop where earlier rows say otherwise."""
        self.versions = {name: {"python": told["python"], **told["versions"]} for name, told in described.items()}
        self.observed = {name: dict(told["observed"]) for name, told in described.items()}
        for store in self.stores.values():
            before = store.read_manifest()
            for name, head in self._heads(None).items():
                old = before.heads.get(name) if before and head.host in described else None
                if old and old.fingerprint == head.fingerprint and old.observed and old.observed != head.observed:
                    raise EngineStop(
                        f"head {name} has changed: its settings after loading differ from those of earlier rows",
                        where=store.name,
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
            counts = _counts(store) if state != "running" else (before.counts if before else {})
            if self.measuring and before is not None:
                # What the run is, and how its own units stand, is as it was.
                store.write_manifest(
                    before.model_copy(
                        update={
                            "heads": {**before.heads, **self._heads(before)},
                            "measures": self._measures(),
                            "reference": self.reference or before.reference,
                            "versions": {**before.versions, **self.versions},
                            "counts": counts,
                            "updated": now,
                            "epoch": store.epoch,
                        }
                    )
                )
                continue
            manifest = RunManifest(
                bank=self.bank.card.name,
                bank_hash=self.bank.hash,
                tests=tuple(tests),
                system=self.system.name,
                arm=arm.name,
                edit_mode=arm.edit_mode,
                seed=arm.seed,
                control=arm.control,
                heads={**_measuring_heads(before, self.system), **self._heads(before)},
                measures=self._measures() or (before.measures if before else {}),
                reference=self.reference or (before.reference if before else None),
                versions={**(before.versions if before else {}), **self.versions},
                card=self.system.card.model_dump(mode="json"),
                created=before.created if before else now,
                updated=now,
                state=state,
                exit_code=exit_code,
                counts=counts,
                engine=torus_ray.__version__,
                epoch=store.epoch,
                driver=Driver(pid=os.getpid(), host=platform.node()),
            )
            store.write_manifest(manifest)

    def stale(self) -> bool:
        """Whether some run.json does not say how its run stands: finished, measured so, with that reference."""
        manifests = [store.read_manifest() for store in self.stores.values()]
        return any(
            manifest is None
            or (manifest.state != "finished" and not self.measuring)
            or (self._measures() or manifest.measures) != manifest.measures
            or (self.reference or manifest.reference) != manifest.reference
            for manifest in manifests
        )

    def _measures(self) -> dict[str, MeasureInfo]:
        return {
            name: MeasureInfo(
                head=host.name,
                fingerprint=self.protocol.fingerprint(host, "measure"),
                metrics=self.system.metrics[name],
            )
            for name, host in self.system.measures.items()
        }

    def _heads(self, before: RunManifest | None) -> dict[str, HeadInfo]:
        """before: where a host that has not been up yet keeps what it said of itself earlier."""
        known = before.heads if before else {}
        heads = {
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
        return {
            name: known[name]
            if head.host not in self.observed and name in known and known[name].fingerprint == head.fingerprint
            else head
            for name, head in heads.items()
        }


def _measuring_heads(before: RunManifest | None, system: System) -> dict[str, HeadInfo]:
    """Heads of an earlier command whose measures stay, where this one measures nothing."""
    if before is None or system.measures:
        return {}
    taken = {measure.head for measure in before.measures.values()}
    return {name: head for name, head in before.heads.items() if head.host in taken}


def _counts(store: LocalRunStore) -> dict[str, dict[str, int]]:
    store.flush()
    counts = {}
    for table in TABLES.values():
        found = Counter(store.rows(table, ["status"])["status"].to_list())
        if found:
            counts[table] = dict(found)
    return counts
