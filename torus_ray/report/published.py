"""The paper's Table 2 as data: results/published/torus_table2.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torus_ray.errors import InputError

FILE = Path("published") / "torus_table2.json"


@dataclass(frozen=True)
class PublishedRow:
    """A system as printed. editing: cascade, native or self-caption. cells: by column, the text as printed or None."""

    system: str
    editing: str
    cells: Mapping[str, str | None]


@dataclass(frozen=True)
class Published:
    """The paper's table. bank: which tests it is about."""

    title: str
    bank: str
    rows: tuple[PublishedRow, ...]


def read_published() -> Published:
    """The paper's table: inside the installed package, else in the checkout. Raises InputError where it is not."""
    package = Path(__file__).resolve().parent.parent
    places = [package / "_data" / FILE, package.parent / "results" / FILE]
    place = next((place for place in places if place.is_file()), None)
    if place is None:
        raise InputError(
            "the published table is not here",
            where=", ".join(map(str, places)),
            expected="results/published/torus_table2.json, as the project has it",
            mend="leave --published out, or take the file from the project",
        )
    told = json.loads(place.read_text(encoding="utf-8"))
    rows = tuple(
        PublishedRow(
            row["system"],
            row["editing"],
            {name: cell and cell["printed"] for name, cell in row.items() if name not in ("system", "editing")},
        )
        for row in told["rows"]
    )
    return Published(told["title"], told["bank"], rows)
