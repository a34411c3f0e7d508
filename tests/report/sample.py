"""Whole runs made in a moment: the protocol's own graph and rows, with a toy in place of an executor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.canary import make_canary_bank
from tests.report.model import toy
from torus_ray.audio import decode, encode
from torus_ray.bank.load import Bank, load_bank, snapshot
from torus_ray.protocol.graph import Arm, Node, Unit, build_graph
from torus_ray.protocol.requests import Plan, Protocol
from torus_ray.protocol.rows import TABLES, make_row, render_outcome, settled
from torus_ray.store import LocalRunStore
from torus_ray.store.layout import bank_folder, run_folder, write_snapshot
from torus_ray.store.manifest import Driver, HeadInfo, RunManifest
from torus_ray.systems import System, model_system

MODEL = Path(toy.__file__)
ALL = ("generate", "edit", "caption", "answer")
ARMS = (Arm("native"), Arm("self-caption"), Arm("native", control="muted"), Arm("native", control="swapped"))

Row = dict[str, Any]
Hook = Callable[[Node, Unit, Row], Row]
"""Given a unit and the outcome it would have, another outcome."""


def canary(folder: Path, tests: int = 6, seed: int = 0) -> Bank:
    make_canary_bank(folder, tests=tests, seed=seed)
    return load_bank(folder)


def toy_system(heads: Sequence[str] = ALL, name: str = "toy") -> System:
    system = model_system(MODEL, "Toy", heads, {})
    return System(system.card.model_copy(update={"name": name}), system.hosts)


def make_runs(
    results: Path,
    bank: Bank,
    *,
    system: System | None = None,
    arms: Sequence[Arm] = ARMS,
    tests: int | None = None,
    hook: Hook = lambda node, unit, outcome: outcome,
    state: str = "finished",
) -> dict[str, Path]:
    """Run folders by arm. hook: what to change of any unit's outcome, e.g. to let it fail."""
    system = system or toy_system()
    protocol = Protocol(system, bank)
    graph = build_graph(system=system.name, bank=bank, tests=bank.tests[:tests], arms=arms)
    folders = {
        arm: run_folder(results, bank.card.name, bank.hash, system.name, arm.name)
        for arm in dict.fromkeys(node.arm for node in graph)
    }
    write_snapshot(bank_folder(results, bank.card.name, bank.hash), snapshot(bank))
    rows: dict[Node, Row] = {}
    clips: dict[str, Any] = {}
    made: dict[tuple[Arm, str], list[Row]] = {}
    for node in graph:
        plan = protocol.resolve(node, [rows[parent] for parent in node.parents])
        asks = plan.asks if isinstance(plan, Plan) else (None,) * len(node.units)
        for unit, ask in zip(node.units, asks, strict=True):
            outcome = _outcome(node, plan, ask, clips) if isinstance(plan, Plan) else settled(plan)
            row = make_row(protocol, node, unit, plan, ask, hook(node, unit, outcome))
            rows[node] = row
            made.setdefault((node.arm, TABLES[node.kind]), []).append(row)
    for arm, folder in folders.items():
        with LocalRunStore(folder) as store:
            for table in TABLES.values():
                if mine := made.get((arm, table)):
                    heard = [clips[row["clip"]] for row in mine if table == "renders" and row["clip"]]
                    store.append(table, mine, clips=heard, attempts=[_attempt(row) for row in mine[:3]])
            store.flush()
            store.write_manifest(_manifest(protocol, bank, arm, graph, store, state))
    return {arm.name: folder for arm, folder in folders.items()}


def _outcome(node: Node, plan: Plan, ask: Any, clips: dict[str, Any]) -> Row:
    if node.kind == "render":
        stored = encode(toy.tone(ask.content["prompt"], 0.2 if node.operation == "edit" else 0.3))
        clips[stored.id] = stored
        return render_outcome(stored, False)
    if node.kind == "caption":
        return {"status": "ok", "text": toy.caption(decode(clips[plan.clip].data))}
    return {"status": "ok", "reply": toy.reply(ask.content["prompt"])}


def _attempt(row: Row) -> Row:
    return {
        "unit_id": row["unit_id"],
        "attempt": 1,
        "status": "ok",
        "worker": "toy#1",
        "pid": 7,
        "started_at": 1.0,
        "ended_at": 1.5,
    }


def _manifest(
    protocol: Protocol, bank: Bank, arm: Arm, graph: Sequence[Node], store: LocalRunStore, state: Any
) -> RunManifest:
    counts = {table: dict(Counter(store.rows(table)["status"].to_list())) for table in TABLES.values()}
    return RunManifest(
        bank=bank.card.name,
        bank_hash=bank.hash,
        tests=tuple(sorted({node.test.id for node in graph if node.arm == arm})),
        system=protocol.system.name,
        arm=arm.name,
        edit_mode=arm.edit_mode,
        seed=arm.seed,
        control=arm.control,
        heads={f"model.{operation}": HeadInfo(fingerprint="f" * 64) for operation in ALL},
        card=protocol.system.card.model_dump(mode="json"),
        created=1.0,
        updated=2.0,
        state=state,
        exit_code=0,
        counts={table: found for table, found in counts.items() if found},
        engine="0",
        epoch=store.epoch,
        driver=Driver(pid=1, host="here"),
    )
