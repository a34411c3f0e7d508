"""A cluster of several nodes on this machine, as somebody else would run it: `ray start` processes with a token, ports
and a folder of their own. A node can be killed without grace."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from ray.util import get_node_ip_address

from torus_ray.engine.ray_variables import RAY_VARIABLES
from torus_ray.engine.watch import knock

RAY = Path(sys.executable).with_name("ray")
START_S = 120.0
TRIES = 3
MARK = "TORUS_TEST_NODES"
OBJECT_STORE_BYTES = 100 * 1024 * 1024


@dataclass
class NodeCluster:
    """address: of the head (HOST:PORT); dashboard: where jobs are handed in; folder: short, holds everything of it;
    nodes: by name, the head first."""

    folder: Path
    mark: str
    ip: str
    port: int
    dashboard_port: int
    nodes: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"{self.ip}:{self.port}"

    @property
    def dashboard(self) -> str:
        return f"http://127.0.0.1:{self.dashboard_port}"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to talk to this cluster, and to no other."""
        ours = {"RAY_AUTH_TOKEN_PATH": str(self.folder / "token"), **RAY_VARIABLES, "RAY_AUTH_MODE": "token"}
        return {**{k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}, **ours, MARK: self.mark}

    def add(self, name: str, resources: Mapping[str, float], **variables: str) -> None:
        """Start a node, the first one as the head, and wait until it listens. resources: as `ray start` takes them."""
        head = not self.nodes
        command = [str(RAY), "start", "--disable-usage-stats", f"--node-ip-address={self.ip}"]
        command += [f"--{key}={value:g}" for key, value in resources.items()]
        command += [f"--object-store-memory={OBJECT_STORE_BYTES}", f"--dashboard-agent-listen-port={free_port()}"]
        if head:
            command += ["--head", f"--port={self.port}", "--dashboard-host=127.0.0.1", f"--temp-dir={self.folder}"]
            command += [f"--dashboard-port={self.dashboard_port}", f"--ray-client-server-port={free_port()}"]
        else:
            command += [f"--address={self.address}"]
        environment = {**self.environment, **variables, MARK: f"{self.mark}/{name}"}
        # Ray gives its processes 30 s to come up, which is not always enough on a busy machine
        for attempt in range(1, TRIES + 1):
            with (self.folder / f"{name}.log").open("wb") as log:
                code = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
            if code == 0:
                break
            self.kill(name)
            assert attempt < TRIES, f"node {name} did not start: {self.log(name)[-2000:]}"
        self.nodes.append(name)
        if head:
            wait_until(lambda: not knock(("127.0.0.1", self.dashboard_port)), "jobs are taken")

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def processes(self, name: str = "") -> list[psutil.Process]:
        """All processes of a node, or of the cluster and its jobs."""
        wanted = f"{self.mark}/{name}" if name else self.mark
        return [process for process in psutil.process_iter() if _marked(process, wanted)]

    def kill(self, name: str, *kinds: str) -> None:
        """SIGKILL for every process of a node at once, or for those of some names; nothing is said to anybody."""
        killed = []
        for process in self.processes(name):
            with suppress(psutil.Error):
                if not kinds or process.name() in kinds:
                    process.kill()
                    killed.append(process)
        psutil.wait_procs(killed, timeout=20)

    def ask(self, *command: str, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """A command as a user of this cluster gives it."""
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=timeout_s)

    def end(self) -> None:
        processes = self.processes()
        for process in processes:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(processes, timeout=20)
        shutil.rmtree(self.folder, ignore_errors=True)


def wait_until(there: Callable[[], bool], what: str, timeout_s: float = START_S) -> None:
    """Look until something is so. Raises AssertionError after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while not there():
        assert time.monotonic() < end, f"not so after {timeout_s:.0f} s: {what}"
        time.sleep(0.1)


@contextmanager
def node_cluster(nodes: Mapping[str, Mapping[str, float]]) -> Iterator[NodeCluster]:
    """A cluster of `nodes` (name -> resources, the head first), gone afterwards with all that it left."""
    # Unix socket paths end at 107 characters: a short folder, not pytest's own
    folder = Path(tempfile.mkdtemp(prefix="tn-", dir="/tmp"))
    (folder / "token").write_text(secrets.token_hex(32))
    cluster = NodeCluster(folder, uuid.uuid4().hex, get_node_ip_address(), free_port(), free_port())
    try:
        for name, resources in nodes.items():
            cluster.add(name, resources)
        yield cluster
    finally:
        cluster.end()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK, "").startswith(mark)
    except (psutil.Error, OSError):
        return False
