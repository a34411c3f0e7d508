"""No card claims more than the tests show, and the documentation says what the cards say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.actors.hf.test_cards import RUN_HERE
from tests.actors.test_contract import REAL, TINY
from tests.released.cases import CASES
from torus_ray.engine.environments import find_environment
from torus_ray.systems import list_cards, load_system

ROOT = Path(__file__).parents[2]
SHOWN = {**dict.fromkeys((*RUN_HERE, *TINY), "real code, tiny weights"), **dict.fromkeys(REAL, "run")}
"""Card -> how far the tests of its environment take it; every other one has its calls checked and no more."""
PAGES = ("systems.md", "model-adapters.md")
LEVEL = ("proven", "level")


def claims(page: str) -> Iterator[tuple[str, str, str]]:
    """(system, level, its row) of every table of a page that has a column for the level."""
    column: int | None = None
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        heads = [at for at, cell in enumerate(cells) if cell in LEVEL]
        if heads or not cells:
            column = heads[0] if heads else None
        elif column is not None and not line.startswith("|--"):
            for name in re.findall(r"`([^`]+)`", cells[0]):
                yield name, cells[column].strip("`"), line


CLAIMS = [claim for page in PAGES for claim in claims(page)]


@pytest.mark.parametrize("name", sorted(list_cards()))
def test_a_card_claims_what_its_tests_show(name: str) -> None:
    # The released code of some is run where its repository is at hand (python -m tests.released), not in the suite.
    shown = "real code, tiny weights" if name in CASES else SHOWN.get(name, "contract")
    assert load_system(name).card.proven == shown


def test_the_page_lists_every_card_once() -> None:
    assert sorted(name for name, _, _ in claims("systems.md")) == sorted(list_cards())


@pytest.mark.parametrize(("name", "level", "row"), CLAIMS)
def test_the_pages_say_what_the_cards_say(name: str, level: str, row: str) -> None:
    system = load_system(name)
    assert level == system.card.proven
    locks = "".join(find_environment(host.card.environment).lock_text or "" for host in system.hosts.values())
    for pin in re.findall(r"`([a-z0-9-]+==[^`]+)`", row):
        assert f"\n{pin} " in f"\n{locks}", "the version that is locked"
    record = ROOT / "tests" / "systems" / "signatures" / f"{name.partition('.')[0]}.json"
    if record.exists() and name != "cascade":
        facts = json.loads(record.read_text(encoding="utf-8"))
        assert facts["repository"] in row
        assert facts["commit"][:8] in row
        (counted,) = re.findall(r"\b(\d+) calls|\| (\d+) \|", row)
        assert int("".join(counted)) == sum(len(names) for names in facts["modules"].values())
