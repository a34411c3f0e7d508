"""Each card's settings equal the paper's Appendix A, or stand here with a reason: appendix_a/NAME.toml is the table."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from torus_ray.systems import list_cards

TABLES = sorted((Path(__file__).parent / "appendix_a").glob("*.toml"))
ROWS = [(table.stem, row) for table in TABLES for row in tomllib.loads(table.read_text())["setting"]]


def card(name: str) -> dict[str, Any]:
    return tomllib.loads(list_cards()[name].read_text())


def leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    else:
        yield path


def declared(content: Mapping[str, Any]) -> set[str]:
    """The paths of all that a card declares of how the model is run."""
    found = {path for key in ("seeds", "arms", "texts") if key in content for path in leaves(content[key], key)}
    for name, host in content["hosts"].items():
        found |= set(leaves(host.get("settings", {}), f"hosts.{name}.settings"))
        for operation, head in host["heads"].items():
            found |= set(leaves(head.get("settings", {}), f"hosts.{name}.heads.{operation}.settings"))
            found |= {f"hosts.{name}.heads.{operation}.words"} & set(leaves(head, f"hosts.{name}.heads.{operation}"))
    return found


@pytest.mark.parametrize(("name", "row"), ROWS, ids=lambda value: value["path"] if isinstance(value, dict) else value)
def test_a_setting_is_the_papers_or_has_a_reason(name: str, row: dict[str, Any]) -> None:
    value: Any = card(name)
    for part in row["path"].split("."):
        value = value[part]
    assert value == row["card"]
    assert type(value) is type(row["card"])
    assert row["paper"] == row["card"] or row.get("reason"), "a value that is not the paper's stands with its reason"


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_no_setting_of_a_card_is_left_out(table: Path) -> None:
    told = [row["path"] for name, row in ROWS if name == table.stem]
    assert len(told) == len(set(told))
    assert set(told) == declared(card(table.stem))
