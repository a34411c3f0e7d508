"""VGGish: the network over the published weights, and what it is fed (METRICS 5).

Six convolutions and three dense layers; the ReLU after the last one, the PCA and the 8-bit step of AudioSet's features
are left out: its embeddings are the values before activation.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Mapping

import numpy as np
import torch
from torch import nn

RATE_HZ = 16_000
WINDOW, HOP, FFT, BANDS, FRAMES = 400, 160, 512, 64, 96
LEAST = WINDOW + HOP * (FRAMES - 1)
"""Samples that give one example: 15600, 0.975 s."""
_CONVOLUTIONS = ((0, False), (3, False), (6, True), (8, False), (11, True), (13, False))
"""Place of each convolution in the published list of layers; whether the next follows without pooling."""
_DENSE = (0, 2, 4)


class Vggish(nn.Module):
    """(n, 96, 64) log-mel examples -> (n, d) embeddings; d is 128 in the published weights. Widths are those of the
    state that is loaded."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        super().__init__()
        features: dict[str, nn.Module] = {}
        for place, paired in _CONVOLUTIONS:
            out, into = state[f"features.{place}.weight"].shape[:2]
            features[str(place)] = nn.Conv2d(into, out, kernel_size=3, padding=1)
            features[f"{place}_relu"] = nn.ReLU()
            if not paired:
                features[f"{place}_pool"] = nn.MaxPool2d(2)
        embeddings: dict[str, nn.Module] = {}
        for place in _DENSE:
            out, into = state[f"embeddings.{place}.weight"].shape
            embeddings[str(place)] = nn.Linear(into, out)
            if place != _DENSE[-1]:
                embeddings[f"{place}_relu"] = nn.ReLU()
        self.features = nn.Sequential()
        self.embeddings = nn.Sequential()
        for stack, layers in ((self.features, features), (self.embeddings, embeddings)):
            for name, layer in layers.items():
                stack.add_module(name, layer)
        self.load_state_dict(dict(state))

    def forward(self, examples: torch.Tensor) -> torch.Tensor:
        found = self.features(examples[:, None])
        # The published dense layer was trained on (time, band, channel) in this order.
        embedded: torch.Tensor = self.embeddings(found.permute(0, 2, 3, 1).flatten(1))
        return embedded


def examples_of(wave: Any) -> Any:
    """(k, 96, 64) float32 log-mel examples of 0.96 s from a mono wave at 16 kHz, at least LEAST samples; no overlap,
    what is left over at the end is dropped. 64 bands from 125 to 7500 Hz, log(magnitude + 0.01)."""
    frames = np.lib.stride_tricks.sliding_window_view(np.asarray(wave, dtype=np.float64), WINDOW)[::HOP]
    frames = frames[: len(frames) // FRAMES * FRAMES]
    magnitude = np.abs(np.fft.rfft(frames * _hann(), n=FFT, axis=1))
    mel = np.log(magnitude @ _bands() + 0.01)
    return mel.reshape(-1, FRAMES, BANDS).astype(np.float32)


def _hann() -> Any:
    """The periodic window."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)


@lru_cache(maxsize=1)
def _bands() -> Any:
    """(257, 64) triangles, straight on the mel scale of 1127 ln(1 + f / 700); nothing of the constant part."""
    mel_of = 1127.0 * np.log1p(np.linspace(0.0, RATE_HZ / 2, FFT // 2 + 1) / 700.0)[:, None]
    edges = np.linspace(1127.0 * np.log1p(125.0 / 700.0), 1127.0 * np.log1p(7500.0 / 700.0), BANDS + 2)
    rising = (mel_of - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mel_of) / (edges[2:] - edges[1:-1])
    bands = np.maximum(0.0, np.minimum(rising, falling))
    bands[0] = 0.0
    return bands
