"""One live line while a run goes on; plain lines when the output is not a terminal; metrics of Ray beside it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from torus_ray.engine.runner import Progress
from torus_ray.engine.telemetry import Telemetry
from torus_ray.profiling.use import LiveUse

REDRAW_S = 0.2
PLAIN_S = 15.0


class ProgressLine:
    """Where a run stands, on stderr."""

    def __init__(self, title: str, stream: TextIO, *, quiet: bool) -> None:
        self._title = title
        self._stream = stream
        self._quiet = quiet
        self._live = stream.isatty() and not quiet
        self._next = 0.0
        self._width = 0
        self._last = ""
        self._use = LiveUse()
        self._telemetry = Telemetry(title.split()[-1])

    def watch(self, progress: Progress) -> None:
        """Take it in, and show it, not more often than can be read."""
        last = progress.done == progress.units
        self._telemetry.take(progress.hosts, progress.outcomes, progress.by_unit, last=last)
        if self._quiet:
            return
        self._use.take(time.time(), progress.hosts, progress.outcomes)
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (REDRAW_S if self._live else PLAIN_S)
        self._write(describe(self._title, progress, self._use))

    def tell(self, line: str) -> None:
        """Something that went wrong and was mended: a line of its own, also when quiet."""
        self._clear()
        print(f"{self._title}: {line}", file=self._stream, flush=True)

    def close(self) -> None:
        """Take the line away; what each host did stays."""
        self._clear()
        if not self._quiet:
            for use in self._use.summary():
                if use.units:
                    print(f"{self._title}: {use}", file=self._stream, flush=True)

    def _write(self, text: str) -> None:
        if self._live:
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        elif text != self._last:
            self._stream.write(text + "\n")
        self._last = text
        self._stream.flush()

    def _clear(self) -> None:
        if self._live and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0


def describe(title: str, progress: Progress, use: LiveUse) -> str:
    """One line: units done, what did not go well, the hosts and how busy they are, the rate and what is left."""
    parts = [f"{title}: {progress.done}/{progress.units} units"]
    bad = [f"{count} {status}" for status, count in sorted(progress.by_status.items()) if status != "ok" and count]
    parts += bad
    for name, state in progress.hosts.items():
        share = use.share(name)
        busy = "" if share is None else f" {share:.0%} busy,"
        parts.append(f"{name} x{state.replicas}:{busy} {state.in_flight} in flight, {state.waiting} waiting")
    new = progress.done - progress.kept
    if new and progress.elapsed_s > 1:
        rate = new / progress.elapsed_s
        parts.append(f"{rate:.1f}/s, {_clock((progress.units - progress.done) / rate)} left")
    if progress.stuck:
        parts.append(progress.stuck)
    return " | ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def progress_line(title: str, *, quiet: bool) -> Iterator[ProgressLine]:
    """A line for the time of a run, gone afterwards."""
    line = ProgressLine(title, sys.stderr, quiet=quiet)
    try:
        yield line
    finally:
        line.close()
