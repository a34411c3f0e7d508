"""What runs calls: the interface between the protocol and whatever holds the models (DESIGN 5).

Two forms live in engine/: Ray, and inline. An executor owns queues, windows, batches, retries and deadlines; it knows
nothing of tests, rows or clips on disk. Curation and profiling are handed one by the command line and use no more
than this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from torus_ray.errors import TorusError
from torus_ray.heads import Wire

Status = Literal["ok", "refused", "failed", "timeout"]
HOST_DOWN = "host_down"


class EngineStop(TorusError):
    """The run cannot go on: a dead environment, a lost cluster. What is durable stays; the same command goes on from
    there."""

    exit_code = 3


def head_stop(host: str, told: Mapping[str, str]) -> EngineStop:
    """The end of a run whose head said that it can serve nothing any more (heads.HeadStop)."""
    what = f"host {host!r}: {told['what']}"
    return EngineStop(what, where=told["where"], expected=told["expected"], mend=told["mend"])


@dataclass(frozen=True, slots=True)
class Call:
    """One request for one host.

    id: the caller's, unique while in flight. label: for people, what is being done. priority: higher goes first
    (longest chain left). group: calls of one group (about one clip) are sent to one replica while it has room.
    """

    id: int
    host: str
    operation: str
    request: Wire
    label: str = ""
    priority: int = 0
    group: str | None = None


@dataclass(slots=True)
class Attempt:
    """One try at a call. Times are seconds since the epoch; cpu_s: CPU seconds inside the head, a batch's shared out
    evenly."""

    number: int
    status: Status
    worker: str
    node: str = ""
    pid: int = 0
    device: str = ""
    batch: int = 1
    kind: str | None = None
    message: str | None = None
    traceback: str | None = None
    stderr_tail: str | None = None
    submitted_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    returned_at: float | None = None
    cpu_s: float | None = None


@dataclass(slots=True)
class Outcome:
    """How a call ended. reply: the wire form of a reply, for `ok`. reason: snake_case, for the rest."""

    call: Call
    status: Status
    reply: Wire | None = None
    reason: str | None = None
    message: str | None = None
    attempts: list[Attempt] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HostState:
    """One host, for the progress line: replicas up, calls in flight, calls waiting, what it does now."""

    replicas: int
    in_flight: int
    waiting: int
    note: str = ""


class Executor(Protocol):
    """Start it, submit calls, collect outcomes in the order they are done, close it.

    `start` raises EngineStop when a host cannot be brought up; nothing has been computed then. `collect` returns within
    about `timeout_s`, sooner when something is done or `nudge` was called from another thread; it raises EngineStop
    when the run cannot go on. `room` says how many more calls of a host are worth submitting now: beyond it they only
    take memory.

    Hosts that do not fit at the same time take turns: they come up when they have calls, and `start` does not wait for
    them.

    A host that only measures stops nothing: `start` does not wait for it, and when it cannot be brought up, or keeps
    dying, its calls end as `failed` with the reason HOST_DOWN.
    """

    def start(self) -> Mapping[str, Mapping[str, Any]]:
        """Bring up the hosts; what each said of itself: operations, versions, device."""
        ...

    def described(self) -> Mapping[str, Mapping[str, Any]]:
        """The same for all hosts that have been up by now: those that take turns, and those that only measure, may come
        later."""
        ...

    def room(self, host: str) -> int: ...

    def submit(self, calls: Sequence[Call]) -> None: ...

    def collect(self, timeout_s: float, *, settled: bool = True) -> list[Outcome]:
        """Outcomes that are there, or come within about `timeout_s`.

        settled: no outcome that was handed back can lead to more calls by itself any more, all that are ready have been
        submitted as far as there was room. Only then does a host that is idle give its place to one that waits for it.
        """
        ...

    def nudge(self) -> None: ...

    def states(self) -> Mapping[str, HostState]: ...

    def halt(self, stop: EngineStop, within_s: float) -> None:
        """Begin nothing new: `collect` raises `stop` once what is under way is back, after `within_s` at the latest."""
        ...

    def close(self) -> None: ...
