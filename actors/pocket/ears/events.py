"""What happens when: level over time, onsets, sounding stretches, and how they are spaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from .signal import HOP_S, RATE_HZ, Array, close_gaps, decibels, level_track, mel_bank, runs, smooth, spectrogram

SHAPES: dict[str, tuple[float, ...]] = {
    "up": (-1.0, -0.5, 0.0, 0.5, 1.0),
    "down": (1.0, 0.5, 0.0, -0.5, -1.0),
    "hump": (-1.0, 0.3, 1.0, 0.3, -1.0),
    "valley": (1.0, -0.3, -1.0, -0.3, 1.0),
}
"""Courses over five equal parts, between -1 and 1; `steady` is the absence of any."""


@dataclass(frozen=True)
class Event:
    """One onset and what follows until the next: seconds, peak level in dB re full scale, spectral centroid in Hz."""

    start_s: float
    stop_s: float
    level_db: float
    centroid_hz: float
    fall_db: float
    """How far the level falls within 0.25 s after the peak, dB: large for a struck sound, small for a held one."""
    gain_db: float = -100.0
    """Power that the onset adds to what still rings from before, highs weighted up, dB: how hard it is struck."""
    length_s: float = 0.0
    """Seconds from the onset until the level stays 15 dB under the event's own peak."""


def shape_scores(contour: Sequence[float], steady_width: float, fit_width: float) -> dict[str, float]:
    """Log-likelihood of each of :data:`SHAPES` and of `steady` for a five-point contour.

    steady_width: the spread that still counts as steady; fit_width: the misfit allowed to a moving shape (contour's
    unit).
    """
    track = np.asarray(contour, dtype=float)
    centred = track - track.mean()
    spread = float(np.ptp(track))
    scores = {"steady": -0.5 * (float(np.std(track)) / steady_width) ** 2}
    for name, template in SHAPES.items():
        shape = np.asarray(template) - np.mean(template)
        gain = max(float(centred @ shape / (shape @ shape)), 0.0)
        misfit = float(np.sqrt(np.mean((centred - gain * shape) ** 2)))
        flat = max(0.0, 1.0 - gain / (2.0 * steady_width))
        scores[name] = -0.5 * (misfit / max(fit_width, 0.25 * spread)) ** 2 - 2.0 * flat
    return scores


