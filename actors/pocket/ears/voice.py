"""Voices: pitch, pace, loudness, whisper, who is who by turn, which word stands out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from .events import Scene
from .signal import HOP_S, Array, mel_bank, smooth
from .speech import Speech, Word


@dataclass(frozen=True)
class Turn:
    """A stretch of one voice: seconds, median F0 (0 where unvoiced), peak level, speaker number from 0 in order of
    entry.
    """

    start_s: float
    stop_s: float
    f0_hz: float
    level_db: float
    speaker: int


@dataclass(frozen=True)
class Voice:
    """How somebody speaks.

    f0_hz, clear: pitch track and clearness each 10 ms. turns: in order. rate: syllables a second while speaking.
    range_st: 10th to 90th percentile of F0, semitones. voiced: share of spoken frames with a pitch (low in a whisper).
    tilt_db: power 1-4 kHz against 0.1-1 kHz in spoken frames: rises with vocal effort. end_slope_st: F0 change over
    the last
    0.4 voiced seconds, semitones: positive where a question rises. pauses: silences inside speech of 0.25 s or more.
    """

    turns: tuple[Turn, ...]
    f0_median_hz: float
    range_st: float
    voiced: float
    tilt_db: float
    end_slope_st: float
    pauses: tuple[tuple[float, float], ...]
    rate: float
    stress: tuple[float, ...]
    """How far each word of the transcript stands out (sum of z-scores of level, lengthening and pitch)."""

    @cached_property
    def speakers(self) -> int:
        return 1 + max((t.speaker for t in self.turns), default=-1)

    def of(self, speaker: int) -> tuple[Turn, ...]:
        return tuple(t for t in self.turns if t.speaker == speaker)

    def speaker_f0(self, speaker: int) -> float:
        """Median F0 of one speaker over its turns, weighted by their length."""
        turns = [t for t in self.of(speaker) if t.f0_hz > 0]
        if not turns:
            return 0.0
        return float(
            np.exp(np.average(np.log([t.f0_hz for t in turns]), weights=[t.stop_s - t.start_s for t in turns]))
        )


def syllables(word: str) -> int:
    """Vowel groups of an English word, a silent final e not counted; at least one."""
    letters = "".join(c for c in word.lower() if c.isalpha())
    groups = sum(1 for i, c in enumerate(letters) if c in "aeiouy" and (i == 0 or letters[i - 1] not in "aeiouy"))
    silent = letters.endswith("e") and not letters.endswith("le") and groups > 1
    return max(1, groups - silent)


def nuclei_rate(level: Array, spoken: Array) -> float:
    """Syllable nuclei a second of spoken time: peaks of the level that stand 2 dB above the dips around them."""
    track = smooth(level, 5)
    count, low, high, rising = 0, track[0] if len(track) else 0.0, -200.0, True
    for value, inside in zip(track, spoken, strict=True):
        if rising:
            high = max(high, value)
            if value < high - 2.0 or not inside:
                count += inside
                rising, low = False, value
        else:
            low = min(low, value)
            if inside and value > low + 2.0:
                rising, high = True, value
    return float(count / max(spoken.sum() * HOP_S, 0.2))


def phrases(words: tuple[Word, ...], spans: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    """Stretches that one speaker is taken to fill: cut at sentence ends and at pauses of 0.3 s, by words; else the
    VAD's.
    """
    found: list[tuple[float, float]] = []
    start, last = None, 0.0
    for k, word in enumerate(words):
        if start is not None and word.start_s - last > 0.3:
            found.append((start, last))
            start = None
        start = word.start_s if start is None else start
        last = word.stop_s
        if word.text[-1:] in ".?!" or k == len(words) - 1:
            found.append((start, last))
            start = None
    return [(a, b) for a, b in found if b - a > 0.12] or list(spans)


def _mfcc(magnitude: Array) -> Array:
    """12 cepstral coefficients (without the level) of each frame."""
    mel = np.log((magnitude**2) @ mel_bank(32, 512, 80.0, 7600.0) + 1e-8)
    k, n = np.arange(1, 13)[:, None], np.arange(32)[None, :]
    return mel @ np.cos(np.pi * k * (n + 0.5) / 32).T / 16.0


def _cluster(features: list[tuple[float, Array]]) -> list[int]:
    """Speaker of each stretch in order: joined to the nearest known one when both pitch and timbre are near."""
    known: list[list[tuple[float, Array]]] = []
    labels: list[int] = []
    for f0, timbre in features:
        best, nearest = -1, 1.0
        for k, members in enumerate(known):
            pitch = np.median([m[0] for m in members if m[0] > 0] or [0.0])
            semitones = abs(12 * np.log2(f0 / pitch)) if f0 > 0 and pitch > 0 else 2.5
            colour = float(np.linalg.norm(timbre - np.mean([m[1] for m in members], axis=0)))
            distance = np.hypot(semitones / 5.0, colour / 1.6)
            if distance < nearest:
                best, nearest = k, float(distance)
        if best < 0:
            known.append([])
            best = len(known) - 1
        known[best].append((f0, timbre))
        labels.append(best)
    return labels


def _stress(words: tuple[Word, ...], level: Array, f0: Array, clear: Array) -> tuple[float, ...]:
    if not words:
        return ()
    loud, long, high = [], [], []
    for word in words:
        a, b = int(word.start_s / HOP_S), max(int(word.stop_s / HOP_S), int(word.start_s / HOP_S) + 2)
        part = level[a:b]
        loud.append(float(np.percentile(part, 90)) if len(part) else -60.0)
        long.append(float(np.log((b - a) / (syllables(word.text) + 0.7))))
        voiced = f0[a:b][clear[a:b] > 0.75]
        high.append(float(12 * np.log2(np.percentile(voiced, 90) / 100.0)) if len(voiced) > 2 else np.nan)
    tones = np.asarray(high)
    tones = np.where(np.isnan(tones), np.nanmedian(tones) if not np.isnan(tones).all() else 0.0, tones)

    def z(values: Array) -> Array:
        return (values - np.mean(values)) / max(float(np.std(values)), 1e-6)

    content = np.asarray([0.0 if w.text.lower().strip(".,!?") in _FUNCTION_WORDS else 0.4 for w in words])
    return tuple(float(v) for v in z(np.asarray(loud)) + 0.8 * z(np.asarray(long)) + 0.8 * z(tones) + content)


_FUNCTION_WORDS = frozenset(
    ["a", "an", "the", "of", "to", "in", "on", "at", "and", "or", "is", "was", "it", "be", "for", "with", "as"]
)


def voice_of(speech: Speech, scene: Scene, f0: Array, clear: Array) -> Voice:
    """The voice cues of a clip with speech; `f0`, `clear` from signal.pitch_track."""
    frames = min(len(scene.level), len(f0))
    f0, clear, level = f0[:frames], clear[:frames], scene.level[:frames]
    spoken = np.zeros(frames, dtype=bool)
    spans = speech.spans_s or tuple((w.start_s, w.stop_s) for w in speech.words)
    for a, b in spans:
        spoken[int(a / HOP_S) : int(b / HOP_S) + 1] = True
    loud = spoken & (level > (level[spoken].max() - 30 if spoken.any() else 0))
    voiced = loud & (clear > 0.75) & (f0 > 65) & (f0 < 520)
    tones = f0[voiced]
    median = float(np.median(tones)) if len(tones) else 0.0
    # Octave slips of the tracker lie far from the median and are left out of the range.
    near = tones[(tones > median / 1.8) & (tones < median * 1.8)] if len(tones) else tones
    spread = float(12 * np.log2(np.percentile(near, 90) / np.percentile(near, 10))) if len(near) > 5 else 0.0
    power = (scene.magnitude[:frames] ** 2)[loud].mean(axis=0) if loud.any() else np.ones(scene.magnitude.shape[1])
    hz = np.linspace(0, 8000, len(power))
    tilt = 10 * np.log10(
        power[(hz > 1000) & (hz < 4000)].sum() / max(power[(hz > 100) & (hz <= 1000)].sum(), 1e-12) + 1e-9
    )
    stretches = phrases(speech.words, spans)
    mfcc = _mfcc(scene.magnitude[:frames])
    features: list[tuple[float, Array]] = []
    for a, b in stretches:
        rows = slice(int(a / HOP_S), max(int(b / HOP_S), int(a / HOP_S) + 5))
        pitch = f0[rows][voiced[rows]]
        keep = loud[rows]
        timbre = mfcc[rows][keep].mean(axis=0) if keep.any() else mfcc.mean(axis=0)
        features.append((float(np.median(pitch)) if len(pitch) > 4 else 0.0, timbre))
    turns = tuple(
        Turn(a, b, f[0], float(level[int(a / HOP_S) : int(b / HOP_S) + 2].max(initial=-100.0)), who)
        for (a, b), f, who in zip(stretches, features, _cluster(features), strict=True)
    )
    last = np.flatnonzero(voiced & (f0 > median / 1.6) & (f0 < median * 1.9))[-40:]
    slope = float(12 * np.log2(np.median(f0[last[-8:]]) / np.median(f0[last[:12]]))) if len(last) >= 25 else 0.0
    edges = sorted([(w.start_s, w.stop_s) for w in speech.words] or list(spans))
    quiet = level < (level[loud].max() - 24 if loud.any() else -60)
    pauses = tuple(
        (a[1], b[0])
        for a, b in pairwise(edges)
        if b[0] - a[1] >= 0.25 or quiet[int(a[1] / HOP_S) : int(b[0] / HOP_S)].sum() > 25
    )
    talk = sum(b - a for a, b in edges) or 1.0
    nuclei = nuclei_rate(level, loud)
    by_words = sum(syllables(w.text) for w in speech.words) / talk if speech.words else nuclei
    rate = float(np.sqrt(by_words * nuclei)) if nuclei > 0 else by_words
    return Voice(
        turns,
        median,
        spread,
        float(voiced.sum() / max(loud.sum(), 1)),
        float(tilt),
        slope,
        pauses,
        rate,
        _stress(speech.words, level, f0, clear),
    )
