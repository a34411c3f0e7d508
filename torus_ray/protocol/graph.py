"""A run as a graph: renders, captions and answer groups of every test, in the arms asked for.

A node is what is asked in one call; it has one unit (a render, a caption) or several (the questions of one clip). A
unit leaves one row behind. Nodes of a control hang on the renders of the arm that they control; the muted one hangs
on nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from torus_ray.bank.load import Bank
from torus_ray.bank.schema import STAGES, Question, StageName, Test
from torus_ray.errors import InputError
from torus_ray.systems import EditMode

Control = Literal["muted", "swapped"]
CONTROLS: tuple[Control, ...] = ("muted", "swapped")
Kind = Literal["render", "caption", "answer"]


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
    """What is expected of a node: one row. id: system/arm/test/stage/operation[/question/shift/repeat]."""

    id: str
    question: Question | None = None


@dataclass(slots=True, eq=False)
class Node:
    """One call's worth of units.

    source: the test whose clip is heard (another one in the swapped control). parents: nodes whose rows must be
    durable first.
    chain: how many renders, captions and answers still hang on it, the longest way: longest first (DESIGN 5).
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
) -> list[Node]:
    """All nodes, parents before children.

    tests: those asked for; the swapped control may need clips of others of the bank, whose render nodes (no answers)
    are added. Arms that control another bring that arm's renders with them. repeats: how often each question is asked
    of a clip.
    """
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
        prefix = f"{system}/{arm.name}/{test.id}/{stage}"
        if stage == STAGES[0]:
            parents: tuple[Node, ...] = ()
            operation = "generate"
        else:
            before = clip_node(arm, test, STAGES[STAGES.index(stage) - 1])
            operation = "edit" if arm.edit_mode == "native" else "generate"
            parents = (before,)
            if arm.edit_mode == "self-caption":
                before_prefix = f"{system}/{arm.name}/{test.id}/{before.stage}"
                caption = Node(
                    "caption", arm, test, before.stage, "caption", (Unit(f"{before_prefix}/caption"),), test, (before,)
                )
                nodes.append(caption)
                parents = (before, caption)
        node = Node("render", arm, test, stage, operation, (Unit(f"{prefix}/{operation}"),), test, parents)
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
                prefix = f"{system}/{arm.name}/{test.id}/{stage}/answer"
                for repeat in range(repeats):
                    units = tuple(Unit(f"{prefix}/{q.id}/0/{repeat}", q) for q in test.stage(stage).questions)
                    nodes.append(Node("answer", arm, test, stage, "answer", units, source, heard, repeat=repeat))
    for node in reversed(nodes):
        node.chain = 1 + max((child.chain for child in node.children), default=0)
    return nodes


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
