"""What the baselines ask: the prompts and questions of a bank, read from its files without any of our own code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

STAGES = ("generation", "edit", "counterfactual")
TOLD = "told "


def read_tests(folder: Path, count: int) -> list[dict[str, Any]]:
    """{test, and of each stage its prompt and its three questions as they are sent}, for the first tests of a bank."""
    tests = []
    for file in sorted(path for path in folder.glob("[!.]*.json") if path.name != "bank.json")[:count]:
        test = json.loads(file.read_bytes())
        row: dict[str, Any] = {"test": test["id"]}
        for stage in STAGES:
            row[stage] = test["stages"][stage]["prompt"]
            row[f"{stage}_asked"] = [asked(question) for question in test["stages"][stage]["questions"]]
        tests.append(row)
    return tests


def asked(question: dict[str, Any]) -> str:
    options = "\n".join(f"{letter}. {text}" for letter, text in zip("ABCDEF", question["options"], strict=True))
    return f"{question['text']}\n{options}\nAnswer with one letter."


def tell(**found: Any) -> None:
    print(TOLD + json.dumps(found), flush=True)
