"""Music: beat and tempo, meter, key, notes (register, contour, polyphony, articulation)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from . import files
from .events import Scene
from .onnx import session
from .signal import HOP_S, RATE_HZ, Array, smooth, softmax, spectrogram

PITCH_NAMES = ("C", "C sharp", "D", "E flat", "E", "F", "F sharp", "G", "A flat", "A", "B flat", "B")
# Krumhansl and Kessler's (1982) probe-tone ratings.
_MAJOR = (6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88)
_MINOR = (6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17)
NOTES_RATE_HZ, _WINDOW, _FRAME, _TRIM = 22_050, 43_844, 256, 15


@dataclass(frozen=True)
class Note:
    """A transcribed note: seconds, MIDI number, the transcriber's mean activation."""

    start_s: float
    stop_s: float
    midi: int
    strength: float


class NoteTranscriber:
    """Basic Pitch's network (ICASSP 2022, ONNX). `weights` may name `basic_pitch`."""

    def __init__(self, weights: Mapping[str, str], threads: int) -> None:
        self._net = session(files.need("basic_pitch", weights).read_bytes(), threads)

    def __call__(self, wave: Array) -> tuple[Note, ...]:
        """Notes of one channel at 22.05 kHz: an onset above 0.5, held while its frame activation stays above 0.3."""
        hop = _WINDOW - 2 * _TRIM * _FRAME
        padded = np.pad(np.asarray(wave, dtype=np.float32), (_TRIM * _FRAME, _WINDOW))
        count = max(1, -(-len(wave) // hop))
        blocks = np.stack([padded[k * hop : k * hop + _WINDOW] for k in range(count)])[:, :, None]
        names = ["StatefulPartitionedCall:1", "StatefulPartitionedCall:2"]
        held, struck = (
            np.concatenate([part[_TRIM:-_TRIM] for part in out])
            for out in self._net.run(names, {"serving_default_input_2:0": blocks})
        )
        return _notes(held, struck)


def _notes(held: Array, struck: Array) -> tuple[Note, ...]:
    step = _FRAME / NOTES_RATE_HZ
    peak = np.zeros_like(struck, dtype=bool)
    peak[1:-1] = (struck[1:-1] > struck[:-2]) & (struck[1:-1] >= struck[2:]) & (struck[1:-1] > 0.5)
    notes = []
    for frame, key in zip(*np.nonzero(peak), strict=True):
        later = np.flatnonzero(peak[frame + 1 :, key])
        limit = frame + 1 + int(later[0]) if len(later) else len(held)
        quiet = np.flatnonzero(held[frame + 1 : limit, key] < 0.3)
        stop = frame + 1 + int(quiet[0]) if len(quiet) else limit
        if stop - frame >= 4:
            notes.append(Note(frame * step, stop * step, int(key) + 21, float(held[frame:stop, key].mean())))
    return tuple(sorted(notes, key=lambda n: (n.start_s, n.midi)))


@dataclass(frozen=True)
class Music:
    """What is played.

    tempo_bpm: the strongest pulse; pulse: how strong, 0-1. tempo_halves: tempo of first and second half.
    tempo_levels: (tempo, weight) of the pulses
    that a listener may tap: that one, its half, double, third and triple. meter: probability of
    2, 3, 4, 5, 6 beats a bar. key: (tonic 0-11, "major" or "minor", margin of the best over the best of the other
    mode).
    """

    tempo_bpm: float
    pulse: float
    tempo_halves: tuple[float, float]
    tempo_levels: tuple[tuple[float, float], ...]
    meter: Mapping[int, float]
    tonic: int
    mode: str
    mode_margin: float
    notes: tuple[Note, ...]

    @cached_property
    def key_name(self) -> str:
        return f"{PITCH_NAMES[self.tonic]} {self.mode}"

    @cached_property
    def register(self) -> float:
        """Median MIDI number of the notes, weighted by length (0 without notes)."""
        if not self.notes:
            return 0.0
        order = sorted(self.notes, key=lambda n: n.midi)
        weight = np.cumsum([n.stop_s - n.start_s for n in order])
        return float(order[int(np.searchsorted(weight, weight[-1] / 2))].midi)

    @cached_property
    def polyphony(self) -> float:
        """Mean number of notes that sound together while any does."""
        if not self.notes:
            return 0.0
        end = max(n.stop_s for n in self.notes)
        count = np.zeros(int(end / 0.02) + 1)
        for n in self.notes:
            count[int(n.start_s / 0.02) : int(n.stop_s / 0.02) + 1] += 1
        return float(count[count > 0].mean())

    @cached_property
    def top_line(self) -> tuple[Note, ...]:
        """The highest note at each attack (notes within 0.1 s are one attack), overtones that were taken for notes
        left out.
        """
        line: list[Note] = []
        group: list[Note] = []
        for note in (*self.notes, None):
            if note is not None and (not group or note.start_s - group[0].start_s < 0.1):
                group.append(note)
                continue
            line += [max(_without_overtones(group), key=lambda n: n.midi)] if group else []
            group = [note] if note is not None else []
        return tuple(line)

    @cached_property
    def true_notes(self) -> tuple[Note, ...]:
        """All notes but overtones that were taken for notes."""
        kept: list[Note] = []
        for k, note in enumerate(self.notes):
            around = [n for n in self.notes[max(0, k - 12) : k + 13] if abs(n.start_s - note.start_s) < 0.1]
            kept += [note] if note in _without_overtones(around) else []
        return tuple(kept)

    def skyline(self, start_s: float, stop_s: float, top: bool = True) -> list[int]:
        """MIDI number of the highest (or lowest) note that sounds, each 20 ms of a span; silent steps left out."""
        line: dict[int, int] = {}
        for note in self.true_notes:
            for k in range(int(max(note.start_s, start_s) * 50), int(min(note.stop_s, stop_s) * 50)):
                line[k] = (max if top else min)(line.get(k, note.midi), note.midi)
        if not line or not top:
            return list(line.values())
        # Where the melody rests the accompaniment is no melody: what lies over an octave under the usual top is left.
        usual = float(np.percentile(list(line.values()), 75))
        return [v for v in line.values() if v > usual - 13]

    @cached_property
    def filled(self) -> float:
        """Median share of the time between attacks of the top line that its notes fill (0 with fewer than four)."""
        line = self.top_line
        if len(line) < 4:
            return 0.0
        shares = [min((a.stop_s - a.start_s) / max(b.start_s - a.start_s, 0.05), 1.2) for a, b in pairwise(line)]
        return float(np.median(shares))

    @cached_property
    def contour(self) -> list[float]:
        """Top line in semitones over five equal parts."""
        line = self.top_line
        if len(line) < 3:
            return [0.0] * 5
        times = np.asarray([n.start_s for n in line])
        edges = np.linspace(times[0], times[-1] + 1e-6, 6)
        tones = np.asarray([n.midi for n in line], dtype=float)
        middles = (edges[:-1] + edges[1:]) / 2
        smooth_line = np.interp(middles, times, tones)
        return [
            float(tones[(times >= a) & (times < b)].mean()) if ((times >= a) & (times < b)).any() else float(s)
            for a, b, s in zip(edges[:-1], edges[1:], smooth_line, strict=True)
        ]


def _without_overtones(group: list[Note]) -> list[Note]:
    """Notes of one attack without those that are a weaker or shorter octave, twelfth or double octave of a lower
    one.
    """

    def mass(note: Note) -> float:
        return note.strength * (note.stop_s - note.start_s)

    return [
        n for n in group if not any(n.midi - m.midi in (12, 19, 24, 28, 31) and mass(n) < 1.2 * mass(m) for m in group)
    ]


def tempo_of(strength: Array) -> tuple[float, float]:
    """(beats a minute, pulse 0-1) of an onset-strength track of 10-ms steps, by weighted autocorrelation.

    A lag counts with its multiples; a log-normal preference around 110 a minute (one octave wide) settles octaves.
    """
    if len(strength) < 150:
        return 0.0, 0.0
    track = smooth(strength, 3) - float(np.mean(strength))
    if float(np.abs(track).max()) < 1e-6:
        return 0.0, 0.0
    size = 1 << int(np.ceil(np.log2(2 * len(track))))
    correlation = np.fft.irfft(np.abs(np.fft.rfft(track, size)) ** 2)[: len(track)]
    correlation = correlation / (np.arange(len(track), 0, -1) / len(track)) / max(correlation[0], 1e-9)
    lags = np.arange(25, min(200, len(track) // 2))

    def at(values: Array) -> Array:
        return np.interp(values, np.arange(len(correlation)), correlation)

    comb = (
        at(lags)
        + 0.5 * at(np.minimum(2 * lags, len(track) * 0.75))
        + 0.25 * at(np.minimum(3 * lags, len(track) * 0.75))
    )
    bpm = 60.0 / (lags * HOP_S)
    score = comb * np.exp(-0.5 * (np.log2(bpm / 110.0) / 1.0) ** 2)
    best = int(lags[int(score.argmax())])
    # The period is refined at the largest multiple that still fits in two thirds of the clip.
    multiple = max(1, min(4, int(len(track) * 0.66 / best)))
    fine = np.arange(best - 1.0, best + 1.01, 0.02)
    period = float(fine[int(at(fine * multiple).argmax())])
    return 60.0 / (period * HOP_S), float(np.clip(at(np.asarray([period]))[0], 0.0, 1.0))


def tempo_levels(strength: Array, bpm: float, even_bpm: float) -> tuple[tuple[float, float], ...]:
    """Metrical levels around a tempo, weighted by autocorrelation and by how readily people tap at that rate.

    even_bpm: rate of the attacks where they are evenly spaced (else 0): that is then the pulse heard, three times
    as likely.
    """
    if bpm <= 0:
        return ()
    if even_bpm and 38 <= even_bpm <= 200:
        # With nothing between even attacks there is no faster pulse: the attacks are the beat, or each half of it.
        return ((even_bpm, 0.85), (even_bpm / 2, 0.1 if even_bpm > 90 else 0.03), (even_bpm * 2, 0.03))
    track = smooth(strength, 5) - float(np.mean(strength))
    size = 1 << int(np.ceil(np.log2(2 * len(track))))
    correlation = np.fft.irfft(np.abs(np.fft.rfft(track, size)) ** 2)[: len(track)]
    correlation = correlation / (np.arange(len(track), 0, -1) / len(track)) / max(correlation[0], 1e-9)
    found = []
    for ratio, taste in ((1.0, 1.0), (2.0, 0.6), (0.5, 0.6), (3.0, 0.3), (1 / 3, 0.2), (1.5, 0.2)):
        level = bpm * ratio
        lag = 6000.0 / level
        if 30 <= level <= 240 and lag < 0.7 * len(track):
            salience = max(float(np.interp(lag, np.arange(len(correlation)), correlation)), 0.0)
            taste *= 3.0 if even_bpm and abs(np.log2(level / even_bpm)) < 0.08 else 1.0
            found.append(
                (level, taste * salience**2 * float(np.exp(-0.5 * (np.log2(level / 105.0) / 0.8) ** 2)) + 1e-4)
            )
    total = sum(w for _, w in found)
    return tuple((level, w / total) for level, w in found)


def meter_of(scene: Scene, bpm: float) -> dict[int, float]:
    """Probability of 2 to 6 beats a bar: how much the accents (onset strength, and bass) repeat at that many beats."""
    if bpm <= 0:
        return {2: 0.2, 3: 0.2, 4: 0.4, 5: 0.05, 6: 0.15}
    period = 60.0 / bpm / HOP_S
    bass = smooth(10 * np.log10((scene.magnitude[:, 1:7] ** 2).sum(axis=1) + 1e-6), 3)
    rise = np.maximum(np.diff(bass, n=1, prepend=bass[0]), 0.0)
    strength = smooth(scene.strength, 5)
    phases = [
        strength[(np.arange(len(strength) / period - 1) * period + p).astype(int)].sum() for p in range(int(period))
    ]
    phase = int(np.argmax(phases))
    beats = (np.arange(int((len(strength) - phase) / period)) * period + phase).astype(int)
    scores = {n: 0.0 for n in (2, 3, 4, 5, 6)}
    for track, weight in ((strength, 1.0), (smooth(rise, 5), 1.0), (scene.level, 0.6)):
        around = np.asarray([track[max(0, b - 4) : b + 6].max() for b in beats])
        if len(around) < 7 or np.std(around) < 1e-6:
            continue
        around = (around - around.mean()) / np.std(around)
        for n in scores:
            folded = [around[k::n].mean() for k in range(n)]
            # Between-phase variance, corrected for how much of it chance alone would give.
            scores[n] += weight * (float(np.var(folded)) - n / len(around)) / (1.0 - min(0.9, n / len(around)))
    # Units of over 150 a minute are mostly quavers: a pattern of threes among them is more likely counted in six.
    prior = {2: -0.5, 3: 0.0, 4: 0.3, 5: -1.0, 6: 0.3 if bpm > 150 else -0.6}
    found = dict(zip(scores, softmax([4.0 * scores[n] + prior[n] for n in scores]).tolist(), strict=True))
    compound = _compound(strength, beats, period)
    if compound > 0.0 and bpm < 105:
        # Beats in three parts: compound time where the parts are quick, else the bar of a waltz was taken for its beat.
        target = 6 if 3 * bpm > 160 else 3
        found = {n: v * (1 - compound) + (compound if n == target else 0.0) for n, v in found.items()}
    return found


def _compound(strength: Array, beats: Array, period: float) -> float:
    """How surely beats fall into three parts rather than two, 0-0.85: attacks at their thirds, none at their half."""

    def at(part: float) -> float:
        places = (beats + part * period).astype(int)
        return float(np.mean([strength[max(p - 3, 0) : p + 4].max() for p in places[:-1]])) if len(places) > 1 else 0.0

    on, thirds, half = at(0.0), 0.5 * (at(1 / 3) + at(2 / 3)), at(0.5)
    return 0.85 if thirds > 0.3 * on and thirds > 1.6 * half else 0.0


def chroma_of(wave: Array) -> Array:
    """Twelve pitch-class energies (sum 1) from spectral peaks between 60 and 2000 Hz, square-root compressed."""
    magnitude = spectrogram(wave, 8192, 2048)
    hz = np.linspace(0, RATE_HZ / 2, magnitude.shape[1])
    inner = (magnitude[:, 1:-1] > magnitude[:, :-2]) & (magnitude[:, 1:-1] >= magnitude[:, 2:])
    peaks = np.sqrt(np.where(inner, magnitude[:, 1:-1], 0.0)).sum(axis=0)
    hz = hz[1:-1]
    keep = (hz > 60) & (hz < 2000)
    place = 12 * np.log2(hz[keep] / 440.0) + 69
    nearest = np.rint(place)
    weight = peaks[keep] * np.maximum(0.0, 1 - 2 * np.abs(place - nearest))
    chroma = np.bincount(nearest.astype(int) % 12, weights=weight, minlength=12)
    return chroma / max(float(chroma.sum()), 1e-9)


def key_of(chroma: Array, notes: tuple[Note, ...]) -> tuple[int, str, float]:
    """(tonic, mode, margin) by correlation with the key profiles; the bass and the last note pull towards the tonic."""
    histogram = np.zeros(12)
    for note in notes:
        histogram[note.midi % 12] += note.stop_s - note.start_s
    if histogram.sum() > 0:
        chroma = 0.35 * chroma + 0.65 * histogram / histogram.sum()
    if float(np.std(chroma)) < 1e-9:
        return 0, "major", 0.0
    pull = np.zeros(12)
    if notes:
        lowest = min(notes, key=lambda n: (n.midi, n.start_s))
        end = max(n.stop_s for n in notes)
        last = min((n for n in notes if n.stop_s > end - 0.6), key=lambda n: n.midi)
        pull[lowest.midi % 12] += 0.04
        pull[last.midi % 12] += 0.08
    fits = {
        (tonic, mode): float(np.corrcoef(np.roll(profile, tonic), chroma)[0, 1]) + float(pull[tonic])
        for tonic in range(12)
        for mode, profile in (("major", _MAJOR), ("minor", _MINOR))
    }
    if not np.isfinite(list(fits.values())).all():
        return 0, "major", 0.0
    tonic, mode = max(fits, key=lambda k: fits[k])
    other = max(v for (t, m), v in fits.items() if m != mode)
    return tonic, mode, fits[(tonic, mode)] - other


def even_rate(onsets: tuple[float, ...]) -> float:
    """Attacks a minute where they are evenly spaced, one in six missed or doubled at most; else 0."""
    gaps = np.diff(onsets)
    if len(gaps) < 4:
        return 0.0
    middle = float(np.median(gaps))
    good = float(np.mean(np.abs(gaps / max(middle, 0.05) - 1.0) < 0.12))
    return 60.0 / max(float(np.mean(gaps[np.abs(gaps / middle - 1.0) < 0.12])), 0.05) if good > 0.83 else 0.0


def _attacks(notes: tuple[Note, ...]) -> tuple[float, ...]:
    """Start times of notes, those within 0.1 s of each other as one."""
    found: list[float] = []
    for note in notes:
        if not found or note.start_s - found[-1] > 0.1:
            found.append(note.start_s)
    return tuple(found)


def music_of(wave: Array, scene: Scene, notes: tuple[Note, ...]) -> Music:
    """Musical facts of one channel at 16 kHz."""
    bpm, pulse = tempo_of(scene.strength)
    half = len(scene.strength) // 2
    halves = (tempo_of(scene.strength[:half])[0], tempo_of(scene.strength[half:])[0])
    levels = tempo_levels(scene.strength, bpm, even_rate(scene.onsets_s) or even_rate(_attacks(notes)))
    bpm = max(levels, key=lambda level: level[1])[0] if levels else bpm
    tonic, mode, margin = key_of(chroma_of(wave), notes)
    return Music(bpm, pulse, halves, levels, meter_of(scene, bpm), tonic, mode, margin, notes)
