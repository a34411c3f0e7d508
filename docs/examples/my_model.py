"""The smallest model that goes through the whole protocol: a tone for each prompt, ears that know loud from soft."""

import zlib

import numpy as np

from torus_ray.audio import Clip
from torus_ray.heads import Model

RATE_HZ = 16_000


class MyModel(Model):
    batch_invariant = True

    def load(self, host):
        self.seconds = np.arange(2 * RATE_HZ) / RATE_HZ

    def generate(self, requests):
        return [request.reply(self.tone(request.prompt, request.seed)) for request in requests]

    def edit(self, requests):
        return [request.reply(Clip(request.clip.wave * 0.5, request.clip.rate_hz)) for request in requests]

    def caption(self, requests):
        return [request.reply("A loud tone." if self.loud(request.clip) else "A soft tone.") for request in requests]

    def answer(self, requests):
        return [request.reply([self.letter(request.clip) for _ in request.questions]) for request in requests]

    def letter(self, clip):
        return "A" if self.loud(clip) else "B"

    def tone(self, prompt, seed):
        pitch_hz = 200 + zlib.crc32(f"{seed} {prompt}".encode()) % 800
        return Clip(0.4 * np.sin(2 * np.pi * pitch_hz * self.seconds), RATE_HZ)

    def loud(self, clip):
        return float(np.abs(clip.wave).max()) > 0.3
