"""A Hugging Face head as a host serves it, over a checkpoint of random weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.actors.serving import head_server
from torus_ray.audio import Clip, encode
from torus_ray.engine.hosting import HeadServer
from torus_ray.heads import (
    AnswerRequest,
    CaptionRequest,
    EditRequest,
    GenerateRequest,
    Question,
)


def serve(
    folder: str, class_name: str, weights: Path, heads: Mapping[str, Mapping[str, Any]], **settings: Any
) -> HeadServer:
    """heads: operation -> its settings."""
    return head_server(folder, class_name, {"model": weights}, heads, {"dtype": "float32", **settings})


def noise(seconds: float = 1.0, rate_hz: int = 16_000, channels: int = 1, seed: int = 0) -> bytes:
    wave = 0.1 * np.random.default_rng(seed).normal(size=(channels, round(seconds * rate_hz)))
    return encode(Clip(wave.astype(np.float32), rate_hz)).data


def silence(seconds: float = 1.0) -> bytes:
    return encode(Clip(np.zeros(round(seconds * 16_000), dtype=np.float32), 16_000)).data


def generate(prompt: str = "a dog barks", seed: int = 0, words: str | None = None) -> GenerateRequest:
    return GenerateRequest("g", prompt, "sound", seed, words)


def edit(clip: bytes, prompt: str = "a dog barks louder", seed: int = 0) -> EditRequest:
    return EditRequest("e", prompt, clip, "music", seed)


def answer(clip: bytes | None, *prompts: str, seed: int = 0) -> AnswerRequest:
    options = tuple("abcdef")
    return AnswerRequest("a", tuple(Question(p, options, p) for p in prompts or ("Say A",)), clip, seed)


def caption(clip: bytes, seed: int = 0) -> CaptionRequest:
    return CaptionRequest("c", "Say the audio", clip, seed)
