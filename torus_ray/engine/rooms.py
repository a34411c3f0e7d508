"""What fits where: replicas on nodes, as Ray places them. Pure.

A share below one lies on one GPU; one or more are whole GPUs of one node. What a node holds is not what a cluster
holds: three halves and a half of a GPU do not fit on two, two and a half would.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

EPSILON = 1e-6
"""Ray counts in ten-thousandths; sums of such floats are off by less than this."""


@dataclass(frozen=True, slots=True)
class Wants:
    """What one replica holds while it is up. memory_gb: GiB. avoid: ids of nodes where it cannot be."""

    cpus: float = 0.0
    gpus: float = 0.0
    memory_gb: float = 0.0
    avoid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Room:
    """What one node has, GPUs counted in whole ones. id: the node's."""

    cpus: float
    gpus: int = 0
    memory_gb: float = 0.0
    id: str = ""


def fits(wants: Iterable[Wants], rooms: Sequence[Room]) -> bool:
    """Whether all of them fit at the same time: the hungriest is placed first, each where it leaves least."""
    free = [_Free(room.id, room.cpus, room.memory_gb, [1.0] * room.gpus) for room in rooms]
    for one in sorted(wants, key=lambda want: (want.gpus, want.memory_gb, want.cpus), reverse=True):
        places = [node for node in free if node.takes(one)]
        if not places:
            return False
        min(places, key=lambda node: (sum(node.gpus), node.memory_gb)).put(one)
    return True


def with_margin(rooms: Iterable[Room], share: float, wants: Iterable[Wants]) -> list[Room]:
    """The rooms with a part of their memory left alone, as far as each replica still fits by itself."""
    most = max((want.memory_gb for want in wants), default=0.0)
    return [replace(room, memory_gb=max(room.memory_gb * share, min(most, room.memory_gb))) for room in rooms]


@dataclass(slots=True)
class _Free:
    """What is left of a node; gpus: of each one."""

    id: str
    cpus: float
    memory_gb: float
    gpus: list[float]

    def takes(self, one: Wants) -> bool:
        return (
            self.id not in one.avoid
            and self.cpus + EPSILON >= one.cpus
            and self.memory_gb + EPSILON >= one.memory_gb
            and (not one.gpus or bool(self._cards(one.gpus)))
        )

    def put(self, one: Wants) -> None:
        self.cpus -= one.cpus
        self.memory_gb -= one.memory_gb
        for card in self._cards(one.gpus) if one.gpus else ():
            self.gpus[card] -= min(1.0, one.gpus)

    def _cards(self, gpus: float) -> list[int]:
        """The GPUs that would serve: of those that a share fits on the fullest, or as many empty ones as are asked
        for."""
        if gpus < 1:
            able = [card for card, left in enumerate(self.gpus) if left + EPSILON >= gpus]
            return [min(able, key=lambda card: self.gpus[card])] if able else []
        empty = [card for card, left in enumerate(self.gpus) if left + EPSILON >= 1]
        return empty[: round(gpus)] if len(empty) >= gpus else []
