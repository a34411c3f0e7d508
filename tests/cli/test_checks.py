"""What `torus doctor` finds on a machine and of a system."""

from __future__ import annotations

from pathlib import Path

import pytest

from torus_ray.cli.checks import machine_checks, system_checks

CARD = """
name = "big"
title = "wants more than there is"

[hosts.big]
adapter = "model.py:Model"
num_cpus = {cpus}
memory_gb = {memory}

[hosts.big.heads.answer]
"""


def card(folder: Path, *, cpus: float = 1, memory: float = 0.5) -> str:
    (folder / "model.py").write_text("class Model:\n    def answer(self, requests):\n        return []\n")
    path = folder / "big.system.toml"
    path.write_text(CARD.format(cpus=cpus, memory=memory))
    return str(path)


def test_this_machine_can_run_the_tests() -> None:
    assert {check.what for check in machine_checks()} >= {"CPUs", "free memory", "free disk here", "temporary folder"}


def test_a_temporary_folder_too_long_for_unix_sockets_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    (bad,) = [check for check in machine_checks() if check.what == "temporary folder"]
    assert not bad.ok
    assert "TMPDIR" in bad.mend


@pytest.mark.parametrize(("cpus", "memory", "named"), [(4096, 0.5, "num_cpus"), (1, 100_000, "memory_gb")])
def test_a_host_that_no_replica_of_can_be_placed_is_named(
    tmp_path: Path, cpus: float, memory: float, named: str
) -> None:
    (bad,) = [check for check in system_checks(card(tmp_path, cpus=cpus, memory=memory)) if not check.ok]
    assert named in bad.found
    assert named in bad.mend


def test_a_system_that_fits_is_fine(tmp_path: Path) -> None:
    checks = system_checks(card(tmp_path))
    assert checks
    assert all(check.ok for check in checks), checks


def test_a_system_that_is_not_there() -> None:
    (bad,) = system_checks("nowhere")
    assert not bad.ok
    assert bad.mend
