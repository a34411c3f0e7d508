"""A scripted author and scripted solvers for the stand-in server: five small tests of sound, with faults put in.

The solvers go by marks in the options, so that each way through the gate is taken: a muted solver is drawn to an option
with "plainly" in it, an ideal one misses a right option with "somehow" in it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tests.standin.openai_server import Reply

STAGES = ("generation", "edit", "counterfactual")
FAMILIES = ("temporal_ordering", "source_composition", "scene_acoustics")
PLACES = ("shed", "barn", "attic", "yard", "vault")
COUNTS = ("Two", "Three", "Four", "Five", "Six", "Seven")
KINDS = ("Dull bump", "Thin squeak", "Clear ring", "Coarse rasp", "Wet slosh", "Tight buzz")
ROOMS = ("Small closet", "Wide field", "Tiled bath", "Stone hall", "Long pipe", "Plush salon")

LEAKS = {(0, "generation", "q1"): 1, (1, "edit", "q2"): 2, (2, "counterfactual", "q1"): 3}
"""(take, stage, question) -> the round from which the leak is mended; 3: never. The right option is "plainly" so."""
VAGUE = {(3, "generation", "q2"): 1}
"""The same for questions that the specification does not decide."""


def seed(take: int) -> dict[str, str]:
    return {
        "id": f"take-{take}",
        "audio_type": "sound",
        "scene": f"Take {take}: somebody works in a {PLACES[take]}.",
        "intervention": "A second tool joins in.",
        "acoustic_outcome": "A lighter sound comes between the strokes.",
        "altered_attribute": "the place",
        "counterfactual_outcome": "The same strokes elsewhere.",
    }


def architecture(take: int) -> dict[str, Any]:
    prompts = {
        "generation": f"Late in the evening somebody in the old {PLACES[take]} goes on with the work of the day, one "
        f"stroke after the other, patient and steady, take {take}.",
        "edit": f"Let a neighbour with a lighter tool help out for a while between the strokes, and leave everything "
        f"else as it was before, take {take}.",
        "counterfactual": f"Imagine the two of them had carried the bench to another place before they began with any "
        f"of it, take {take}.",
    }
    return {
        "title": f"Work in the {PLACES[take]}",
        "stages": {name: _stage(take, name, prompts[name]) for name in STAGES},
    }


def _stage(take: int, name: str, prompt: str) -> dict[str, Any]:
    source = {"what": "strokes", "onset_s": 0.5, "duration_s": 6.0, "level": "medium", "place": "close"}
    spec = {
        "summary": f"{name} of take {take}",
        "duration_s": 8.0,
        "room": "as told",
        "sources": [source],
        "voices": [],
        "music": None,
        "unchanged": [] if name == "generation" else ["the strokes"],
    }
    return {"prompt": prompt, "spec": spec, "transcript": None}


def options_of(take: int, stage: str, question: str, round_: int) -> tuple[tuple[str, ...], str]:
    """The six options of a question and the right one, after `round_` repair rounds."""
    at = STAGES.index(stage)
    kinds, right = {
        "q1": (COUNTS, (take + at) % 6),
        "q2": (KINDS, (take + 2 * at + 1) % 6),
        "q3": (ROOMS, (take + (at == 2) + 3) % 6),
    }[question]
    mark = ""
    if round_ < LEAKS.get((take, stage, question), 0):
        mark = " plainly"
    if round_ < VAGUE.get((take, stage, question), 0):
        mark = " somehow"
    suffix = f", version {round_}" if round_ else ""
    options = tuple(f"{kind}{mark if i == right else ''}{suffix}" for i, kind in enumerate(kinds))
    return options, options[right]


def question(take: int, stage: str, number: int, round_: int = 0) -> dict[str, Any]:
    name = f"q{number}"
    options, answer = options_of(take, stage, name, round_)
    # The third question is asked of the edit and the counterfactual alike.
    text = {
        "q1": f"How often is the {stage} stroke heard?",
        "q2": f"What is the {stage} stroke like?",
        "q3": "What space does the clip suggest?" if stage != "generation" else "Where do the strokes sound?",
    }[name]
    return {
        "family": FAMILIES[number - 1],
        "text": text,
        "options": list(options),
        "answer": answer,
        "key": {"attribute": name, "value": answer},
    }


def questions(take: int) -> dict[str, Any]:
    return {stage: [question(take, stage, number) for number in (1, 2, 3)] for stage in STAGES}


def role_of(body: Mapping[str, Any]) -> str:
    """Which prompt a request is of."""
    first = body["messages"][0]
    text, last = first["content"], body["messages"][-1]["content"]
    if isinstance(text, list):
        return "muted"
    if first["role"] == "user":
        return "muted"
    user = body["messages"][1]["content"]
    marks = (
        ("architect", "Test Architect" in text),
        ("repair_options", "Rewrite the options only" in user),
        ("repair_question", "First diagnose" in user),
        ("author", "Question Author" in text),
        ("ideal", "exact description" in text),
    )
    assert isinstance(last, str)
    return next(role for role, fits in marks if fits)


def asked_again(body: Mapping[str, Any]) -> bool:
    return str(body["messages"][-1]["content"]).startswith("That reply cannot be used")


class Scripted:
    """The script: what is asked for, unless `faults` has something else for a (role, take) or a role, used up in turn.

    counts: requests by role.
    """

    def __init__(self, faults: Mapping[tuple[str, int], list[Reply | str]] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self._faults = {place: list(replies) for place, replies in (faults or {}).items()}
        self._makers: Mapping[str, Callable[[str], str]] = {
            "architect": lambda text: json.dumps(architecture(_take(text))),
            "author": lambda text: json.dumps(questions(_take(text))),
            "repair_options": lambda text: _repaired(text, 1),
            "repair_question": lambda text: _repaired(text, 2),
            "ideal": _ideal,
            "muted": _muted,
        }

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        role = role_of(body)
        self.counts[role] += 1
        text = _text(body)
        if role != "muted":
            waiting = self._faults.get((role, _take(text)))
            if waiting:
                return waiting.pop(0)
        return self._makers[role](text)


def _text(body: Mapping[str, Any]) -> str:
    contents = [message["content"] for message in body["messages"] if message["role"] == "user"]
    first = contents[0]
    return first if isinstance(first, str) else next(part["text"] for part in first if part["type"] == "text")


def _take(text: str) -> int:
    found = re.search(r"[Tt]ake (\d)", text)
    assert found, text
    return int(found[1])


def _place(text: str) -> tuple[int, str]:
    found = re.search(r"(generation|edit|counterfactual) of take (\d)", text)
    assert found, text
    return int(found[2]), found[1]


def _shown(text: str) -> dict[str, str]:
    """Letter by option text."""
    return {option: letter for letter, option in re.findall(r"^([A-F])\. (.+)$", text, re.MULTILINE)}


def _number(options: Mapping[str, str]) -> str:
    return next(
        name
        for name, kinds in (("q1", COUNTS), ("q2", KINDS), ("q3", ROOMS))
        if all(any(option.startswith(kind) for kind in kinds) for option in options)
    )


def _right(text: str, options: Mapping[str, str]) -> str:
    """The right one of the options shown, whatever round they are of."""
    take, stage = _place(text)
    return next(
        answer for round_ in (0, 1, 2) if (answer := options_of(take, stage, _number(options), round_)[1]) in options
    )


def _ideal(text: str) -> str:
    options = _shown(text)
    right = _right(text, options)
    return next(letter for option, letter in options.items() if (option == right) != ("somehow" in right))


def _muted(text: str) -> str:
    """Drawn to what is plainly so; else to a wrong one, as luck has it: the script, not the solver, knows which."""
    options = _shown(text)
    drawn = [letter for option, letter in options.items() if "plainly" in option]
    return drawn[0] if drawn else "I cannot hear anything."


def _repaired(text: str, round_: int) -> str:
    options = _shown(text)
    take, stage = _place(text)
    number = _number(options)
    new, answer = options_of(take, stage, number, round_)
    reply: dict[str, Any] = {"options": list(new), "answer": answer}
    if round_ == 2:
        found = re.search(r"^The question: (.+)$", text, re.MULTILINE)
        assert found
        reply |= {"diagnosis": "one option is so plainly", "text": found[1].replace("?", " now?")}
    return json.dumps(reply)
