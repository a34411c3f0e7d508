"""How much at once and how much at all: a throttle that follows what the server says, and a budget that is kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from torus_ray.errors import TorusError


class CurationStop(TorusError):
    """The work cannot go on (wrong key, budget spent, dead server). What is durable stays; the same command goes on."""

    exit_code = 3


class Throttle:
    """How many calls of one endpoint are in flight: `most` at first, halved when the server says that it is too many.

    Only a call that began after the last cut cuts again, so one burst of 429s is one step down and a lasting limit many
    (FIELD_REPORTS E1). Each full round of successes gives one back. A Retry-After holds back every new call.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = self.limit = most
        self.in_flight = 0
        self.peak = 0
        self._clock = clock
        self._successes = 0
        self._cut_at = self._not_before = float("-inf")
        self._freed = asyncio.Event()

    async def enter(self) -> float:
        """Wait for a place; when the call began."""
        while True:
            pause = self._not_before - self._clock()
            if pause > 0:
                await asyncio.sleep(pause)
            elif self.in_flight < self.limit:
                self.in_flight += 1
                self.peak = max(self.peak, self.in_flight)
                return self._clock()
            else:
                self._freed.clear()
                await self._freed.wait()

    def leave(self, began: float, *, ok: bool, too_many: bool = False, wait_s: float | None = None) -> None:
        """Give the place back. too_many: the server said so. wait_s: how long it asked to be left alone."""
        now = self._clock()
        self.in_flight -= 1
        if wait_s is not None:
            self._not_before = max(self._not_before, now + wait_s)
        if too_many and began > self._cut_at:
            self.limit, self._cut_at, self._successes = max(1, self.limit // 2), now, 0
        elif ok:
            self._successes += 1
            if self._successes >= self.limit:
                self.limit, self._successes = min(self.most, self.limit + 1), 0
        self._freed.set()


@dataclass(frozen=True)
class Spend:
    """An amount: calls, tokens (in and out), money in the currency of the prices. As a limit, None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None


class Budget:
    """What may be spent on one folder of rows, by all commands together.

    A call is begun only if the worst that it can cost fits beside all that is spent and under way: what is left over is
    waited for, and when nothing is under way the work stops. money: of the calls whose cost is known; unpriced: how
    many were answered at a cost that is not.
    """

    def __init__(self, most: Spend, *, calls: int = 0, tokens: int = 0, money: float = 0.0, unpriced: int = 0) -> None:
        self.most = most
        self.calls, self.tokens, self.money, self.unpriced = calls, tokens, money, unpriced
        self._held_tokens, self._held_money, self._held = 0, 0.0, 0
        self._settled = asyncio.Event()

    @property
    def cost(self) -> float | None:
        """Money spent; None where that of some call is unknown."""
        return None if self.unpriced else self.money

    def cost_text(self) -> str:
        """The cost for people: an amount, or how much of it is known."""
        if not self.unpriced:
            return f"cost {self.money:.4f}"
        known = f"{self.money:.4f} and " if self.money else ""
        return f"cost unknown ({known}{self.unpriced:,} calls of unknown price)"

    async def hold(self, tokens: int, money: float | None) -> None:
        """Set aside one call with at most so many tokens and so much money (None: unknown). Raises CurationStop."""
        while not self._fits(tokens, money or 0.0):
            if not self._held:
                raise CurationStop(
                    f"the budget does not allow another call: {self.calls} calls and {self.tokens:,} tokens are spent, "
                    f"{self.cost_text()}; the next may take {tokens:,} tokens"
                    + (f" and cost {money:.4f}" if money is not None else ""),
                    where="the budget",
                    expected=_limits(self.most),
                    mend="run the same command again with more; nothing that was answered is asked again",
                )
            self._settled.clear()
            await self._settled.wait()
        self._held += 1
        self._held_tokens += tokens
        self._held_money += money or 0.0

    def settle(
        self, held: tuple[int, float | None], tokens: int | None, money: float | None, *, answered: bool = True
    ) -> None:
        """A call that was held is over; what it took, as far as that is known. answered: only then it is paid."""
        self._held -= 1
        self._held_tokens -= held[0]
        self._held_money -= held[1] or 0.0
        self.calls += 1
        self.tokens += tokens or 0
        self.money += money or 0.0
        self.unpriced += answered and money is None
        self._settled.set()

    def _fits(self, tokens: int, money: float) -> bool:
        most = self.most
        return (
            (most.calls is None or self.calls + self._held + 1 <= most.calls)
            and (most.tokens is None or self.tokens + self._held_tokens + tokens <= most.tokens)
            and (most.money is None or self.money + self._held_money + money <= most.money + 1e-12)
        )


def _limits(most: Spend) -> str:
    told = (("calls", most.calls), ("tokens", most.tokens), ("money", most.money))
    return "at most " + ", ".join(f"{value:,} {name}" for name, value in told if value is not None)
