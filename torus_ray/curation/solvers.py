"""The two solvers of the coupled gate (paper 3.2): one that hears a second of silence, one that is told the ideal clip.

The muted one is any head that answers, asked through an executor with the protocol's own muted request, or a chat
model; the ideal one is a chat model that is given the stage's specification. Every reply is a durable row.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Protocol

from torus_ray.bank.digest import canonical_json
from torus_ray.bank.load import Bank
from torus_ray.curation.chat import Caller, CallFailed, ChatRequest, in_parallel, silent_part
from torus_ray.curation.endpoints import Endpoint
from torus_ray.curation.judging import Heard, Job
from torus_ray.curation.judging import Solver as Role
from torus_ray.curation.ledger import Ledger
from torus_ray.curation.replies import spec_text
from torus_ray.curation.wording import prompt
from torus_ray.heads import request_to_wire
from torus_ray.protocol.executor import Call, Executor, Outcome
from torus_ray.protocol.graph import Arm, Node, Unit
from torus_ray.protocol.requests import SILENCE, Ask, Plan
from torus_ray.protocol.requests import Protocol as Asker
from torus_ray.protocol.texts import VERSIONS, texts_of
from torus_ray.systems import System

Run = Callable[[Coroutine[Any, Any, None]], None]
"""Runs a coroutine to its end on the command's one event loop."""

COLLECT_S = 1.0
FINAL = ("ok", "refused")


class GateSolver(Protocol):
    """role: muted or ideal. kind: what it is and what it gets. model: which."""

    role: Role
    kind: str
    model: str

    def solve(self, bank: Bank, jobs: Sequence[Job]) -> list[Heard]:
        """What it says to each job, in their order. Raises what stops all work: EngineStop, CurationStop."""
        ...


def solver_request(role: Role, endpoint: Endpoint, job: Job) -> tuple[ChatRequest, str]:
    """What a chat model is sent as a solver, and the version of its prompt."""
    if role == "muted" and endpoint.hears == "silence":
        text = {"type": "text", "text": texts_of().ask(job.question.text, job.options)}
        messages: tuple[dict[str, Any], ...] = ({"role": "user", "content": [text, silent_part()]},)
        return ChatRequest(endpoint, messages), f"question.{VERSIONS['question']}"
    wording = prompt(role)
    values = {"question": job.question.text, **dict(zip("abcdef", job.options, strict=True))}
    if role == "ideal":
        values["spec"] = spec_text(job.test, job.stage)
    return ChatRequest(endpoint, wording.messages(**values)), wording.version


class ChatSolver:
    """A chat model: `ideal`, with the specification; or `muted`, with silence or with nothing but the question."""

    def __init__(self, role: Role, endpoint: Endpoint, caller: Caller, run: Run) -> None:
        self.role: Role = role
        self.model = endpoint.model
        self.kind = "chat, told the spec" if role == "ideal" else f"chat, hears {endpoint.hears}"
        self._endpoint, self._caller, self._run = endpoint, caller, run

    def solve(self, bank: Bank, jobs: Sequence[Job]) -> list[Heard]:
        heard: dict[int, Heard] = {}

        async def one(at: int) -> None:
            request, version = solver_request(self.role, self._endpoint, jobs[at])
            try:
                reply = await self._caller.ask(request, role=self.role, unit=jobs[at].unit, prompt_version=version)
            except CallFailed as error:
                heard[at] = Heard(None, error.reason)
            else:
                said = reply.refusal or reply.text
                # Thinking that used up the cap, or a filter, is no answer of the solver, right or wrong.
                lost = None if said.strip() else f"empty_{reply.finish_reason}"
                heard[at] = Heard(None if lost else said, lost, reply.model_version)

        self._run(in_parallel(self._endpoint.in_flight, range(len(jobs)), one))
        return [heard[at] for at in range(len(jobs))]


