"""What holds for every test: those that need the Ray cluster run last (the cluster: tests/engine/conftest.py).

Also loaded inside the environments of models (tests/actors), so: pytest and the standard library only.
"""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # ray.init() would join whatever cluster this names instead of starting one for the tests
    os.environ.pop("RAY_ADDRESS", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("ray") is not None)
