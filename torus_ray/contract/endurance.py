"""What shows only over many calls, or when a host stops answering: memory, and a hang."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Sequence

import psutil

from torus_ray.contract.asking import Asker, told, was_served
from torus_ray.contract.findings import Result, failed, ok, skipped
from torus_ray.contract.material import Head

MIB = 1024**2
GROWTH_MIB, GROWTH_SHARE = 32, 0.02
"""What a host may grow by between its early and its last calls: allocators and caches settle."""
FEWEST_CALLS = 20
GONE_S = 20.0


def memory(heads: Sequence[Head], asker: Asker, calls: int) -> Result:
    """Plain requests to every head in turn: the host's own memory (its children's too) stays where it was."""
    if calls < FEWEST_CALLS:
        return skipped(f"{calls} calls show nothing; {FEWEST_CALLS} or more do")
    requests = [head.request(kind, number=number) for head in heads for number in (0, 1) for kind in head.kinds]
    used: list[float] = []
    pids: set[int] = set()
    for at in range(calls):
        outcome = asker.alone(requests[at % len(requests)])
        if not was_served(outcome):
            return failed(f"call {at + 1}: {told(outcome)}", "a reply to every call", "see the other checks")
        pid = outcome.attempts[-1].pid
        pids.add(pid)
        used.append(_private_mib(pid))
    if len(pids) > 1:
        return failed(f"{len(pids)} processes served {calls} calls", "one that stays up", "look at its stderr")
    part = max(5, calls // 5)
    early, late = statistics.median(used[part : 2 * part]), statistics.median(used[-part:])
    allowed = max(GROWTH_MIB, GROWTH_SHARE * early)
    if late - early > allowed:
        return failed(
            f"{early:.0f} MiB after {2 * part} calls, {late:.0f} MiB after {calls}",
            f"growth of {allowed:.0f} MiB at most",
            "keep no requests, clips or caches beyond a call; run torch under inference_mode()",
        )
    return ok(f"{calls} calls: {early:.0f} MiB early, {late:.0f} MiB at the end")


def _private_mib(pid: int) -> float:
    """Memory that is the process's own, without what it shares with others (Ray's object store is mapped into it)."""
    process = psutil.Process(pid)
    total = 0
    for member in (process, *process.children(recursive=True)):
        try:
            info = member.memory_info()
            total += info.rss - getattr(info, "shared", 0)
        except psutil.NoSuchProcess:
            continue
    return total / MIB


def hang(head: Head, asker: Asker, deadline_s: float) -> Result:
    """The host's process is stopped under a request: the deadline passes, the process is ended, a new one answers."""
    pid = int(asker.described()["pid"])
    if pid == os.getpid():
        return skipped("--inline: this very process would be stopped")
    began = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    try:
        outcome = asker.alone(head.request())
        waited = time.monotonic() - began
        gone = _is_gone(pid)
    finally:
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGCONT)
    first = outcome.attempts[0]
    if first.status != "timeout":
        return failed(f"the first try ended as {first.status}", "timeout", "report this")
    if outcome.status != "ok":
        return failed(
            f"after the hang: {told(outcome)}",
            "the request is answered by a new process",
            "load() must work again right after a kill: no lock files, fixed ports or children left behind",
        )
    if not gone:
        return failed(f"process {pid} is still there after {GONE_S:g} s", "it is ended", "report this")
    return ok(
        f"stopped under a request: ended after {deadline_s:.0f} s, answered by a new process within {waited:.0f} s"
    )


def _is_gone(pid: int) -> bool:
    try:
        process = psutil.Process(pid)
        process.wait(GONE_S)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True