@dataclass(frozen=True)
class Scene:
    """Tracks of a whole clip, one value each 10 ms, and what was read from them.

    level: dB re full scale. strength: rise of the mel spectrum in dB, mean over bands. magnitude: (frames, 257) at
    16 kHz.
    """

    level: Array
    strength: Array
    magnitude: Array
    duration_s: float

    @property
    def peak_db(self) -> float:
        return float(self.level.max())

    @cached_property
    def floor_db(self) -> float:
        return float(np.percentile(smooth(self.level, 5), 5))

    @property
    def silent(self) -> bool:
        return self.peak_db < -75.0

    @cached_property
    def centroid(self) -> Array:
        """Spectral centroid, Hz, of each frame (power-weighted)."""
        power = self.magnitude**2
        hz = np.linspace(0, RATE_HZ / 2, power.shape[1])
        return (power @ hz) / np.maximum(power.sum(axis=1), 1e-12)

    @cached_property
    def flatness(self) -> Array:
        """Spectral flatness 0-1 of each frame between 100 and 7000 Hz: near 0 for tones, above 0.3 for noise."""
        power = self.magnitude[:, 3:224] ** 2 + 1e-12
        return np.exp(np.log(power).mean(axis=1)) / power.mean(axis=1)

    @cached_property
    def active(self) -> Array:
        """True where something clearly sounds: within 36 dB of the peak and above the background."""
        if self.silent:
            return np.zeros(len(self.level), dtype=bool)
        span = self.peak_db - self.floor_db
        threshold = max(self.peak_db - 36.0, self.floor_db + min(8.0, 0.3 * span) if span > 10 else -1e9)
        return smooth(self.level, 3) > threshold

    @cached_property
    def segments(self) -> tuple[tuple[float, float], ...]:
        """Sounding stretches in seconds: gaps under 0.12 s closed, shorter than 0.03 s dropped."""
        found = close_gaps(runs(self.active), 12)
        return tuple((a * HOP_S, b * HOP_S) for a, b in found if b - a >= 3)

    @cached_property
    def span_s(self) -> tuple[float, float]:
        """First to last moment within 30 dB of the peak: a soft part counts as sounding, though a louder one
        follows.
        """
        audible = np.flatnonzero(smooth(self.level, 3) > self.peak_db - 30.0)
        return (
            (audible[0] * HOP_S, (audible[-1] + 1) * HOP_S)
            if len(audible) and not self.silent
            else (0.0, self.duration_s)
        )

    @cached_property
    def gaps(self) -> tuple[tuple[float, float], ...]:
        """Silences between sounding stretches."""
        return tuple((a[1], b[0]) for a, b in pairwise(self.segments))

    @cached_property
    def onsets_s(self) -> tuple[float, ...]:
        """Times of attacks, at least 0.08 s apart; one in the first frames where the clip starts with sound."""
        if self.silent:
            return ()
        strength = smooth(self.strength, 3)
        scale = float(np.percentile(strength, 99.5))
        local = smooth(strength, 41)
        threshold = np.maximum(np.maximum(0.3 * scale, 1.5), local + 0.12 * scale)
        picked: list[int] = []
        for i in np.flatnonzero(strength > threshold):
            low, high = max(0, i - 6), min(len(strength), i + 7)
            loud = self.level[i : i + 12].max() > self.peak_db - 32.0
            if strength[i] == strength[low:high].max() and loud and (not picked or i - picked[-1] >= 8):
                picked.append(int(i))
        if self.active[:3].any() and (not picked or picked[0] > 8):
            picked.insert(0, 0)
        if len(picked) <= 8:
            picked = sorted(picked + self._covered(strength, picked))
        return tuple(i * HOP_S for i in picked)

    def _covered(self, strength: Array, picked: list[int]) -> list[int]:
        """Frames of soft attacks within the decay of a louder sound: far above the novelty around them.

        Asked only of clips with few attacks, where one more or less matters and a local baseline can be read.
        """
        found: list[int] = []
        for i in np.flatnonzero(strength > 1.6):
            low, high = max(0, i - 50), i + 50
            near = strength[max(0, i - 6) : i + 7]
            around = np.concatenate([strength[low : max(low, i - 5)], strength[i + 6 : high]])
            if len(around) < 30 or strength[i] < near.max() or any(abs(i - k) < 15 for k in (*picked, *found)):
                continue
            masked = self.level[max(0, i - 6) : i].min(initial=0.0) > self.peak_db - 45.0
            audible = self.level[i : i + 8].max() > self.peak_db - 38.0
            calm = float(np.percentile(around, 85))
            if masked and audible and strength[i] > 1.0 + 4.0 * calm:
                found.append(int(i))
        return found

    def added(self, start_s: float, seconds: float = 0.08) -> Array:
        """Power spectrum (257,) that the moment after `start_s` has more than the moment before."""
        k = min(int(start_s / HOP_S), len(self.magnitude) - 1)
        power = self.magnitude[max(0, k - 7) : k + 3 + int(seconds / HOP_S)] ** 2
        cut = min(k, 7)
        before = power[: max(cut - 2, 0)]
        after = power[cut:].mean(axis=0) if len(power) > cut else power[-1]
        return np.maximum(after - (before.mean(axis=0) if len(before) else 0.0), 0.0)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Each onset with what follows it up to the next onset or to where its stretch ends."""
        found = []
        for k, start in enumerate(self.onsets_s):
            limit = self.onsets_s[k + 1] if k + 1 < len(self.onsets_s) else self.duration_s
            ends = [b for a, b in self.segments if a <= start + 0.05 and b > start]
            stop = min(limit, ends[-1] if ends else limit)
            a, b = int(start / HOP_S), max(int(start / HOP_S) + 2, int(stop / HOP_S))
            track = self.level[a:b]
            top = a + int(track[: min(len(track), 40)].argmax()) if len(track) else a
            later = self.level[min(top + 25, len(self.level) - 1)]
            added = self.added(start) @ np.arange(self.magnitude.shape[1]) / self.magnitude.shape[1]
            sounding = np.flatnonzero(track > track.max() - 15.0)
            found.append(
                Event(
                    start,
                    stop,
                    float(track.max()),
                    float(np.median(self.centroid[a:b])),
                    float(self.level[top] - later),
                    float(10 * np.log10(added + 1e-12)),
                    float((sounding[-1] + 1) * HOP_S),
                )
            )
        return tuple(found)

    @cached_property
    def groups(self) -> tuple[tuple[float, ...], ...]:
        """Onsets gathered into bursts, split where gaps are clearly longer than the rest (over 2.2 times)."""
        onsets = self.onsets_s
        if len(onsets) < 3:
            return tuple((t,) for t in onsets)
        gaps = np.diff(onsets)
        order = np.sort(gaps)
        ratios = order[1:] / np.maximum(order[:-1], 0.05)
        if not len(ratios) or ratios.max() < 2.2:
            return (tuple(onsets),)
        k = int(ratios.argmax())
        limit = float(np.sqrt(order[k] * order[k + 1]))
        grouped: list[list[float]] = [[onsets[0]]]
        for gap, onset in zip(gaps, onsets[1:], strict=True):
            if gap > limit:
                grouped.append([])
            grouped[-1].append(onset)
        return tuple(tuple(g) for g in grouped)

    @cached_property
    def struck_share(self) -> float:
        """Share of events that are struck: 8 dB down within 0.25 s after their peak."""
        return float(np.mean([e.fall_db > 8.0 for e in self.events])) if self.events else 0.0

    def five(
        self, track: Array, start_s: float | None = None, stop_s: float | None = None, peak: bool = False
    ) -> list[float]:
        """Mean (or 90th percentile) of a 10-ms track over five equal parts of the sounding span, active frames only."""
        a, b = self.span_s if start_s is None or stop_s is None else (start_s, stop_s)
        edges = np.linspace(a / HOP_S, max(b / HOP_S, a / HOP_S + 5), 6).astype(int)
        whole = track[: len(self.active)]
        values: list[float] = []
        for low, high in pairwise(edges):
            low, high = min(low, len(whole) - 1), min(max(high, low + 1), len(whole))
            part, mask = whole[low:high], self.active[low:high]
            part = part[mask] if mask.any() and not peak else part
            values.append(
                float(np.percentile(part, 90) if peak else np.mean(part)) if len(part) else float(np.mean(whole))
            )
        return values

    @cached_property
    def level_five(self) -> list[float]:
        """Level of five equal parts, dB: the 90th percentile, so that spaced strokes count by their strength."""
        return [max(v, self.peak_db - 45.0) for v in self.five(self.level, peak=True)]

    def spacing_irregularity(self) -> float:
        """Standard deviation over mean of the onset intervals; 0 with fewer than three onsets."""
        gaps = np.diff(self.onsets_s)
        return float(np.std(gaps) / np.mean(gaps)) if len(gaps) >= 2 else 0.0

    def rate_five(self) -> list[float]:
        """log2 of the onset rate over five equal parts of the onsets (by interval), constant when there are few."""
        gaps = np.diff(self.onsets_s)
        if len(gaps) < 3:
            return [0.0] * 5
        places = np.linspace(0, len(gaps) - 1, 5)
        return list(-np.interp(places, np.arange(len(gaps)), np.log2(smooth(gaps, 3 if len(gaps) > 4 else 1))))


def scene_of(wave: Array) -> Scene:
    """The scene of one channel at 16 kHz."""
    magnitude = spectrogram(wave, 400, 160, 512)
    power = (magnitude**2) @ mel_bank(40, 512, 60.0, 7800.0)
    # Bands more than 55 dB under the loudest are held level, so that noise floors make no onsets.
    bands = decibels(power / 1e4 + power.max() / 1e4 * 10**-5.5 + 1e-12)
    raised = np.maximum(bands, np.maximum(np.roll(bands, 1, axis=1), np.roll(bands, -1, axis=1)))
    rise = np.zeros(len(bands))
    rise[2:] = np.maximum(bands[2:] - raised[:-2], 0.0).mean(axis=1)
    rise[:2] = np.maximum(bands[:2] - bands.min(), 0.0).mean(axis=1) * 0.5
    level = level_track(wave)[: len(bands)]
    return Scene(level, rise[: len(level)], magnitude[: len(level)], len(wave) / RATE_HZ)
