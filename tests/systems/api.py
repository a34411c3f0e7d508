"""A system whose listener stands behind the stand-in server: what the tests of the API heads share."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import SIMULATED, host, system
from torus_ray.engine.hosting import load_class
from torus_ray.systems import System

FOLDER = Path(__file__).parents[2] / "actors" / "openai_api"
KEY_ENV, KEY = "TORUS_TEST_KEY", "sk-test-A1b2C3d4E5f6"
PRICES = {"text_in": 2.5, "text_out": 10.0, "audio_in": 32.0, "audio_tokens_per_s": 10.0}
ANSWER = {"temperature": 0, "max_completion_tokens": 3000}


def part_of(module: str, name: str) -> Any:
    """A class or function of the adapter, from the module that a host would load."""
    return load_class(str(FOLDER), module, name)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key in its variable, and no pause between tries."""
    monkeypatch.setenv(KEY_ENV, KEY)
    module = sys.modules[part_of("calls", "Caller").__module__]
    monkeypatch.setattr(module, "pause_s", lambda attempt, chance: 0.0)


def heard_by(
    base_url: str, folder: Path, settings: Mapping[str, Any] | None = None, name: str = "heard", **operating: Any
) -> System:
    """Clips of the simulated generator, heard through the API at `base_url`; the ledger lies in `folder`."""
    listener = host(
        "caption",
        "answer",
        adapter=f"{FOLDER / 'adapter.py'}:OpenAIApi",
        style="async",
        settings={"model": "gpt-audio", "clip": {"needed": True}, **(settings or {})},
        operating={
            "base_url": base_url,
            "key_env": KEY_ENV,
            "ledger": str(folder / "ledger.jsonl"),
            "in_flight": 4,
            **operating,
        },
        heads={"answer": {"settings": ANSWER, "seeded": False}, "caption": {"settings": ANSWER, "seeded": False}},
    )
    renderer = host("generate", "edit", adapter=f"{SIMULATED}:Simulated")
    return system(folder / name, {"simulated": renderer, "listener": listener}, name=name)


def ledger(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]


def wav_of(body: Mapping[str, Any]) -> bytes:
    """The audio in the body of a request."""
    parts = [part for part in body["messages"][0]["content"] if part["type"] == "input_audio"]
    assert [part["input_audio"]["format"] for part in parts] == ["wav"]
    return base64.b64decode(parts[0]["input_audio"]["data"])


def files_with(text: str, folder: Path) -> list[str]:
    """The files under a folder that have a text in them, Parquet included."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]
