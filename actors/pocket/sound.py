"""Sound events from free English: a phrase picks a source and its traits, a procedural synth makes it.

`render_event("three dog barks", None, rng)` gives float32 mono at 44.1 kHz whose first sample is the onset.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace

import numpy as np

from . import weights
from .ears.text import Embedder
from .sound_catalogue import CATALOGUE, Source
from .sound_synth import RATE, Rng, Wave, frames, rounded
from .sound_traits import Traits, traits_of

LONGEST_S = 10.0
CLEARLY_MEANT = 0.6
"""A description at least this near wins over a match by general words (door, hit)."""
TEXTURE_RMS_DB, SHOT_PEAK_DB = -23.0, -5.0
_PREPOSITION = re.compile(
    r"\b(?:on|onto|in|into|inside|against|under|over|from|with|through|across|outside|at|near|beside|behind|by|"
    r"during|like|above|along|towards?|off)\b"
)


@dataclass(frozen=True)
class Match:
    """The source found for a phrase. near: 1 for a match by words, else the cosine to its nearest description.
    said: the words matched."""

    source: Source
    near: float
    said: str


def match(phrase: str) -> Match:
    """The source that a phrase names, or else the one whose description is nearest in meaning."""
    named = match_by_words(phrase)
    if named is not None and not named.source.weak:
        return named
    near = match_by_meaning(phrase)
    return near if named is None or near.near > CLEARLY_MEANT else named


def match_by_words(phrase: str) -> Match | None:
    """The source whose words stand in the phrase: the longest match, those before the first preposition first."""
    text = " ".join(phrase.lower().split())
    bend = _PREPOSITION.search(text)
    head = bend.start() if bend else len(text)
    best: tuple[float, Match] | None = None
    for source, patterns in _patterns():
        for found in (m for pattern in patterns for m in pattern.finditer(text)):
            # Words of the head name the thing that sounds; later ones name where, or on what, it sounds.
            weight = len(found.group().strip()) + (12.0 if found.start() < head else 0.0) - 20.0 * source.weak
            weight += 0.01 * found.start()
            if best is None or weight > best[0]:
                best = (weight, Match(source, 1.0, found.group().strip()))
    return best[1] if best else None


def match_by_meaning(phrase: str) -> Match:
    """The source with the description nearest to the phrase by sentence embedding."""
    vectors, owners = _descriptions()
    near = vectors @ embedder()([phrase])[0]
    top = int(np.argmax(near))
    return Match(CATALOGUE[owners[top]], float(near[top]), "")


def render_event(phrase: str, seconds: float | None, rng: Rng) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """The sound of an English phrase: float32 mono, 44.1 kHz, no silence before it, at most 10 s.

    seconds: the length wanted; textures and trains fill it, single events ring out within it. None: the sound's
    own length.
    """
    found = match(phrase)
    return render_source(found.source, traits_of(phrase), seconds, rng, found.said)


def render_source(
    source: Source, traits: Traits, seconds: float | None, rng: Rng, said: str = ""
) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """As :func:`render_event`, from a source of the catalogue and traits. said: the words that named the source."""
    limit = LONGEST_S if seconds is None else min(seconds, LONGEST_S)
    count = traits.count or _usual_count(source, said)
    wave = (
        _texture(source, traits, limit if seconds else None, rng)
        if count is None
        else _repeated(source, traits, count, seconds, limit, rng)
    )
    wave = _levelled(wave, source, traits)
    if seconds is not None:
        n = frames(limit)
        wave = rounded(wave[:n], 0.0, 0.02) if len(wave) > n else np.pad(wave, (0, n - len(wave)))
    return wave[: frames(LONGEST_S)].astype(np.float32)


def _usual_count(source: Source, said: str) -> int | None:
    if source.kind == "shot":
        plural = said.endswith(("s", "ing")) and not said.endswith("ss")
        return source.many if plural else source.once
    return None


def _texture(source: Source, traits: Traits, seconds: float | None, rng: Rng) -> Wave:
    if source.kind == "texture":
        return _from_onset(source.synth(traits, frames(seconds or source.seconds), rng))
    length = seconds or source.seconds
    gap = traits.gap_s or 1.0 / (source.rate * traits.speed)
    return _repeated(
        source, replace(traits, gap_s=gap), max(1, int(np.ceil(length / gap - 0.05))), seconds, length, rng
    )


def _repeated(source: Source, traits: Traits, count: int, seconds: float | None, limit: float, rng: Rng) -> Wave:
    """`count` occurrences; a texture occurs as bursts."""
    burst = min(source.seconds, 1.0) if source.kind == "texture" and count > 1 else source.seconds
    if source.kind == "texture" and count == 1 and seconds:
        burst = limit
    hits = [_from_onset(source.synth(traits, frames(burst), rng)) for _ in range(min(count, 12))]
    longest = max(len(hit) for hit in hits) / RATE
    own = 1.0 / (source.rate * traits.speed) if source.rate else longest + 0.3
    gap = traits.gap_s or (max(own, longest + 0.25) if source.kind == "texture" else own)
    if traits.gap_s is None and count > 1:
        gap = min(gap, max(0.12, (limit - min(longest, 0.4)) / (count - 0.2)))
    times = _times(count, gap, source, traits, rng)
    out = np.zeros(frames(min(times[-1] + longest, LONGEST_S)))
    for i, at in enumerate(times):
        hit = hits[i % len(hits)]
        start = round(at * RATE)
        m = min(len(hit), len(out) - start)
        if m > 0:
            # Left and right foot, up and down stroke: neighbours differ a little in level.
            out[start : start + m] += hit[:m] * 10 ** ((rng.random() - 0.5) * 2.0 * (source.loose > 0) / 20)
    return out


def _times(count: int, gap: float, source: Source, traits: Traits, rng: Rng) -> Wave:
    even = traits.has("evenly", "steady", "steadily", "regular", "regularly", "rhythmic", "rhythmically", "metronome")
    loose = 0.0 if even or (traits.gap_s and traits.count) else source.loose
    if traits.has("irregular", "irregularly", "random", "randomly", "uneven", "unevenly"):
        loose = 0.4
    trend = (
        np.geomspace(1.0, 0.4, max(count - 1, 1))
        if traits.tempo_trend > 0
        else np.geomspace(1.0, 2.4, max(count - 1, 1))
    )
    gaps = (
        gap
        * (trend if traits.tempo_trend else np.ones(max(count - 1, 1)))
        * (1 + loose * rng.uniform(-1.7, 1.7, max(count - 1, 1)))
    )
    return np.concatenate([[0.0], np.cumsum(np.maximum(gaps, 0.03))])[:count]


def _from_onset(wave: Wave) -> Wave:
    """Without what lies more than 40 dB under the peak at the beginning, and 70 dB at the end."""
    size = np.abs(wave)
    top = float(size.max())
    if top < 1e-9:
        return wave
    first = int(np.argmax(size > 0.01 * top))
    last = len(size) - int(np.argmax(size[::-1] > 3e-4 * top))
    return rounded(wave[first:last], 0.0005, 0.003)


def _levelled(wave: Wave, source: Source, traits: Traits) -> Wave:
    """At the usual level of its kind, louder or softer by force, rising or falling where the phrase says so."""
    wave = wave - wave.mean() if len(wave) > RATE // 10 else wave
    db = source.level_db + 16.0 * (traits.force - 0.5)
    peak = float(np.abs(wave).max()) + 1e-12
    if source.kind == "texture":
        gain = 10 ** ((TEXTURE_RMS_DB + db) / 20) / (float(np.sqrt(np.mean(wave**2))) + 1e-12)
        gain = min(gain, 0.9 / peak)
    else:
        gain = min(10 ** ((SHOT_PEAK_DB + db) / 20), 0.95) / peak
    if traits.level_trend and source.name != "kettle":
        ramp = np.linspace(-20.0, 3.0, len(wave))
        wave = wave * 10 ** ((ramp if traits.level_trend > 0 else ramp[::-1]) / 20)
        gain = min(gain, 0.95 / (float(np.abs(wave).max()) + 1e-12))
    return wave * gain


@functools.cache
def embedder() -> Embedder:
    """The one sentence embedder of this process."""
    files = {"minilm": str(weights.path("text.minilm")), "minilm_tokenizer": str(weights.path("text.minilm.tokenizer"))}
    return Embedder(files, 1)


@functools.cache
def _patterns() -> tuple[tuple[Source, tuple[re.Pattern[str], ...]], ...]:
    return tuple((source, tuple(re.compile(rf"\b(?:{word})") for word in source.words)) for source in CATALOGUE)


@functools.cache
def _descriptions() -> tuple[np.ndarray, tuple[int, ...]]:
    said = [(text, i) for i, source in enumerate(CATALOGUE) for text in source.says]
    return embedder()([text for text, _ in said]), tuple(i for _, i in said)
