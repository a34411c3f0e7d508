"""Every question of a bank as a row, for what is counted over all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from torus_ray.bank.load import Bank
from torus_ray.bank.schema import STAGES, Question, StageName, Test
from torus_ray.folding import fold

Floats = NDArray[np.float32]
Embed = Callable[[Sequence[str]], NDArray[np.float16]]
"""Unit vectors (n, d) of n texts; equal texts give equal vectors."""

# Words that any sentence has: what two texts share of them says nothing.
COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for from has have in is it its of or so than that the their them then there they "
        "this to was were which while who with",
    )
)


def questions_of(bank: Bank) -> Iterator[tuple[Test, StageName, Question]]:
    """Every question with where it stands, in the order of the bank."""
    for test in bank.tests:
        for stage in STAGES:
            for question in test.stage(stage).questions:
                yield test, stage, question


@dataclass(frozen=True)
class Asked:
    """The questions of a bank in its order. Lists are (n,), `options` n tuples of six.

    tests, stages: (n,) index of the test in the bank and of the stage. right: (n,) index of the right option.
    told: (n,) the prompts up to and with the question's stage, joined. whole: (n,) stem and options, options sorted.
    """

    names: list[str]
    tests: NDArray[np.int64]
    stages: NDArray[np.int64]
    stems: list[str]
    options: list[tuple[str, ...]]
    right: NDArray[np.int64]
    told: list[str]
    whole: list[str]
    _words: dict[str, frozenset[str]] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def folded(self) -> list[tuple[str, ...]]:
        """The options as they are compared, (n,) tuples of six."""
        known = {option: fold(option) for option in {option for six in self.options for option in six}}
        return [tuple(known[option] for option in six) for six in self.options]

    @cached_property
    def stem_words(self) -> list[frozenset[str]]:
        """(n,) the words of each stem."""
        known = {stem: self.words(fold(stem)) for stem in set(self.stems)}
        return [known[stem] for stem in self.stems]

    @cached_property
    def told_words(self) -> list[frozenset[str]]:
        """(n,) the words of the prompts up to each question's stage."""
        known = {told: self.words(fold(told)) for told in set(self.told)}
        return [known[told] for told in self.told]

    def words(self, text: str) -> frozenset[str]:
        """The words of a folded text that carry meaning."""
        found = self._words.get(text)
        if found is None:
            found = self._words[text] = frozenset(text.split()) - COMMON
        return found

    @cached_property
    def of_test(self) -> list[list[int]]:
        """The rows of each test."""
        rows: list[list[int]] = [[] for _ in range(int(self.tests[-1]) + 1)]
        for row, test in enumerate(self.tests):
            rows[test].append(row)
        return rows


def asked(bank: Bank) -> Asked:
    """The table of all questions of `bank`."""
    names, stems, options, told, whole = [], [], [], [], []
    tests, stages, right = [], [], []
    for index, test in enumerate(bank.tests):
        so_far = ""
        for at, name in enumerate(STAGES):
            stage = test.stage(name)
            so_far = f"{so_far} {stage.prompt}".lstrip()
            for question in stage.questions:
                names.append(f"{test.id}.{name}.{question.id}")
                stems.append(question.text)
                options.append(question.options)
                told.append(so_far)
                whole.append(" ".join((question.text, *sorted(question.options))))
                tests.append(index)
                stages.append(at)
                right.append(question.options.index(question.answer))
    return Asked(names, np.array(tests), np.array(stages), stems, options, np.array(right), told, whole)


class Vectors:
    """The vectors of many texts, each text embedded once."""

    def __init__(self, embed: Embed, texts: Sequence[str]) -> None:
        unique = sorted(set(texts))
        self._rows = {text: row for row, text in enumerate(unique)}
        self._vectors = embed(unique)

    def __call__(self, texts: Sequence[str]) -> Floats:
        """(n, d) of n texts among those given at the start."""
        return self._vectors[[self._rows[text] for text in texts]].astype(np.float32)


def all_texts(table: Asked) -> list[str]:
    """Every text that :mod:`deaf`, :mod:`echo` and the look for duplicate questions compare by their vectors."""
    return [*table.stems, *table.told, *table.whole, *(option for six in table.options for option in six)]
