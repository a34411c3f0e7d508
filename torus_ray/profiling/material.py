"""What a host is asked while it is profiled: the requests of a run on the bank's own tests."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from torus_ray.audio import StoredClip
from torus_ray.bank.load import Bank
from torus_ray.errors import InputError
from torus_ray.heads import Request
from torus_ray.protocol.graph import Arm, Node, build_graph
from torus_ray.protocol.requests import Protocol, Verdict
from torus_ray.systems import HostSpec, System

KEPT_CLIPS = 8
"""Clips of each audio type that are heard in turn."""
MIX_SEED = 0


@dataclass(frozen=True)
class Item:
    """One request of a run, and how many units it holds."""

    request: Request
    units: int
    audio_type: str


class Material:
    """Requests for one system's heads; clips are those that it rendered here, `spare` until there are any."""

    def __init__(self, system: System, bank: Bank, spare: StoredClip) -> None:
        self._protocol = Protocol(system, bank)
        self._spare = spare
        self._clips: dict[str, list[StoredClip]] = defaultdict(list)
        arms = [Arm(mode) for mode in system.edit_modes or ("native",)]
        self._graph = build_graph(system=system.name, bank=bank, tests=bank.tests, arms=arms, measures=system.metrics)
        # Types and stages in turn, as a run has them at one time, and the same in every profile.
        random.Random(MIX_SEED).shuffle(self._graph)

    @property
    def has_clips(self) -> bool:
        return any(self._clips.values())

    def keep(self, audio_type: str, clip: StoredClip) -> None:
        """A clip that the system rendered: heard from now on."""
        kept = self._clips[audio_type]
        if len(kept) < KEPT_CLIPS and not clip.silent and not clip.too_short:
            kept.append(clip)

    def items(self, host: HostSpec, operation: str) -> Iterator[Item]:
        """Requests for a head without end, the bank's again when it is through. Raises InputError where the bank has
        none."""
        nodes = [n for n in self._graph if n.operation == operation and self._protocol.host(n) is host]
        while True:
            count = 0
            for number, node in enumerate(nodes):
                item = self._item(node, number)
                if item is not None:
                    count += 1
                    yield item
            if not count:
                raise InputError(
                    f"the bank has nothing that {operation} of {host.name} could be asked",
                    where="--bank",
                    expected=f"tests of the types {', '.join(host.card.heads[operation].audio_types)}",
                    mend="choose another bank, or leave the operation out with --operations",
                )

    def _item(self, node: Node, number: int) -> Item | None:
        audio_type = node.source.audio_type
        clips = self._clips[audio_type] or [c for kept in self._clips.values() for c in kept] or [self._spare]
        clip = clips[number % len(clips)]
        # A caption stands for that of a clip nobody has described: the prompt of its stage is as long.
        rows = [
            {"status": "ok", "clip": clip.id, "text": parent.test.stage(parent.stage).prompt} for parent in node.parents
        ]
        plan = self._protocol.resolve(node, rows)
        if isinstance(plan, Verdict):
            return None
        request = self._protocol.request(plan, plan.asks, clip.data if plan.clip else None, "")
        return Item(request, len(plan.asks), node.test.audio_type)
