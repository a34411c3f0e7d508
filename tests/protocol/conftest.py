from __future__ import annotations

import pytest

from tests.engine.systems import canary_bank
from torus_ray.bank.load import Bank


@pytest.fixture(scope="session")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    """Six tests, two of each type, in turn: speech, sound, music."""
    return canary_bank(tmp_path_factory.mktemp("canary") / "bank")
