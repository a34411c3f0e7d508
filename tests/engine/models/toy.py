"""A model of tones for the tests of the engine: quick, the same for the same request, with faults where told."""

from __future__ import annotations

import asyncio
import os
import time
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from torus_ray.audio import Clip
from torus_ray.heads import Model, Refused, request_to_wire

RATE_HZ = 16_000
FRAMES = 3_200


class Toy(Model):
    """faults: what happens to a request whose prompt, question or measure holds a text, {text: kind}; kinds are told of
    below, a kind that starts with `once_` happens at the first try only. latency_s: seconds a request. flaky: a folder
    that remembers first tries. record: a folder for every request as it came. accent: changes what is said. load_fault:
    what happens in `load`. numpy: the major version of numpy that `load` insists on.
    """

    batch_invariant = True

    def __init__(
        self,
        faults: Mapping[str, str] | None = None,
        max_batch: Mapping[str, int] | None = None,
        latency_s: float = 0.0,
        load_s: float = 0.0,
        flaky: str = "",
        record: str = "",
        accent: str = "",
        load_fault: str = "",
        numpy: int = 0,
    ) -> None:
        self.faults = dict(faults or {})
        self.max_batch = dict(max_batch or {})
        self.latency_s, self.load_s, self.load_fault = latency_s, load_s, load_fault
        self.flaky, self.record, self.accent, self.numpy = flaky, record, accent, numpy

    def load(self, host: Any) -> None:
        time.sleep(self.load_s)
        if self.load_fault == "raise":
            raise OSError("no weights at /nowhere/toy.bin")
        if self.load_fault == "exit":
            raise SystemExit("the toy library wants to leave")
        if self.load_fault == "die":
            os._exit(1)
        if self.numpy and int(np.__version__.split(".")[0]) != self.numpy:
            raise ImportError(f"wanted numpy {self.numpy}, got {np.__version__}")

    def generate(self, requests: list[Any]) -> Any:
        return self._serve(requests)

    def edit(self, requests: list[Any]) -> Any:
        return self._serve(requests)

    def caption(self, requests: list[Any]) -> Any:
        return self._serve(requests)

    def answer(self, requests: list[Any]) -> Any:
        return self._serve(requests)

    def measure(self, requests: list[Any]) -> Any:
        return self._serve(requests)

    def _serve(self, requests: list[Any]) -> Any:
        time.sleep(self.latency_s * len(requests))
        return self.replies(requests)

    def replies(self, requests: list[Any]) -> Any:
        kinds = []
        for request in requests:
            self._write_down(request)
            kinds.append(self._fault_of(request))
            _strike(kinds[-1])
        replies = [request.reply(self._content(request, kind)) for request, kind in zip(requests, kinds, strict=True)]
        if "few" in kinds:
            return replies[:-1]
        if "order" in kinds:
            return replies[::-1]
        if "text" in kinds:
            return ["A" for _ in replies]
        return replies

    def _content(self, request: Any, kind: str) -> Any:
        if request.operation == "measure":
            return _measured(request, kind)
        if kind == "nan":
            return Clip(np.full(FRAMES, np.nan), RATE_HZ)
        if kind == "empty":
            return Clip(np.zeros(0), RATE_HZ)
        if request.operation == "generate":
            pitch = 200 + zlib.crc32(f"{request.prompt} {request.seed}".encode()) % 800
            return Clip(0.3 * np.sin(2 * np.pi * pitch * np.arange(FRAMES) / RATE_HZ), RATE_HZ)
        if request.operation == "edit":
            return Clip(np.roll(request.clip.wave, zlib.crc32(request.prompt.encode()) % FRAMES), RATE_HZ)
        if request.operation == "caption":
            heard = zlib.crc32(request.clip_bytes)
            return f'A tone{self.accent} of {request.clip.frames} samples, {heard}; a voice says "hello".'
        heard = zlib.crc32(request.clip_bytes or b"")
        return [self.accent + "ABCDEF"[zlib.crc32(q.prompt.encode(), heard) % 6] for q in request.questions]

    def _fault_of(self, request: Any) -> str:
        questions = getattr(request, "questions", ())
        texts = [getattr(request, "prompt", ""), getattr(request, "measure", "")] + [
            question.text for question in questions
        ]
        for text, kind in self.faults.items():
            if not any(text in heard for heard in texts):
                continue
            if not kind.startswith("once_"):
                return kind
            mark = os.path.join(self.flaky, f"{zlib.crc32(text.encode()):x}")
            if not os.path.exists(mark):
                open(mark, "w").close()
                return kind[len("once_") :]
        return ""

    def _write_down(self, request: Any) -> None:
        if self.record:
            wire: dict[str, Any] = request_to_wire(request)
            with open(os.path.join(self.record, f"{os.getpid()}.txt"), "a", encoding="utf-8") as file:
                file.write(repr(wire) + "\n")


class ToyAsync(Toy):
    """The same as coroutines over one request."""

    style = "async"
    max_in_flight = 3

    async def _serve(self, request: Any) -> Any:
        if "hang" in self.faults.values() and self._fault_of(request) == "hang":
            await asyncio.sleep(3_600)
        await asyncio.sleep(self.latency_s)
        return self.replies([request])[0]


def _measured(request: Any, kind: str) -> dict[str, Any]:
    """Of any clip: a text, frames of 8 class scores, a vector of 4, scores of speech, music, sound and noise."""
    if kind == "nan":
        return {"values": [1.0, float("nan")]}
    if kind == "ragged":
        return {"values": [[1.0], [1.0, 2.0]]}
    rng = np.random.default_rng(zlib.crc32(request.clip_bytes))
    made: dict[str, dict[str, Any]] = {
        "toy-words": {"text": f"the tone says {rng.integers(9)}"},
        "toy8": {"values": rng.standard_normal((3, 8)).tolist(), "flags": ["padded"]},
        "toy-vector": {"values": rng.standard_normal(4).tolist(), "peak": float(np.abs(request.clip.wave).max())},
        "toy4": {"values": rng.random(4).tolist()},
    }
    return made[request.measure]


def _strike(kind: str) -> None:
    if kind == "raise":
        raise RuntimeError("a toy fault")
    if kind == "refuse":
        raise Refused("too_hard", "the toy does not do this")
    if kind == "exit":
        raise SystemExit(3)
    if kind == "hang":
        time.sleep(3_600)
    if kind == "die":
        os._exit(1)
