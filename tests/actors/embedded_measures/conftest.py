"""The two embedded heads, loaded once; in the pocket environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "actors" / "embedded_measures"


def load(name: str) -> Any:
    from torus_ray.engine.hosting import load_class
    from torus_ray.heads import Host

    model = load_class(str(FOLDER), "adapter", name)()
    model.load(Host())
    return model


@pytest.fixture(scope="session")
def tagger() -> Any:
    return load("Tagger")


@pytest.fixture(scope="session")
def recogniser() -> Any:
    return load("Recogniser")
