"""Each test file runs where its packages are; elsewhere it is not collected."""

from __future__ import annotations

import importlib.util

NEEDS = {
    "test_listeners.py": "transformers",
    "test_generators.py": "diffusers",
    "test_contract.py": "diffusers",
    "test_cards.py": "polars",
    "test_on_ray.py": "polars",
    "test_cascade.py": "polars",
}
collect_ignore = [file for file, package in NEEDS.items() if importlib.util.find_spec(package) is None]
