"""A cluster of three nodes that somebody else runs: jobs, nodes that lack something, nodes and a head that go away
without a word."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.canary import make_canary_bank
from tests.engine.nodes import RAY, NodeCluster, node_cluster, wait_until
from tests.engine.systems import OPERATIONS, OUTCOME_TABLES, ROOT, SIMULATED, host, system
from torus_ray.engine.environments import build, find_environment
from torus_ray.engine.watch import LOST_S, greet
from torus_ray.store.layout import find_runs
from torus_ray.store.manifest import read_manifest
from torus_ray.store.reader import current_rows
from torus_ray.store.tables import outcome_columns

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600)]

TORUS = (sys.executable, "-m", "torus_ray.cli")
RUN_S = 300.0
TESTS = 6
UNITS = TESTS * 12
SOUNDS = "sound-0[12]"
CARDS = {"plain": (0.0, 0), "quick": (0.0, 1), "slow": (1.0, 1), "slower": (3.0, 1), "greedy": (0.0, 2)}
"""Of the simulated system: seconds a request, (fake) GPUs."""
PLENTY = {"num-cpus": 1.0, "num-gpus": 1.0}
"""Of a node: room for one replica of each system."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[NodeCluster]:
    """Its head holds no host."""
    with node_cluster({"head": {"num-cpus": 0.0, "num-gpus": 0.0}, "a": PLENTY, "b": PLENTY}) as made:
        yield made


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_canary_bank(tmp_path_factory.mktemp("canary") / "bank", TESTS).path


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of CARDS, and pocket, which here runs once a node."""
    folder = tmp_path_factory.mktemp("cards")
    for name, (latency_s, gpus) in CARDS.items():
        operating = {"latency_s": {operation: [latency_s, 0.0] for operation in OPERATIONS}}
        card = host(adapter=f"{SIMULATED}:Simulated", num_cpus=0.1, num_gpus=gpus, operating=operating)
        del card["replicas"]
        system(folder / name, {"simulated": card}, name="simulated")
        (folder / name / "simulated.toml").rename(folder / f"{name}.toml")
    pocket = (ROOT / "actors" / "pocket" / "pocket.system.toml").read_text(encoding="utf-8")
    adapter = ROOT / "actors" / "pocket" / "adapter.py"
    pocket = pocket.replace('"adapter.py:', f'"{adapter}:').replace("num_cpus = 1", "num_cpus = 0.9\nreplicas = 2")
    (folder / "pocket.toml").write_text(pocket, encoding="utf-8")
    return folder


def torus(*arguments: object) -> list[str]:
    return [*TORUS, "run", *map(str, arguments), "--arms", "native", "--measures", "none", "--quiet"]


def rows(results: Path) -> int:
    """Units that are durable."""
    return sum(current_rows(run, table, ["unit_id"]).height for run in find_runs(results) for table in OUTCOME_TABLES)


def outcomes(results: Path) -> dict[str, pl.DataFrame]:
    (run,) = find_runs(results)
    return {table: current_rows(run, table, list(outcome_columns(table))).sort("unit_id") for table in OUTCOME_TABLES}


def assert_same(found: Path, wanted: Path) -> None:
    for table, expected in outcomes(wanted).items():
        assert outcomes(found)[table].equals(expected), table


def test_the_head_is_known_from_the_page_of_its_jobs(cluster: NodeCluster) -> None:
    assert greet((cluster.ip, cluster.port)) == ""
    assert "no head" in greet(("127.0.0.1", cluster.dashboard_port))


# --- the nodes go on when one of them goes ----------------------------------------------------------------------------


def test_jobs_finish_when_a_node_goes_without_grace(
    cluster: NodeCluster, bank: Path, cards: Path, tmp_path: Path
) -> None:
    build(find_environment("pocket"))
    calm, shared = tmp_path / "calm", tmp_path / "shared"
    sounds = ("--tests", SOUNDS)
    commands = {
        "simulated": torus(cards / "slow.toml", "--bank", bank, "--results", shared / "simulated"),
        "pocket": torus(cards / "pocket.toml", *sounds, "--results", shared / "pocket"),
    }
    jobs = {name: submit(cluster, tmp_path / f"{name}.log", command) for name, command in commands.items()}

    def at_work() -> bool:
        begun = rows(shared / "simulated") >= UNITS // 4 and bool(find_runs(shared / "pocket"))
        return begun or jobs["simulated"].poll() is not None or jobs["pocket"].poll() not in (None, 0)

    wait_until(at_work, "both are at work", RUN_S)
    before = {name: rows(shared / name) for name in jobs}
    cluster.kill("b")
    undisturbed = [
        subprocess.Popen([*torus(card, *what, "--results", calm / name), "--inline"], env=cluster.environment)
        for name, card, what in (
            ("simulated", cards / "plain.toml", ("--bank", bank)),
            ("pocket", cards / "pocket.toml", sounds),
        )
    ]
    said = {}
    for name, job in jobs.items():
        code = job.wait(RUN_S)
        said[name] = (tmp_path / f"{name}.log").read_text()
        assert code == 0, said[name][-4000:]
        # on a busy machine the one may be done before the other has begun
        assert "is lost with its node" in said[name] or before[name] == rows(shared / name)
    assert UNITS // 4 <= before["simulated"] < UNITS
    assert [process.wait(RUN_S) for process in undisturbed] == [0, 0]
    for name in jobs:
        assert_same(shared / name, calm / name)
    assert_little_travels(cluster)


def assert_little_travels(cluster: NodeCluster) -> None:
    """The package of the job and the one that its driver made for hosts: a few MB, no results, no tests."""
    unpacked = cluster.folder / "session_latest" / "runtime_resources" / "working_dir_files"
    files = [path for path in unpacked.rglob("*") if path.is_file()]
    assert any(path.name == "run.py" for path in files)
    assert sum(path.stat().st_size for path in files) < 15e6
    assert not {"tests", "results", ".venv", ".git"} & {
        path.relative_to(unpacked).parts[1] for path in files if path.suffix == ".py"
    }


def submit(cluster: NodeCluster, log: Path, command: list[str]) -> subprocess.Popen[bytes]:
    """`ray job submit`, as docs/cluster.md has it."""
    words = [str(RAY), "job", "submit", "--address", cluster.dashboard, "--working-dir", str(ROOT), "--", *command]
    with log.open("wb") as out:
        return subprocess.Popen(words, env=cluster.environment, stdout=out, stderr=out)


# --- a node that lacks something --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lame(cluster: NodeCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A node with two GPUs on which no host can run: a package of theirs is broken there."""
    broken = tmp_path_factory.mktemp("broken")
    (broken / "soxr.py").write_text("raise ImportError('libsoxr.so.0 is not on this node')\n", encoding="utf-8")
    cluster.add("lame", {"num-cpus": 1.0, "num-gpus": 2.0}, PYTHONPATH=str(broken))
    return "lame"


