"""Which hosts are up, and with how many replicas (DESIGN 5). Pure: plain data in, counts out.

Hosts that fit beside whatever else may be up are steady: they start with the run and stay. The others take turns: one
is brought up when it has work, and leaves only when it is drained and its room is wanted. So one GPU loads two hosts
that exclude each other twice in a native arm and six times in a self-caption arm. A measuring host that takes turns
comes last: once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from torus_ray.engine.hosts import HostPlan
from torus_ray.engine.rooms import Room, Wants, fits

HOLD_S = 10.0
"""How long one pool is idle and another one short before a replica changes sides."""
LOADS_WORTH = 2.0
"""The same in loads of the pool that is short, where they take longer: what has lasted so long is worth a load."""
SEEN = 8
"""Calls beyond which one host that waits has as much work as another: only so many are handed over before it is up."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A host as the decision sees it.

    most: replicas at most, None for as many as fit. replicas: up or starting; idle: of those, with nothing to do.
    waiting: calls that wait; chain: the longest chain of units behind one of them. in_flight: calls sent and not
    answered. one_holds: calls that one replica holds. idle_s: for how long a replica has been idle with nothing
    waiting; short_s: for how long as much has waited as one more replica would hold. load_s: how long a load took.
    """

    wants: Wants
    background: bool = False
    most: int | None = None
    replicas: int = 0
    idle: int = 0
    waiting: int = 0
    chain: int = 0
    in_flight: int = 0
    one_holds: int = 1
    idle_s: float = 0.0
    short_s: float = 0.0
    load_s: float = 0.0

    @property
    def drained(self) -> bool:
        return not self.waiting and not self.in_flight

    @property
    def patience_s(self) -> float:
        return max(HOLD_S, LOADS_WORTH * self.load_s)


def standing_of(plan: HostPlan) -> Standing:
    """A host before anything has been started."""
    return Standing(plan.wants, plan.spec.background, plan.spec.card.replicas)


Hosts = Mapping[str, Standing]
Counts = dict[str, int]


@dataclass(frozen=True)
class Residency:
    """The decisions for given hosts on given nodes. steady: who keeps nobody out. turns: each set of the others that
    fits at one time."""

    rooms: tuple[Room, ...]
    wants: Mapping[str, Wants]
    steady: tuple[str, ...]
    turns: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, hosts: Hosts, rooms: Sequence[Room]) -> Residency:
        """A host is steady when every set of others that fits without it fits with it. Measuring ones are looked at
        last: they never make others take turns."""
        wants = {name: host.wants for name, host in hosts.items()}
        bare = cls(tuple(rooms), wants, (), ())
        steady: list[str] = []
        others = [name for name, host in hosts.items() if not host.background]
        for name in sorted(hosts, key=lambda name: hosts[name].background):
            beside = [some for some in _sets([other for other in others if other != name]) if bare.fit(_once(some))]
            if all(bare.fit(_once([*some, name])) for some in beside):
                steady.append(name)
                if hosts[name].background:
                    others.append(name)
        turns = [some for some in _sets([name for name in hosts if name not in steady]) if bare.fit(_once(some))]
        return cls(tuple(rooms), wants, tuple(steady), tuple(turns))

    def fit(self, counts: Mapping[str, int]) -> bool:
        return fits((self.wants[name] for name, count in counts.items() for _ in range(count)), self.rooms)

    def first_counts(self, hosts: Hosts) -> Counts:
        """Replicas at the start, when nothing has been asked: one of each steady host, then one more in turn while
        whoever takes turns still finds room. What only measures gets what the rest leaves."""
        counts = dict.fromkeys((name for name in hosts if name in self.steady), 1)
        for background in (False, True):
            names = [name for name in counts if hosts[name].background == background]
            _grow(hosts, counts, names, self._leaves_room)
        return counts

    def next_counts(self, hosts: Hosts, *, settled: bool) -> Counts:
        """Replicas of each host from now on. settled: nothing that was handed back can make more work ready, so that
        what is drained stays drained."""
        counts = {name: host.replicas for name, host in hosts.items()}
        fresh = self._bring_in(hosts, counts, settled)
        if fresh:
            _grow(hosts, counts, fresh, self.fit)
        else:
            self._even_out(hosts, counts)
        return counts

    # --- turns --------------------------------------------------------------------------------------------------------

    def _bring_in(self, hosts: Hosts, counts: Counts, settled: bool) -> list[str]:
        """The hosts whose turn begins, written into `counts` with the end of those that make room."""
        fresh: list[str] = []
        # Steady ones only leave for what measures at the end: beside all others they fit.
        drained = sorted((name for name in counts if counts[name] and hosts[name].drained), key=self.steady.count)
        for name in self._candidates(hosts, settled):
            leaving = [other for other in drained if counts[other]] if settled else []
            for gone in range(len(leaving) + 1):
                tried = {**counts, **dict.fromkeys(leaving[:gone], 0), name: 1}
                if self.fit(tried):
                    for other in leaving[:gone]:  # one that left for nothing stays
                        kept = {**tried, other: counts[other]}
                        tried = kept if self.fit(kept) else tried
                    counts.update(tried)
                    fresh.append(name)
                    break
        return fresh

    def _candidates(self, hosts: Hosts, settled: bool) -> list[str]:
        """Hosts with work that are not up: the most of it first, of equals the longest chain. Measuring ones when
        everything else is over."""
        over = settled and all(host.drained for host in hosts.values() if not host.background)
        able = [
            name for name, host in hosts.items() if host.waiting and not host.replicas and (over or not host.background)
        ]
        return sorted(able, key=lambda name: (-min(SEEN, hosts[name].waiting), -hosts[name].chain))

    # --- pools --------------------------------------------------------------------------------------------------------

    def _even_out(self, hosts: Hosts, counts: Counts) -> None:
        """Replicas for the pool that is shortest: into room that is free, else out of pools that are idle; both for a
        while already. Each pool keeps one."""
        short = [name for name, host in hosts.items() if host.replicas and host.short_s >= host.patience_s]
        for name in sorted(short, key=lambda name: -hosts[name].waiting):
            host = hosts[name]
            donors = [d for d, other in hosts.items() if d != name and other.idle_s >= host.patience_s]
            more = host.waiting // host.one_holds
            while more and counts[name] < _most(host) and self._one_more(hosts, counts, name, donors):
                more -= 1
            if counts[name] > host.replicas:
                return

    def _one_more(self, hosts: Hosts, counts: Counts, name: str, donors: Sequence[str]) -> bool:
        """One replica more, if need be for an idle one less of a donor; False, and nothing changed, where it does not
        fit."""
        able = [d for d in donors if counts[d] > 1 and hosts[d].replicas - counts[d] < hosts[d].idle]
        for change in ({}, *({donor: -1} for donor in able)):
            tried = {**counts, name: counts[name] + 1}
            for donor, by in change.items():
                tried[donor] += by
            if self.fit(tried) and self._leaves_room({n: c for n, c in tried.items() if n in self.steady}):
                counts.update(tried)
                return True
        return False

    def _leaves_room(self, steady: Mapping[str, int]) -> bool:
        """Whether beside so many replicas of steady hosts each set of the others still fits."""
        return all(self.fit({**steady, **_once(some)}) for some in self.turns)


def _grow(hosts: Hosts, counts: Counts, names: Sequence[str], room_for: Callable[[Counts], bool]) -> None:
    """One more of each in turn, while a card allows it and there is room."""
    growing = True
    while growing:
        growing = False
        for name in names:
            tried = {**counts, name: counts[name] + 1}
            if tried[name] <= _most(hosts[name]) and room_for(tried):
                counts[name] += 1
                growing = True


def _most(host: Standing) -> float:
    return host.most or (1 if host.background else float("inf"))


def _once(names: Iterable[str]) -> dict[str, int]:
    return dict.fromkeys(names, 1)


def _sets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from combinations(names, size)
