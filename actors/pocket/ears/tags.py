"""Audio tags: YAMNet (521 AudioSet classes), its scores over time, and the stretches where one class leads.

Front end as the network was trained: 16 kHz, 25-ms Hann windows each 10 ms, 64 HTK mel bands 125-7500 Hz of the
magnitude,
log(x + 0.001), patches of 96 frames. The weights are an 8-bit export, so scores come in coarse steps: mean and
maximum both matter.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from . import files
from .onnx import session
from .signal import RATE_HZ, Array, mel_bank, spectrogram

PATCH, PATCH_S, STEP, STEP_S = 96, 0.96, 24, 0.24
_SCALE, _ZERO = 0.04793788492679596, 144
_OUT_SCALE, _OUT_ZERO = 0.7565417289733887, 190


@dataclass(frozen=True)
class Tags:
    """Scores of every class over time.

    labels: 521 names. scores: (patches, 521) in 0-1. starts_s: start of each patch of :data:`PATCH_S` seconds.
    """

    labels: tuple[str, ...]
    scores: Array
    starts_s: Array

    @cached_property
    def mean(self) -> Array:
        return self.scores.mean(axis=0)

    @cached_property
    def peak(self) -> Array:
        return self.scores.max(axis=0)

    def index(self, label: str) -> int:
        return self.labels.index(label)

    def of(self, labels: Sequence[str], start_s: float = 0.0, stop_s: float = float("inf")) -> tuple[float, float]:
        """(mean, maximum) over time, within a span, of the strongest of `labels` at each moment."""
        track = self.track(labels)
        centres = self.starts_s + PATCH_S / 2
        inside = (centres >= start_s) & (centres <= stop_s)
        if not inside.any():
            inside = np.abs(centres - (start_s + min(stop_s, centres[-1])) / 2).argsort() < 1
        return float(track[inside].mean()), float(track[inside].max())

    def track(self, labels: Sequence[str]) -> Array:
        """Score of the strongest of `labels` in each patch."""
        return self.scores[:, [self.index(label) for label in labels]].max(axis=1)

    def top(self, count: int, start_s: float = 0.0, stop_s: float = float("inf")) -> list[tuple[str, float]]:
        """The strongest classes of a span by mean plus maximum."""
        centres = self.starts_s + PATCH_S / 2
        inside = (centres >= start_s) & (centres <= stop_s)
        if not inside.any():
            inside = np.abs(centres - start_s).argsort() < 1
        part = self.scores[inside]
        strength = (part.mean(axis=0) + part.max(axis=0)) / 2
        order = np.argsort(-strength, kind="stable")[:count]
        return [(self.labels[i], float(strength[i])) for i in order]


class Tagger:
    """YAMNet. `weights` may name `yamnet` (the zip) and `yamnet_labels` (the class map)."""

    def __init__(self, weights: Mapping[str, str], threads: int) -> None:
        with zipfile.ZipFile(files.need("yamnet", weights)) as archive:
            members = {name.rsplit("/", 1)[-1]: archive.read(name) for name in archive.namelist()}
        self._net = session(members["model.onnx"], threads, {"model.data": members["model.data"]})
        rows = csv.DictReader(io.StringIO(files.need("yamnet_labels", weights).read_text(encoding="utf-8")))
        self.labels = tuple(row["display_name"] for row in rows)
        self._mel = mel_bank(64, 512, 125.0, 7500.0)

    def __call__(self, wave: Array) -> Tags:
        """Tags of one channel at 16 kHz. Patches step by 0.24 s; a short clip is padded with silence to one patch."""
        hops = max(PATCH, -(-len(wave) // 160))
        padded = np.pad(wave, (0, max(0, hops * 160 + 400 - len(wave))))
        log_mel = np.log(spectrogram(padded, 400, 160, 512)[: max(hops, PATCH)] @ self._mel + 0.001)
        starts = list(range(0, len(log_mel) - PATCH + 1, STEP))
        codes = np.clip(np.rint(log_mel / _SCALE + _ZERO), 0, 255).astype(np.uint8)
        out = [self._net.run(None, {"audio": codes[None, None, s : s + PATCH]})[0][0] for s in starts]
        scores = 1.0 / (1.0 + np.exp(-_OUT_SCALE * (np.asarray(out, dtype=np.float64) - _OUT_ZERO)))
        return Tags(self.labels, scores, np.asarray(starts) * 160 / RATE_HZ)
