"""A valid bank of nonsense in which every text says where it comes from: whatever of it reaches a head can be traced.

Every field that is sealed (spec, key, seed, transcript, title, notes; numbers of the spec too) holds a token of its
own, every prompt others, every question and option others again. A head may be shown prompt tokens when it renders and
question tokens when it answers, sealed tokens never.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torus_ray.bank.schema import AUDIO_TYPES, FAMILIES, STAGES

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


@dataclass(frozen=True)
class Canary:
    """A bank in `path` and its tokens. prompts, questions: tokens by (test id, stage)."""

    path: Path
    sealed: frozenset[str]
    prompts: Mapping[tuple[str, str], frozenset[str]]
    questions: Mapping[tuple[str, str], frozenset[str]]

    def prompt_tokens(self, stage: str | None = None) -> frozenset[str]:
        """The tokens of all prompts of a stage, or of all stages."""
        return frozenset().union(*(tokens for (_, name), tokens in self.prompts.items() if stage in (None, name)))

    def question_tokens(self, stage: str | None = None) -> frozenset[str]:
        """The tokens of all questions and options of a stage, or of all stages."""
        return frozenset().union(*(tokens for (_, name), tokens in self.questions.items() if stage in (None, name)))


class _Mint:
    """Gives pronounceable tokens of 12 letters and numbers of 6 decimals, none twice."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._given: set[str] = set()

    def _fresh(self, make: Any) -> str:
        while (token := make()) in self._given:
            pass
        self._given.add(token)
        return str(token)

    def word(self, into: set[str]) -> str:
        pick = self._random.choice
        token = self._fresh(lambda: "".join(pick(CONSONANTS) + pick(VOWELS) for _ in range(6)))
        into.add(token)
        return token

    def number(self, into: set[str], low: int) -> float:
        """A number in (low, low + 1) whose digits are a token."""
        token = self._fresh(lambda: f"{low}.{self._random.randrange(100_000, 999_999) | 1}")
        into.add(token)
        return float(token)


def make_canary_bank(path: Path, tests: int = 6, seed: int = 0) -> Canary:
    """Write a bank of so many tests (types in turn) to the folder `path`; the same seed writes the same bank."""
    mint = _Mint(seed)
    sealed: set[str] = set()
    prompts: dict[tuple[str, str], set[str]] = defaultdict(set)
    questions: dict[tuple[str, str], set[str]] = defaultdict(set)
    path.mkdir(parents=True, exist_ok=True)
    card = {"name": "canary", "title": "Canary bank", "order_seed": 7, "licence": "CC0-1.0", "about": "Nonsense."}
    _write(path / "bank.json", card)
    for number in range(tests):
        test_id, audio_type = f"canary-{number:03d}", AUDIO_TYPES[number % len(AUDIO_TYPES)]
        stages = {}
        for stage in STAGES:
            visible, asked = prompts[test_id, stage], questions[test_id, stage]
            spoken = audio_type == "speech"
            stages[stage] = {
                "prompt": _prompt(mint, visible, spoken=spoken),
                "spec": _spec(mint, sealed, audio_type, kept=stage != "generation"),
                "transcript": " ".join(mint.word(sealed) for _ in range(4)) if spoken else None,
                "questions": [_question(mint, asked, sealed, index) for index in range(3)],
            }
        _share_a_question(stages, prompts=questions, test_id=test_id)
        seed_fields = ("scene", "intervention", "acoustic_outcome", "altered_attribute", "counterfactual_outcome")
        test = {
            "id": test_id,
            "audio_type": audio_type,
            "title": mint.word(sealed),
            "seed": {name: mint.word(sealed) for name in seed_fields},
            "stages": stages,
            "provenance": {"author": mint.word(sealed), "written": mint.word(sealed), "notes": mint.word(sealed)},
        }
        _write(path / f"{test_id}.json", test)
    return Canary(path, frozenset(sealed), _frozen(prompts), _frozen(questions))


def _prompt(mint: _Mint, into: set[str], *, spoken: bool) -> str:
    """About 20 words; in a speech test a quoted phrase, whose words are those of no transcript."""
    words = [mint.word(into) for _ in range(4)]
    said = f' saying "{mint.word(into)} {mint.word(into)} {mint.word(into)}"' if spoken else ""
    return (
        f"Please make a clip in which a {words[0]} meets a {words[1]} near some {words[2]}{said},"
        f" and then all of it fades into {words[3]}."
    )


def _spec(mint: _Mint, into: set[str], audio_type: str, *, kept: bool) -> dict[str, Any]:
    def word() -> str:
        return mint.word(into)

    sources = [
        {
            "what": word(),
            "onset_s": mint.number(into, onset),
            "duration_s": mint.number(into, 2),
            "level": word(),
            "place": word(),
        }
        for onset in (0, 3)
    ]
    spec: dict[str, Any] = {
        "summary": word(),
        "duration_s": mint.number(into, 8),
        "room": word(),
        "sources": sources,
        "unchanged": [word(), word()] if kept else [],
    }
    if audio_type == "speech":
        spec["voices"] = [{"who": word(), "delivery": word(), "words": f"{word()} {word()}"}]
    if audio_type == "music":
        names = ("key", "meter", "form")
        spec["music"] = {
            "tempo_bpm": mint.number(into, 96),
            "instruments": [word(), word()],
            **{name: word() for name in names},
        }
    return spec


def _question(mint: _Mint, asked: set[str], sealed: set[str], index: int) -> dict[str, Any]:
    options = [f"a {mint.word(asked)} sound" for _ in range(6)]
    return {
        "id": f"q{index + 1}",
        "family": FAMILIES[mint._random.randrange(len(FAMILIES))],
        "text": f"Which {mint.word(asked)} is heard?",
        "options": options,
        "answer": options[mint._random.randrange(6)],
        "key": {"attribute": mint.word(sealed), "value": mint.word(sealed)},
    }


def _share_a_question(stages: dict[str, Any], prompts: dict[tuple[str, str], set[str]], test_id: str) -> None:
    """Ask the edit stage's first question of the counterfactual clip too, with another right answer."""
    asked, again = (stages[name]["questions"][0] for name in ("edit", "counterfactual"))
    stale = {word for word in " ".join([again["text"], *again["options"]]).split() if len(word) == 12}
    prompts[test_id, "counterfactual"] -= stale
    shared = {word for word in " ".join([asked["text"], *asked["options"]]).split() if len(word) == 12}
    prompts[test_id, "counterfactual"] |= shared
    again["text"], again["options"] = asked["text"], list(asked["options"])
    again["answer"] = next(option for option in asked["options"] if option != asked["answer"])


def _frozen(tokens: Mapping[tuple[str, str], set[str]]) -> dict[tuple[str, str], frozenset[str]]:
    return {at: frozenset(found) for at, found in tokens.items()}


def _write(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
