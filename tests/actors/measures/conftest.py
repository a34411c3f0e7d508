"""Each test file runs where the packages of its head are; elsewhere it is not collected."""

from __future__ import annotations

import importlib.util

import pytest

NEEDS = {
    "test_whisper.py": "whisper",
    "test_clap.py": "transformers",
    "test_passt.py": "hear21passt",
    "test_vggish.py": "torch",
    "test_parity.py": "laion_clap",
    "test_cards.py": "polars",
    "test_on_ray.py": "polars",
}
collect_ignore = [file for file, package in NEEDS.items() if importlib.util.find_spec(package) is None]


@pytest.fixture(autouse=True)
def _own_records(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Self-tests of tiny random weights leave nothing in the user's records."""
    monkeypatch.setenv("TORUS_SELF_TESTS", str(tmp_path_factory.getbasetemp() / "self-tests"))
