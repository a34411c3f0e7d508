"""The docs are true: the example model runs, every command in them exists with the options that it is shown with."""

from __future__ import annotations

import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from torus_ray.cli import _run
from torus_ray.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@cache
def command_tree() -> Any:
    return typer.main.get_command(app)  # of typer's own click, not of the package


def commands() -> list[tuple[str, str]]:
    """Every line of a code block that starts with `torus`, with the page that it stands on."""
    found = []
    for page in PAGES:
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            for line in block.splitlines():
                if line.startswith("torus "):
                    found.append((page.name, re.sub(r"\s+#.*", "", line)))
    return found


@pytest.mark.parametrize(("page", "line"), commands())
def test_a_command_of_the_docs_is_understood(page: str, line: str) -> None:
    command = command_tree()
    words = shlex.split(line)[1:]
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        name = words.pop(0)
        assert name in command.commands, f"{page}: no command {name}"
        command = command.commands[name]
    command.make_context("torus", words)  # raises UsageError for what it does not know


def test_the_docs_show_commands() -> None:
    assert len(commands()) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_the_docs_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(((?!https?:)[^)#]+)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_the_example_model_goes_through_the_whole_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    model = f"{ROOT / 'docs' / 'examples' / 'my_model.py'}:MyModel"
    words = ["run", "--inline", "--json", "--limit", "2", "--model", model, "--results", str(tmp_path)]
    assert _run(words) == 0
    (system,) = json.loads(capsys.readouterr().out)["systems"]
    assert system["units"] == {"ok": system["computed"]}
    assert set(system["runs"]) == {"native", "self-caption"}
    (line,) = (line for _, line in commands() if line.startswith("torus show /tmp/trying"))
    assert _run(shlex.split(line.replace("/tmp/trying", str(tmp_path)))[1:]) == 0
