"""Questions, seeds and prompts of different tests that are nearly the same (BANK.md).

Within a test likeness is meant: the counterfactual repeats a question of the edit stage. Texts are compared folded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from torus_ray.bank.alike import Group, alike_in_letters, alike_in_meaning
from torus_ray.bank.asked import Asked, Vectors
from torus_ray.bank.findings import Finding
from torus_ray.bank.load import Bank
from torus_ray.bank.schema import STAGES
from torus_ray.folding import fold

COSINE_LIMIT = 0.92
EDIT_LIMIT = 0.9


@dataclass(frozen=True)
class Texts:
    """Texts of one kind to compare. names: (n,) where each stands. tests: (n,) the test's index in the bank."""

    kind: str
    names: Sequence[str]
    tests: Sequence[int]
    texts: Sequence[str]
    mend: str


def compared(bank: Bank, table: Asked) -> tuple[Texts, ...]:
    """What is compared: questions with their options (sorted), the seeds' scenes, and prompts."""
    scenes = [
        f"{test.seed.scene} {test.seed.intervention} {test.seed.acoustic_outcome} {test.seed.counterfactual_outcome}"
        for test in bank.tests
    ]
    ids = [test.id for test in bank.tests]
    stages = [(at, test, name) for at, test in enumerate(bank.tests) for name in STAGES]
    prompts = [test.stage(name).prompt for _, test, name in stages]
    of_prompts = [f"{test.id}.{name}" for _, test, name in stages]
    asking = "ask for something else, or of other options"
    another = "tell another story"
    return (
        Texts("questions", table.names, table.tests.tolist(), table.whole, asking),
        Texts("scenes", ids, range(len(ids)), scenes, another),
        Texts("prompts", of_prompts, [at for at, _, _ in stages], prompts, another),
    )


def near_duplicates(kind: Texts, vectors: Vectors | None) -> Iterator[Finding]:
    """A warning for each group of texts of different tests that are alike in letters, or by `vectors` in meaning."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(kind.texts):
        rows[text].append(row)
    unique = list(rows)
    # a text that several tests have belongs to none of them: it may be alike to another text of each
    owners = np.array(
        [tests.pop() if len(tests) == 1 else -1 - at for at, tests in enumerate(map(set, _tests(kind, rows)))]
    )
    letters = _with_equal(alike_in_letters([fold(text) for text in unique], owners, EDIT_LIMIT), owners)
    told = {group.members for group in letters}
    meaning = alike_in_meaning(vectors(unique), owners, COSINE_LIMIT) if vectors else []
    found = [(f"edit similarity {group.least:.2f}", group) for group in letters]
    found += [(f"cosine {group.least:.2f}", group) for group in meaning if group.members not in told]
    for measure, group in found:
        names = tuple(kind.names[row] for member in group.members for row in rows[unique[member]])
        message = f"{len(names)} {kind.kind} are nearly the same ({measure})"
        yield Finding("warning", message, kind.mend, questions=tuple(sorted(names)))


def _tests(kind: Texts, rows: dict[str, list[int]]) -> Iterator[list[int]]:
    for same in rows.values():
        yield [kind.tests[row] for row in same]


def _with_equal(groups: list[Group], owners: np.ndarray) -> list[Group]:
    """The groups, and for each text that several tests have word for word and that is in none of them, its own."""
    grouped = {member for group in groups for member in group.members}
    return groups + [Group((int(at),), 1.0) for at in np.flatnonzero(owners < 0) if at not in grouped]
