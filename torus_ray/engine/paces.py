"""How fast the replicas of a pool are, and what an idle one may take over. Pure: no Ray, no clock of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

REMEMBERED = 32
"""Batches of one operation and size that the typical time is taken from."""
COMPARED = 3
"""Batches of other replicas without which nobody is called slow."""
WEIGHT = 0.5
"""Of the newest batch in a replica's slowness: three batches find one that is three times slower."""
SLOWEST = 8.0
"""One batch may count so many times the typical one: a single hiccup is forgotten after a few batches."""
SLOW = 1.5
"""Below it a replica counts as fast as the others: chance and length of requests make as much."""
COPY_AFTER = 3.0
"""How many typical times a batch runs before it counts as hanging."""
COPY_AFTER_S = 1.0
WORTH = 1.25
"""How many typical times a slow replica must still need for a batch to be done again by a fast one."""
WORTH_S = 0.05
"""Less is not worth a call."""


class Paces:
    """What batches of one pool have taken, by operation and size (sizes of one power of two are alike)."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, int], deque[tuple[str, float]]] = {}
        self._slowness: dict[str, float] = {}

    def note(self, replica: str, operation: str, size: int, seconds: float) -> None:
        """A batch came back after so many seconds inside the replica."""
        known = self._seconds.setdefault((operation, size.bit_length()), deque(maxlen=REMEMBERED))
        others = [taken for name, taken in known if name != replica]
        known.append((replica, seconds))
        enough = len(others) >= COMPARED
        ratio = min(SLOWEST, max(1.0, seconds / max(median(others), 1e-6))) if enough else 1.0
        before = self._slowness.get(replica, 1.0)
        self._slowness[replica] = (1 - WEIGHT) * before + WEIGHT * ratio

    def forget(self, replica: str) -> None:
        self._slowness.pop(replica, None)

    def slowness(self, replica: str) -> float:
        """How many times longer than the others it takes; 1 for all that are about as fast."""
        slowness = self._slowness.get(replica, 1.0)
        return slowness if slowness > SLOW else 1.0

    def typical_s(self, operation: str, size: int) -> float | None:
        """What such a batch takes. Where too few of its size have been seen, the most that the operation took, in
        proportion where it is larger; None where it has not been seen at all."""
        bits = size.bit_length()
        known = self._seconds.get((operation, bits), ())
        if len(known) >= COMPARED:
            return median(seconds for _, seconds in known)
        seen = ((b, max(s for _, s in taken)) for (name, b), taken in self._seconds.items() if name == operation)
        return max((most * max(1, 2 ** (bits - b)) for b, most in seen), default=None)


@dataclass(frozen=True, slots=True)
class Underway:
    """A batch at a replica. place: how many are before it there. elapsed_s: since the first of them began. typical_s:
    what one such takes, where that is known."""

    replica: str
    place: int
    elapsed_s: float
    typical_s: float | None


def to_take_over(idle: str, underway: Sequence[Underway], slowness: Callable[[str], float]) -> int | None:
    """Which of them an idle replica does instead, by the seconds won: what waits behind another batch, else what
    hangs or runs at a slow one; None for none of them."""
    gains = [
        (batch.place > 0, gain, -number)
        for number, batch in enumerate(underway)
        if (gain := _gain_s(batch, slowness(batch.replica), slowness(idle))) > WORTH_S
    ]
    return -max(gains)[2] if gains else None


def _gain_s(batch: Underway, there: float, here: float) -> float:
    if batch.typical_s is None:  # too early to say what is long, but not that something waits
        return batch.elapsed_s - COPY_AFTER_S if batch.place else 0.0
    if batch.elapsed_s > max(COPY_AFTER_S, COPY_AFTER * there * batch.typical_s):
        return batch.elapsed_s
    left = batch.typical_s * there * (batch.place + 1) - batch.elapsed_s
    if batch.place:
        return max(left, batch.typical_s * there * batch.place) - batch.typical_s * here
    return left - WORTH * here * batch.typical_s
