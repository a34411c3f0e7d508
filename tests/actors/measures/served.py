"""A measuring head as a host serves it, and the clips that it is tried on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.actors.serving import head_server, reason, reply, results
from torus_ray.audio import Clip, encode
from torus_ray.heads import MeasureRequest

FORMATS = [(rate, channels, bits) for rate in (16_000, 44_100, 48_000) for channels in (1, 2) for bits in (16, 24)]
"""One clip at every rate, in one and two channels, of 16-bit and of 24-bit samples (as floats are kept)."""


class Served:
    """One head in this process, asked as a host is asked."""

    def __init__(self, folder: str, class_name: str, weights: Mapping[str, Path], **settings: Any) -> None:
        self.server = head_server(folder, class_name, weights, {"measure": {}}, settings)

    def batch(self, measure: str, clips: Sequence[bytes]) -> list[dict[str, Any]]:
        """The results of one batch."""
        return results(self.server, *(_asked(measure, clip, str(at)) for at, clip in enumerate(clips)))

    def values(self, measure: str, clip: bytes) -> dict[str, Any]:
        """What one clip alone gives."""
        values: dict[str, Any] = reply(self.server, _asked(measure, clip))["values"]
        return values

    def numbers(self, measure: str, clip: bytes) -> Any:
        return np.asarray(self.values(measure, clip)["values"])

    def reason(self, measure: str, clip: bytes) -> str:
        """Why one clip is refused."""
        return reason(self.server, _asked(measure, clip))


def _asked(measure: str, clip: bytes, name: str = "0") -> MeasureRequest:
    return MeasureRequest(name, measure, clip, 0)


@lru_cache(maxsize=64)
def wave(seconds: float = 3.0, rate_hz: int = 16_000, seed: int = 0) -> Any:
    """The same sound at any rate: partials all the way up to 7 kHz, each with its own swell. Long ones repeat."""
    rng = np.random.default_rng(seed)
    whole = round(min(seconds, 12.0) * rate_hz)
    at = np.arange(whole) / rate_hz
    sound = np.zeros(whole)
    for frequency in np.geomspace(60, 7000, 200) * rng.uniform(0.98, 1.02, 200):
        swell, phase = rng.uniform(0.3, 4), rng.uniform(0, 6.28)
        sound += np.sin(2 * np.pi * frequency * at + phase) * (1 + np.sin(2 * np.pi * swell * at + phase))
    # Both ends fade, so that no resampler meets an edge.
    fade = np.minimum(1, np.minimum(at, at[-1] - at) / 0.05)
    return np.resize(0.008 * sound * fade, round(seconds * rate_hz)).astype(np.float32)


def stored(samples: Any, rate_hz: int = 16_000, bits: int = 16) -> bytes:
    """Samples as a run keeps them."""
    return encode(Clip(np.asarray(samples, dtype=np.float32), rate_hz), bits).data


def clip(seconds: float = 3.0, rate_hz: int = 16_000, channels: int = 1, bits: int = 16, seed: int = 0) -> bytes:
    one = wave(seconds, rate_hz, seed)
    return stored(np.stack([one] * channels), rate_hz, bits)


def silent(seconds: float = 3.0, rate_hz: int = 16_000) -> bytes:
    return stored(np.zeros(round(seconds * rate_hz)), rate_hz)


def opposite(seconds: float = 3.0, rate_hz: int = 16_000) -> bytes:
    """Stereo whose mean is silence."""
    one = wave(seconds, rate_hz)
    return stored(np.stack([one, -one]), rate_hz)


def apart(found: Any, wanted: Any) -> float:
    """The largest difference, as a share of the largest wanted value."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())
