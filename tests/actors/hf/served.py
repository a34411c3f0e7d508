"""A Hugging Face head as a host serves it, over a checkpoint of random weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from torus_ray.audio import Clip, encode
from torus_ray.engine.hosting import HeadServer
from torus_ray.heads import (
    AnswerRequest,
    CaptionRequest,
    EditRequest,
    GenerateRequest,
    Question,
    Request,
    request_to_wire,
)

ACTORS = Path(__file__).parents[3] / "actors"


def serve(
    folder: str, class_name: str, weights: Path, heads: Mapping[str, Mapping[str, Any]], **settings: Any
) -> HeadServer:
    """heads: operation -> its settings."""
    host = {"device": "cpu", "threads": 1, "gpu_share": 0.0, "weights": {"model": str(weights)}}
    return HeadServer(
        {
            "folder": str(ACTORS / folder),
            "module": "adapter",
            "class_name": class_name,
            "settings": {"dtype": "float32", **settings},
            "heads": dict(heads),
            "style": "batch",
            "bits": 16,
            "host": host,
        }
    )


def results(server: HeadServer, *requests: Request) -> list[dict[str, Any]]:
    """What each request of one batch came to."""
    answer = server.handle(requests[0].operation, [request_to_wire(request) for request in requests])
    assert "error" not in answer, answer["error"]["traceback"]
    found: list[dict[str, Any]] = answer["results"]
    return found


def reply(server: HeadServer, request: Request) -> dict[str, Any]:
    """The reply to a request that alone is served."""
    (result,) = results(server, request)
    assert result["status"] == "ok", result
    given: dict[str, Any] = result["reply"]
    return given


def reason(server: HeadServer, request: Request) -> str:
    """Why a request is refused."""
    (result,) = results(server, request)
    assert result["status"] == "refused", result
    return str(result["reason"])


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
