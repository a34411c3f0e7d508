"""Asking an executor and waiting for what comes, within one time limit for everything."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from torus_ray.heads import Request, request_to_wire
from torus_ray.protocol.executor import Call, EngineStop, Executor, Outcome

WAIT_S = 1.0


class OutOfTime(EngineStop):
    """The whole check took longer than it was given."""


class Asker:
    """One host behind a started executor. ends_at: of time.monotonic(); whatever is not answered then raises
    OutOfTime."""

    def __init__(self, executor: Executor, host: str, ends_at: float) -> None:
        self._executor = executor
        self._host = host
        self._ends_at = ends_at
        self._numbers: Iterator[int] = itertools.count(1)
        self._known: dict[Request, Outcome] = {}

    @property
    def host(self) -> str:
        return self._host

    def described(self) -> dict[str, Any]:
        """What the host says of itself: its process, its batches."""
        return dict(self._executor.described()[self._host])

    def once(self, request: Request) -> Outcome:
        """The outcome of a request alone; asked the first time, remembered then."""
        if request not in self._known:
            self._known[request] = self.alone(request)
        return self._known[request]

    def alone(self, request: Request) -> Outcome:
        """The outcome of a request, asked now, nothing beside it."""
        (outcome,) = self.together([request])
        return outcome

    def together(self, requests: Sequence[Request]) -> list[Outcome]:
        """The outcomes of requests handed over at once, in their order."""
        numbers = [next(self._numbers) for _ in requests]
        calls = [
            Call(
                number, self._host, request.operation, request_to_wire(replace(request, id=str(number))), "torus check"
            )
            for number, request in zip(numbers, requests, strict=True)
        ]
        self._executor.submit(calls)
        came: dict[int, Outcome] = {}
        while len(came) < len(numbers):
            if time.monotonic() > self._ends_at:
                raise OutOfTime(
                    f"no reply of host {self._host!r} to {calls[0].operation} before the time was up",
                    where="torus check",
                    expected="all checks within --deadline",
                    mend="give more with --deadline, or shorten deadline_s in the card",
                )
            came |= {outcome.call.id: outcome for outcome in self._executor.collect(WAIT_S)}
        return [came[number] for number in numbers]


def content(outcome: Outcome) -> object:
    """What two replies to one request are compared by: the clip's identity, the texts, the values."""
    if outcome.reply is None:
        return (outcome.status, outcome.reason)
    reply = outcome.reply
    if "clip" in reply:
        return ("clip", reply["clip"]["id"])
    return {name: _comparable(value) for name, value in reply.items() if name != "id"}


def _comparable(value: object) -> object:
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def told(outcome: Outcome) -> str:
    """An outcome for people."""
    if outcome.status == "ok" and outcome.reply is not None:
        return _reply_told(outcome.reply)
    last = (outcome.message or "").strip().splitlines()
    return f"{outcome.status}: {outcome.reason}" + (f" ({last[0][:120]})" if last else "")


def _reply_told(reply: dict[str, Any]) -> str:
    if "clip" in reply:
        clip = reply["clip"]
        return f"{clip['frames'] / clip['rate_hz']:.2f} s, {clip['rate_hz']} Hz, {clip['channels']} channel(s)"
    if "texts" in reply:
        return ", ".join(repr(text[:40]) for text in reply["texts"])
    return repr(reply["text"][:60]) if "text" in reply else ", ".join(sorted(reply["values"]))


def traceback_of(outcome: Outcome) -> str:
    """Where the model raised; "" where it did not."""
    return next((attempt.traceback for attempt in reversed(outcome.attempts) if attempt.traceback), "")


def was_served(outcome: Outcome) -> bool:
    """Whether a head did what it should with a request that it may also decline: a reply, or a reason for good."""
    return outcome.status in ("ok", "refused")
