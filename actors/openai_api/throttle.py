"""How many calls are in flight: as many as the ceiling at first, fewer when the server says that it is too many."""

from __future__ import annotations

import asyncio
import time
from typing import Callable, Optional


class Throttle:
    """ceiling: most calls at once.

    Of the calls under way together at most one cuts the number in half, so a burst of 429s is one step down and a
    lasting limit many. A full round of successes gives one back. Being asked to wait holds back every new call.
    """

    def __init__(self, ceiling: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.ceiling = self.limit = ceiling
        self.in_flight = 0
        self._clock = clock
        self._successes = 0
        self._cut_at = self._closed_until = float("-inf")
        self._freed = asyncio.Event()

    async def enter(self) -> float:
        """Wait for a place; when the call began, by the clock."""
        while True:
            closed_s = self._closed_until - self._clock()
            if closed_s > 0:
                await asyncio.sleep(closed_s)
            elif self.in_flight < self.limit:
                self.in_flight += 1
                return self._clock()
            else:
                self._freed.clear()
                await self._freed.wait()

    def leave(self, began: float, ok: bool, too_many: bool = False, wait_s: Optional[float] = None) -> None:
        """Give the place back. wait_s: how long the server asked to be left alone."""
        self.in_flight -= 1
        if wait_s is not None:
            self._closed_until = max(self._closed_until, self._clock() + wait_s)
        if too_many and began > self._cut_at:
            self.limit, self._cut_at, self._successes = max(1, self.limit // 2), self._clock(), 0
        elif ok:
            self._successes += 1
            if self._successes >= self.limit:
                self.limit, self._successes = min(self.ceiling, self.limit + 1), 0
        self._freed.set()
