"""A sound bank of four tests, to be spoiled."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.canary import make_canary_bank


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_canary_bank(tmp_path_factory.mktemp("bank"), tests=4).path


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "bank"))
