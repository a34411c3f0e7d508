"""The actor of benchmarks/lanes.py. Its process has what every host has of ours, and no more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any


class LaneHost:
    """The actor: lanes by number, each with a model that computes its replies in no time."""

    def __init__(self) -> None:
        self._servers: dict[int, Any] = {}
        self._turns: dict[int, asyncio.Lock] = {}
        self._latency: dict[int, tuple[Mapping[str, Sequence[float]], float]] = {}

    async def start(self, lane: int, payload: dict[str, Any], slower: float) -> dict[str, Any]:
        from torus_ray.engine.hosting import HeadServer

        settings = dict(payload["settings"])
        self._latency[lane] = (settings.pop("latency_s"), slower)
        self._servers[lane] = HeadServer({**payload, "settings": settings})
        self._turns[lane] = asyncio.Lock()
        return {"describe": self._servers[lane].describe()}

    async def handle(self, lane: int, operation: str, wires: list[dict[str, Any]]) -> dict[str, Any]:
        async with self._turns[lane]:
            began = time.time()
            latency, slower = self._latency[lane]
            base, each = latency[operation]
            wait = (base + each * len(wires)) * slower
            answer: dict[str, Any] = self._servers[lane].handle(operation, wires)
            await asyncio.sleep(wait - (time.time() - began))
            answer.update(started_at=began, ended_at=time.time())
            return answer

    async def stop(self, lane: int) -> None:
        del self._servers[lane]
