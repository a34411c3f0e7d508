"""What calls cost: prices, a ledger with a line for each try, and a budget that is kept across commands."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from torus_ray.heads import HeadStop


class Stopped(HeadStop):
    """No request makes sense any more: a wrong key, a spent budget, a dead server."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one call as the server counted them; None: it did not say. audio: of `read`, those of audio."""

    read: Optional[int] = None
    audio: Optional[int] = None
    cached: Optional[int] = None
    written: Optional[int] = None
    reasoning: Optional[int] = None


@dataclass(frozen=True)
class Prices:
    """Money for a million tokens, in the currency of the budget; an audio token costs what a text token does where
    nothing is said.

    audio_tokens_per_s: how many tokens a second of audio is. reply_tokens: how long a reply is as a rule, for the
    estimate of a whole run.
    """

    text_in: float
    text_out: float
    audio_in: Optional[float] = None
    audio_tokens_per_s: float = 32.0
    reply_tokens: int = 20

    def cost(self, usage: Usage) -> Optional[float]:
        """What a call cost, or at most: where the server does not tell audio from text, all of it counts as the
        dearer. None where it counted nothing."""
        if usage.read is None or usage.written is None:
            return None
        audio_in = self.text_in if self.audio_in is None else self.audio_in
        if usage.audio is None:
            read = usage.read * max(audio_in, self.text_in)
        else:
            read = usage.audio * audio_in + (usage.read - usage.audio) * self.text_in
        return (read + usage.written * self.text_out) / 1e6

    def most(self, text: str, seconds: float, max_tokens: int) -> float:
        """The most that a call can cost. A token has two bytes or more; a template adds some."""
        words = len(text.encode()) // 2 + 64
        audio = int(seconds * self.audio_tokens_per_s) + 1
        return self.cost(Usage(words + audio, audio, None, max_tokens)) or 0.0


class Ledger:
    """One line of JSON for each try, appended and kept. path: None keeps none; what is spent then starts at nothing."""

    def __init__(self, path: Optional[Path]) -> None:
        self.path = path
        self.calls, self.money = 0, 0.0
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                row = json.loads(line)
            except ValueError:
                continue  # the end of a line that a killed process left
            self.calls += 1
            self.money += row.get("cost") or 0.0

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep a line; it is in the system's hands when this returns, so that a killed process loses none."""
        self.calls += 1
        self.money += row.get("cost") or 0.0
        if self.path is None:
            return
        told: Dict[str, Any] = {name: value for name, value in row.items() if value is not None}
        with self.path.open("a", encoding="utf-8") as file:
            if file.tell() and not _ends_a_line(self.path):
                file.write("\n")
            file.write(json.dumps(told) + "\n")


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


class Budget:
    """Most calls and most money, over all that the ledger holds. None: no limit.

    A call is begun only if the worst that it can cost fits beside what is spent and what is under way; else it waits
    for those, and when there are none it is refused.
    """

    def __init__(self, ledger: Ledger, calls: Optional[int] = None, money: Optional[float] = None) -> None:
        self._ledger, self.calls, self.money = ledger, calls, money
        self._held, self._held_money = 0, 0.0
        self._settled = asyncio.Event()

    async def hold(self, most: float) -> None:
        """Set a call aside that costs at most so much. Raises Stopped."""
        while not self._fits(most):
            if not self._held:
                spent = f"{self._ledger.calls} calls and {self._ledger.money:.4f} in money are spent"
                limits = ((self.calls, "calls"), (self.money, "in money"))
                raise Stopped(
                    f"the budget does not allow another call: {spent}, the next may cost {most:.4f}",
                    str(self._ledger.path or "operating.budget of the card"),
                    "at most " + " and ".join(f"{limit:g} {what}" for limit, what in limits if limit is not None),
                    "raise operating.budget in the card and give the same command again; what is answered stays",
                )
            self._settled.clear()
            await self._settled.wait()
        self._held += 1
        self._held_money += most

    def settle(self, most: float) -> None:
        """A call that was held is over, its line in the ledger."""
        self._held -= 1
        self._held_money -= most
        self._settled.set()

    def _fits(self, most: float) -> bool:
        calls, money = self._ledger.calls + self._held + 1, self._ledger.money + self._held_money + most
        return (self.calls is None or calls <= self.calls) and (self.money is None or money <= self.money + 1e-12)


def tokens(usage: Usage) -> Dict[str, Any]:
    """The counts of a call under the names that they have in a ledger."""
    return {f"{field.name}_tokens": getattr(usage, field.name) for field in fields(usage)}
