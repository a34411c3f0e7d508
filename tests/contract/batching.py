"""An executor in this process that hands everything submitted to the model as one batch, or all of it at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from torus_ray.engine.hosting import HeadServer
from torus_ray.engine.hosts import HostPlan
from torus_ray.protocol.executor import Attempt, Call, EngineStop, HostState, Outcome


class Batching:
    """One host. A batch that raises is split; a model of coroutines gets its requests side by side."""

    def __init__(self, plan: HostPlan) -> None:
        self._plan = plan
        self._calls: list[Call] = []
        self._loop = asyncio.Runner()

    def start(self) -> Mapping[str, Mapping[str, Any]]:
        self._server = HeadServer(self._plan.payload())
        return self.described()

    def described(self) -> Mapping[str, Mapping[str, Any]]:
        return {self._plan.name: self._server.describe()}

    def room(self, host: str) -> int:
        return 100

    def submit(self, calls: Sequence[Call]) -> None:
        self._calls += calls

    def collect(self, timeout_s: float) -> list[Outcome]:
        calls, self._calls = self._calls, []
        if not calls:
            return []
        if self._plan.spec.card.style == "batch":
            return self._ask(calls, [])
        return self._loop.run(self._ask_at_once(calls))

    async def _ask_at_once(self, calls: Sequence[Call]) -> list[Outcome]:
        answers = await asyncio.gather(*(self._server.handle_async(call.operation, [call.request]) for call in calls))
        return [self._outcomes([call], answer, [])[0] for call, answer in zip(calls, answers, strict=True)]

    def _ask(self, calls: list[Call], before: list[Attempt]) -> list[Outcome]:
        answer = self._server.handle(calls[0].operation, [call.request for call in calls])
        if "error" in answer and len(calls) > 1:
            attempt = _attempt(calls, answer, before)
            return [outcome for call in calls for outcome in self._ask([call], [attempt])]
        return self._outcomes(calls, answer, before)

    def _outcomes(self, calls: list[Call], answer: Mapping[str, Any], before: list[Attempt]) -> list[Outcome]:
        attempt = _attempt(calls, answer, before)
        if "error" in answer:
            return [Outcome(calls[0], "failed", reason="error", message=attempt.message, attempts=[*before, attempt])]
        results = zip(calls, answer["results"], strict=True)
        return [
            Outcome(call, r["status"], r.get("reply"), r.get("reason"), r.get("message"), [*before, attempt])
            for call, r in results
        ]

    def nudge(self) -> None: ...

    def states(self) -> Mapping[str, HostState]:
        return {}

    def halt(self, stop: EngineStop, within_s: float) -> None:
        raise stop

    def close(self) -> None:
        self._server.close()
        self._loop.close()


def _attempt(calls: Sequence[Call], answer: Mapping[str, Any], before: Sequence[Attempt]) -> Attempt:
    attempt = Attempt(len(before) + 1, "ok", "batching", batch=len(calls), pid=answer["pid"])
    attempt.submitted_at, attempt.returned_at = answer["started_at"], answer["ended_at"]
    if "error" in answer:
        attempt.status = "failed"
        for name in ("kind", "message", "traceback"):
            setattr(attempt, name, answer["error"][name])
    return attempt
