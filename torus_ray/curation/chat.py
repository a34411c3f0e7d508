"""One call of a chat model, kept: asked once for ever, with bounded tries, each try a durable row.

A call is known by the sha256 of its canonical request, so the same work done again finds the reply and pays nothing.
"""

from __future__ import annotations

import asyncio
import base64
import io
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from torus_ray.bank.digest import canonical_json, sha256_of
from torus_ray.curation.endpoints import Endpoint, safe_url
from torus_ray.curation.failures import Judged, judge, pause_s
from torus_ray.curation.ledger import Ledger, read_rows
from torus_ray.curation.limits import Budget, CurationStop, Spend, Throttle
from torus_ray.protocol.requests import SILENCE

if TYPE_CHECKING:
    import openai

Item = TypeVar("Item")

CANCEL_AGAIN_S = 0.5
DEAD_AFTER = 3
"""So many calls in a row that no try could save, with no success between: the server is dead, and the work stops."""


class CallFailed(Exception):
    """A call that has no reply: its tries are used up, or the server will not take this request."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


@dataclass(frozen=True)
class ChatRequest:
    """What is sent. A message's content is a text, or a list of OpenAI's content parts; in those a clip stands by its
    identity: ``{"type": "input_audio", "input_audio": {"clip": ...}}``."""

    endpoint: Endpoint
    messages: tuple[Mapping[str, Any], ...]
    json: bool = False

    @cached_property
    def canonical(self) -> dict[str, Any]:
        """The request without what the key must not depend on: where it goes, deadlines, prices, the cap."""
        end = self.endpoint
        settings = {"temperature": end.temperature, "reasoning_effort": end.reasoning_effort}
        return {
            "model": end.model,
            "messages": list(self.messages),
            **{name: value for name, value in settings.items() if value is not None},
            **({"response_format": {"type": "json_object"}} if self.json and end.json_mode else {}),
        }

    @cached_property
    def key(self) -> str:
        return sha256_of(self.canonical)

    @cached_property
    def most_tokens(self) -> tuple[int, int]:
        """(in, out) at most: three bytes a token are fewer than texts have; the cap of the reply."""
        return len(canonical_json(self.canonical["messages"])) // 3, self.endpoint.max_tokens

    def body(self) -> dict[str, Any]:
        """The keywords of the client: the canonical request, the clip put in, the cap."""
        messages = [{**message, "content": _with_clip(message["content"])} for message in self.messages]
        return {**self.canonical, "messages": messages, self.endpoint.tokens_field: self.endpoint.max_tokens}


@dataclass(frozen=True)
class ChatReply:
    """What came back. model_version: as the server names it. max_tokens: the cap that it was given. at: epoch
    seconds."""

    key: str
    text: str
    refusal: str | None
    finish_reason: str | None
    model_version: str | None
    response_id: str | None
    max_tokens: int
    at: float

    def stands(self, max_tokens: int) -> bool:
        """Whether it answers the request for good; one that was cut off does not, once more is allowed."""
        return self.finish_reason != "length" or self.max_tokens >= max_tokens


@dataclass
class Tally:
    """What was done so far, for the progress line and the end."""

    asked: int = 0
    reused: int = 0
    tries: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0


class Caller:
    """Asks endpoints, on one event loop. watch: told after every try. pause: seconds before the next, by its number."""

    def __init__(
        self,
        ledger: Ledger,
        budget: Budget,
        *,
        pause: Callable[[int, random.Random], float] = pause_s,
        watch: Callable[[Tally], None] = lambda tally: None,
    ) -> None:
        self._ledger, self._budget, self._pause, self._watch = ledger, budget, pause, watch
        self._chance = random.Random()
        self._lanes: dict[Endpoint, tuple[openai.AsyncOpenAI, Throttle]] = {}
        self._dead = 0
        self.stop: CurationStop | None = None
        self.tally = Tally()
        self.standing = standing_replies(ledger.folder)

    async def close(self) -> None:
        """Close the connections; on the loop that they were used on."""
        for client, _ in self._lanes.values():
            await client.close()
        self._lanes.clear()

    async def ask(self, request: ChatRequest, *, role: str, unit: str, prompt_version: str) -> ChatReply:
        """The reply to a request: the one that stands, or one that is asked for now and durable on return.

        Raises CallFailed for this call alone, CurationStop when no call makes sense any more.
        """
        known = self.standing.get(request.key)
        if known and known.stands(request.endpoint.max_tokens):
            self.tally.reused += 1
            return known
        end = request.endpoint
        told = {
            "key": request.key,
            "role": role,
            "unit": unit,
            "prompt_version": prompt_version,
            "kind": "chat",
            "base_url": safe_url(end.base_url),
            "model": end.model,
            "request": canonical_json(request.canonical).decode(),
            "max_tokens": end.max_tokens,
        }
        judged = Judged("give_up", "error", "")
        for attempt in range(1, end.attempts + 1):
            if self.stop:
                raise self.stop
            outcome = await self._try(request, {**told, "attempt": attempt})
            if isinstance(outcome, ChatReply):
                self._dead = 0
                self.tally.asked += 1
                self.standing[request.key] = outcome
                return outcome
            judged = outcome
            if judged.action != "again":
                break
            if attempt < end.attempts and judged.wait_s is None:
                await asyncio.sleep(self._pause(attempt, self._chance))
        self._give_up(judged, end)
        raise CallFailed(judged.reason, judged.message)

    def _give_up(self, judged: Judged, end: Endpoint) -> None:
        """Raises CurationStop where the failure is not this call's alone."""
        if judged.action == "again":
            self._dead += 1
        if judged.action == "stop" or self._dead >= DEAD_AFTER:
            self.stop = self.stop or CurationStop(
                f"{end.model} cannot be asked: {judged.reason}: {judged.message}",
                where=safe_url(end.base_url),
                expected="a server that answers, with a model, a key and settings that it takes",
                mend=_MENDS.get(judged.reason, "see to the server, then give the same command again"),
            )
            raise self.stop

    async def _try(self, request: ChatRequest, told: Mapping[str, Any]) -> ChatReply | Judged:
        end = request.endpoint
        import openai

        client, throttle = self._lane(end)
        held = (sum(request.most_tokens), end.cost(*request.most_tokens))
        try:
            await self._budget.hold(*held)
        except CurationStop as stop:
            self.stop = self.stop or stop
            raise
        tokens = money = None
        answered = False
        try:
            began = await throttle.enter()
            self.tally.in_flight += 1
            judged: Judged | None = None
            row: dict[str, Any] = {**told, "started_at": time.time()}
            try:
                found = await self._send(client, request)
            except (openai.OpenAIError, OSError, ValueError) as error:  # TimeoutError is an OSError
                judged = judge(error)
                message = judged.message.replace(end.key(), "[key]") if end.key_env else judged.message
                row |= {"status": "timeout" if judged.reason == "timeout" else "failed", "reason": judged.reason}
                row |= {"message": message}
                judged = Judged(judged.action, judged.reason, message, judged.wait_s, judged.too_many)
            else:
                row |= {"status": "ok", **found, **_usage(end, found)}
            finally:
                self.tally.in_flight -= 1
                throttle.leave(
                    began,
                    ok=judged is None,
                    too_many=judged is not None and judged.too_many,
                    wait_s=judged.wait_s if judged else None,
                )
            row["ended_at"] = time.time()
            row["latency_s"] = row["ended_at"] - row["started_at"]
            await self._ledger.add("calls", row)
            tokens, money, answered = row.get("total_tokens"), row.get("cost"), judged is None
        finally:
            self._budget.settle(held, tokens, money, answered=answered)
        self.tally.tries[judged.reason if judged else "ok"] += 1
        self._watch(self.tally)
        if judged:
            return judged
        self._check_usage(row, end)
        return _reply(row)

    async def _send(self, client: openai.AsyncOpenAI, request: ChatRequest) -> dict[str, Any]:
        """The fields of a row that a chat completion gives."""
        async with asyncio.timeout(request.endpoint.deadline_s):
            raw = await client.chat.completions.with_raw_response.create(**request.body())
            parsed: Any = raw.parse()
        choices = getattr(parsed, "choices", None)
        if not hasattr(parsed, "choices"):
            raise ValueError(f"the server sent no chat completion: {str(parsed)[:200]!r}")
        usage = getattr(parsed, "usage", None)
        details = getattr(usage, "completion_tokens_details", None)
        message = choices[0].message if choices else None
        return {
            "model_version": getattr(parsed, "model", None),
            "response_id": getattr(parsed, "id", None),
            "request_id": raw.headers.get("x-request-id"),
            "reply": getattr(message, "content", None) or "",
            "refusal": getattr(message, "refusal", None),
            # No choice at all is how some services answer what they will not.
            "finish_reason": choices[0].finish_reason if choices else "no_choice",
            "prompt_tokens": getattr(usage, "prompt_tokens", None),
            "completion_tokens": getattr(usage, "completion_tokens", None),
            "reasoning_tokens": getattr(details, "reasoning_tokens", None),
            "total_tokens": getattr(usage, "total_tokens", None),
        }

    def _check_usage(self, row: Mapping[str, Any], end: Endpoint) -> None:
        most = self._budget.most
        if row["total_tokens"] is None and (most.tokens is not None or most.money is not None):
            self.stop = self.stop or CurationStop(
                f"{end.model} does not say how many tokens a call took: a budget in tokens or money cannot be kept",
                where=safe_url(end.base_url),
                expected="`usage` in each reply",
                mend="give a budget in calls instead (--max-calls)",
            )

    def _lane(self, end: Endpoint) -> tuple[openai.AsyncOpenAI, Throttle]:
        if end not in self._lanes:
            import openai

            # Retries are ours: the client's own would leave no row.
            client = openai.AsyncOpenAI(
                api_key=end.key(), base_url=end.base_url, max_retries=0, timeout=end.deadline_s + 1
            )
            self._lanes[end] = client, Throttle(end.in_flight)
        return self._lanes[end]


