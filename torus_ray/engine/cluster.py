"""The Ray that a run uses: its own, started here and ended here, or one that is there already.

Every process of a cluster of ours, and every child of a host, inherits TORUS_SESSION. So what a killed driver left
behind is found and ended at the next start, whatever became of its parents (RAY.md, PROBE.md D).
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import ray

from torus_ray.engine.ray_variables import set_ray_variables
from torus_ray.engine.watch import Place, Watch, greet, knock
from torus_ray.protocol.executor import EngineStop

SESSION_VARIABLE = "TORUS_SESSION"
OBJECT_STORE_BYTES = 512 * 1024 * 1024
GRACE_S = 5.0
REACH_S = 10.0
SHUTDOWN_S = 10.0
"""How long leaving a cluster whose head is gone may take."""
START_TRIES = 4
"""Ray gives its own processes 30 s to come up, and no way to say more; on a busy machine that is not always enough."""
OWN_FOLDERS = ("torus-ray-", "torus-code-")
"""How folders that a run makes in the temporary directory begin; no other is ever removed."""


def sessions_folder() -> Path:
    """Where the running sessions of this user are noted."""
    root = os.environ.get("TORUS_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "torus-ray")
    return Path(root) / "sessions"


@dataclass
class Cluster:
    """A connection to Ray. address: None for a cluster of our own on this machine.

    num_cpus: logical CPUs of our own cluster. code: the folder that travels to every worker once, at job level.
    """

    code: Path
    address: str | None = None
    num_cpus: int = 1
    num_gpus: int | None = None
    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    _folder: Path | None = None
    _vital: list[psutil.Process] = field(default_factory=list)
    _watch: Watch | None = None
    _started: bool = False

    @property
    def own(self) -> bool:
        return self.address is None

    def start(self, *, tries: int = START_TRIES) -> None:
        """Start or join Ray, once until :meth:`stop`. Raises EngineStop."""
        if ray.is_initialized() and self._started:
            return
        set_ray_variables()
        logging.getLogger("ray").setLevel(logging.ERROR)
        options: dict[str, Any] = {
            "runtime_env": {"working_dir": str(self.code)},
            "log_to_driver": False,
            "logging_level": logging.ERROR,
        }
        if self.own:
            os.environ[SESSION_VARIABLE] = self.session
            # Unix socket paths end at 107 characters, so the folder lies right under the temporary directory.
            self._folder = Path(tempfile.mkdtemp(prefix="torus-ray-"))
            options |= {
                "address": "local",
                "num_cpus": self.num_cpus,
                "include_dashboard": False,
                "object_store_memory": OBJECT_STORE_BYTES,
                "_temp_dir": str(self._folder),
            }
            if self.num_gpus is not None:
                options["num_gpus"] = self.num_gpus
        else:
            options["address"] = self.address
            _reach(str(self.address))
        self._note()
        terminating = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(**options)
        except Exception as error:  # a node that is not up in time is a bare Exception
            self.stop()
            if self.own and "timed out" in str(error) and tries > 1:
                self.start(tries=tries - 1)
                return
            where = self.address or "this machine"
            raise EngineStop(
                f"Ray did not start: {error}",
                where=where,
                expected="a running Ray cluster" if self.address else "a local Ray cluster",
                mend="check the address and RAY_AUTH_MODE"
                if self.address
                else "see `torus doctor`; --inline runs without Ray",
            ) from error
        # Ray takes SIGTERM for itself and ends the process without a word; what was there before ends it in order.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, terminating)
        if self.own:
            self._vital = [p for p in self._processes() if _name(p) in ("gcs_server", "raylet")]
        else:
            self._watch = Watch(_needed())
        self._started = True

    def alive(self) -> bool:
        """Whether Ray's own processes still run; of a joined cluster, whether its head and this machine's raylet can
        be reached."""
        return ray.is_initialized() and not self.lost and all(_running(process) for process in self._vital)

    @property
    def lost(self) -> str:
        """What of a joined cluster does not answer any more; "" while all is well."""
        return self._watch.lost if self._watch else ""

    def stop(self) -> None:
        """End the connection, and with a cluster of our own every process and folder of it."""
        if self.own and not self.alive():
            # Asked nicely, half a cluster takes its time (7 s without its gcs_server).
            _kill(list(self._processes()))
        if ray.is_initialized():
            _leave(SHUTDOWN_S if self.lost else None)
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        self._started = False
        if self.own:
            _end(list(self._processes()))
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            os.environ.pop(SESSION_VARIABLE, None)
        self._note_file().unlink(missing_ok=True)
        self._vital = []

    def _processes(self) -> Iterator[psutil.Process]:
        return _of_session(self.session)

    def _note_file(self) -> Path:
        return sessions_folder() / f"{self.session}.json"

    def _note(self) -> None:
        me = psutil.Process()
        note = {
            "session": self.session,
            "driver": me.pid,
            "started": me.create_time(),
            "folder": str(self._folder),
            "code": str(self.code),
        }
        sessions_folder().mkdir(parents=True, exist_ok=True)
        # In one step: a run that starts now reads it, and takes half a note for rubbish.
        half = self._note_file().with_suffix(".half")
        half.write_text(json.dumps(note))
        half.replace(self._note_file())


def reap_dead_sessions() -> list[str]:
    """End what drivers that died without a word left running, and remove their folders. Returns one line for each."""
    told = []
    for file in sorted(sessions_folder().glob("*.json")):
        try:
            note = json.loads(file.read_text())
            session, driver, started = note["session"], int(note["driver"]), float(note["started"])
            folders = [Path(note[name]) for name in ("folder", "code")]
        except (OSError, ValueError, KeyError):
            file.unlink(missing_ok=True)
            continue
        if _is(driver, started):
            continue
        left = list(_of_session(session))
        _end(left)
        for folder in folders:
            if folder.name.startswith(OWN_FOLDERS):
                shutil.rmtree(folder, ignore_errors=True)
        file.unlink(missing_ok=True)
        what = f"{len(left)} processes: ended, its folders removed" if left else "its folders: removed"
        told.append(f"a run that was killed (driver {driver}) had left {what}")
    return told


def _reach(address: str) -> None:
    """Raises EngineStop where nothing listens: Ray itself goes on trying for minutes."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():  # "auto"
        return
    hello = knock if os.environ.get("RAY_USE_TLS", "0") == "1" else greet
    if why := hello((host.strip("[]"), int(port)), REACH_S):
        raise EngineStop(
            f"no Ray at {address}: {why}",
            where=address,
            expected="a running Ray cluster",
            mend="check the address; `ray start --head` prints it (port 6379, where nothing else was said)",
        )


