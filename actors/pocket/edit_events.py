"""What is in a clip and where: level, onsets, groups of like events, background, and where a named thing sounds.

Positions are frames at 44.1 kHz. A named thing is found by analysis by synthesis: the spectrum of each group of events
is compared with
that of the sound which the thing's name renders.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import ndimage, signal

from . import sound
from .sound_traits import traits_of

RATE = 44100
HOP = 441
Wave = np.ndarray[Any, np.dtype[np.float64]]
QUIET_DB = -90.0


@dataclass(frozen=True)
class Event:
    """One onset and what follows until the next, or until it has died away: [start, end) in frames."""

    start: int
    end: int


@dataclass(frozen=True)
class Scene:
    """A clip seen as events over a background.

    events: in order. groups: indices of neighbouring like events, in order. level_db: RMS a 10-ms hop. floor_db:
    level of what is always
    there. active: [start, end) from first to last sound.
    """

    events: tuple[Event, ...]
    groups: tuple[tuple[int, ...], ...]
    level_db: Wave
    floor_db: float
    active: tuple[int, int]

    @property
    def has_background(self) -> bool:
        """Whether something sounds through the whole clip."""
        return self.floor_db > -58.0 and self.floor_db > float(self.level_db.max()) - 42.0

    def span(self, group: Sequence[int]) -> tuple[int, int]:
        """[start, end) of a run of events."""
        return self.events[group[0]].start, self.events[group[-1]].end


def mono(wave: Wave) -> Wave:
    """(frames,) mean of the channels."""
    return np.asarray(wave.mean(axis=0) if wave.ndim == 2 else wave, dtype=np.float64)


def levels_db(x: Wave, window: int = 2 * HOP) -> Wave:
    """RMS level each 10 ms over 20 ms, dB re full scale, never under QUIET_DB."""
    power = np.concatenate([[0.0], np.cumsum(np.square(x))])
    at = np.arange(0, len(x), HOP)
    lo, hi = np.maximum(at - window // 2, 0), np.minimum(at + window // 2, len(x))
    return 10 * np.log10(np.maximum((power[hi] - power[lo]) / np.maximum(hi - lo, 1), 10 ** (QUIET_DB / 10)))


def spectrum(x: Wave, bands: int = 36) -> Wave:
    """Band levels (dB) from 60 Hz to 14 kHz, geometric bands, averaged over the wave and held 45 dB under the
    loudest."""
    n = 2048
    padded = np.pad(x, (0, max(0, n - len(x))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, n)[::1024] * np.hanning(n)
    power = (np.abs(np.fft.rfft(frames, axis=1)) ** 2).mean(axis=0)
    hz = np.fft.rfftfreq(n, 1 / RATE)
    edges = np.geomspace(60, 14000, bands + 1)
    total = np.array([power[(hz >= a) & (hz < max(b, a + 25))].sum() + 1e-12 for a, b in itertools.pairwise(edges)])
    db = 10 * np.log10(total)
    return np.maximum(db, db.max() - 45.0)


def likeness(a: Wave, b: Wave) -> float:
    """Correlation of two band spectra, -1 to 1."""
    x, y = a - a.mean(), b - b.mean()
    return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y) + 1e-9))


def _shifted_likeness(a: Wave, b: Wave, most: int = 3) -> float:
    """The best likeness when one spectrum is moved up or down by up to `most` bands."""
    n = len(a)
    return max(likeness(a[max(0, k) : n + min(0, k)], b[max(0, -k) : n + min(0, -k)]) for k in range(-most, most + 1))


def flux(x: Wave) -> Wave:
    """Rise of the band levels in dB, mean over bands, each 10 ms: peaks at attacks."""
    n = 1024
    padded = np.pad(x, (n // 2, n))
    frames = np.lib.stride_tricks.sliding_window_view(padded, n)[::HOP][: -(-len(x) // HOP)] * np.hanning(n)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    hz = np.fft.rfftfreq(n, 1 / RATE)
    edges = np.geomspace(80, 16000, 25)
    index = np.searchsorted(edges, hz)
    bands = np.stack([power[:, index == k].sum(axis=1) for k in range(1, 25) if (index == k).any()], axis=1)
    db = 10 * np.log10(bands + bands.max() * 1e-6 + 1e-12)
    rise = np.zeros(len(db))
    rise[2:] = np.maximum(db[2:] - np.maximum(db[:-2], np.roll(db[:-2], 1, axis=0)), 0).mean(axis=1)
    rise[0] = max(0.0, float((db[0] - db.min()).mean())) * 0.5
    return rise


def analyse(wave: Wave) -> Scene:
    """The events and groups of (channels, frames)."""
    x = mono(wave)
    level = levels_db(x)
    top = float(level.max())
    smooth = np.convolve(np.pad(level, 3, mode="edge"), np.ones(7) / 7, "valid")
    floor = float(np.percentile(smooth, 6))
    gate = max(top - 38.0, min(floor + 7.0, top - 12.0), -70.0)
    loud = level > gate
    if top < -75 or not loud.any():
        return Scene((), (), level, floor, (0, len(x)))
    first, last = int(np.argmax(loud)), len(loud) - int(np.argmax(loud[::-1]))
    rise = flux(x)
    limit = max(2.2, 0.22 * float(np.percentile(rise, 99.7)))
    starts: list[int] = []
    for i in range(len(rise)):
        around = rise[max(0, i - 5) : i + 6]
        attack = level[i : i + 10].max(initial=QUIET_DB)
        before = level[max(0, i - 8) : max(i - 1, 1)].mean() if i > 1 else QUIET_DB
        if (
            rise[i] >= limit
            and rise[i] == around.max()
            and attack > gate
            and attack > before + 2.5
            and (not starts or i - starts[-1] >= 9)
        ):
            starts.append(i)
    opens = [i for i in range(1, len(loud)) if loud[i] and not loud[max(0, i - 12) : i].any()] + (
        [0] if loud[:3].any() else []
    )
    for i in opens:
        if not any(abs(i - s) < 9 for s in starts):
            starts.append(i)
    starts.sort()
    events = []
    for k, begin in enumerate(starts):
        limit_hop = starts[k + 1] if k + 1 < len(starts) else len(level)
        end = min(_died_away(level, loud, begin, limit_hop, max(floor + 4.0, top - 62.0)), limit_hop)
        events.append(Event(_attack(x, max(0, begin * HOP - HOP // 2)), min(end * HOP, len(x))))
    events = [e for e in events if e.end - e.start > HOP]
    return Scene(tuple(events), _grouped(x, events), level, floor, (first * HOP, min(last * HOP, len(x))))


def _died_away(level: Wave, loud: Any, begin: int, limit: int, silent_db: float) -> int:
    """The hop at which an event is over: first under the gate for 0.1 s, then followed down to silence."""
    hop = begin + 2
    while hop < limit and loud[hop : min(hop + 10, limit)].any():
        hop += 1
    while hop < limit and level[hop : hop + 3].max(initial=QUIET_DB) > silent_db:
        hop += 1
    return hop + 1


def _attack(x: Wave, about: int) -> int:
    """The frame at which the attack near `about` begins: the last quiet millisecond before the rise."""
    piece = np.abs(x[about : about + 4 * HOP])
    if len(piece) < HOP:
        return about
    hops = piece[: len(piece) // 44 * 44].reshape(-1, 44).max(axis=1)
    over = np.flatnonzero(hops > 0.15 * hops.max())
    return max(0, about + (int(over[0]) - 2) * 44) if len(over) else about


def _grouped(x: Wave, events: Sequence[Event]) -> tuple[tuple[int, ...], ...]:
    """Neighbouring events with like spectra that do not lie far apart form one group."""
    if not events:
        return ()
    prints = [spectrum(x[e.start : max(e.end, e.start + HOP * 3)]) for e in events]
    groups: list[list[int]] = [[0]]
    gaps = [b.start - a.start for a, b in itertools.pairwise(events)]
    usual = float(np.median(gaps)) if gaps else RATE
    for i in range(1, len(events)):
        silence = events[i].start - events[i - 1].end
        alike = max(likeness(prints[i], prints[j]) for j in groups[-1][-3:])
        near = silence < 1.1 * RATE and events[i].start - events[i - 1].start < max(2.6 * usual, 0.5 * RATE)
        # Ding and dong: one thing at two pitches, the second before the first has died away.
        joined = silence <= 0.06 * RATE and (alike > 0.35 or _shifted_likeness(prints[i], prints[groups[-1][-1]]) > 0.7)
        if (alike > 0.72 and near) or joined:
            groups[-1].append(i)
        else:
            groups.append([i])
    return tuple(tuple(g) for g in groups)


def background_print(wave: Wave, scene: Scene) -> Wave:
    """(channels, bins) mean power spectrum (2048 frames, hop 512) of what is always there: each bin's lower half
    over time."""
    _, _, z = signal.stft(wave, RATE, nperseg=2048, noverlap=1536)
    return np.asarray(np.median(np.abs(z) ** 2, axis=2) * 1.4)


def split_background(wave: Wave, scene: Scene) -> tuple[Wave, Wave]:
    """(foreground, background): what stands 8 dB and more out of the steady part, and the rest; the two add up to
    the clip.

    Drops and crackles belong to a background: only what stays out for 40 ms and over several bands is foreground.
    """
    _, _, z = signal.stft(wave, RATE, nperseg=2048, noverlap=1536)
    power = np.abs(z) ** 2
    noise = np.median(power, axis=2, keepdims=True) * 1.4 + 1e-14
    ratio = ndimage.uniform_filter(power, (0, 7, 5)) / ndimage.uniform_filter(noise, (0, 7, 0))
    gain = np.clip((ratio - 4.0) / (ratio + 2.0), 0.0, 1.0)
    front = _inverse(z * gain, wave.shape[1])
    # What is left over of the background between events lies far under them: it is closed off.
    x = mono(front)
    level = levels_db(x)
    spread = ndimage.maximum_filter1d(ndimage.uniform_filter1d(level, 5), 9)
    bed_db = float(np.median(levels_db(mono(wave - front))))
    gate = max(float(level.max()) - 32.0, bed_db - 3.0)
    open_ = ndimage.uniform_filter1d((spread > min(gate, float(level.max()) - 8.0)).astype(float), 5)
    front = front * np.interp(np.arange(front.shape[1]), np.arange(len(open_)) * HOP, open_)
    return front, wave - front


def _inverse(z: Any, frames: int) -> Wave:
    _, out = signal.istft(z, RATE, nperseg=2048, noverlap=1536)
    out = np.asarray(out)[:, :frames]
    return np.pad(out, ((0, 0), (0, frames - out.shape[1])))


_GENERIC = frozenset(
    [
        "sound",
        "sounds",
        "noise",
        "event",
        "events",
        "clip",
        "recording",
        "audio",
        "scene",
        "it",
        "everything",
        "all",
        "them",
        "whole",
        "thing",
        "one",
        "ones",
        "element",
        "effect",
        "track",
        "music",
        "speech",
    ]
)


def is_generic(thing: str) -> bool:
    """Whether a phrase names no particular sound."""
    words = [
        w
        for w in thing.lower().split()
        if w not in ("the", "a", "an", "entire", "whole", "original", "first", "second", "third", "last", "of")
    ]
    return all(w in _GENERIC for w in words)


@dataclass(frozen=True)
class Found:
    """Where a thing sounds: events (indices) or, for a thing that is always there, the background. near: likeness
    of the best group."""

    events: tuple[int, ...]
    background: bool
    near: float


# Sources whose spectrum is that of what they meet: the ground of a step, the roof under rain.
_MEETING: Mapping[str, tuple[str, ...]] = {
    "footsteps": ("stone", "wood", "gravel", "snow", "leaves", "mud", "carpet", "metal"),
    "hooves": ("stone", "sand"),
    "rain": ("ground", "metal roof", "glass"),
    "impact": ("wood", "metal", "glass", "stone"),
}


def _templates(thing: str, source: str, seed: int) -> list[Wave]:
    """Spectra that a thing may have: one, or one for each material that its name leaves open."""
    open_ = source in _MEETING and traits_of(thing).material is None
    phrases = [f"{thing} on {other}" for other in _MEETING[source]] if open_ else [thing]
    return [spectrum(sound.render_event(p, None, np.random.default_rng(seed)).astype(np.float64)) for p in phrases]


def locate(wave: Wave, scene: Scene, thing: str, seed: int = 0) -> Found:
    """The events of a named thing; all events for a generic name; the background when it is a texture that never
    stops."""
    every = tuple(range(len(scene.events)))
    if is_generic(thing):
        return Found(every, False, 1.0)
    named = sound.match_by_words(thing) or sound.match_by_meaning(thing)
    templates = _templates(thing, named.source.name, seed)
    steady = named.source.kind == "texture" or (
        named.source.kind == "train" and len(scene.groups) > 1 and scene.has_background
    )
    if steady and scene.has_background and named.source.kind == "texture":
        return Found(every, True, named.near)
    if not scene.groups:
        return Found((), steady, 0.0)
    x = mono(wave)
    near = [
        max(
            likeness(spectrum(np.concatenate([x[scene.events[i].start : scene.events[i].end] for i in g])), t)
            for t in templates
        )
        for g in scene.groups
    ]
    shots = named.source.kind == "shot"
    # A texture fills its group; a struck thing comes as short events: a mismatch of kind costs.
    for k, g in enumerate(scene.groups):
        lengths = [scene.events[i].end - scene.events[i].start for i in g]
        if (shots and max(lengths) > 4 * RATE) or (
            named.source.kind == "texture" and scene.span(g)[1] - scene.span(g)[0] < 0.3 * RATE
        ):
            near[k] -= 0.15
    best = max(near)
    chosen = [i for g, s in zip(scene.groups, near, strict=True) if s > best - 0.08 and s > 0.2 for i in g]
    return Found(tuple(chosen), False, best)
