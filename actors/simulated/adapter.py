"""A system that computes nothing: declared latencies, batch curves and faults, for benchmarks and fault tests only.

Replies are functions of the request alone: a tone whose pitch comes from the prompt, a letter from the question.
Faults too: which requests fail, hang or end their process is decided by a hash of the request, so that a run can be
repeated.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from torus_ray.audio import Clip
from torus_ray.heads import Model

RATE_HZ = 16_000
LETTERS = "ABCDEF"


class Simulated(Model):
    """latency_s: seconds a batch takes, {operation: [base, per request]}; nothing said is 0.

    max_batch: as a model declares it. clip_s: length of a clip in seconds. noise: clips of noise, which FLAC cannot
    shrink.
    faults: share of requests by kind, each a number from 0 to 1: `raise`, `hang`, `die`, `nan`, `empty`, `few`,
    `order`. A fault hits every try of its request, `flaky_raise` and `flaky_die` only the first in each process's
    file `flaky_folder`.
    """

    batch_invariant = True

    def __init__(
        self,
        latency_s: Optional[Mapping[str, Sequence[float]]] = None,
        max_batch: Optional[Mapping[str, int]] = None,
        clip_s: float = 0.2,
        noise: bool = False,
        faults: Optional[Mapping[str, float]] = None,
        flaky_folder: str = "",
        load_s: float = 0.0,
        letter: str = "",
    ) -> None:
        self.latency_s = dict(latency_s or {})
        self.max_batch = dict(max_batch or {})
        self.clip_s = clip_s
        self.noise = noise
        self.faults = dict(faults or {})
        self.flaky_folder = flaky_folder
        self.load_s = load_s
        self.letter = letter

    def load(self, host: Any) -> None:
        time.sleep(self.load_s)

    def generate(self, requests: List[Any]) -> List[Any]:
        return self._serve("generate", requests)

    def edit(self, requests: List[Any]) -> List[Any]:
        return self._serve("edit", requests)

    def caption(self, requests: List[Any]) -> List[Any]:
        return self._serve("caption", requests)

    def answer(self, requests: List[Any]) -> List[Any]:
        return self._serve("answer", requests)

    def _serve(self, operation: str, requests: List[Any]) -> List[Any]:
        time.sleep(self.seconds(operation, len(requests)))
        return self.replies(requests)

    def replies(self, requests: List[Any]) -> List[Any]:
        """The replies, or the faults, without the time that they take."""
        for request in requests:
            self._strike(request)
        return self._faulty([request.reply(self._content_of(request)) for request in requests], requests)

    # --- replies --------------------------------------------------------------------------------------------------

    def _content_of(self, request: Any) -> Any:
        if request.operation == "generate":
            return self._clip(request.prompt, request.seed)
        if request.operation == "edit":
            return self._edited(request.clip, request.prompt)
        if request.operation == "caption":
            return 'A tone, %d samples; a voice says "again".' % request.clip.frames
        return [self._letter(question.prompt, request.clip_bytes) for question in request.questions]

    def _clip(self, prompt: str, seed: int) -> Clip:
        frames = int(self.clip_s * RATE_HZ)
        random = np.random.default_rng(_number(prompt, seed))
        if self.noise:
            return Clip(random.uniform(-0.5, 0.5, frames), RATE_HZ)
        return Clip(0.3 * np.sin(2 * np.pi * random.uniform(200, 2000) * np.arange(frames) / RATE_HZ), RATE_HZ)

    def _edited(self, clip: Clip, prompt: str) -> Clip:
        return Clip(np.roll(clip.wave, _number(prompt) % clip.frames, axis=1) * 0.9, clip.rate_hz)

    def _letter(self, prompt: str, clip: Optional[bytes]) -> str:
        return self.letter or LETTERS[_number(prompt, hashlib.sha256(clip or b"").hexdigest()) % len(LETTERS)]

    # --- time and faults ------------------------------------------------------------------------------------------

    def seconds(self, operation: str, count: int) -> float:
        """How long a batch of `count` takes."""
        base, each = self.latency_s.get(operation, (0.0, 0.0))
        return float(base + each * count)

    def _strike(self, request: Any) -> None:
        kind = self._fault_of(request)
        if kind == "raise" or (kind == "flaky_raise" and self._first_time(request)):
            raise RuntimeError("a simulated fault")
        if kind == "hang":
            time.sleep(3_600)
        if kind == "die" or (kind == "flaky_die" and self._first_time(request)):
            os._exit(1)

    def _faulty(self, replies: List[Any], requests: List[Any]) -> List[Any]:
        kinds = [self._fault_of(request) for request in requests]
        for place, (request, kind) in enumerate(zip(requests, kinds)):
            if kind in ("nan", "empty") and request.operation in ("generate", "edit"):
                wave = np.full(100, np.nan) if kind == "nan" else np.zeros(0)
                replies[place] = request.reply(Clip(wave, RATE_HZ))
        if "few" in kinds:
            return replies[:-1]
        if "order" in kinds:
            return replies[::-1]
        return replies

    def _fault_of(self, request: Any) -> str:
        """Which fault this request has, the same at every try; "" for none."""
        place = _number("fault", _content(request)) % 1_000_000 / 1_000_000
        for kind, share in self.faults.items():
            if place < share:
                return kind
            place -= share
        return ""

    def _first_time(self, request: Any) -> bool:
        path = os.path.join(self.flaky_folder, "%x" % _number(_content(request)))
        if os.path.exists(path):
            return False
        open(path, "w").close()
        return True


class SimulatedAsync(Model):
    """The same replies as coroutines: many requests in flight, each taking its time alone."""

    style = "async"
    batch_invariant = True

    def __init__(self, max_in_flight: int = 16, **settings: Any) -> None:
        self.max_in_flight = max_in_flight
        self._inner = Simulated(**settings)

    async def generate(self, request: Any) -> Any:
        return await self._reply("generate", request)

    async def edit(self, request: Any) -> Any:
        return await self._reply("edit", request)

    async def caption(self, request: Any) -> Any:
        return await self._reply("caption", request)

    async def answer(self, request: Any) -> Any:
        return await self._reply("answer", request)

    async def _reply(self, operation: str, request: Any) -> Any:
        await asyncio.sleep(self._inner.seconds(operation, 1))
        return self._inner.replies([request])[0]


def _number(*parts: Any) -> int:
    return int(hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:12], 16)


def _content(request: Any) -> str:
    fields: Dict[str, Any] = {
        name: getattr(request, name) for name in request.__dataclass_fields__ if name not in ("id", "clip_bytes")
    }
    return request.operation + repr(sorted(fields.items()))