_MENDS: Mapping[str, str] = {
    "wrong_key": "put the right key into the variable named by key_env, then give the same command again",
    "forbidden": "see what this key may do, then give the same command again",
    "no_such_model": "mend `model` or `base_url` (--set ROLE.model=...), then give the same command again",
    "no_credit": "see to the account's quota, then give the same command again",
    "refused_setting": "unset or change that setting (--set ROLE.temperature=none), then give the same command again",
    "asked_to_wait": "give the same command again later",
}


_REPLY_COLUMNS = ("key", "reply", "refusal", "finish_reason", "model_version", "response_id", "max_tokens", "ended_at")


def standing_replies(folder: Path) -> dict[str, ChatReply]:
    """The reply of each call that was answered before, by key; none where there is no such folder of rows."""
    rows = read_rows(folder, "calls", [*_REPLY_COLUMNS, "status", "kind"])
    return {
        row["key"]: _reply(row) for row in rows.iter_rows(named=True) if row["status"] == "ok" and row["kind"] == "chat"
    }


def spent(ledger: Ledger, most: Spend) -> Budget:
    """The budget of a folder, what its rows cost taken off."""
    rows = ledger.rows("calls", ["kind", "status", "total_tokens", "cost"])
    rows = rows.filter(rows["kind"] == "chat")
    return Budget(
        most,
        calls=rows.height,
        tokens=int(rows["total_tokens"].sum() or 0),
        money=float(rows["cost"].sum() or 0.0),
        unpriced=int(((rows["status"] == "ok") & rows["cost"].is_null()).sum()),
    )


