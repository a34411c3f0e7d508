"""The progress line: how busy hosts are while a run goes on, and what each did at the end."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from torus_ray.cli.progress import ProgressLine, describe
from torus_ray.engine.runner import Progress
from torus_ray.profiling.use import LiveUse
from torus_ray.protocol.executor import Attempt, Call, HostState, Outcome


@dataclass(frozen=True)
class Told(Progress):
    """A progress with what came back since the one before."""

    outcomes: tuple[Outcome, ...] = field(default=())


def told(done: int, *outcomes: Outcome, in_flight: int = 0) -> Told:
    states = {"g": HostState(2, in_flight, 5)}
    return Told(10, done, 2, 0, {"ok": done, "failed": 0}, states, 4.0, outcomes=outcomes)


def test_the_line_says_how_busy_each_host_is() -> None:
    use = LiveUse()
    assert describe("toy", told(2), use) == "toy: 2/10 units | g x2: 0 in flight, 5 waiting"
    for now in (100, 101, 102):
        use.take(now, {"g": HostState(2, 1, 5)}, [])
    assert describe("toy", told(6, in_flight=1), use) == (
        "toy: 6/10 units | g x2: 50% busy, 1 in flight, 5 waiting | 1.0/s, 0:04 left"
    )


@pytest.mark.parametrize("quiet", [True, False])
def test_what_each_host_did_is_told_at_the_end(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 104.0])
    monkeypatch.setattr("torus_ray.cli.progress.time.time", lambda: next(clock))
    stream = io.StringIO()
    line = ProgressLine("toy", stream, quiet=quiet)
    line.watch(told(2))
    attempt = Attempt(1, "ok", "g#1", started_at=101.0, ended_at=103.0)
    line.watch(told(10, Outcome(Call(1, "g", "caption", {}), "ok", attempts=[attempt])))
    line.close()
    last = "toy: host g: 1 units, 2 worker(s), busy 25%, 2.00 s a unit\n"
    assert stream.getvalue().endswith(last) is not quiet


def test_a_run_without_ray_tells_it_too_and_never_loads_ray(tmp_path: Path, cli: Cli) -> None:
    code, _, error = cli("run", "simulated", "--inline", "--limit", "1", "--results", tmp_path)
    assert code == 0
    assert re.search(r"^simulated: host simulated: \d+ units, 1 worker\(s\), ", error, re.MULTILINE)
