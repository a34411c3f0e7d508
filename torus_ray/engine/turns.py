"""Carries out what residency.py decides: replicas are brought up, and asked to leave first where room is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torus_ray.engine.pools import Pool
from torus_ray.engine.residency import Counts, Residency, Standing, standing_of
from torus_ray.engine.rooms import Room

LOOK_S = 1.0
"""How often pools are compared while every host that has work is up."""


@dataclass
class Turns:
    """Decides for pools that it is given; `ready` says when none of their replicas is on its way out."""

    pools: Mapping[str, Pool]
    residency: Residency
    tell: Callable[[str], None]
    _wanted: Counts = field(default_factory=dict)
    _idle_since: dict[str, float] = field(default_factory=dict)
    _short_since: dict[str, float] = field(default_factory=dict)
    _looked_at: float = 0.0

    @classmethod
    def of(cls, pools: Mapping[str, Pool], rooms: list[Room], tell: Callable[[str], None]) -> Turns:
        hosts = {name: standing_of(pool.plan) for name, pool in pools.items()}
        return cls(pools, Residency.of(hosts, rooms), tell)

    def begin(self) -> None:
        """Bring up those that do not have to wait for their turn."""
        hosts = {name: standing_of(pool.plan) for name, pool in self.pools.items()}
        self._carry_out(self.residency.first_counts(hosts))
        waiting = [name for name in self.pools if name not in self.residency.steady]
        if waiting:
            self.tell(f"{', '.join(waiting)}: do not fit at the same time and take turns")

    def decide(self, *, settled: bool) -> None:
        """Look at what waits, and begin what follows from it. Called when all that was handed back has been seen."""
        now = time.monotonic()
        turn = any(pool.queue and not pool.replicas for pool in self.pools.values())
        if any(replica.leaving_at for pool in self.pools.values() for replica in pool.replicas):
            return
        if not turn and now - self._looked_at < LOOK_S:
            return
        self._looked_at = now
        self._keep_clocks(now)
        hosts = {name: self._standing(pool, now) for name, pool in self.pools.items()}
        counts = self.residency.next_counts(hosts, settled=settled)
        changed = [name for name, host in hosts.items() if counts[name] != host.replicas]
        for name in changed:
            self._idle_since.pop(name, None)
            self._short_since.pop(name, None)
        if changed:
            self._carry_out(counts)

    def has_left(self) -> None:
        """A replica is gone: whoever waited for its room comes up when the last one is."""
        if not any(replica.leaving_at for pool in self.pools.values() for replica in pool.replicas):
            self._bring_up()

    def _carry_out(self, counts: Counts) -> None:
        self._wanted = counts
        for name, count in counts.items():
            pool = self.pools[name]
            leaving = sorted(pool.staying, key=lambda replica: not replica.idle)[: max(0, len(pool.staying) - count)]
            for replica in leaving:
                pool.retire(replica)
        self.has_left()

    def _bring_up(self) -> None:
        wanted, self._wanted = self._wanted, {}
        for name, count in wanted.items():
            pool = self.pools.get(name)
            for _ in range(count - len(pool.replicas) if pool else 0):
                assert pool is not None
                pool.add_replica()

    def _keep_clocks(self, now: float) -> None:
        for name, pool in self.pools.items():
            idle = not pool.queue and any(replica.idle for replica in pool.replicas)
            up = any(replica.ready for replica in pool.replicas)
            short = up and len(pool.queue) >= pool.limits.room()
            for clock, on in ((self._idle_since, idle), (self._short_since, short)):
                if on:
                    clock.setdefault(name, now)
                else:
                    clock.pop(name, None)

    def _standing(self, pool: Pool, now: float) -> Standing:
        name = pool.plan.name
        return Standing(
            pool.plan.wants,
            pool.plan.spec.background,
            pool.plan.spec.card.replicas,
            replicas=len(pool.replicas),
            idle=sum(replica.idle for replica in pool.replicas),
            waiting=len(pool.queue),
            chain=pool.queue.chain(),
            in_flight=pool.in_flight(),
            one_holds=pool.limits.room(),
            idle_s=now - self._idle_since.get(name, now),
            short_s=now - self._short_since.get(name, now),
            load_s=pool.load_s,
        )
