"""An S3-compatible server for tests, moto's, in a process of its own; and a wire to it that can be cut."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import socketserver
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

KEY, SECRET = "AKIATORUSTESTS", "the-secret-of-the-tests"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
CLEARED = (
    *("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION"),
    *("HTTP_PROXY", "http_proxy"),
)


@dataclass(frozen=True)
class Server:
    """moto's server, which speaks S3 over HTTP."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def new_bucket(self) -> str:
        name = f"torus-{uuid.uuid4().hex[:12]}"
        self.ask("PUT", f"/{name}")
        return name

    def new_user(self, *allowed: str) -> dict[str, str]:
        """The environment of somebody who may do only that."""
        import boto3

        iam = boto3.client("iam", endpoint_url=self.endpoint, region_name="us-east-1")
        name = f"user-{uuid.uuid4().hex[:8]}"
        iam.create_user(UserName=name)
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": allowed, "Resource": "*"}]}
        iam.put_user_policy(UserName=name, PolicyName="that", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}

    def check_keys(self, wanted: bool) -> None:
        """Whether the server looks at credentials; those of the tests are none that it knows."""
        self.ask("POST", "/moto-api/reset-auth", b"0" if wanted else b"inf")

    def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, {"content-type": "text/plain"})
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        assert reply.status < 300, (method, path, reply.status, content)
        return content


@contextmanager
def serve() -> Iterator[Server]:
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    env = {name: value for name, value in os.environ.items() if name not in CLEARED}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    assert process.stdout is not None
    told = ""
    for line in process.stdout:
        told += line
        if found := re.search(r"127\.0\.0\.1:(\d+)", line):
            break
    else:
        raise AssertionError(f"moto's server did not start:\n{told}")
    # Whatever it says later has to be read, or it would stop at a full pipe.
    reader = threading.Thread(target=process.stdout.read, daemon=True)
    reader.start()
    try:
        yield Server(int(found[1]))
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()


class Wire(socketserver.ThreadingTCPServer):
    """A way to a server that is cut once `mark` has been asked for `times` times; what is sent then is lost."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, server: Server, mark: bytes, times: int) -> None:
        super().__init__(("127.0.0.1", 0), _Through)
        self.server, self.mark, self.left = server, mark, times
        self.cut = threading.Event()
        self.count = threading.Lock()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def serving(self) -> threading.Thread:
        thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        thread.start()
        return thread

    def passes(self, data: bytes) -> bool:
        with self.count:
            if self.mark in data.partition(b"\r\n")[0]:
                self.left -= 1
                if self.left == 0:
                    self.cut.set()
        return not self.cut.is_set()


class _Through(socketserver.BaseRequestHandler):
    server: Wire

    def handle(self) -> None:
        if self.server.cut.is_set():
            return
        with socket.create_connection(("127.0.0.1", self.server.server.port)) as onward:
            back = threading.Thread(target=_pump, args=(onward, self.request))
            back.start()
            while (data := self.request.recv(65536)) and self.server.passes(data):
                onward.sendall(data)
            for end in (onward, self.request):
                _shut(end)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass  # The other side is gone: that is what a cut wire is for.
    _shut(target)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):  # It may be shut already.
        end.shutdown(socket.SHUT_RDWR)
