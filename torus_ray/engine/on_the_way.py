"""What is between a ready node and its durable rows: calls in flight, rows that gather, rows that have been written."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from torus_ray.audio import StoredClip
from torus_ray.protocol.executor import Attempt, Outcome
from torus_ray.protocol.graph import Node
from torus_ray.protocol.requests import Ask, Plan

Row = Mapping[str, Any]

HEARD_BYTES = 32_000_000
"""Clips kept in memory because they have just been made and are asked about or edited next."""


@dataclass(slots=True)
class Asked:
    """A call in flight."""

    node: Node
    plan: Plan
    asks: tuple[Ask, ...]
    ready_at: float
    earlier: tuple[Attempt, ...] = ()


class Durable(NamedTuple):
    """Rows that are on disk, and how many of them, in their order, belong to which node."""

    counts: Sequence[tuple[Node, int]]
    rows: Sequence[Row]


@dataclass(slots=True)
class Pending:
    """Rows of one store and table on their way to it, as many at a time as one look at the executor brings."""

    counts: list[tuple[Node, int]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    clips: list[StoredClip] = field(default_factory=list)
    attempts: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class Follower:
    """A unit that waits for an equal key asked by another node."""

    node: Node
    plan: Plan
    ask: Ask


def attempt_rows(asked: Asked, outcome: Outcome) -> list[Row]:
    """One row a unit and attempt; the questions of one call share its CPU seconds."""
    rows: list[Row] = []
    for number, attempt in enumerate((*asked.earlier, *outcome.attempts), start=1):
        row = {name: getattr(attempt, name) for name in _ATTEMPT}
        row |= {"attempt": number, "operation": outcome.call.operation, "ready_at": asked.ready_at}
        if row["cpu_s"] is not None:
            row["cpu_s"] /= len(asked.asks)
        rows += [{**row, "unit_id": ask.unit.id} for ask in asked.asks]
    return rows


_ATTEMPT = tuple(each.name for each in fields(Attempt) if each.name != "number")


class RecentClips:
    """Bytes of clips by identity, those used last, up to HEARD_BYTES."""

    def __init__(self, most: int = HEARD_BYTES) -> None:
        self._most, self._held = most, 0
        self._clips: OrderedDict[str, bytes] = OrderedDict()

    def get(self, clip: str) -> bytes | None:
        data = self._clips.get(clip)
        if data is not None:
            self._clips.move_to_end(clip)
        return data

    def add(self, clip: str, data: bytes) -> None:
        if clip in self._clips:
            return
        self._clips[clip] = data
        self._held += len(data)
        while self._held > self._most:
            self._held -= len(self._clips.popitem(last=False)[1])
