"""A command as it is typed, through the command line's own entry."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torus_ray.cli import _run

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Exit code, standard output and error of a command."""

    def call(*words: object) -> tuple[int, str, str]:
        code = _run([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return call