async def in_parallel(width: int, items: Iterable[Item], work: Callable[[Item], Awaitable[None]]) -> None:
    """Do `work` on every item, `width` at once, on this event loop. What is under way when one raises is finished,
    nothing new is begun, and the first error is raised. Cancelled, it ends all that is under way."""
    source = iter(items)
    errors: list[Exception] = []

    async def worker() -> None:
        for item in source:
            if errors:
                return
            try:
                await work(item)
            except Exception as error:
                errors.append(error)
                return

    workers = [asyncio.ensure_future(worker()) for _ in range(width)]
    try:
        await asyncio.wait(workers)
    finally:
        # Once is not enough: a client that is just connecting can take a cancellation for one of its own.
        while left := [each for each in workers if not each.done()]:
            for each in left:
                each.cancel()
            await asyncio.wait(left, timeout=CANCEL_AGAIN_S)
    for each in workers:
        each.result()
    if errors:
        raise errors[0]


def _usage(end: Endpoint, found: Mapping[str, Any]) -> dict[str, Any]:
    read, written, total = (found[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    if read is None or written is None:
        return {}
    # Where thinking is not counted among the completion's tokens, the total has it; it is paid like output.
    return {"total_tokens": total or read + written, "cost": end.cost(read, max(written, (total or 0) - read))}


def _reply(row: Mapping[str, Any]) -> ChatReply:
    return ChatReply(
        row["key"],
        row["reply"] or "",
        row["refusal"],
        row["finish_reason"],
        row["model_version"],
        row["response_id"],
        row["max_tokens"],
        row["ended_at"],
    )


def _with_clip(content: str | Sequence[Mapping[str, Any]]) -> Any:
    if isinstance(content, str):
        return content
    return [
        {**part, "input_audio": {"data": _silence_wav(), "format": "wav"}} if part["type"] == "input_audio" else part
        for part in content
    ]


def silent_part() -> dict[str, Any]:
    """The content part of one second of silence, as the protocol's muted control plays it."""
    return {"type": "input_audio", "input_audio": {"clip": SILENCE.id}}


@cache
def _silence_wav() -> str:
    """The muted control's clip as base64 of a 16-bit WAV file."""
    import soundfile

    from torus_ray.audio import decode

    clip = decode(SILENCE.data)
    file = io.BytesIO()
    soundfile.write(file, clip.wave.T, clip.rate_hz, "PCM_16", format="WAV")
    return base64.b64encode(file.getvalue()).decode()
