"""`torus new`: a system of your own to start from, which passes its contract as it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from torus_ray.errors import InputError

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MOST_LETTERS = 40

FILES: Mapping[str, str] = {
    "adapter/adapter.py": "adapter.py.txt",
    "$name.system.toml": "card.toml.txt",
    "$name-env.toml": "env.toml.txt",
    "test_contract.py": "test_contract.py.txt",
}
"""Where each template goes. The adapter has a folder to itself: all that lies in it is part of the head's identity."""


def new(
    name: Annotated[str, typer.Argument(help="Small letters, digits and dashes.", metavar="SYSTEM")],
    folder: Annotated[Path | None, typer.Option(help="Where to write it; ./SYSTEM where nothing is said.")] = None,
) -> int:
    """Write a system to start from: adapter, card, environment, contract test. It runs as it is."""
    place = folder or Path(name)
    written = write_system(name, place)
    for path in written:
        print(path)
    card = place / f"{name}.system.toml"
    print(f"it runs: `torus run {_shown(card)} --limit 2`; its contract: `torus check {_shown(card)}`")
    return 0


def write_system(name: str, folder: Path) -> list[Path]:
    """The files of a new system. Raises InputError for a bad name, and for a folder that has something in it."""
    from importlib import resources
    from importlib.metadata import version

    if not NAME.fullmatch(name) or len(name) > MOST_LETTERS:
        raise InputError(
            f"{name!r} is no name for a system",
            where="the command line",
            expected=f"small letters, digits and single dashes, {MOST_LETTERS} at most",
            mend="e.g. `torus new my-model`",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} is there already",
            where=str(folder.absolute()),
            expected="a folder that is empty, or not there",
            mend="choose another name, or another place with --folder",
        )
    words = {
        "name": name,
        "title": " ".join(part.capitalize() for part in name.split("-")),
        "class_name": _class_name(name),
        "ray": version("ray"),
    }
    templates = resources.files("torus_ray.cli").joinpath("templates")
    written = []
    try:
        for target, source in FILES.items():
            path = folder / Template(target).substitute(words)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = templates.joinpath(source).read_text(encoding="utf-8")
            path.write_text(Template(text).substitute(words), encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise InputError(
            f"the system cannot be written: {error.strerror or error}",
            where=str(folder.absolute()),
            expected="a place that can be written",
            mend="choose another with --folder",
        ) from error
    return written


def _class_name(name: str) -> str:
    joined = "".join(part.capitalize() for part in name.split("-"))
    return joined if joined.isidentifier() else f"Model{joined}"


def _shown(path: Path) -> str:
    """A path that the command line takes for one, not for a name."""
    return str(path) if path.is_absolute() else f"./{path}"
