"""A stand-in for the Hugging Face hub: the parts of its protocol that a download uses, with faults on demand."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_of_the_test"
LARGE = 1_000
"""Bytes from which on a file is a large one: the hub lists its sha256, of others what git calls them."""


@dataclass
class Hub:
    """One repository and how it behaves. asked: (method, path, Range) of every request.

    cut_after: bytes of a file's body after which the connection is closed, once for each entry. down_after: how many
    requests for a file's body are answered before all others get a 500. altered: files whose body is other bytes.
    """

    repo: str
    files: Mapping[str, bytes]
    licence: str = "mit"
    gated: bool = False
    altered: frozenset[str] = frozenset()
    cut_after: list[int] = field(default_factory=list)
    down_after: int = 1_000
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    bodies: int = 0
    url: str = ""

    def digest(self, name: str) -> str:
        body = self.files[name]
        if len(body) >= LARGE:
            return hashlib.sha256(body).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False).hexdigest()

    def listing(self) -> dict[str, Any]:
        siblings = []
        for name, body in self.files.items():
            entry: dict[str, Any] = {"rfilename": name, "size": len(body), "blobId": self.digest(name)}
            if len(body) >= LARGE:
                entry["lfs"] = {"sha256": self.digest(name), "size": len(body), "pointerSize": 130}
            siblings.append(entry)
        gated = "manual" if self.gated else False
        card = {"license": self.licence}
        return {"id": self.repo, "modelId": self.repo, "sha": COMMIT, "gated": gated, "private": False, "tags": [],
                "downloads": 0, "likes": 0, "cardData": card, "siblings": siblings}  # fmt: skip

    def asked_for(self, method: str, name: str) -> list[str]:
        """The Range headers of the requests for a file."""
        return [ranged for verb, path, ranged in self.asked if verb == method and path.endswith(f"/{name}")]


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None: ...

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append((self.command, path, self.headers.get("Range", "")))
            if path in (f"/api/models/{hub.repo}", f"/api/models/{hub.repo}/revision/{COMMIT}"):
                self._send(200, json.dumps(hub.listing()).encode(), {"Content-Type": "application/json"})
            elif path.startswith(f"/api/models/{hub.repo}/revision/"):
                self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            elif path.startswith(f"/{hub.repo}/resolve/{COMMIT}/"):
                self._file(path.removeprefix(f"/{hub.repo}/resolve/{COMMIT}/"))
            else:
                self._send(401, b"{}", {"X-Error-Code": "RepoNotFound"})

        def _file(self, name: str) -> None:
            if hub.gated and self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._send(403 if self.headers.get("Authorization") else 401, b"{}", {"X-Error-Code": "GatedRepo"})
                return
            body = hub.files[name]
            headers = {"ETag": f'"{hub.digest(name)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            if self.command == "HEAD":
                self._send(200, body, headers)
                return
            hub.bodies += 1
            if hub.bodies > hub.down_after:
                self._send(500, b"", {})
                return
            if name in hub.altered:
                body = bytes(reversed(body))
            ranged = self.headers.get("Range", "")
            start = int(ranged.removeprefix("bytes=").split("-")[0]) if ranged else 0
            if ranged:
                headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
            self._send(
                206 if ranged else 200, body[start:], headers, cut=hub.cut_after.pop(0) if hub.cut_after else None
            )

        def _send(self, status: int, body: bytes, headers: Mapping[str, str], cut: int | None = None) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body[:cut])
            if cut is not None:
                self.wfile.flush()
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
