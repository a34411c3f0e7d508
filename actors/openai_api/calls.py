"""One call of a chat model: tried a bounded number of times, each try a line in the ledger."""

from __future__ import annotations

import asyncio
import random
import re
import time
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Set, Tuple
from urllib.parse import urlsplit, urlunsplit

from torus_ray.heads import Refused

from .failures import AGAIN, REFUSE, STOP, Verdict, judge, pause_s
from .spending import Budget, Ledger, Prices, Stopped, Usage, tokens
from .throttle import Throttle

DEAD_AFTER = 3
"""Different calls in a row that no try could save, with no success between: the server is dead."""


class CallFailed(RuntimeError):
    """A call that got no reply: its tries are used up, or the server will not have this request."""


@dataclass(frozen=True)
class Endpoint:
    """Where a model answers. in_flight: most calls at once. attempts: tries of one call; deadline_s: of one try;
    give_up_s: of a call with all its tries and waits."""

    base_url: str
    model: str
    key_env: str = ""
    in_flight: int = 16
    attempts: int = 6
    deadline_s: float = 120.0
    give_up_s: float = 600.0

    @property
    def where(self) -> str:
        """The base URL without user, query or fragment, where some services carry a secret."""
        parts = urlsplit(self.base_url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))


@dataclass(frozen=True)
class Reply:
    """What came back. text: "" where there was none."""

    text: str
    finish_reason: Optional[str]
    model: Optional[str]
    usage: Usage
    cost: Optional[float]


class Caller:
    """Asks one endpoint, on one event loop. client: an openai.AsyncOpenAI that does not retry by itself."""

    def __init__(
        self, client: Any, end: Endpoint, key: str, ledger: Ledger, budget: Budget, prices: Optional[Prices]
    ) -> None:
        self._client, self._end, self._key = client, end, key
        self._ledger, self._budget, self._prices = ledger, budget, prices
        self._throttle = Throttle(end.in_flight)
        self._chance = random.Random()
        self._lost: Set[Any] = set()
        self.stopped: Optional[Stopped] = None

    async def ask(self, body: Mapping[str, Any], seconds: float, told: Mapping[str, Any]) -> Reply:
        """The reply to a request. seconds: length of its audio. told: what its lines in the ledger begin with.

        Raises CallFailed for this call alone, Refused where the server never will, Stopped when no call makes sense
        any more.
        """
        try:
            found = await asyncio.wait_for(self._tries(body, seconds, told), self._end.give_up_s)
        except asyncio.TimeoutError:
            late = f"no reply within {self._end.give_up_s:g} s, all tries and waits together"
            found = Verdict(AGAIN, "timeout", late)
        if isinstance(found, Reply):
            self._lost.clear()
            return found
        verdict: Verdict = found
        if verdict.action == AGAIN:
            self._lost.add(told["ask"])  # one that is tried over and over counts once
        if verdict.action == STOP or len(self._lost) >= DEAD_AFTER:
            raise self._stop(verdict)
        if verdict.action == REFUSE:
            raise Refused(verdict.reason, verdict.message)
        raise CallFailed(f"{verdict.reason}: {verdict.message}")

    def _stop(self, verdict: Verdict) -> Stopped:
        self.stopped = self.stopped or Stopped(
            f"{self._end.model} cannot be asked: {verdict.reason}: {verdict.message}",
            self._end.where,
            "a server that answers, with a model, a key and settings that it takes",
            self._mend(verdict.reason),
        )
        return self.stopped

    async def _tries(self, body: Mapping[str, Any], seconds: float, told: Mapping[str, Any]) -> Any:
        attempt = 1
        while True:
            found = await self._try(body, seconds, {**told, "attempt": attempt})
            if isinstance(found, Reply) or found.action != AGAIN or attempt >= self._end.attempts:
                return found
            if found.wait_s is None:  # else the throttle waits
                await asyncio.sleep(pause_s(attempt, self._chance))
            attempt += 1

    async def _try(self, body: Mapping[str, Any], seconds: float, told: Mapping[str, Any]) -> Any:
        most = self._most(body, seconds)
        await self._hold(most)
        row: Dict[str, Any] = dict(told)
        try:
            began = await self._throttle.enter()
            if self.stopped:  # while it waited for its place
                self._throttle.leave(began, ok=False)
                raise self.stopped
            row["at"] = time.time()
            found: Any = Verdict(AGAIN, "cancelled", "")
            try:
                found = await self._send(body, row)
            finally:
                # Also a try that was cut off is in the ledger: it may have been paid for.
                verdict = found if isinstance(found, Verdict) else None
                if verdict and verdict.action == STOP:
                    self._stop(verdict)  # before the next one gets the place
                self._throttle.leave(
                    began,
                    ok=verdict is None,
                    too_many=verdict is not None and verdict.too_many,
                    wait_s=verdict.wait_s if verdict else None,
                )
                row.update(status="failed" if verdict else "ok", reason=verdict.reason if verdict else None)
                row["latency_s"] = round(time.time() - row["at"], 3)
                self._ledger.add(row)
        finally:
            self._budget.settle(most)
        return found

    async def _hold(self, most: float) -> None:
        try:
            await self._budget.hold(most)
        except Stopped as stop:
            self.stopped = self.stopped or stop
            raise

    async def _send(self, body: Mapping[str, Any], row: Dict[str, Any]) -> Any:
        import openai

        # Fields that this client does not know of (vLLM's, say) go where those it knows go.
        sent = {name: body[name] for name in ("model", "messages")}
        rest = {name: value for name, value in body.items() if name not in sent}
        try:
            raw = await asyncio.wait_for(
                self._client.chat.completions.with_raw_response.create(**sent, extra_body=rest), self._end.deadline_s
            )
            parsed = raw.parse()
            if not hasattr(parsed, "choices"):
                raise ValueError(f"the server sent no chat completion: {str(parsed)[:120]!r}")
        except (openai.OpenAIError, OSError, ValueError, asyncio.TimeoutError) as error:
            verdict = judge(error, rest)
            clean = self._without_key(verdict.message)
            return Verdict(verdict.action, verdict.reason, clean, verdict.wait_s, verdict.too_many)
        usage = _usage(parsed)
        cost = self._prices.cost(usage) if self._prices else None
        row.update(
            version=getattr(parsed, "model", None),
            response_id=getattr(parsed, "id", None),
            request_id=raw.headers.get("x-request-id"),
            cost=cost,
            **tokens(usage),
        )
        self._check_counted(cost)
        text, finish_reason = _said(parsed)
        if finish_reason == "content_filter" and not text:
            return Verdict(REFUSE, "content_filter", "the service does not answer this request")
        return Reply(text, finish_reason, getattr(parsed, "model", None), usage, cost)

    def _check_counted(self, cost: Optional[float]) -> None:
        """A budget in money that cannot be kept stops the next call; the reply that is there is used."""
        if self._budget.money is not None and cost is None:
            self.stopped = self.stopped or Stopped(
                "the server does not say how many tokens a call took: a budget in money cannot be kept",
                self._end.where,
                "`usage` in each reply",
                "give operating.budget in calls instead",
            )

    def _most(self, body: Mapping[str, Any], seconds: float) -> float:
        if self._prices is None:
            return 0.0
        text = "".join(_texts(body["messages"]))
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or 0
        return self._prices.most(text, seconds, int(limit))

    def _without_key(self, message: str) -> str:
        if self._key:
            message = message.replace(self._key, "[key]")
        return re.sub(r"\bsk-[\w*.-]+", "[key]", message)

    def _mend(self, reason: str) -> str:
        mends = {
            "wrong_key": f"put the right key into {self._end.key_env or 'a variable that key_env names'}",
            "forbidden": "see what this key may do",
            "no_such_model": "mend settings.model or operating.base_url in the card",
            "no_credit": "see to the account's quota",
            "refused_setting": "mend the settings of the head in the card",
            "asked_to_wait": "wait as long",
        }
        return mends.get(reason, "see to the server") + ", then give the same command again; what is answered stays"


