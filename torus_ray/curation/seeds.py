"""Seeds: the human ideas that tests are drafted from (paper 3.2), as a JSON list or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from torus_ray.bank.schema import AudioType, Id, Seed
from torus_ray.errors import InputError

MISTAKES_TOLD = 20


class SeedEntry(Seed):
    """One seed, with the id and the audio type of the test that grows from it."""

    id: Id
    audio_type: AudioType

    @property
    def seed(self) -> Seed:
        """What the test keeps of it."""
        return Seed(**{name: getattr(self, name) for name in Seed.model_fields})


def read_seeds(path: Path) -> tuple[SeedEntry, ...]:
    """The seeds in a file, in its order. Raises InputError with every problem, a line each."""
    problems: list[str] = []
    seeds: list[SeedEntry] = []
    first: dict[str, str] = {}
    for where, value in _entries(path):
        try:
            # Through JSON: there a list or a number of the wrong kind is told apart as in a bank's files.
            seed = SeedEntry.model_validate_json(json.dumps(value))
        except ValidationError as error:
            problems += [f"{where}: {'.'.join(map(str, e['loc'])) or 'the seed'}: {e['msg']}" for e in error.errors()]
            continue
        if seed.id in first:
            problems.append(f"{where}: the id {seed.id!r} is that of {first[seed.id]} too")
        first.setdefault(seed.id, where)
        seeds.append(seed)
    if not seeds and not problems:
        problems.append("the file holds no seed")
    if problems:
        more = [f"... and {len(problems) - MISTAKES_TOLD} more"] if len(problems) > MISTAKES_TOLD else []
        raise InputError(
            "\n  ".join([f"the seeds have {len(problems)} problem(s)", *problems[:MISTAKES_TOLD], *more]),
            where=str(path),
            expected="id, audio_type and " + ", ".join(Seed.model_fields) + " in each seed, ids differing",
            mend="mend the places named; docs/curation.md has an example",
        )
    return tuple(seeds)


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """(where, value) of each seed of a JSON list, or of each line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the seeds cannot be read: {error}",
            where=str(path),
            expected="a JSON list of seeds, or one seed a line, in UTF-8",
            mend="check the path and the encoding",
        ) from error
    if text.lstrip().startswith("["):
        for number, value in enumerate(_json(text, path, 1), 1):
            yield f"seed {number}", value
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"line {number}", _json(line, path, number)


def _json(text: str, path: Path, line: int) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        at = line + error.lineno - 1 if isinstance(error, json.JSONDecodeError) else line
        raise InputError(
            f"not JSON: {error}",
            where=f"{path}:{at}",
            expected="a JSON list of seeds, or one seed a line",
            mend="look for a comma, quote or bracket there",
        ) from error
