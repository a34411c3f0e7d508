"""What is known of nodes without a cluster: what fits one, who is avoided, whose end a lost process is."""

from __future__ import annotations

from pathlib import Path

import pytest
import ray.exceptions
from ray.core.generated.common_pb2 import ActorDiedErrorContext, NodeDeathInfo

from tests.engine.systems import host, system
from torus_ray.engine import nodes
from torus_ray.engine.env_build import EnvironmentStop
from torus_ray.engine.environments import INHERIT, Finding, Preflight
from torus_ray.engine.hosts import GIB, HostPlan
from torus_ray.engine.nodes import Node, avoiding, look_at_nodes, node_lost

BIG = Node("b" * 56, "big (10.0.0.1)", {"CPU": 8.0, "GPU": 2.0, "memory": 64.0 * GIB})
SMALL = Node("c" * 56, "small (10.0.0.2)", {"CPU": 1.0, "memory": 1.0 * GIB})


def plan(folder: Path, **fields: object) -> HostPlan:
    made = system(folder, {"toy": host(**{"memory_gb": 0.5, **fields})})
    return HostPlan(made.hosts["toy"], "adapters/toy", 16)


@pytest.mark.parametrize(
    ("fields", "small"),
    [({}, True), ({"num_gpus": 1}, False), ({"num_cpus": 2}, False), ({"memory_gb": 2}, False)],
)
def test_what_fits_a_node(fields: dict[str, object], small: bool, tmp_path: Path) -> None:
    one = plan(tmp_path, **fields)
    assert BIG.could_hold(one)
    assert SMALL.could_hold(one) == small


def test_nobody_is_avoided_by_no_selector() -> None:
    assert avoiding(()) == {}
    assert avoiding(("aa", "bb")) == {"ray.io/node-id": "!in(aa, bb)"}


def died(message: str, preempted: bool = False) -> ray.exceptions.ActorDiedError:
    reason = NodeDeathInfo.AUTOSCALER_DRAIN_PREEMPTED if preempted else NodeDeathInfo.UNSPECIFIED
    context = ActorDiedErrorContext(
        error_message=message, actor_id=b"1" * 16, node_death_info=NodeDeathInfo(reason=reason)
    )
    return ray.exceptions.ActorDiedError(context)


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (died("The actor died because its node has died. Node Id: 12"), True),
        (died("The node is going away", preempted=True), True),
        (ray.exceptions.ActorUnavailableError("rpc error: Connection refused", b"1" * 16), True),
        (ray.exceptions.ObjectLostError("00" * 28, None, ""), True),
        (died("The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR"), False),
        (RuntimeError("its node has died"), False),
    ],
    ids=["node", "preempted", "nobody answers", "reply lost", "process", "something else"],
)
def test_whose_end_a_lost_process_is(error: Exception, lost: bool) -> None:
    assert node_lost(error) is lost


# --- what the nodes said ----------------------------------------------------------------------------------------------


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> dict[str, Preflight]:
    """What each node answers, by its name; both could hold the host."""
    answers: dict[str, Preflight] = {}
    monkeypatch.setattr(nodes, "alive_nodes", lambda: (BIG, SMALL))
    monkeypatch.setattr(nodes, "_ask", lambda asked: {key: answers[key[1].name] for key in asked})
    return answers


def lacking(what: str | None) -> Preflight:
    findings = (Finding(what, "/envs/toy", "a complete build", "`torus env build toy`"),) if what else ()
    return Preflight("toy", "3.11.7", "2.60.0", {}, (), 1.0, findings)


def test_a_node_that_lacks_something_is_told_and_avoided(said: dict[str, Preflight], tmp_path: Path) -> None:
    said |= {BIG.name: lacking(None), SMALL.name: lacking("environment toy is not built on small")}
    told: list[str] = []
    found = look_at_nodes({"toy": plan(tmp_path)}, {"inherit": INHERIT}, told.append)
    assert found.avoid == {"toy": (SMALL.id,)}
    assert found.down == {}
    (line,) = told
    assert SMALL.name in line
    assert "not built on small" in line
    assert "torus env build" in line


def test_where_nobody_has_it_the_run_stops_and_what_only_measures_is_left_out(
    said: dict[str, Preflight], tmp_path: Path
) -> None:
    said |= {BIG.name: lacking("environment toy is not built on big"), SMALL.name: lacking("nor on small")}
    with pytest.raises(EnvironmentStop, match="no node has what host 'toy' needs") as caught:
        look_at_nodes({"toy": plan(tmp_path)}, {"inherit": INHERIT}, print)
    assert BIG.name in caught.value.where
    assert caught.value.exit_code == 3
    measure = {"measure": {"measures": {"toy-words": ["wer"]}}}
    card = system(tmp_path / "gauge", {"gauge": host("measure", heads=measure)}, name="gauge")
    gauge = HostPlan(card.hosts["gauge"], "adapters/toy", 16)
    assert gauge.spec.background
    found = look_at_nodes({"gauge": gauge}, {"inherit": INHERIT}, print)
    assert list(found.down) == ["gauge"]