def told_of(replies: Sequence[Reply]) -> str:
    """What the replies to one request took, all together, in words for its row: name=value, what is unknown left
    out."""
    models = ",".join(dict.fromkeys(reply.model for reply in replies if reply.model))
    told: Dict[str, Any] = {"model": models or None, "replies": len(replies)}
    for name in ("read", "audio", "cached", "written", "reasoning"):
        counts = [getattr(reply.usage, name) for reply in replies]
        told[f"{name}_tokens"] = sum(counts) if None not in counts else None
    costs = [reply.cost for reply in replies]
    told["cost"] = f"{sum(c for c in costs if c is not None):.6f}" if None not in costs else None
    ends = (reply.finish_reason for reply in replies)
    told["cut"] = ",".join(dict.fromkeys(end for end in ends if end not in (None, "stop"))) or None
    return " ".join(f"{name}={value}" for name, value in told.items() if value is not None)


def _said(parsed: Any) -> Tuple[str, Optional[str]]:
    """(text, finish reason) of a completion; a refusal in its own field is what the model said."""
    if not parsed.choices:  # how some services answer what they will not
        return "", "content_filter"
    choice = parsed.choices[0]
    content = getattr(choice.message, "content", None)
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or getattr(choice.message, "refusal", None) or "", choice.finish_reason


def _usage(parsed: Any) -> Usage:
    usage = getattr(parsed, "usage", None)
    read, written = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    total = getattr(usage, "total_tokens", None)
    if read is not None and written is not None and total is not None:
        # Where thinking is not counted among the completion's tokens, the total has it; it is paid like output.
        written = max(written, total - read)
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        read=read,
        audio=getattr(details, "audio_tokens", None),
        cached=getattr(details, "cached_tokens", None),
        written=written,
        reasoning=getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None),
    )


def _texts(messages: Any) -> Any:
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            yield content
        else:
            yield from (part["text"] for part in content if part["type"] == "text")
