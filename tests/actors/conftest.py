"""The Ray cluster that these tests share where they run on it, which is in the project's own environment."""

from __future__ import annotations

import importlib.util

collect_ignore = []
if importlib.util.find_spec("polars") is None:
    collect_ignore.append("test_contract.py")
else:
    from tests.engine.conftest import ray_address, ray_cluster  # noqa: F401