class HeadSolver:
    """A system's answer head, given the protocol's second of silence.

    start: brings up an executor for the system's hosts when the first question has to be asked, and not before.
    """

    role: Role = "muted"
    kind = "head, hears 1 s of silence"

    def __init__(self, system: System, start: Callable[[], Executor], ledger: Ledger) -> None:
        self.model = system.name
        self._system, self._start, self._ledger = system, start, ledger
        self._executor: Executor | None = None
        self._numbers = itertools.count(1)
        rows = ledger.rows("calls", ["key", "kind", "status", "reason", "reply", "model_version"])
        self._standing = {
            row["key"]: Heard(row["reply"], row["reason"], row["model_version"])
            for row in rows.iter_rows(named=True)
            if row["kind"] == "head" and row["status"] in FINAL
        }

    def solve(self, bank: Bank, jobs: Sequence[Job]) -> list[Heard]:
        asker = Asker(self._system, bank)
        found: dict[int, Heard] = {}
        asked: dict[int, tuple[Plan, list[tuple[int, Ask]]]] = {}
        calls: list[Call] = []
        for node, places in _nodes(jobs).items():
            plan = asker.resolve(node, ())
            if not isinstance(plan, Plan):
                found |= {at: Heard(None, plan.reason) for at in places}
                continue
            missing = [(at, ask) for at, ask in zip(places, plan.asks, strict=True) if ask.key not in self._standing]
            found |= {
                at: self._standing[ask.key]
                for at, ask in zip(places, plan.asks, strict=True)
                if ask.key in self._standing
            }
            if missing:
                number = next(self._numbers)
                request = asker.request(plan, [ask for _, ask in missing], SILENCE.data, str(number))
                calls.append(Call(number, plan.host.name, "answer", request_to_wire(request), node.test.id))
                asked[number] = plan, missing
        for outcome in self._outcomes(calls):
            plan, missing = asked[outcome.call.id]
            version = asker.fingerprint(plan.host, "answer")
            texts = outcome.reply["texts"] if outcome.reply else [None] * len(missing)
            rows = []
            for (at, ask), text in zip(missing, texts, strict=True):
                found[at] = Heard(text, outcome.reason, version)
                rows.append({**_row(outcome, plan, ask, text), "unit": jobs[at].unit, "model": self.model})
                rows[-1]["model_version"] = version
                if outcome.status in FINAL:
                    self._standing[ask.key] = found[at]
            self._ledger.add_now("calls", rows)
        return [found[at] for at in range(len(jobs))]

    def _outcomes(self, calls: Sequence[Call]) -> Iterator[Outcome]:
        """The outcomes of calls as they are done, no more submitted at once than there is room for."""
        if not calls:
            return
        if self._executor is None:
            self._executor = self._start()
        waiting, under_way = list(reversed(calls)), 0
        while waiting or under_way:
            room = {host: self._executor.room(host) for host in {call.host for call in waiting}}
            sent: list[Call] = []
            while waiting and room[waiting[-1].host] > 0:
                room[waiting[-1].host] -= 1
                sent.append(waiting.pop())
            self._executor.submit(sent)
            under_way += len(sent)
            done = self._executor.collect(COLLECT_S)
            under_way -= len(done)
            yield from done


def _row(outcome: Outcome, plan: Plan, ask: Ask, text: str | None) -> dict[str, Any]:
    """The row of one question put to a head."""
    last = outcome.attempts[-1] if outcome.attempts else None
    began = last.started_at or last.submitted_at if last else None
    ended = last.ended_at or last.returned_at if last else None
    return {
        "key": ask.key,
        "role": "muted",
        "prompt_version": f"question.{VERSIONS['question']}",
        "kind": "head",
        "request": canonical_json({**ask.content, "host": plan.host.name}).decode(),
        "status": outcome.status,
        "reason": outcome.reason,
        "message": outcome.message,
        "reply": text,
        "attempt": last.number if last else 0,
        "started_at": began,
        "ended_at": ended,
        "latency_s": ended - began if began is not None and ended is not None else None,
    }


def _nodes(jobs: Sequence[Job]) -> dict[Node, list[int]]:
    """One node for the questions of a stage that are asked in one order, with the places of its jobs."""
    places: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for at, job in enumerate(jobs):
        places[job.test.id, job.stage, job.shift].append(at)
    arm = Arm("native", 0, "muted")
    nodes: dict[Node, list[int]] = {}
    for (_, _, shift), mine in places.items():
        first = jobs[mine[0]]
        units = tuple(Unit(f"{jobs[at].unit}/{shift}", jobs[at].question) for at in mine)
        node = Node(
            kind="answer",
            arm=arm,
            test=first.test,
            stage=first.stage,
            operation="answer",
            units=units,
            source=first.test,
            shift=shift,
        )
        nodes[node] = mine
    return nodes