def _needed() -> dict[str, Place]:
    """What a driver cannot do without on a cluster that it has joined."""
    context = ray.get_runtime_context()
    host, _, port = str(context.gcs_address).rpartition(":")
    everyone: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    mine = next(node for node in everyone if node["NodeID"] == context.get_node_id())
    return {
        "the head of the cluster": (host.strip("[]"), int(port)),
        "the raylet of this machine": (str(mine["NodeManagerAddress"]), int(mine["NodeManagerPort"])),
    }


def _leave(limit_s: float | None) -> None:
    """End the connection. limit_s: without its head Ray may wait for ever; the process ends soon anyway."""
    if limit_s is None:
        ray.shutdown()
        return
    leaving = threading.Thread(target=ray.shutdown, daemon=True)
    leaving.start()
    leaving.join(limit_s)


def _of_session(session: str) -> Iterator[psutil.Process]:
    me = os.getpid()
    for process in psutil.process_iter():
        try:
            if process.pid != me and process.environ().get(SESSION_VARIABLE) == session:
                yield process
        except (psutil.Error, OSError):
            continue


def _end(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _, stubborn = psutil.wait_procs(processes, timeout=GRACE_S)
    _kill(stubborn)


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=GRACE_S)


def _is(pid: int, started: float) -> bool:
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < 1.0 and _running(process)
    except psutil.Error:
        return False


def _running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""
