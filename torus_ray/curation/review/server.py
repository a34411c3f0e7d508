"""The page and its addresses, on loopback unless told otherwise. What it decides lies in `desk`, not here."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import ipaddress
import json
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from torus_ray.bank.load import BankError
from torus_ray.curation.review.clips import ArmClips
from torus_ray.curation.review.desk import Conflict, Desk, NoTest, Refused
from torus_ray.curation.review.payload import bank_payload, problems_payload, test_payload
from torus_ray.curation.review.verdicts import DECISIONS
from torus_ray.errors import InputError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
TOKEN_HEADER = "X-Review-Token"
LARGEST_BODY = 1 << 20
"""Bytes of a request: the largest test is some 20 KB."""

_PAGE = Path(__file__).with_name("page")
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "media-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Review:
    """All that the page is served from. host: what the server is bound to. reviewer: the name offered at first.

    token: must come with every verdict; only a page of this server can read it. lock: the desk is for one at a time.
    """

    desk: Desk
    arms: Sequence[ArmClips] = ()
    reviewer: str = ""
    host: str = "127.0.0.1"
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def asked(self, call: Callable[[], Any]) -> Any:
        """Call something of the desk in a thread, one at a time: it waits for the disk."""
        async with self.lock:
            return await asyncio.to_thread(call)


REVIEW: web.AppKey[Review] = web.AppKey("review", Review)


def make_app(review: Review) -> web.Application:
    """The application, without a socket."""
    app = web.Application(middlewares=[_guard], client_max_size=LARGEST_BODY)
    app[REVIEW] = review
    app.on_response_prepare.append(_add_headers)
    for suffix, kind in _KINDS.items():
        for file in _PAGE.glob(f"*{suffix}"):
            path = "/" if suffix == ".html" else f"/{file.name}"
            app.router.add_get(path, _page_file(file.read_bytes(), kind))
    app.router.add_get("/api/bank", _bank)
    app.router.add_get("/api/tests/{test}", _test)
    app.router.add_post("/api/tests/{test}/verdicts", _verdict)
    app.router.add_get("/clips/{arm}/{clip}", _clip)
    return app


def serve(review: Review, port: int, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. port: 0 for any free one. ready: told the page's address once it can be opened.

    Raises InputError where the address cannot be had.
    """
    asyncio.run(_serve(review, port, ready))


async def _serve(review: Review, port: int, ready: Callable[[str], None]) -> None:
    runner = web.AppRunner(make_app(review), access_log=None, shutdown_timeout=2)
    await runner.setup()
    try:
        site = web.TCPSite(runner, review.host, port)
        try:
            await site.start()
        except OSError as error:
            busy = error.errno == errno.EADDRINUSE
            raise InputError(
                f"cannot listen on {review.host}:{port}: {'it is in use' if busy else error.strerror}",
                where="--port" if busy else "--host",
                expected="a free port of an address of this machine",
                mend="give another --port, or 0 for any free one" if busy else "give another --host",
            ) from error
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        host = f"[{review.host}]" if ":" in review.host else review.host
        ready(f"http://{host}:{runner.addresses[0][1]}/")
        await stop.wait()
    finally:
        await runner.cleanup()


# --- who may ask ------------------------------------------------------------------------------------------------------


def host_allowed(header: str, bound: str) -> bool:
    """Whether a Host header names this server: else a stranger's name was pointed at this address (DNS rebinding).

    Addresses in digits cannot be rebound, so a server that is bound to the network takes those too.
    """
    try:
        name = urlsplit(f"//{header}").hostname or ""
        if name in LOOPBACK or bound in LOOPBACK:
            return name in LOOPBACK
        if name in {bound.lower(), socket.gethostname().lower()}:
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    review = request.app[REVIEW]
    if not host_allowed(request.headers.get("Host", ""), review.host):
        return _error(421, "this name is not the server's", "open the address that `torus bank review` printed")
    if request.method not in ("GET", "HEAD"):
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            return _error(403, "verdicts come from the server's own page only", "open the page at its own address")
        if not secrets.compare_digest(request.headers.get(TOKEN_HEADER, "").encode(), review.token.encode()):
            return _error(403, "the page is of an earlier session of the server", "load the page anew", token=True)
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _error(error.status, error.reason, "")
    except NoTest as error:
        return _error(404, error.message, error.mend)
    except Conflict as error:
        return _error(409, error.message, error.mend)
    except (Refused, BankError) as error:
        return _json({"error": error.message, "problems": problems_payload(error)}, 422)
    except OSError as error:
        what = f"not saved: {error.strerror or error} ({error.filename or review.desk.path})"
        return _error(500, what, "mend the cause, then judge again")


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


# --- the addresses ----------------------------------------------------------------------------------------------------


def _page_file(data: bytes, kind: str) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.Response(body=data, content_type=kind, charset="utf-8")

    return handler


async def _bank(request: web.Request) -> web.StreamResponse:
    """The list. Answers 304 to If-None-Match, so that the page can ask every few seconds."""
    review = request.app[REVIEW]
    told = await review.asked(lambda: bank_payload(review.desk, review.arms))
    body = json.dumps(told | {"token": review.token, "reviewer": review.reviewer}).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()}"'
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=304, headers={"ETag": tag})
    return web.Response(body=body, content_type="application/json", headers={"ETag": tag})


async def _test(request: web.Request) -> web.StreamResponse:
    review, test = request.app[REVIEW], request.match_info["test"]

    def look() -> dict[str, Any]:
        return test_payload(review.desk, review.arms, review.desk.sheet(test))

    return _json(await review.asked(look))


async def _verdict(request: web.Request) -> web.StreamResponse:
    """Body: decision, reviewer, version, and reason or the edited test. Answers once all is on disk."""
    review, test = request.app[REVIEW], request.match_info["test"]
    if request.content_type != "application/json":
        return _error(415, "a verdict is JSON", "send Content-Type: application/json")
    try:
        body = json.loads(await request.read())
    except (ValueError, RecursionError):
        return _error(400, "the body is not JSON", "send one JSON object")
    texts = ("decision", "reviewer", "version", "reason")
    if not isinstance(body, dict) or not all(isinstance(body.get(name, ""), str) for name in texts):
        return _error(400, f"the body is not an object with {', '.join(texts)} as texts", "send one JSON object")
    if body.get("decision") not in DECISIONS or not isinstance(body.get("test", {}), dict):
        return _error(400, f"the decision is none of {', '.join(DECISIONS)}, or the test no object", "send these")

    def judge() -> dict[str, Any]:
        sheet = review.desk.judge(
            test,
            body["decision"],
            reviewer=body.get("reviewer", ""),
            version=body.get("version", ""),
            reason=body.get("reason"),
            edited=body.get("test"),
        )
        return test_payload(review.desk, review.arms, sheet)

    return _json(await review.asked(judge))


async def _clip(request: web.Request) -> web.StreamResponse:
    """A clip's FLAC file. Only ids that a run's rows name are looked up; nothing of the address becomes a path."""
    arms = {str(number): arm for number, arm in enumerate(request.app[REVIEW].arms)}
    arm = arms.get(request.match_info["arm"])
    path = arm.file(request.match_info["clip"]) if arm else None
    if path is None or not path.is_file():
        return _error(404, "there is no such clip", "" if path is None else f"its file is gone: {path}")
    return web.FileResponse(path, headers={"Content-Type": "audio/flac"})


def _json(told: dict[str, Any], status: int = 200) -> web.Response:
    return web.json_response(told, status=status)


def _error(status: int, message: str, mend: str, **more: Any) -> web.Response:
    return _json({"error": message, "mend": mend, **more}, status)
