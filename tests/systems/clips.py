"""Clips and requests that adapters are tried on."""

from __future__ import annotations

from typing import Any

import numpy as np

from torus_ray.audio import Clip, decode, encode
from torus_ray.heads import AnswerRequest, CaptionRequest, EditRequest, GenerateRequest, Question

OPTIONS = ("one", "two", "three", "four", "five", "six")


def stored(seconds: float = 1.0, rate_hz: int = 44_100, channels: int = 2) -> bytes:
    """A tone as a run keeps it."""
    wave = 0.5 * np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate_hz)) / rate_hz)
    return encode(Clip(np.stack([wave] * channels), rate_hz)).data


def render(prompt: str = "a dog barks", audio_type: str = "sound", seed: int = 7, words: str | None = None) -> Any:
    return GenerateRequest("unit", prompt, audio_type, seed, words)


def edit(prompt: str, clip: bytes, audio_type: str = "sound", seed: int = 7, words: str | None = None) -> Any:
    return EditRequest("unit", prompt, clip, audio_type, seed, words)


def caption(instruction: str, clip: bytes, seed: int = 7) -> Any:
    return CaptionRequest("unit", instruction, clip, seed)


def answer(clip: bytes | None, *prompts: str, seed: int = 7) -> Any:
    return AnswerRequest("unit", tuple(Question(p, OPTIONS, p) for p in prompts), clip, seed)


def heard(result: dict[str, Any]) -> Clip:
    """The clip of a render that went well."""
    assert result["status"] == "ok", result
    return decode(result["reply"]["clip"]["data"])
