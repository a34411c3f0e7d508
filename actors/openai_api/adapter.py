"""Any model behind an OpenAI-compatible chat API as a listener: it answers questions about clips and describes them.

OpenAI's gpt-audio, Gemini's compatible layer, and servers of one's own (vLLM with Qwen-Omni or Audex, say). The clip
goes along as base64 of a WAV file. Retries, limits, budgets and the ledger of what was spent are here: the client's
own retries would leave no trace.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Union

from torus_ray.heads import AnswerReply, AnswerRequest, CaptionReply, CaptionRequest, Host, Model, Refused

from .calls import Caller, CallFailed, Endpoint, Reply, told_of
from .clips import ClipRules, Sound, sound_of
from .spending import Budget, Ledger, Prices, Stopped

KEPT = 1_000
"""Outcomes kept of calls whose request failed as a whole: when it comes again, they are not paid twice."""

Outcome = Union[Reply, Refused]


class OpenAIApi(Model):
    """Settings, which are its identity: model; clip: see ClipRules; send_seed: whether the request carries the seed;
    answer, caption: fields of the request's body for that head, e.g. {"temperature": 0, "max_completion_tokens": 3000}.

    Operating, which is not: base_url; key_env: the NAME of the environment variable that holds the key, none where the
    server wants none; in_flight, attempts, deadline_s, give_up_s: see Endpoint; prices: see Prices; budget:
    {"calls": ..., "money": ...}; ledger: the file with a line for each try, "" for none.
    """

    style = "async"
    batch_invariant = True

    def __init__(
        self,
        model: str,
        base_url: str,
        key_env: str = "",
        clip: Optional[Mapping[str, Any]] = None,
        send_seed: bool = False,
        answer: Optional[Mapping[str, Any]] = None,
        caption: Optional[Mapping[str, Any]] = None,
        in_flight: int = 16,
        attempts: int = 6,
        deadline_s: float = 120.0,
        give_up_s: float = 600.0,
        prices: Optional[Mapping[str, Any]] = None,
        budget: Optional[Mapping[str, Any]] = None,
        ledger: str = "",
    ) -> None:
        self._end = Endpoint(base_url, model, key_env, in_flight, attempts, deadline_s, give_up_s)
        self._rules = ClipRules(**dict(clip or {}))
        self._send_seed = send_seed
        self._fields = {"answer": dict(answer or {}), "caption": dict(caption or {})}
        self._prices = Prices(**dict(prices)) if prices else None
        self._budget = dict(budget or {})
        self._ledger = ledger
        self.max_in_flight = in_flight
        self._caller: Optional[Caller] = None
        self._client: Any = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._kept: "OrderedDict[str, Outcome]" = OrderedDict()

    def load(self, host: Host) -> None:
        import openai

        key = self._key()
        if self._budget.get("money") is not None and self._prices is None:
            raise Stopped(
                "a budget in money without prices",
                "operating.prices of the card",
                "text_in and text_out, money for a million tokens",
                "add them, or give the budget in calls",
            )
        ledger = Ledger(Path(self._ledger).expanduser() if self._ledger else None)
        self._client = openai.AsyncOpenAI(
            # The client wants some text, also where the server wants no key.
            api_key=key or "none",
            base_url=self._end.base_url,
            max_retries=0,
            timeout=self._end.deadline_s + 1,
        )
        self._caller = Caller(self._client, self._end, key, ledger, Budget(ledger, **self._budget), self._prices)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is None or self._loop is None or self._loop.is_closed():
            return
        if self._loop.is_running():
            self._loop.create_task(client.close())
        else:
            self._loop.run_until_complete(client.close())

    async def answer(self, request: AnswerRequest) -> AnswerReply:
        sound = sound_of(request.clip_bytes, self._rules)
        asks = [self._body("answer", question.prompt, sound, request.seed) for question in request.questions]
        told = await asyncio.gather(*(self._ask("answer", ask, sound) for ask in asks), return_exceptions=True)
        errors = [outcome for outcome in told if isinstance(outcome, BaseException)]
        if errors:
            for ask, outcome in zip(asks, told):
                if isinstance(outcome, (Reply, Refused)):
                    self._keep(_digest(ask), outcome)
            # What stops everything goes before what fails this request, and that before what refuses one question.
            raise min(errors, key=lambda error: (isinstance(error, Refused), isinstance(error, CallFailed)))
        return request.reply([reply.text for reply in told], told_of(told))

    async def caption(self, request: CaptionRequest) -> CaptionReply:
        sound = sound_of(request.clip_bytes, self._rules)
        reply = await self._ask("caption", self._body("caption", request.instruction, sound, request.seed), sound)
        if not reply.text.strip():
            raise CallFailed("empty: the model said nothing about the clip")
        return request.reply(reply.text, told_of([reply]))

    # --- one conversation -----------------------------------------------------------------------------------------

    def _body(self, operation: str, prompt: str, sound: Optional[Sound], seed: int) -> Dict[str, Any]:
        """The request of a conversation of its own: a prompt, alone or with a clip."""
        content: Any = prompt if sound is None else [{"type": "text", "text": prompt}, sound.part]
        body = {"model": self._end.model, **self._fields[operation], "messages": [{"role": "user", "content": content}]}
        return {**body, "seed": seed} if self._send_seed else body

    async def _ask(self, operation: str, body: Mapping[str, Any], sound: Optional[Sound]) -> Reply:
        """What the model says. Raises Refused, CallFailed, Stopped."""
        assert self._caller is not None
        self._loop = asyncio.get_running_loop()
        ask = _digest(body)
        kept = self._kept.pop(ask, None)
        if isinstance(kept, Refused):
            raise kept
        if kept is not None:
            return kept
        told = {"operation": operation, "ask": ask, "endpoint": self._end.where, "model": self._end.model}
        return await self._caller.ask(body, sound.seconds if sound else 0.0, told)

    def _keep(self, ask: str, outcome: Outcome) -> None:
        self._kept[ask] = outcome
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def _key(self) -> str:
        name = self._end.key_env
        if not name:
            return ""
        if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,79}", name):
            # It may be a key that was put in the wrong place: it is not shown.
            raise Stopped(
                "key_env is no name of an environment variable",
                "operating.key_env of the card",
                "capitals, digits and underscores",
                "put the key into a variable, and the variable's name here",
            )
        key = os.environ.get(name, "").strip()
        if not key:
            raise Stopped(
                f"the environment variable {name} is not set",
                f"the key for {self._end.model} at {self._end.where}",
                "the key in that variable",
                f"export {name}=... before the run, and before `ray start` where a cluster is joined",
            )
        return key


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
