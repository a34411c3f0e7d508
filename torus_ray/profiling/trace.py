"""A run as a trace for Perfetto or chrome://tracing, in the Trace Event Format (JSON).

A process stands for a host, a thread for a worker's lane; a slice ("X") is one call, a counter ("C") the requests in
flight at a host. Times are microseconds from the first thing that happened.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import IO, Any

from torus_ray.profiling.slices import Slice, lanes

Event = Mapping[str, Any]

MESSAGE_CHARACTERS = 300
UNITS_SHOWN = 48
"""Unit ids that a slice carries: a batch of 512 would be unreadable and make the file large."""


def trace_events(ordered: Sequence[Slice]) -> Iterator[Event]:
    """Events of slices that come in the order of their begin: names first, then all others in the order of time."""
    if not ordered:
        return
    origin = min(min(s.begin, s.submitted_at or s.begin) for s in ordered)
    hosts = {host: number for number, host in enumerate(sorted({s.host for s in ordered}), 1)}
    placed = list(zip(ordered, lanes(ordered), strict=True))
    tracks = sorted({(s.host, s.worker, s.pid, lane, s.device, s.node) for s, lane in placed})
    threads = {(worker, pid, lane): number for number, (_, worker, pid, lane, *_) in enumerate(tracks, 1)}
    for host, number in hosts.items():
        yield {"name": "process_name", "ph": "M", "pid": number, "tid": 0, "args": {"name": host}}
    for host, worker, pid, lane, device, node in tracks:
        place = " ".join(part for part in (device, node) if part)
        name = worker + (f" ({lane + 1})" if lane else "") + (f" · {place}" if place else "")
        thread = threads[worker, pid, lane]
        yield {"name": "thread_name", "ph": "M", "pid": hosts[host], "tid": thread, "args": {"name": name}}
        yield {
            "name": "thread_sort_index",
            "ph": "M",
            "pid": hosts[host],
            "tid": thread,
            "args": {"sort_index": thread},
        }
    calls = (_call(s, hosts[s.host], threads[s.worker, s.pid, lane], origin) for s, lane in placed)
    yield from heapq.merge(calls, _counters(ordered, hosts, origin), key=lambda event: event["ts"])


def write_trace(events: Iterable[Event], file: IO[str]) -> int:
    """Write events one after the other, so that a trace of any length takes no memory; how many there were."""
    file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
    count = 0
    for event in events:
        file.write((",\n" if count else "") + json.dumps(event, separators=(",", ":"), ensure_ascii=False))
        count += 1
    file.write("\n]}\n")
    return count


def _call(each: Slice, pid: int, tid: int, origin: float) -> Event:
    args: dict[str, Any] = {"units": list(each.units[:UNITS_SHOWN]), "batch": each.batch, "status": dict(each.statuses)}
    if len(each.units) > UNITS_SHOWN:
        args["units_left_out"] = len(each.units) - UNITS_SHOWN
    ends = (each.ready_at, each.submitted_at, each.begin, each.end, each.returned_at, each.committed_at)
    names = ("waits_for_a_window_s", "waits_at_the_worker_s", "computes_s", "returns_s", "becomes_durable_s")
    for name, (since, until) in zip(names, pairwise(ends), strict=True):
        if since is not None and until is not None:
            args[name] = round(until - since, 6)
    if each.cpu_s is not None:
        args["cpu_s"] = round(each.cpu_s, 6)
    if each.message:
        args["message"] = each.message[:MESSAGE_CHARACTERS]
    # A viewer wants no end before its neighbour's begin: both are rounded from the same origin, never the duration.
    begin, end = _us(each.begin, origin), _us(each.end, origin)
    return {
        "name": each.operation,
        "cat": "+".join(sorted(each.statuses)),
        "ph": "X",
        "ts": begin,
        "dur": end - begin,
        "pid": pid,
        "tid": tid,
        "args": args,
    }


def _counters(ordered: Sequence[Slice], hosts: Mapping[str, int], origin: float) -> Iterator[Event]:
    """Requests in flight at each host: sent and not back."""
    changes: list[tuple[float, int, str]] = []
    for each in ordered:
        sent, back = each.submitted_at or each.begin, each.returned_at or each.end
        changes += [(sent, each.batch, each.host), (max(sent, back), -each.batch, each.host)]
    level = dict.fromkeys(hosts, 0)
    for at, change, host in sorted(changes):
        level[host] += change
        yield {
            "name": "in flight",
            "ph": "C",
            "ts": _us(at, origin),
            "pid": hosts[host],
            "tid": 0,
            "args": {"requests": level[host]},
        }


def _us(at: float, origin: float) -> int:
    return round((at - origin) * 1e6)
