"""The versioned prompts, files beside this module: what the system says above a line of dashes, what the user says
below. A prompt is part of its request, so of its key: a changed one is a new version."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template
from typing import Any

VERSIONS = {
    "architect": "v1",
    "author": "v1",
    "repair_options": "v1",
    "repair_question": "v1",
    "reask": "v1",
    "ideal": "v1",
    "muted": "v1",
}


@dataclass(frozen=True)
class Prompt:
    """One prompt. version: such as architect.v1. system: "" where there is none."""

    version: str
    system: str
    user: str

    def filled(self, **values: str) -> str:
        """What the user says, its $names filled in. Raises KeyError for one that is missing."""
        return Template(self.user).substitute(values)

    def messages(self, **values: str) -> tuple[dict[str, Any], ...]:
        """The conversation so far."""
        system = ({"role": "system", "content": self.system},) if self.system else ()
        return *system, {"role": "user", "content": self.filled(**values)}


@cache
def prompt(name: str) -> Prompt:
    """The prompt of that name in the version in force."""
    version = f"{name}.{VERSIONS[name]}"
    text = resources.files("torus_ray.curation").joinpath("prompts", f"{version}.txt").read_text(encoding="utf-8")
    system, _, user = f"\n{text}".partition("\n---\n")
    return Prompt(version, system.strip(), user.strip())
