"""A bank of nonsense on a desk, with clips, behind a real server on a free port of loopback."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from tests.report.sample import canary, make_runs
from torus_ray.bank.load import load_bank
from torus_ray.curation.review.clips import arm_clips
from torus_ray.curation.review.desk import Desk
from torus_ray.curation.review.server import TOKEN_HEADER, Review, make_app
from torus_ray.protocol.graph import Arm

FIRST, SECOND, THIRD = "canary-000", "canary-001", "canary-002"


def make_bank(folder: Path, tests: int = 4) -> Path:
    canary(folder, tests=tests)
    return folder


def make_results(results: Path, bank: Path) -> list[Path]:
    """Run folders of two arms and a control on the bank."""
    arms = (Arm("native"), Arm("self-caption"), Arm("native", control="muted"))
    return list(make_runs(results, load_bank(bank), arms=arms).values())


@contextlib.contextmanager
def served(review: Review) -> Iterator[str]:
    """The address of a server in a thread of this process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    runner = web.AppRunner(make_app(review), shutdown_timeout=0)

    async def begin() -> int:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    try:
        yield f"http://127.0.0.1:{asyncio.run_coroutine_threadsafe(begin(), loop).result(10)}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@contextlib.contextmanager
def desk_served(bank: Path, runs: list[Path] | None = None, reviewer: str = "") -> Iterator[str]:
    with Desk(bank) as desk, served(Review(desk, arm_clips(runs or [], "canary"), reviewer)) as address:
        yield address


class ServerProcess:
    """`torus bank review` as a user starts it."""

    def __init__(self, bank: Path, *words: object, port: int = 0) -> None:
        command = [sys.executable, "-m", "torus_ray.cli", "bank", "review", bank, "--port", port, *words]
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.address = next(word.rstrip("/") for word in line.split() if word.startswith("http://"))

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=10)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=10)
        return self.process.returncode


@contextlib.contextmanager
def process_served(bank: Path, *words: object, port: int = 0) -> Iterator[ServerProcess]:
    server = ServerProcess(bank, *words, port=port)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Caller:
    """Plain HTTP, a connection a request, the path as it is given."""

    address: str
    token: str = field(default="")

    def __post_init__(self) -> None:
        self.token = self.token or self.get("/api/bank").json["token"]

    def call(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=10)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            got = connection.getresponse()
            return Answer(got.status, got.read(), {name.lower(): value for name, value in got.getheaders()})
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.call("GET", path, **headers)

    def test(self, test_id: str) -> Any:
        return self.get(f"/api/tests/{test_id}").json

    def judge(self, test_id: str, **body: Any) -> Answer:
        return self.post(test_id, json.dumps(body).encode(), **{TOKEN_HEADER: self.token})

    def post(self, test_id: str, body: bytes, **headers: str) -> Answer:
        told = {"Content-Type": "application/json", **headers}
        return self.call("POST", f"/api/tests/{test_id}/verdicts", body, **told)
