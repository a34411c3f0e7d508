"""Measures in the graph, their keys, and what a reply becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.systems import MEASURES, measured, system
from torus_ray.bank.load import Bank
from torus_ray.heads import MeasureRequest
from torus_ray.protocol.graph import Arm, build_graph, measuring_graph
from torus_ray.protocol.requests import Plan, Protocol, Verdict
from torus_ray.protocol.rows import measure_outcome

NATIVE, CAPTION = Arm("native"), Arm("self-caption")
CLIP = "c" * 64


@pytest.fixture
def protocol(tmp_path: Path, bank: Bank) -> Protocol:
    return Protocol(measured(system(tmp_path), tmp_path / "gauge"), bank)


def test_every_clip_is_measured_words_only_where_there_are_some(bank: Bank) -> None:
    graph = build_graph(system="s", bank=bank, tests=bank.tests, arms=[NATIVE, CAPTION], measures=MEASURES)
    nodes = [node for node in graph if node.kind == "measure"]
    clips = [node for node in graph if node.kind == "render"]
    spoken = [node for node in clips if node.test.stage(node.stage).transcript]
    assert len(nodes) == 3 * len(clips) + len(spoken)
    assert len({node.units[0].id for node in nodes}) == len(nodes)
    assert all(node.parents[0].kind == "render" and node.parents[0].stage == node.stage for node in nodes)


def test_measures_change_nothing_about_what_comes_first(bank: Bank) -> None:
    def chains(**measures: Any) -> dict[str, int]:
        graph = build_graph(system="s", bank=bank, tests=bank.tests, arms=[NATIVE, CAPTION], **measures)
        return {node.units[0].id: node.chain for node in graph if node.kind != "measure"}

    assert chains(measures=MEASURES) == chains()
    graph = build_graph(system="s", bank=bank, tests=bank.tests, arms=[NATIVE], measures=MEASURES)
    assert {node.chain for node in graph if node.kind == "measure"} == {0}
    assert min(node.chain for node in graph if node.kind != "measure") == 1


def test_controls_and_lent_clips_are_not_measured(bank: Bank) -> None:
    arms = [Arm("native", control="muted"), Arm("native", control="swapped")]
    graph = build_graph(system="s", bank=bank, tests=bank.tests[:1], arms=arms, measures=MEASURES)
    assert [node for node in graph if node.kind == "measure"] == []


def test_what_is_there_is_measured_under_the_same_names(bank: Bank) -> None:
    for arm in (NATIVE, CAPTION):
        whole = build_graph(system="s", bank=bank, tests=bank.tests, arms=[arm], measures=MEASURES)
        later = measuring_graph(system="s", tests=bank.tests, arms=[arm], measures=MEASURES)
        for kind in ("render", "measure"):
            first, second = ({n.units[0].id for n in graph if n.kind == kind} for graph in (whole, later))
            assert first == second


def test_a_clip_has_one_key_whatever_arm_and_seed_it_comes_from(protocol: Protocol, bank: Bank) -> None:
    arms = [NATIVE, CAPTION, Arm("native", 1)]
    nodes = [
        node
        for arm in arms
        for node in measuring_graph(system="toy", tests=bank.tests, arms=[arm], measures=protocol.system.metrics)
        if node.measure == "toy8"
    ]
    plans = [protocol.resolve(node, [{"status": "ok", "clip": CLIP}]) for node in nodes]
    assert len({plan.asks[0].key for plan in plans if isinstance(plan, Plan)}) == 1
    other = protocol.resolve(nodes[0], [{"status": "ok", "clip": "d" * 64}])
    assert isinstance(other, Plan)
    assert other.asks[0].key != plans[0].asks[0].key  # type: ignore[union-attr]
    plan = plans[0]
    assert isinstance(plan, Plan)
    assert protocol.request(plan, plan.asks, b"flac", "7") == MeasureRequest("7", "toy8", b"flac", 0)


def test_no_clip_no_measure(protocol: Protocol, bank: Bank) -> None:
    node = measuring_graph(system="toy", tests=bank.tests, arms=[NATIVE], measures=MEASURES)[1]
    verdict = protocol.resolve(node, [{"status": "failed", "reason": "empty", "clip": None}])
    assert verdict == Verdict("no_clip", "failed: empty")


def test_a_reply_becomes_text_numbers_flags_and_the_rest() -> None:
    row = measure_outcome({"text": "hello", "flags": ["silent", "looped"], "raw": "you"})
    assert row == {"status": "ok", "text": "hello", "flags": "silent looped", "values_json": '{"raw": "you"}'}
    frames = measure_outcome({"values": [[1, 2], [3, 4], [5, 6]]})
    assert (frames["values"].dtype, frames["values"].tolist(), frames["width"]) == (np.float32, [1, 2, 3, 4, 5, 6], 2)
    assert measure_outcome({"values": [0.5, 0.25]})["width"] == 2
    assert measure_outcome({"text": ""})["status"] == "ok"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "bad_reply"),
        ({"values": []}, "bad_reply"),
        ({"values": [[1.0], [1.0, 2.0]]}, "bad_reply"),
        ({"values": "loud"}, "bad_reply"),
        ({"values": [[[1.0]]]}, "bad_reply"),
        ({"text": 3}, "bad_reply"),
        ({"text": "x", "score": float("nan")}, "bad_reply"),
        ({"values": [1.0, float("inf")]}, "not_finite"),
        ({"values": [1e300]}, "not_finite"),
    ],
)
def test_a_reply_that_cannot_be_kept_is_a_failure_with_its_reason(values: dict[str, Any], reason: str) -> None:
    row = measure_outcome(values)
    assert (row["status"], row["reason"]) == ("failed", reason)
    assert row["message"]
