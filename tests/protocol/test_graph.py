"""The graph of a run: which units each arm and control expects, and what hangs on what."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.engine.systems import canary_bank
from torus_ray.bank.load import Bank
from torus_ray.bank.schema import STAGES
from torus_ray.errors import InputError
from torus_ray.protocol.graph import Arm, Node, build_graph

NATIVE, CAPTION = Arm("native"), Arm("self-caption")


def graph(bank: Bank, *arms: Arm, tests: int = 1, repeats: int = 1) -> list[Node]:
    return build_graph(system="s", bank=bank, tests=bank.tests[:tests], arms=arms, repeats=repeats)


def unit_ids(nodes: list[Node]) -> list[str]:
    return [unit.id for node in nodes for unit in node.units]


def one(nodes: list[Node], kind: str, stage: str) -> Node:
    (node,) = [node for node in nodes if (node.kind, node.stage) == (kind, stage)]
    return node


def test_names_of_arms_are_their_folders() -> None:
    names = [NATIVE, Arm("native", 1), Arm("self-caption", 0, "muted"), Arm("native", 2, "swapped")]
    assert [arm.name for arm in names] == ["native", "native.seed1", "self-caption.muted", "native.seed2.swapped"]
    assert Arm("native", 2, "swapped").rendering == Arm("native", 2)


def test_a_native_arm_renders_three_clips_and_asks_nine_questions(bank: Bank) -> None:
    nodes = graph(bank, NATIVE)
    test = bank.tests[0]
    assert Counter(node.kind for node in nodes) == {"render": 3, "answer": 3}
    assert [one(nodes, "render", stage).operation for stage in STAGES] == ["generate", "edit", "edit"]
    expected = [
        f"s/native/{test.id}/{stage}/{op}" for stage, op in zip(STAGES, ("generate", "edit", "edit"), strict=True)
    ]
    for stage in STAGES:
        expected += [f"s/native/{test.id}/{stage}/answer/{question.id}/0/0" for question in test.stage(stage).questions]
    assert sorted(unit_ids(nodes)) == sorted(expected)
    before = None
    for stage in STAGES:
        render = one(nodes, "render", stage)
        assert render.parents == ((before,) if before else ())
        assert one(nodes, "answer", stage).parents == (render,)
        assert one(nodes, "answer", stage).source is test
        before = render


def test_a_self_caption_arm_captions_each_clip_that_is_edited(bank: Bank) -> None:
    nodes = graph(bank, CAPTION)
    assert Counter(node.kind for node in nodes) == {"render": 3, "caption": 2, "answer": 3}
    assert {node.operation for node in nodes if node.kind == "render"} == {"generate"}
    for before, stage in pairwise(STAGES):
        heard, caption = one(nodes, "render", before), one(nodes, "caption", before)
        assert caption.parents == (heard,)
        assert one(nodes, "render", stage).parents == (heard, caption)


def test_muted_hangs_on_nothing_and_renders_nothing(bank: Bank) -> None:
    nodes = graph(bank, Arm("native", control="muted"))
    assert Counter(node.kind for node in nodes) == {"answer": 3}
    assert all(node.parents == () for node in nodes)
    assert {node.arm.name for node in nodes} == {"native.muted"}


@pytest.mark.parametrize("wanted", [1, 2, 6])
def test_swapped_hears_the_next_test_of_the_type_over_the_whole_bank(bank: Bank, wanted: int) -> None:
    nodes = graph(bank, Arm("native", control="swapped"), tests=wanted)
    ids = {kind: sorted({t.id for t in bank.tests if t.audio_type == kind}) for kind in ("speech", "sound", "music")}
    answers = [node for node in nodes if node.kind == "answer"]
    assert len(answers) == 3 * wanted
    for node in answers:
        same = ids[node.test.audio_type]
        assert node.source.id == same[(same.index(node.test.id) + 1) % len(same)]
        (heard,) = node.parents
        assert (heard.test, heard.stage, heard.arm) == (node.source, node.stage, NATIVE)
        assert unit_ids([node])[0].startswith(f"s/native.swapped/{node.test.id}/")
    assert {node.test.id for node in nodes if node.kind == "render"} == {node.source.id for node in answers}


def test_a_control_shares_the_renders_of_its_arm(bank: Bank) -> None:
    nodes = graph(bank, NATIVE, Arm("native", control="swapped"), Arm("native", control="muted"), tests=6)
    assert Counter(node.kind for node in nodes) == {"render": 18, "answer": 54}
    assert len(set(unit_ids(nodes))) == len(unit_ids(nodes)) == 18 + 3 * 54


def test_an_arm_given_twice_is_one_arm(bank: Bank) -> None:
    assert unit_ids(graph(bank, NATIVE, NATIVE)) == unit_ids(graph(bank, NATIVE))


def test_repeats_ask_again_of_the_same_clip(bank: Bank) -> None:
    nodes = graph(bank, NATIVE, repeats=3)
    assert Counter(node.kind for node in nodes) == {"render": 3, "answer": 9}
    assert sorted(unit.id[-1] for unit in one_stage(nodes)) == list("000111222")
    with pytest.raises(InputError):
        graph(bank, NATIVE, repeats=0)


def one_stage(nodes: list[Node]) -> list:
    return [unit for node in nodes if (node.kind, node.stage) == ("answer", "edit") for unit in node.units]


def test_the_longest_way_to_the_end_goes_first(bank: Bank) -> None:
    native, caption = graph(bank, NATIVE), graph(bank, CAPTION)
    assert [one(native, "render", stage).chain for stage in STAGES] == [4, 3, 2]
    assert [one(caption, "render", stage).chain for stage in STAGES] == [6, 4, 2]
    assert {node.chain for node in native if node.kind == "answer"} == {1}


def test_parents_come_before_children_and_know_them(bank: Bank) -> None:
    nodes = graph(bank, NATIVE, CAPTION, Arm("native", control="swapped"), Arm("native", 1), tests=6)
    place = {node: number for number, node in enumerate(nodes)}
    for node in nodes:
        for parent in node.parents:
            assert place[parent] < place[node]
            assert node in parent.children
        assert all(node in child.parents for child in node.children)


def test_swapped_needs_two_tests_of_a_type(bank: Bank, tmp_path: Path) -> None:
    small = canary_bank(tmp_path / "bank", tests=4)
    with pytest.raises(InputError, match="two tests of a type"):
        graph(small, Arm("native", control="swapped"))
