"""The table of sounds (sound_catalogue.toml): how each is named, what it is like, how it is made."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from . import (
    sound_animals,
    sound_household,
    sound_impacts,
    sound_machines,
    sound_nature,
    sound_people,
    sound_signals,
)
from .sound_synth import Rng, Wave
from .sound_traits import Traits

Synth = Callable[[Traits, int, Rng], Wave]
FAMILIES: Mapping[str, ModuleType] = {
    "animals": sound_animals,
    "household": sound_household,
    "impacts": sound_impacts,
    "machines": sound_machines,
    "nature": sound_nature,
    "people": sound_people,
    "signals": sound_signals,
}


@dataclass(frozen=True)
class Source:
    """One kind of sound; its fields are explained at the head of the table.

    words: regular expressions for the ways in which English names it. synth: (traits, frames, rng) -> mono wave.
    """

    name: str
    words: tuple[str, ...]
    says: tuple[str, ...]
    synth: Synth
    kind: str
    seconds: float
    rate: float = 0.0
    many: int = 1
    once: int = 1
    loose: float = 0.03
    level_db: float = 0.0
    weak: bool = False


def _source(name: str, row: Mapping[str, Any]) -> Source:
    family, function = row["synth"].split(".")
    rest = {key: value for key, value in row.items() if key not in ("words", "says", "synth")}
    return Source(name, tuple(row["words"]), tuple(row["says"]), getattr(FAMILIES[family], function), **rest)


def _read(path: Path) -> tuple[Source, ...]:
    return tuple(_source(name, row) for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items())


CATALOGUE: tuple[Source, ...] = _read(Path(__file__).with_name("sound_catalogue.toml"))
"""Every sound, in the order of the table."""
