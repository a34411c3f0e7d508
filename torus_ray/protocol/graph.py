"""A run as a graph: renders, captions, answer groups and measures of every test, in the arms asked for.

A node is what is asked in one call; it has one unit (a render, a caption) or several (the questions of one clip). A
unit leaves one row behind. Nodes of a control hang on the renders of the arm that they control; the muted one hangs
on nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from torus_ray.bank.load import Bank
from torus_ray.bank.memory import no_collections
from torus_ray.bank.schema import STAGES, Question, StageName, Test
from torus_ray.errors import InputError
from torus_ray.systems import EditMode

Control = Literal["muted", "swapped"]
CONTROLS: tuple[Control, ...] = ("muted", "swapped")
Kind = Literal["render", "caption", "answer", "measure"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run a system. Its name is its folder's: native, self-caption, native.seed1, native.muted,
    native.seed1.swapped."""

    edit_mode: EditMode
    seed: int = 0
    control: Control | None = None

    @property
    def name(self) -> str:
        seed = f".seed{self.seed}" if self.seed else ""
        return f"{self.edit_mode}{seed}" + (f".{self.control}" if self.control else "")

    @property
    def rendering(self) -> Arm:
        """The arm whose clips this one is asked about: itself, without its control."""
        return Arm(self.edit_mode, self.seed)


@dataclass(frozen=True, slots=True)
class Unit:
    """What is expected of a node: one row. id: system/arm/test/stage/operation[:measure][/question/shift/repeat]."""

    id: str
    question: Question | None = None


@dataclass(slots=True, eq=False)
class Node:
    """One call's worth of units.

    source: the test whose clip is heard (another one in the swapped control). parents: nodes whose rows must be
    durable first.
    chain: how many renders, captions and answers still hang on it, the longest way: longest first (DESIGN 5). On a
    measure nothing hangs and nothing waits for one: 0, so that all else goes before it.
    given: a render that stands as its row says, whatever the system would render today: it is only measured.
    """

    kind: Kind
    arm: Arm
    test: Test
    stage: StageName
    operation: str
    units: tuple[Unit, ...]
    source: Test
    parents: tuple[Node, ...] = ()
    repeat: int = 0
    shift: int = 0
    measure: str | None = None
    given: bool = False
    chain: int = 1
    children: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        for parent in self.parents:
            parent.children.append(self)


def build_graph(
    *,
    system: str,
    bank: Bank,
    tests: Sequence[Test],
    arms: Iterable[Arm],
    repeats: int = 1,
    measures: Mapping[str, Collection[str]] | None = None,
) -> list[Node]:
    """All nodes, parents before children.

    tests: those asked for; the swapped control may need clips of others of the bank, whose render nodes (no answers)
    are added. Arms that control another bring that arm's renders with them. repeats: how often each question is asked
    of a clip. measures: what is measured of each clip of the tests and arms asked for -> the metrics made of it.
    """
    with no_collections():
        return _build(system, bank, tests, arms, repeats, measures)