@pytest.mark.usefixtures("lame")
def test_a_node_that_lacks_something_is_told_and_not_used(
    cluster: NodeCluster, bank: Path, cards: Path, tmp_path: Path
) -> None:
    command = torus(cards / "quick.toml", "--bank", bank, "--results", tmp_path)
    ran = cluster.ask(*command, "--address", cluster.address, timeout_s=RUN_S)
    assert ran.returncode == 0, ran.stderr
    assert "is not used for host simulated" in ran.stderr
    assert "libsoxr.so.0 is not on this node" in ran.stderr
    assert rows(tmp_path) == UNITS


@pytest.mark.usefixtures("lame")
def test_where_no_node_has_it_the_run_stops_with_the_mend(
    cluster: NodeCluster, bank: Path, cards: Path, tmp_path: Path
) -> None:
    command = torus(cards / "greedy.toml", "--bank", bank, "--results", tmp_path)
    ran = cluster.ask(*command, "--address", cluster.address, timeout_s=RUN_S)
    assert ran.returncode == 3, ran.stderr
    assert "no node has what host 'simulated' needs" in ran.stderr
    assert "mend: " in ran.stderr
    assert "Traceback" not in ran.stderr


# --- a driver that is told to stop, a head that goes: the same command goes on ----------------------------------------


@pytest.fixture(scope="module")
def going(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one run goes on from test to test."""
    return tmp_path_factory.mktemp("going")


def at_work(cluster: NodeCluster, command: list[str], results: Path) -> subprocess.Popen[str]:
    """A driver on the cluster that has begun to add rows."""
    kept = rows(results)
    command = [*command, "--address", cluster.address]
    run = subprocess.Popen(command, env=cluster.environment, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: rows(results) >= kept + 3 or run.poll() is not None, "the run is at work", RUN_S)
    return run


def assert_stopped(run: subprocess.Popen[str], results: Path, timeout_s: float) -> str:
    """What it said when it had ended in order with exit code 3."""
    told = run.communicate(timeout=timeout_s)[1]
    assert run.returncode == 3, told
    assert "the same command goes on" in told
    (folder,) = find_runs(results)
    manifest = read_manifest(folder)
    assert manifest is not None
    assert (manifest.state, manifest.exit_code) == ("stopped", 3)
    return told


def test_sigterm_ends_in_order(cluster: NodeCluster, bank: Path, cards: Path, going: Path) -> None:
    run = at_work(cluster, torus(cards / "slow.toml", "--bank", bank, "--results", going), going)
    run.terminate()
    assert "told to stop (SIGTERM)" in assert_stopped(run, going, 60)
    assert 3 <= rows(going) < UNITS


def test_a_head_that_is_gone_stops_the_run(cluster: NodeCluster, bank: Path, cards: Path, going: Path) -> None:
    run = at_work(cluster, torus(cards / "slower.toml", "--bank", bank, "--results", going), going)
    cluster.kill("head", "gcs_server")
    assert "the Ray cluster is lost: the head of the cluster" in assert_stopped(run, going, LOST_S + 45)
    kept = rows(going)
    again = [*torus(cards / "plain.toml", "--bank", bank, "--results", going), "--inline", "--json"]
    ended = subprocess.run(again, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["systems"][0]["computed"] == UNITS - kept
