"""Spoiling a bank's files, and the problems that reading them then tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torus_ray.bank.load import BankError, Problem, load_bank

Change = Callable[[dict[str, Any]], Any]
ONE = "canary-001.json"


def change(file: Path, how: Change) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    how(content)
    file.write_text(json.dumps(content, indent=1), encoding="utf-8")


def problems(folder: Path) -> tuple[Problem, ...]:
    with pytest.raises(BankError) as caught:
        load_bank(folder)
    return caught.value.problems


def only(folder: Path) -> Problem:
    (problem,) = problems(folder)
    return problem


def first_question(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = content["stages"]["generation"]["questions"][0]
    return found


def same_question_id(content: dict[str, Any]) -> None:
    content["stages"]["edit"]["questions"][2]["id"] = "q1"