def _build(
    system: str,
    bank: Bank,
    tests: Sequence[Test],
    arms: Iterable[Arm],
    repeats: int,
    measures: Mapping[str, Collection[str]] | None,
) -> list[Node]:
    if repeats < 1:
        raise InputError(f"repeats is {repeats}", where="--repeats", expected="1 or more", mend="leave it out for 1")
    wanted = list(dict.fromkeys(arms))
    nodes: list[Node] = []
    clips: dict[tuple[Arm, str, str], Node] = {}

    def clip_node(arm: Arm, test: Test, stage: StageName) -> Node:
        """The render of a stage, made with what it hangs on when first asked for."""
        known = clips.get((arm, test.id, stage))
        if known:
            return known
        operation = _rendering(arm, stage)
        parents: tuple[Node, ...] = ()
        if stage != STAGES[0]:
            before = clip_node(arm, test, STAGES[STAGES.index(stage) - 1])
            parents = (before,)
            if arm.edit_mode == "self-caption":
                described = Unit(_id(system, arm, test, before.stage, "caption"))
                caption = Node("caption", arm, test, before.stage, "caption", (described,), test, (before,))
                nodes.append(caption)
                parents = (before, caption)
        unit = Unit(_id(system, arm, test, stage, operation))
        node = Node("render", arm, test, stage, operation, (unit,), test, parents)
        nodes.append(node)
        clips[arm, test.id, stage] = node
        return node

    neighbours = _next_of_type(bank.tests) if any(arm.control == "swapped" for arm in wanted) else {}
    for test in tests:
        for arm in wanted:
            for stage in STAGES:
                if arm.control is None:
                    heard: tuple[Node, ...] = (clip_node(arm, test, stage),)
                    source = test
                elif arm.control == "muted":
                    heard, source = (), test
                else:
                    source = neighbours[test.id]
                    heard = (clip_node(arm.rendering, source, stage),)
                prefix = _id(system, arm, test, stage, "answer")
                for repeat in range(repeats):
                    units = tuple(Unit(f"{prefix}/{q.id}/0/{repeat}", q) for q in test.stage(stage).questions)
                    nodes.append(Node("answer", arm, test, stage, "answer", units, source, heard, repeat=repeat))
                if arm.control is None and measures:
                    nodes += _measure_nodes(system, heard[0], measures)
    for node in reversed(nodes):
        node.chain = 0 if node.kind == "measure" else 1 + max((child.chain for child in node.children), default=0)
    return nodes


def measuring_graph(
    *, system: str, tests: Sequence[Test], arms: Iterable[Arm], measures: Mapping[str, Collection[str]]
) -> list[Node]:
    """The measures of clips that are there already, each below its render as given. Arms without a control."""
    nodes: list[Node] = []
    for arm in arms:
        for test in tests:
            for stage in STAGES:
                operation = _rendering(arm, stage)
                unit = Unit(_id(system, arm, test, stage, operation))
                render = Node("render", arm, test, stage, operation, (unit,), test, given=True)
                nodes += [render, *_measure_nodes(system, render, measures)]
    return nodes


def _measure_nodes(system: str, render: Node, measures: Mapping[str, Collection[str]]) -> list[Node]:
    """One a measure; what only WER needs is asked of stages that have words to compare with."""
    spoken = render.test.stage(render.stage).transcript is not None
    return [
        Node(
            kind="measure",
            arm=render.arm,
            test=render.test,
            stage=render.stage,
            operation="measure",
            units=(Unit(_id(system, render.arm, render.test, render.stage, f"measure:{name}")),),
            source=render.test,
            parents=(render,),
            measure=name,
            chain=0,
        )
        for name, metrics in measures.items()
        if spoken or set(metrics) != {"wer"}
    ]


def _rendering(arm: Arm, stage: StageName) -> str:
    return "edit" if stage != STAGES[0] and arm.edit_mode == "native" else "generate"


def _id(system: str, arm: Arm, test: Test, stage: StageName, operation: str) -> str:
    return f"{system}/{arm.name}/{test.id}/{stage}/{operation}"


def _next_of_type(tests: Sequence[Test]) -> dict[str, Test]:
    """The next test of the same type in id order, cyclic (DESIGN 8); over the whole bank, so that a run may grow."""
    following: dict[str, Test] = {}
    by_type: dict[str, list[Test]] = {}
    for test in sorted(tests, key=lambda t: t.id):
        by_type.setdefault(test.audio_type, []).append(test)
    for same in by_type.values():
        if len(same) < 2:
            raise InputError(
                f"the swapped control needs two tests of a type, the bank has one of {same[0].audio_type}",
                where=f"test {same[0].id}",
                expected="at least two tests of each type",
                mend="leave `swapped` out of --controls",
            )
        following.update({test.id: same[(i + 1) % len(same)] for i, test in enumerate(same)})
    return following
