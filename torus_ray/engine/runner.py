"""The loop of a run: ready nodes become calls, outcomes become rows, durable rows make other nodes ready.

The runner joins the three parts that know nothing of each other: the protocol (what is asked), the executor (who
answers) and the store (what stays). A node starts only when the rows of its parents are durable.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torus_ray.audio import StoredClip
from torus_ray.bank.memory import set_aside
from torus_ray.engine.on_the_way import Asked, Durable, Follower, Pending, RecentClips, attempt_rows
from torus_ray.heads import clip_from_wire, request_to_wire
from torus_ray.protocol.executor import Attempt, Call, Executor, HostState, Outcome
from torus_ray.protocol.graph import Node, Unit
from torus_ray.protocol.requests import SILENCE, Ask, Plan, Protocol, Verdict
from torus_ray.protocol.rows import REUSABLE, TABLES, make_row, reply_outcome, settled
from torus_ray.store.errors import ClipDamaged, StoreError
from torus_ray.store.index import Found, ReuseIndex
from torus_ray.store.interface import ClipSource, RunStore
from torus_ray.store.tables import is_final

Row = Mapping[str, Any]

TICK_S = 0.5
ONWARD = ("render", "caption")
"""Kinds of nodes whose rows others start from."""
HANDED_ON = ("status", "reason", "clip", "clip_sha256", "text")
"""What those need of a row."""
GATHERED_ROWS = 1024
"""Rows that wait here at most before a store gets them: many units taken over at once need no call in between."""
STUCK_S = 60.0
"""Seconds without a finished unit after which the progress says what is being waited for."""


@dataclass(frozen=True)
class Progress:
    """How a run stands. units: expected of this command; done: durable; by_status: of those, new and kept ones
    alike. by_unit: (arm, operation, status) -> those that this command made durable. outcomes: the calls that came back
    since the last one."""

    units: int
    done: int
    kept: int
    reused: int
    by_status: Mapping[str, int]
    hosts: Mapping[str, HostState]
    elapsed_s: float
    stuck: str = ""
    by_unit: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    outcomes: Sequence[Outcome] = ()


Watch = Callable[[Progress], None]


@dataclass
class Runner:
    """Runs a graph to its end. stores: by arm name; what stops one of them comes in `store_failures`. known: rows of
    earlier commands, unit id -> row (status, reason, clip, text).

    run() raises whatever stops it (EngineStop, StoreError, KeyboardInterrupt); what is durable stays.
    """

    protocol: Protocol
    graph: Sequence[Node]
    stores: Mapping[str, RunStore]
    executor: Executor
    reuse: ReuseIndex
    known: Mapping[str, Row]
    watch: Watch = lambda progress: None
    store_failures: queue.SimpleQueue[StoreError] = field(default_factory=queue.SimpleQueue)
    by_status: Counter[str] = field(default_factory=Counter)
    by_unit: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._left: dict[Node, int] = {}
        self._blocked: dict[Node, int] = {}
        self._rows: dict[Node, Row] = {}
        self._ready: dict[str | None, list[tuple[int, int, Node, float]]] = {}
        self._order = itertools.count()
        self._ids = itertools.count(1)
        self._in_flight: dict[int, Asked] = {}
        self._followers: dict[str, list[Follower]] = {}
        self._pending: dict[tuple[str, str], Pending] = {}
        self._durable: queue.SimpleQueue[Durable] = queue.SimpleQueue()
        self._heard = RecentClips()
        self._places = {arm: Path(store.location) for arm, store in self.stores.items()}
        self._open = 0
        self._leading = 0  # nodes on their way to the disk that others wait for
        self._kept = 0
        self._reused = 0
        self._stood = 0
        self._units = sum(len(node.units) for node in self.graph)
        self._started = time.monotonic()
        self._moved = time.monotonic()

    # --- the loop -------------------------------------------------------------------------------------------------

    def prime(self) -> int:
        """Sort out what is done already; the number of units that still need a row."""
        for node in self.graph:
            missing = len(self._missing(node))
            self._left[node] = len(node.units) if missing else 0
            if missing:
                self._open += 1
            elif node.kind in ONWARD:
                self._rows[node] = self.known[node.units[0].id]
            self._blocked[node] = sum(1 for parent in node.parents if self._left[parent])
            if missing and not self._blocked[node]:
                self._make_ready(node)
            for unit in node.units:
                if not missing:
                    self._kept += 1
                    self.by_status[str(self.known[unit.id]["status"])] += 1
        return self._units - self._kept

    @set_aside()
    def run(self) -> None:
        """Until every unit has its row, durable."""
        self._started = self._moved = time.monotonic()
        try:
            while self._open:
                self._submit_ready()
                self._hand_over()
                timeout_s = TICK_S if self._durable.empty() else 0.0
                outcomes = self.executor.collect(timeout_s, settled=not self._leading)
                for outcome in outcomes:
                    self._finish(outcome)
                self._hand_over()
                self._settle_durable()
                if not self.store_failures.empty():
                    raise self.store_failures.get()
                self.watch(self.progress(outcomes))
        finally:
            self._hand_over()

    @property
    def written(self) -> int:
        """Units that got a row by this command, computed or taken over."""
        return self.by_status.total() - self._kept - self._stood

    def progress(self, outcomes: Sequence[Outcome] = ()) -> Progress:
        silent_s = time.monotonic() - self._moved
        states = self.executor.states()
        stuck = ""
        if silent_s > STUCK_S:
            notes = [state.note for state in states.values() if state.note]
            stuck = f"nothing has finished for {silent_s:.0f} s" + (": " + "; ".join(notes) if notes else "")
        return Progress(
            units=self._units,
            done=self.by_status.total(),
            kept=self._kept,
            reused=self._reused,
            by_status=dict(self.by_status),
            hosts=states,
            elapsed_s=time.monotonic() - self._started,
            stuck=stuck,
            by_unit=self.by_unit,
            outcomes=outcomes,
        )

    # --- from ready to asked --------------------------------------------------------------------------------------

    def _missing(self, node: Node) -> list[Unit]:
        """Units of a node without a final row for what they would ask today: an edited adapter or card asks anew."""
        if any(self._left[parent] for parent in node.parents):
            return list(node.units)
        if node.given:
            return []
        plan = self.protocol.resolve(node, [self._rows[parent] for parent in node.parents])
        keys = {} if isinstance(plan, Verdict) else {ask.unit.id: ask.key for ask in plan.asks}
        return [unit for unit in node.units if not self._stands(node, unit, plan, keys.get(unit.id))]

    def _stands(self, node: Node, unit: Unit, plan: Plan | Verdict, key: str | None) -> bool:
        row = self.known.get(unit.id)
        if row is None or row["key"] != key:
            return False
        if isinstance(plan, Verdict):
            return (row["status"], row["reason"]) == (plan.status, plan.reason)
        seeded = plan.host.card.heads[node.operation].seeded
        return is_final(str(row["status"]), row["reason"], seeded=seeded)

    def _make_ready(self, node: Node) -> None:
        host = self.protocol.host(node)
        heap = self._ready.setdefault(host.name if host else None, [])
        heapq.heappush(heap, (-node.chain, next(self._order), node, time.time()))

    def _submit_ready(self) -> None:
        for host, heap in self._ready.items():
            room = self.executor.room(host) if host is not None else len(heap)
            calls: list[Call] = []
            while heap and len(calls) < room:
                _, _, node, ready_at = heapq.heappop(heap)
                calls += self._start(node, ready_at)
            if calls:
                self.executor.submit(calls)

    def _start(self, node: Node, ready_at: float) -> list[Call]:
        """Give each missing unit of a node its row, a leader to wait for, or a place in the call that is returned."""
        plan = self.protocol.resolve(node, [self._rows[parent] for parent in node.parents])
        if isinstance(plan, Verdict):
            rows = [make_row(self.protocol, node, unit, plan, None, settled(plan)) for unit in node.units]
            if all(self._stands(node, unit, plan, None) for unit in node.units):
                self._stood += len(rows)
                self._leading += bool(node.children)
                self._durable.put(Durable([(node, len(rows))], rows))
            else:
                self._append(node, rows)
            return []
        asks = []
        for ask in plan.asks:
            if self._stands(node, ask.unit, plan, ask.key):
                self._stood += 1
                self._leading += bool(node.children)
                row = {**self.known[ask.unit.id], "reused_from": ask.unit.id}
                self._durable.put(Durable([(node, 1)], [row]))
                continue
            if ask.key in self._followers:
                self._followers[ask.key].append(Follower(node, plan, ask))
                continue
            found = self.reuse.find(TABLES[node.kind], ask.key)
            if found is not None and self._take_over(node, plan, ask, found):
                continue
            self._followers[ask.key] = []
            asks.append(ask)
        if not asks:
            return []
        try:
            return [self._call(node, plan, tuple(asks), ready_at)]
        except ClipDamaged as damage:
            if node.kind != "measure":
                raise
            # What is only measured stops nothing: its row says why there is no number.
            failure = {"status": "failed", "reason": "clip_damaged", "message": damage.message}
            self._append(node, [make_row(self.protocol, node, ask.unit, plan, ask, failure) for ask in asks])
            return []

    def _call(
        self, node: Node, plan: Plan, asks: tuple[Ask, ...], ready_at: float, earlier: tuple[Attempt, ...] = ()
    ) -> Call:
        clip = self._clip_bytes(node, plan)
        number = next(self._ids)
        request = self.protocol.request(plan, asks, clip, str(number))
        self._in_flight[number] = Asked(node, plan, asks, ready_at, earlier)
        label = asks[0].unit.id
        return Call(number, plan.host.name, plan.operation, request_to_wire(request), label, node.chain, plan.clip)

    def _clip_bytes(self, node: Node, plan: Plan) -> bytes | None:
        if plan.clip is None:
            return None
        if not node.parents:
            return SILENCE.data
        data = self._heard.get(plan.clip)
        if data is None:
            heard = node.parents[0]
            data = self.stores[heard.arm.name].get_clip(plan.clip, self._rows[heard].get("clip_sha256"))
            self._heard.add(plan.clip, data)
        return data

    # --- from outcome to row --------------------------------------------------------------------------------------

    def _finish(self, outcome: Outcome) -> None:
        self._moved = time.monotonic()
        asked = self._in_flight.pop(outcome.call.id)
        node, plan, asks = asked.node, asked.plan, asked.asks
        if outcome.status != "ok" and len(asks) > 1:
            # One question may be to blame: each is asked alone.
            earlier = (*asked.earlier, *outcome.attempts)
            self.executor.submit([self._call(node, plan, (ask,), asked.ready_at, earlier) for ask in asks])
            return
        attempts = attempt_rows(asked, outcome)
        failure = {"status": outcome.status, "reason": outcome.reason, "message": outcome.message}
        if outcome.status != "ok" or outcome.reply is None:
            rows = [make_row(self.protocol, node, ask.unit, plan, ask, failure) for ask in asks]
            self._append(node, rows, attempts=attempts)
            return
        rows = [
            make_row(self.protocol, node, ask.unit, plan, ask, reply_outcome(node.kind, outcome.reply, at))
            for at, ask in enumerate(asks)
        ]
        clips = [clip_from_wire(outcome.reply["clip"])] if node.kind == "render" else []
        for clip in clips:
            self._heard.add(clip.id, clip.data)
        self._append(node, rows, clips=clips, attempts=attempts)

    def _append(
        self, node: Node, rows: Sequence[Row], *, clips: Sequence[StoredClip] = (), attempts: Sequence[Row] = ()
    ) -> None:
        self._leading += bool(node.children)
        pending = self._pending.setdefault((node.arm.name, TABLES[node.kind]), Pending())
        pending.counts.append((node, len(rows)))
        pending.rows += rows
        pending.clips += clips
        pending.attempts += attempts
        if len(pending.rows) >= GATHERED_ROWS:
            self._hand_over()

    def _hand_over(self) -> None:
        """Give the stores what has gathered: at once to disk where something waits for it, or nothing more will come
        with it."""
        last = not self._in_flight and not any(self._ready.values())
        for (arm, table), pending in list(self._pending.items()):

            def durable(at: float, written: Sequence[Row], counts: Sequence[tuple[Node, int]] = pending.counts) -> None:
                # On the store's thread: hand over and return.
                self._durable.put(Durable(counts, written))
                self.executor.nudge()

            self.stores[arm].append(
                table,
                pending.rows,
                clips=pending.clips,
                attempts=pending.attempts,
                on_durable=durable,
                urgent=last or any(node.children for node, _ in pending.counts),
            )
            # Not sooner: Ctrl-C while a full store is waited for must lose nothing. Twice the same row does no harm.
            del self._pending[arm, table]

    def _settle_durable(self) -> None:
        while True:
            try:
                counts, rows = self._durable.get_nowait()
            except queue.Empty:
                return
            at = 0
            for node, count in counts:
                self._settle(node, rows[at : at + count])
                at += count

    def _settle(self, node: Node, rows: Sequence[Row]) -> None:
        self._leading -= bool(node.children)
        for row in rows:
            self.by_status[row["status"]] += 1
            self.by_unit[node.arm.name, node.operation, row["status"]] += 1
            for follower in self._followers.pop(row["key"], ()) if row["key"] else ():
                self._follow(follower, node, row)
        # What is asked later under an equal key, by the other arm's stage 1 above all, takes it over.
        own = [row for row in rows if row["reused_from"] is None]
        if own:
            self.reuse.add(TABLES[node.kind], own, self._places[node.arm.name])
        self._left[node] -= len(rows)
        if node.kind in ONWARD:
            self._rows[node] = {name: rows[0].get(name) for name in HANDED_ON}
        if self._left[node] == 0:
            self._open -= 1
            self._release(node)

    def _release(self, node: Node) -> None:
        for child in node.children:
            if self._left[child]:
                self._blocked[child] -= 1
                if self._blocked[child] == 0:
                    self._make_ready(child)
        for parent in node.parents:
            if all(self._left[child] == 0 for child in parent.children):
                self._rows.pop(parent, None)

    # --- re-use ---------------------------------------------------------------------------------------------------

    def _follow(self, follower: Follower, leader: Node, row: Row) -> None:
        """Give a unit the outcome of an equal key that has just become durable."""
        found = Found(row, row["reused_from"] or row["unit_id"], self._places[leader.arm.name])
        if row["status"] not in REUSABLE or not self._take_over(follower.node, follower.plan, follower.ask, found):
            self._append(
                follower.node,
                [make_row(self.protocol, follower.node, follower.ask.unit, follower.plan, follower.ask, row)],
            )

    def _take_over(self, node: Node, plan: Plan, ask: Ask, found: Found) -> bool:
        """Write the row of an equal key as this unit's own, its clip with it; False where that clip is damaged."""
        store = self.stores[node.arm.name]
        outcome = found.outcome
        clip = outcome["clip"] if node.kind == "render" else None
        here = self._places[node.arm.name]
        if clip and found.run == here and not store.has_clip(clip):
            return False
        if clip and found.run != here:
            linked = store.link_clips([ClipSource(clip, str(found.run), outcome["clip_sha256"])])
            if clip in linked.damaged:
                return False
            # The same sound may lie here already, in a file of another encoder.
            kept = linked.kept[clip]
            outcome = {**outcome, "clip_sha256": kept.sha256, "clip_bytes": kept.size}
        self._reused += 1
        self._append(node, [make_row(self.protocol, node, ask.unit, plan, ask, outcome, reused_from=found.unit_id)])
        return True
