"""A local server that speaks OpenAI's chat completions over real HTTP, and fails as real ones do.

What it says is scripted: a list of replies (given in the order of requests, the last one for ever) or a function of the
request's body. As a context manager it runs on a thread and a free port of the loopback::

    with StandIn(["A", rate_limited(retry_after="1"), Reply("B")], key="secret") as server:
        openai.OpenAI(base_url=server.base_url, api_key="secret", max_retries=0)...
    server.requests     # bodies, in the order they came
    server.most_at_once # requests under way at the same moment

`python tests/standin/openai_server.py --letter A` serves one answer to everything until it is ended, for other
processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web

Body = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One HTTP reply. With status 200 a completion with `text`; else an error envelope with `error`.

    raw: the whole body instead, as it stands. cut: close the connection after half of the body (`cut` "body") or before
    any of it ("headers"). after: wait for this before replying, e.g. until others have come. usage: None leaves it out.
    audio: what a model that speaks returns, as message.audio.
    """

    text: str | None = ""
    status: int = 200
    error: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    refusal: str | None = None
    finish_reason: str | None = "stop"
    usage: Mapping[str, Any] | None = field(default_factory=dict)
    audio: Mapping[str, Any] | None = None
    no_choice: bool = False
    raw: bytes | None = None
    content_type: str = "application/json"
    cut: str | None = None
    after: Callable[[StandIn], bool] | None = None


Script = Sequence["Reply | str"] | Callable[[Body], "Reply | str"]


def rate_limited(retry_after: str | None = None, retry_after_ms: str | None = None) -> Reply:
    """429, with or without word on when to come back."""
    told = {"retry-after": retry_after, "retry-after-ms": retry_after_ms}
    headers = {name: value for name, value in told.items() if value is not None}
    return failure(429, "Rate limit reached for requests", "rate_limit_exceeded", "requests", headers=headers)


def failure(
    status: int,
    message: str,
    code: str | None = None,
    kind: str = "invalid_request_error",
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """An error in OpenAI's envelope."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return Reply(status=status, error=error, headers=headers or {})


def server_error(status: int = 500) -> Reply:
    return failure(status, "The server had an error while processing your request.", None, "server_error")


def no_quota() -> Reply:
    return failure(429, "You exceeded your current quota.", "insufficient_quota", "insufficient_quota")


def cut(where: str = "body") -> Reply:
    """A connection that is closed before the reply is whole."""
    return Reply("never whole", cut=where)


def refusal(words: str = "I'm sorry, but I can't help with that.") -> Reply:
    """A refusal in the field that is meant for it."""
    return Reply(None, refusal=words)


class StandIn:
    """The server. key: what it takes as a bearer token; None takes anything. models: those it knows; None: all."""

    def __init__(self, script: Script, *, key: str | None = None, models: Sequence[str] | None = None) -> None:
        self._script, self._key, self._models = script, key, models
        self.requests: list[Body] = []
        self.headers: list[Mapping[str, str]] = []
        self.arrived_at: list[float] = []
        self.under_way = self.most_at_once = 0
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="stand-in", daemon=True)
        self._ended: asyncio.Event | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> StandIn:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the stand-in server did not come up")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(lambda: self._ended.set() if self._ended else None)
        self._thread.join(10)

    # --- on the server's thread ---

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        self._ended = asyncio.Event()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._list)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._port = runner.addresses[0][1]
        self._ready.set()
        await self._ended.wait()
        await runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}  # replies that were held back
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "stand-in"} for name in self._models or ()]
        return web.json_response({"object": "list", "data": data})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            return await self._answer(request)
        finally:
            self.under_way -= 1

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if self._key is not None and request.headers.get("Authorization") != f"Bearer {self._key}":
            shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
            return await self._send(
                request, failure(401, f"Incorrect API key provided: {shown}.", "invalid_api_key"), {}
            )
        try:
            body = json.loads(await request.read())
        except ValueError:
            return await self._send(request, failure(400, "We could not parse the JSON body of your request."), {})
        wrong = next((name for name in ("model", "messages") if not body.get(name)), None)
        if wrong:
            return await self._send(request, failure(400, f"Missing required parameter: '{wrong}'.", param=wrong), body)
        if self._models is not None and body["model"] not in self._models:
            told = f"The model `{body['model']}` does not exist or you do not have access to it."
            return await self._send(request, failure(404, told, "model_not_found"), body)
        number = len(self.requests)
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        self.arrived_at.append(time.monotonic())
        said = self._script(body) if callable(self._script) else self._script[min(number, len(self._script) - 1)]
        reply = Reply(said) if isinstance(said, str) else said
        while reply.after is not None and not reply.after(self):
            await asyncio.sleep(0.002)
        return await self._send(request, reply, body, number)

    async def _send(self, request: web.Request, reply: Reply, body: Body, number: int = 0) -> web.StreamResponse:
        if reply.raw is not None:
            content = reply.raw
        elif reply.status != 200:
            content = json.dumps({"error": dict(reply.error)}).encode()
        else:
            content = json.dumps(_completion(reply, body, number)).encode()
        headers = {"x-request-id": f"req-{number}", **reply.headers}
        if reply.cut is not None:
            if reply.cut == "body":
                response = web.StreamResponse(headers={**headers, "Content-Length": str(len(content))})
                response.content_type = reply.content_type
                await response.prepare(request)
                await response.write(content[: len(content) // 2])
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        return web.Response(body=content, status=reply.status, headers=headers, content_type=reply.content_type)


def _completion(reply: Reply, body: Body, number: int) -> Body:
    message: Body = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.audio is not None:
        message["audio"] = dict(reply.audio)
    read, written = sum(map(_tokens, body["messages"])), len(reply.text or "") // 4 + 1
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    choices = [{"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}]
    completion: Body = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": f"{body['model']}-2026-01-01",
        "choices": [] if reply.no_choice else choices,
        "system_fingerprint": None,
    }
    if reply.usage is not None:
        completion["usage"] = {**usage, **reply.usage}
    return completion


def _tokens(message: Mapping[str, Any]) -> int:
    """About four letters a token; a clip is ten."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return len(content) // 4 + 4
    return 4 + sum(len(part["text"]) // 4 if part.get("type") == "text" else 10 for part in content)


def main() -> None:
    """One answer for everything, until the process is ended."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--letter", default="A", help="the answer")
    parser.add_argument("--key", help="the bearer token that is taken")
    told = parser.parse_args()
    with StandIn([told.letter], key=told.key) as server:
        print(server.base_url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
