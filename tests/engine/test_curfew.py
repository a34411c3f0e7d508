"""A run that is to end before it is done ends in order: nothing new, rows durable, exit 3, the same command goes on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import canary_bank, outcomes, run, system
from torus_ray.bank.load import Bank
from torus_ray.engine import curfew
from torus_ray.engine.curfew import ending_in_time
from torus_ray.engine.jobs import JOB_VARIABLE
from torus_ray.engine.opening import Opening
from torus_ray.engine.runner import Progress
from torus_ray.engine.session import RunOptions, run_system
from torus_ray.protocol.executor import Call, EngineStop, HostState, Outcome
from torus_ray.protocol.graph import Arm
from torus_ray.store.manifest import read_manifest

NATIVE = (Arm("native"),)
UNITS = 2 * 12


class Recorder:
    """An executor that does nothing but remember how it was halted."""

    def __init__(self, load_s: float = 0.0) -> None:
        self.halts: list[tuple[EngineStop, float]] = []
        self.load_s = load_s

    def start(self) -> Mapping[str, Mapping[str, Any]]:
        time.sleep(self.load_s)
        return {}

    def described(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def room(self, host: str) -> int:
        return 1

    def submit(self, calls: Sequence[Call]) -> None:
        pass

    def collect(self, timeout_s: float, *, settled: bool = True) -> list[Outcome]:
        if self.halts:
            raise self.halts[0][0]
        return []

    def nudge(self) -> None:
        pass

    def states(self) -> Mapping[str, HostState]:
        return {}

    def halt(self, stop: EngineStop, within_s: float) -> None:
        self.halts.append((stop, within_s))

    def close(self) -> None:
        pass


def test_nothing_is_halted_before_its_time() -> None:
    inner = Recorder()
    with ending_in_time(inner, time.time() + 3_600) as executor:
        executor.start()
        assert executor.collect(0.0) == []
    assert inner.halts == []


def test_a_deadline_that_is_near_halts_once_with_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Recorder()
    now = time.time()
    with ending_in_time(inner, now + 3_600) as executor:
        executor.start()
        monkeypatch.setattr(curfew.time, "time", lambda: now + 3_600 - curfew.MARGIN_S)
        for _ in range(2):
            with pytest.raises(EngineStop, match="deadline") as caught:
                executor.collect(0.0)
    assert "--deadline" in caught.value.where
    assert "same command" in caught.value.mend
    assert caught.value.exit_code == 3
    assert [within_s for _, within_s in inner.halts] == [pytest.approx(curfew.GRACE_S)]


def test_of_a_deadline_that_is_close_from_the_start_half_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = Recorder()
    now = time.time()
    monkeypatch.setattr(curfew.time, "time", lambda: now)
    with ending_in_time(inner, now + 60) as executor:
        executor.start()
        monkeypatch.setattr(curfew.time, "time", lambda: now + 29)
        assert executor.collect(0.0) == []
        monkeypatch.setattr(curfew.time, "time", lambda: now + 31)
        with pytest.raises(EngineStop):
            executor.collect(0.0)
    assert inner.halts[0][1] < 29


def test_hosts_that_load_too_long_are_not_waited_for() -> None:
    began = time.monotonic()
    with ending_in_time(Recorder(load_s=60), time.time() + 0.4) as executor, pytest.raises(EngineStop):
        executor.start()
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(("in_job", "grace_s"), [(False, curfew.TERM_GRACE_S), (True, 0.5)])
def test_sigterm_halts_and_the_second_one_interrupts(
    in_job: bool, grace_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_job:
        monkeypatch.setenv(JOB_VARIABLE, "{}")
    inner = Recorder()
    before = signal.getsignal(signal.SIGTERM)
    with ending_in_time(inner, None) as executor:
        executor.start()
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(EngineStop, match="SIGTERM"):
            executor.collect(0.0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert inner.halts[0][1] == grace_s
    assert signal.getsignal(signal.SIGTERM) == before


def test_sigterm_while_hosts_load_ends_like_ctrl_c() -> None:
    with ending_in_time(Recorder(), None), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


# --- a whole run ------------------------------------------------------------------------------------------------------


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return canary_bank(tmp_path / "bank", tests=2)


def test_what_was_done_stays_and_the_same_command_goes_on(bank: Bank, tmp_path: Path) -> None:
    made = system(tmp_path / "card")
    undisturbed = run(made, bank, tmp_path / "undisturbed", NATIVE)

    def stop_in_the_middle(progress: Progress) -> None:
        if progress.done >= UNITS // 3:
            signal.raise_signal(signal.SIGTERM)

    options = RunOptions(tmp_path / "r", bank.tests, NATIVE, opening=Opening(inline=True))
    with pytest.raises(EngineStop, match="told to stop"):
        run_system(made, bank, options, watch=stop_in_the_middle)
    (folder,) = (path.parent for path in (tmp_path / "r").rglob("run.json"))
    stopped = read_manifest(folder)
    assert stopped is not None
    assert (stopped.state, stopped.exit_code) == ("stopped", 3)
    result = run(made, bank, tmp_path / "r", NATIVE)
    assert 0 < result.computed <= UNITS - UNITS // 3
    assert result.exit_code == 0
    found, expected = outcomes(result), outcomes(undisturbed)
    assert all(found[key].equals(rows) for key, rows in expected.items())
