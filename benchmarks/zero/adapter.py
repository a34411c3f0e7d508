"""Heads that cost nothing: what a run takes with them is the engine's own work (benchmarks/overhead.py, memory.py).

A clip is one and the same sound but for its first samples, which number it; every question is answered A.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from torus_ray.audio import Clip
from torus_ray.heads import Model

NUMBERED = 4
"""Samples that hold a clip's number, 15 bits each."""


class Zero(Model):
    """clips: how many different clips there are; 0: one for each prompt. frames, rate_hz: their length.

    noise: clips of noise, which FLAC cannot shrink. batch: the largest batch of every head.
    """

    batch_invariant = True

    def __init__(
        self, clips: int = 0, frames: int = 1_600, rate_hz: int = 8_000, noise: bool = False, batch: int = 32
    ) -> None:
        self.max_batch = {name: batch for name in ("generate", "edit", "caption", "answer")}
        self.clips = clips
        self.rate_hz = rate_hz
        sound = np.random.default_rng(0).uniform(-0.5, 0.5, frames) if noise else np.sin(np.arange(frames) / 8) / 3
        self.sound = sound.astype(np.float32)
        self.made: dict[int, Clip] = {}

    def generate(self, requests: list[Any]) -> list[Any]:
        return [request.reply(self._clip(zlib.crc32(request.prompt.encode()))) for request in requests]

    edit = generate

    def caption(self, requests: list[Any]) -> list[Any]:
        return [request.reply("a tone") for request in requests]

    def answer(self, requests: list[Any]) -> list[Any]:
        return [request.reply(["A"] * len(request.questions)) for request in requests]

    def _clip(self, number: int) -> Clip:
        if not self.clips:
            return self._numbered(number)
        number %= self.clips
        if number not in self.made:
            self.made[number] = self._numbered(number)
        return self.made[number]

    def _numbered(self, number: int) -> Clip:
        sound = self.sound.copy()
        sound[:NUMBERED] = [(number >> 15 * place & 0x7FFF) / 32_768 for place in range(NUMBERED)]
        return Clip(sound, self.rate_hz)
