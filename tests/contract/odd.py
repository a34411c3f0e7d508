"""A model that keeps the contract, and breaks one part of it on demand."""

import os
import zlib

import numpy as np

from torus_ray.audio import Clip, mono
from torus_ray.heads import Model, Refused

RATE_HZ = 16_000


class Odd(Model):
    batch_invariant = True

    def __init__(self, fault=""):
        self.max_batch = {"generate": 4, "answer": 4}
        self.fault = fault
        self.kept = []
        self.calls = 0

    def generate(self, requests):
        if self.fault == "batch raises" and len(requests) > 1:
            raise RuntimeError("too many")
        replies = [request.reply(self.rendered(request, len(requests))) for request in requests]
        return replies[::-1] if self.fault == "out of order" else replies

    def rendered(self, request, beside):
        self.calls += 1
        seed = 0 if self.fault == "deaf to the seed" else request.seed
        if self.fault == "draws for itself":
            seed = int.from_bytes(os.urandom(4), "little")
        level = 0.0 if self.fault == "silent" else 0.3 / (beside if self.fault == "depends on the batch" else 1)
        pitch_hz = 200 + zlib.crc32(f"{seed} {request.prompt.strip()}".encode()) % 800
        seconds = 0.05 if self.fault == "too short" else 0.5
        wave = level * np.sin(2 * np.pi * pitch_hz * np.arange(int(seconds * RATE_HZ)) / RATE_HZ)
        return Clip(wave * (9 if self.fault == "too loud" else 1), RATE_HZ)

    def edit(self, requests):
        return [request.reply(self.edited(request)) for request in requests]

    def edited(self, request):
        clip = request.clip
        if self.fault == "one rate" and clip.rate_hz != 24_000:
            raise ValueError("24 kHz, please")
        if self.fault == "divides by the peak":
            with np.errstate(invalid="ignore"):
                return Clip(clip.wave / np.abs(clip.wave).max(), clip.rate_hz)
        if self.fault == "no short clips" and clip.duration_s < 1:
            raise IndexError("no frames")
        if self.fault == "no long clips" and clip.duration_s > 30:
            raise ValueError("at most 30 s")
        if self.fault == "declines long clips" and clip.duration_s > 30:
            raise Refused("clip_too_long")
        return Clip(clip.wave * 0.5, clip.rate_hz)

    def caption(self, requests):
        if self.fault == "leaks":
            self.kept.append(np.ones(1 << 19))
        return [
            request.reply("" if self.fault == "speechless" else self.described(request.clip)) for request in requests
        ]

    def described(self, clip):
        loud = float(np.abs(mono(clip, RATE_HZ)).max(initial=0.0)) > 0.2
        return "A loud tone." if loud else "A soft tone."

    def answer(self, requests):
        return [request.reply([self.letter(request) for _ in request.questions]) for request in requests]

    def letter(self, request):
        if self.fault == "no letter":
            return "I would rather not say which of them it is."
        if self.fault == "broken for ever" and self.kept:
            raise RuntimeError("still broken")
        try:
            return "A" if self.described(request.clip) == "A loud tone." else "B"
        except Exception:
            self.kept.append(request.id)
            raise
