"""What goes wrong in a model on Ray: each kind ends with its status and its reason, and everything else is done."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from tests.engine.conftest import SharedCluster
from tests.engine.systems import TOY, canary_bank, host, run, system, table
from torus_ray.bank.load import Bank
from torus_ray.engine.environments import build, find_environment
from torus_ray.engine.session import RunResult
from torus_ray.protocol.executor import EngineStop
from torus_ray.protocol.graph import Arm

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]

ENVIRONMENTS = Path(__file__).parents[1] / "data" / "envs"
NATIVE = (Arm("native"),)
DEADLINE_S = 5.0
"""Long enough for a toy on a busy machine, which answers in milliseconds."""


class Expected(NamedTuple):
    """How the first render of a test with a fault ends, and how its last attempt does."""

    status: str
    reason: str | None = None
    kind: str | None = None


KINDS = {
    "raise": Expected("failed", "error", "RuntimeError"),
    "die": Expected("failed", "worker_died", "WorkerDied"),
    "nan": Expected("failed", "not_finite", "BadClip"),
    "empty": Expected("failed", "empty", "BadClip"),
    "few": Expected("failed", "bad_reply", "BadReply"),
    "order": Expected("ok"),  # alone it cannot be out of order
    "hang": Expected("timeout", "deadline", "Deadline"),
    "refuse": Expected("refused", "too_hard"),
    "once_raise": Expected("ok"),
    "once_die": Expected("ok"),
}


class Faults(NamedTuple):
    result: RunResult
    bank: Bank
    told: list[str]

    def kind_of(self, test: str) -> str:
        return dict(zip([t.id for t in self.bank.tests], KINDS, strict=False)).get(test, "")


def faults_of(bank: Bank, kinds: list[str]) -> dict[str, str]:
    prompts = [test.stages.generation.prompt for test in bank.tests]
    return dict(zip(prompts, kinds, strict=False))


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    """One test more than there are kinds."""
    return canary_bank(tmp_path_factory.mktemp("canary") / "bank", len(KINDS) + 1)


@pytest.fixture(scope="module")
def faults(bank: Bank, tmp_path_factory: pytest.TempPathFactory, ray_cluster: SharedCluster) -> Faults:
    """A run in which every test but the last meets one kind of fault when it is rendered, and one its question too."""
    folder = tmp_path_factory.mktemp("faults")
    settings: dict[str, Any] = {
        "faults": {
            **faults_of(bank, list(KINDS)),
            bank.tests[-1].stages.edit.questions[1].text: "raise",
            bank.tests[-1].stages.edit.questions[2].text: "once_die",
        },
        "flaky": str(folder),
        "max_batch": {"generate": 2, "edit": 4, "answer": 4},
    }
    heads = {"generate": {"deadline_s": DEADLINE_S}}
    made = system(folder / "card", {"toy": host(replicas=2, settings=settings, heads=heads)})
    told: list[str] = []
    return Faults(run(made, bank, folder / "r", NATIVE, address=ray_cluster.address, told=told), bank, told)


def test_each_kind_ends_as_it_should(faults: Faults) -> None:
    renders = table(faults.result, "renders").filter(pl.col("stage") == "generation")
    found = {faults.kind_of(row["test"]): (row["status"], row["reason"]) for row in renders.iter_rows(named=True)}
    assert found == {"": ("ok", None), **{kind: expected[:2] for kind, expected in KINDS.items()}}


def test_what_hangs_on_a_failed_render_is_no_clip_and_everything_else_is_ok(faults: Faults) -> None:
    for name in ("renders", "answers"):
        for row in table(faults.result, name).iter_rows(named=True):
            expected = KINDS.get(faults.kind_of(row["test"]), Expected("ok"))
            last = faults.bank.tests[-1].stages.edit.questions[1]
            if name == "renders" and row["stage"] == "generation":
                continue
            if name == "answers" and row["question_text"] == last.text and row["stage"] == "edit":
                assert (row["status"], row["reason"]) == ("failed", "error")
            elif expected.status == "ok":
                assert row["status"] == "ok", row["unit_id"]
            else:
                assert (row["status"], row["reason"]) == ("no_clip", f"{expected.status}: {expected.reason}")


def test_attempts_tell_what_happened(faults: Faults) -> None:
    attempts = table(faults.result, "attempts").filter(pl.col("operation") == "generate").sort("unit_id", "attempt")
    for unit, rows in attempts.group_by("unit_id", maintain_order=True):
        kind = faults.kind_of(str(unit[0]).split("/")[2])
        expected = KINDS.get(kind, Expected("ok"))
        last = rows.row(-1, named=True)
        assert rows["attempt"].to_list() == list(range(1, rows.height + 1))
        assert last["status"] == expected.status, kind
        if expected.kind:
            assert last["kind"] == expected.kind, kind
        if kind in ("raise", "few"):
            assert "Traceback" in last["traceback"], kind
        if kind in ("raise", "once_raise"):
            assert rows["traceback"].str.contains("a toy fault").any()
        # alone, a request is tried twice, or three times when its process died
        assert rows.filter(pl.col("batch") == 1, pl.col("status") != "ok").height <= 3


def test_a_process_that_died_is_told_with_its_unit(faults: Faults) -> None:
    assert any("died" in line for line in faults.told)
    assert any("hang" not in line and "took more than" in line for line in faults.told)


def test_the_exit_code_says_that_units_failed(faults: Faults, ray_cluster: SharedCluster) -> None:
    assert faults.result.exit_code == 1
    assert ray_cluster.actors_left() == []


def test_a_death_among_coroutines_is_blamed_on_one_and_a_hang_on_itself(
    bank: Bank, tmp_path: Path, ray_cluster: SharedCluster
) -> None:
    settings = {"faults": faults_of(bank, ["die", "hang"]), "latency_s": 0.05}
    card = host(
        adapter=f"{TOY}:ToyAsync", style="async", settings=settings, heads={"generate": {"deadline_s": DEADLINE_S}}
    )
    made = system(tmp_path / "card", {"toy": card})
    result = run(made, bank, tmp_path / "r", NATIVE, address=ray_cluster.address, tests=bank.tests[:6])
    renders = table(result, "renders").filter(pl.col("stage") == "generation").sort("test")
    assert renders["status"].to_list() == ["failed", "timeout", *["ok"] * 4]
    assert renders["reason"].to_list()[:2] == ["worker_died", "deadline"]
    assert set(result.by_status) == {"ok", "failed", "timeout", "no_clip"}
    assert result.by_status["ok"] == 4 * 12


# --- what does not start ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "cause"),
    [("raise", "no weights at /nowhere/toy.bin"), ("exit", "the toy library wants to leave"), ("die", "keeps dying")],
)
def test_a_model_that_does_not_load_stops_the_run_with_its_cause(
    fault: str, cause: str, bank: Bank, tmp_path: Path, ray_cluster: SharedCluster
) -> None:
    broken = {"hands": host("generate", "edit"), "mind": host("answer", settings={"load_fault": fault})}
    with pytest.raises(EngineStop, match=cause) as caught:
        run(system(tmp_path / "card", broken), bank, tmp_path / "r", NATIVE, address=ray_cluster.address)
    assert "mind" in str(caught.value)
    assert caught.value.where
    assert caught.value.mend
    assert ray_cluster.actors_left() == []


# --- two environments -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def environments(ray_cluster: SharedCluster) -> Iterator[Path]:
    """The two environments of tests/data/envs, built under a root of their own."""
    with pytest.MonkeyPatch.context() as patch:
        root = Path(tempfile.mkdtemp(prefix="te-", dir="/tmp"))
        patch.setenv("TORUS_ENVS", str(root))
        try:
            for name in ("numpy1", "numpy2"):
                build(find_environment(str(ENVIRONMENTS / f"{name}.toml")), root)
            yield root
        finally:
            shutil.rmtree(root, ignore_errors=True)


def test_two_majors_of_numpy_work_in_one_run(
    environments: Path, bank: Bank, tmp_path: Path, ray_cluster: SharedCluster
) -> None:
    def inside(major: int, *operations: str) -> dict[str, Any]:
        environment = str(ENVIRONMENTS / f"numpy{major}.toml")
        return host(*operations, environment=environment, settings={"numpy": major})

    card = {"old": inside(1, "generate", "edit"), "new": inside(2, "caption", "answer")}
    made = system(tmp_path / "card", card)
    tests = bank.tests[:3]
    both = (Arm("native"), Arm("self-caption"))
    result = run(made, bank, tmp_path / "r", both, address=ray_cluster.address, tests=tests)
    assert result.by_status == {"ok": 3 * 26}
    assert table(result, "attempts")["pid"].n_unique() == 2
    # clips and letters are those of the interpreter that runs the tests
    here = run(system(tmp_path / "here"), bank, tmp_path / "inline", both, tests=tests)
    for name, column in (("renders", "clip"), ("answers", "letter")):
        found, expected = (table(one, name).sort("unit_id")[column].to_list() for one in (result, here))
        assert found == expected
