"""A model without a mind: the same request always gets the same clip, caption or letter."""

from __future__ import annotations

import zlib

import numpy as np

from torus_ray.audio import Clip
from torus_ray.heads import Model

RATE_HZ = 8000


def tone(words: str, level: float = 0.3) -> Clip:
    """A quarter of a second of a tone that the words decide."""
    hertz = 200 + zlib.crc32(words.encode()) % 800
    return Clip((level * np.sin(2 * np.pi * hertz * np.arange(RATE_HZ // 4) / RATE_HZ)).astype(np.float32), RATE_HZ)


def reply(prompt: str) -> str:
    return "ABCDEF"[zlib.crc32(prompt.encode()) % 6]


def caption(clip: Clip) -> str:
    return f'a tone of {clip.frames} samples that says "hello"'


class Toy(Model):
    def generate(self, requests):
        return [request.reply(tone(request.prompt)) for request in requests]

    def edit(self, requests):
        return [request.reply(tone(request.prompt, 0.2)) for request in requests]

    def caption(self, requests):
        return [request.reply(caption(request.clip)) for request in requests]

    def answer(self, requests):
        return [request.reply([reply(question.prompt) for question in request.questions]) for request in requests]
