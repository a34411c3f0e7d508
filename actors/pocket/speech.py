"""Speech: a line to say, by whom and how, as sound.

A :class:`Line` is words, a speaker and manners in plain names (english.manners). The scene decides when it sounds and
where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import soxr

from . import english, voice_effects, voices
from .voices import Voice

RATE_HZ = 44_100
_NORMAL_DB = -21.0
FASTEST = 1.28
"""More haste than this loses consonants."""


@dataclass(frozen=True)
class Line:
    """What is said and how.

    words: the words, as written. voice: who (see :func:`cast`). manners: names of english.manners. rate: extra factor
    on the speed. lift: extra lift of the pitch, -1 to 1. pause_s: silence wanted between its sentences or parts, or
    None. stressed: words of the line to stress, lower case. pause_each: where the pause falls (english.pause_each).
    curve: how its level moves (english.level_curve), or None.
    """

    words: str
    voice: Voice
    manners: tuple[str, ...] = ()
    rate: float = 1.0
    lift: float = 0.0
    pause_s: float | None = None
    stressed: tuple[str, ...] = field(default=())
    pause_each: str | None = None
    curve: english.Curve | None = None


# manner -> (rate factor, lift, gain dB)
_MANNERS: dict[str, tuple[float, float, float]] = {
    "whisper": (0.95, 0.0, -9.0),
    "shout": (0.98, 0.34, 8.0),
    "loud": (1.0, 0.12, 5.0),
    "soft": (0.93, -0.04, -7.0),
    "cheerful": (1.06, 0.26, 1.0),
    "excited": (1.2, 0.36, 3.0),
    "tired": (0.72, -0.3, -4.0),
    "sad": (0.78, -0.24, -3.0),
    "angry": (1.1, 0.14, 5.0),
    "afraid": (1.12, 0.26, -2.0),
    "hesitant": (0.85, -0.04, -1.0),
    "calm": (0.87, -0.1, -1.0),
    "surprised": (1.08, 0.32, 2.0),
    "urgent": (1.18, 0.1, 3.0),
    "monotone": (0.97, -0.12, 0.0),
    "fast": (1.28, 0.0, 0.0),
    "slow": (0.68, 0.0, 0.0),
    "sarcastic": (0.85, 0.06, 0.0),
    "singing": (0.75, 0.25, 1.0),
}


def cast(speakers: Sequence[english.Speaker | None], rng: np.random.Generator) -> tuple[Voice, ...]:
    """A voice for each DIFFERENT speaker of a scene, in order; two of one kind get two voices. An open sex is drawn
    from `rng`."""
    used: dict[str, int] = {}
    found = []
    drawn: str | None = None
    for speaker in speakers:
        if drawn is not None and _open(speaker):
            # The next one of whom nothing is said is of the other sex, so that two are heard to be two.
            drawn = "male" if drawn == "female" else "female"
            speaker = english.Speaker(
                speaker.age if speaker else "adult", drawn, None, speaker.label if speaker else ""
            )
        kind = kind_of(speaker, rng)
        if drawn is None and _open(speaker):
            drawn = "female" if kind in ("woman", "girl", "old woman") else "male"
        options = voices.VOICES[kind]
        found.append(_with_register(options[used.get(kind, 0) % len(options)], speaker))
        used[kind] = used.get(kind, 0) + 1
    return tuple(found)


def _open(speaker: english.Speaker | None) -> bool:
    return speaker is None or (speaker.sex is None and speaker.register is None)


def kind_of(speaker: english.Speaker | None, rng: np.random.Generator) -> str:
    """woman, man, girl, boy, old woman or old man."""
    sex = speaker.sex if speaker else None
    if speaker and sex is None and speaker.register:
        sex = "male" if speaker.register == "low" else "female"
    if sex is None:
        sex = ("female", "male")[int(rng.integers(2))]
    table = {
        "child": {"female": "girl", "male": "boy"},
        "old": {"female": "old woman", "male": "old man"},
    }
    return table.get(speaker.age if speaker else "adult", {"female": "woman", "male": "man"})[sex]


def _with_register(voice: Voice, speaker: english.Speaker | None) -> Voice:
    """A deep or high voice of its kind: smaller or larger head, and the prosody lower or higher."""
    if speaker is None or speaker.register is None:
        return voice
    up = speaker.register == "high"
    prosody = voices.leaning(voice.prosody, 0.22 if up else -0.35)
    return Voice(
        f"{voice.name}-{speaker.register}",
        voice.colour,
        prosody,
        voice.resample * (1.07 if up else 0.93),
        voice.rate,
        voice.tremor,
        voice.engine,
        voice.fallback_semitones + (3 if up else -3),
    )


def render(line: Line, rng: np.random.Generator) -> np.ndarray:
    """The line as float32 mono at 44.1 kHz, trimmed, at the level its manner asks for (a normal voice: -21 dBFS while
    it speaks)."""
    rate, lift, gain_db = _combined(line)
    parts = _parts(line)
    waves: list[np.ndarray] = []
    for index, (text, _, stressed) in enumerate(parts):
        level_db = _curve_db(line.curve, (index + 0.5) / len(parts))
        effort = 0.0 if line.curve is None else float(np.clip(0.3 + level_db / 30.0, -0.2, 0.3))
        wave = voices.speak(
            text, line.voice, lift + effort + (0.12 if stressed else 0.0), rate * (0.72 if stressed else 1.0)
        )
        wave = voice_effects.level(wave, _NORMAL_DB + (5.0 if stressed else 0.0))
        if line.curve is not None:
            share = index / max(1, len(parts) - 1)
            wave = _coloured(wave, replace(line, manners=_manners_at(line.manners, _curve_db(line.curve, share))), rng)
            wave = voice_effects.level(wave, _NORMAL_DB)
        waves.append(wave)
    wave = joined(waves, [gap for _, gap, _ in parts[:-1]], voices.RATE_HZ)
    wave = wave if line.curve is not None else _coloured(wave, line, rng)
    if "telephone" in line.manners or "radio" in line.manners:
        wave = voice_effects.telephone(wave, voices.RATE_HZ, rng, -46.0 if "telephone" in line.manners else -40.0)
        gain_db = max(gain_db, -3.0)
    if line.curve is not None:
        wave = voice_effects.level(wave, _NORMAL_DB + 5.0) * curve_gain(line.curve, wave.size)
    else:
        wave = voice_effects.level(wave, _NORMAL_DB + gain_db)
    wave = voice_effects.soft_clip(wave, 1.0) if np.abs(wave).max(initial=0.0) > 0.9 else wave
    return np.asarray(soxr.resample(wave, voices.RATE_HZ, RATE_HZ, quality="HQ"), np.float32)


def joined(waves: Sequence[np.ndarray], gaps_s: Sequence[float], rate_hz: int) -> np.ndarray:
    """Mono pieces one after the other, with `gaps_s` seconds of silence heard between each and the next: the quiet
    ends of the pieces count as silence."""
    if not waves:
        return np.zeros(0, np.float32)
    pieces = [waves[0]]
    for before, wave, gap in zip(waves, waves[1:], gaps_s):
        quiet = before.size - active(before, rate_hz)[1] + active(wave, rate_hz)[0]
        pieces += [np.zeros(max(0, round(gap * rate_hz) - quiet), np.float32), wave]
    return np.concatenate(pieces).astype(np.float32)


def active(wave: np.ndarray, rate_hz: int, under_db: float = 36.0) -> tuple[int, int]:
    """The frames between which a mono wave sounds: where its 10-ms level is within `under_db` of the loudest."""
    size = max(1, rate_hz // 100)
    count = wave.size // size
    if count < 2:
        return 0, wave.size
    power = (wave[: count * size].reshape(count, size).astype(np.float64) ** 2).mean(axis=1)
    loud = np.flatnonzero(power > power.max() * 10 ** (-under_db / 10))
    return (int(loud[0]) * size, (int(loud[-1]) + 1) * size) if loud.size else (0, wave.size)


def curve_gain(curve: english.Curve, frames: int) -> np.ndarray:
    """A level curve as a gain for each frame, float32."""
    at, db = zip(*curve)
    return (10 ** (np.interp(np.linspace(0.0, 1.0, frames), at, db) / 20)).astype(np.float32)


def _curve_db(curve: english.Curve | None, share: float) -> float:
    if curve is None:
        return 0.0
    at, db = zip(*curve)
    return float(np.interp(share, at, db))


def _manners_at(manners: tuple[str, ...], level_db: float) -> tuple[str, ...]:
    """The manners at one level of a line whose level moves: it whispers only where it is soft, shouts where it is
    loud."""
    kept = tuple(m for m in manners if m not in ("whisper", "soft", "shout", "loud"))
    if "whisper" in manners and level_db <= -15.0:
        return (*kept, "whisper")
    return (*kept, "shout") if "shout" in manners and level_db >= -3.0 else kept


def _combined(line: Line) -> tuple[float, float, float]:
    rate, lift, gain = 1.0, line.lift, 0.0
    for manner in line.manners:
        if line.curve is not None and manner in ("whisper", "soft", "loud", "shout"):
            continue
        if (manner == "loud" and "shout" in line.manners) or (manner == "soft" and "whisper" in line.manners):
            continue
        by_rate, by_lift, by_gain = _MANNERS.get(manner, (1.0, 0.0, 0.0))
        rate, lift, gain = rate * by_rate, lift + by_lift, gain + by_gain
    male = line.voice.name.startswith(("man", "old-man"))
    return (
        float(np.clip(rate * line.rate, 0.5, max(FASTEST, line.rate))),
        float(np.clip(lift, -0.5, 0.6)) * (0.75 if male else 1.0),
        float(np.clip(gain, -12, 9)),
    )


def _coloured(wave: np.ndarray, line: Line, rng: np.random.Generator) -> np.ndarray:
    rate_hz = voices.RATE_HZ
    depth = max(line.voice.tremor, 0.6 if "afraid" in line.manners else 0.0)
    wave = voice_effects.tremor(wave, rate_hz, depth, rng)
    if "whisper" in line.manners:
        wave = voice_effects.whisper(wave, rate_hz, rng)
    if "robot" in line.manners:
        male = line.voice.name.startswith(("man", "old-man"))
        wave = voice_effects.robot(wave, rate_hz, 95.0 if male else 170.0)
    if "shout" in line.manners or "angry" in line.manners:
        wave = voice_effects.soft_clip(3.0 * voice_effects.shelf(wave, rate_hz, 1800.0, 5.0), 1.2)
    if {"soft", "tired", "sad"} & set(line.manners) and "whisper" not in line.manners:
        wave = voice_effects.shelf(wave, rate_hz, 2200.0, -4.0)
    return wave


_STOP = re.compile(r"(?<=[.!?…])[\"”’]?\s+(?=\S)")


def _parts(line: Line) -> list[tuple[str, float, bool]]:
    """(text, silence after it in seconds, whether stressed): one part, so one model call, unless pauses or stress cut
    the line."""
    segments = [(line.words, 0.0)]
    if line.pause_s is not None:
        segments = [(s, line.pause_s) for s in _pause_points(line.words, line.pause_each)]
    elif line.curve is not None:
        segments = [(s, 0.12) for s in _thirds(line.words)]
    elif "hesitant" in line.manners:
        segments = [(s, 0.4) for s in _hesitations(line.words)]
    elif "..." in line.words or "…" in line.words:
        pieces = [s.strip(" .…") for s in re.split(r"\.\.\.|…", line.words)]
        segments = [(s, 0.6) for s in pieces if s]
    parts: list[tuple[str, float, bool]] = []
    for text, gap in segments:
        runs = _stress_runs(text, line.stressed)
        for index, (run, stressed) in enumerate(runs):
            parts.append((run, gap if index == len(runs) - 1 else 0.05, stressed))
    return parts


def _thirds(words: str) -> list[str]:
    """Up to four pieces at natural stops, so that effort can grow from one to the next."""
    pieces = [p.strip() for p in re.split(r"(?<=[.!?,;:])\s+", words) if p.strip()]
    while len(pieces) > 4:
        at = min(range(len(pieces) - 1), key=lambda i: len(pieces[i]) + len(pieces[i + 1]))
        pieces[at : at + 2] = [f"{pieces[at]} {pieces[at + 1]}"]
    return pieces or [words]


def _pause_points(words: str, each: str | None = None) -> list[str]:
    """Where a pause belongs: after every word or item where the text says so; else between sentences, at dashes,
    commas, in the middle."""
    if each == "word":
        return [t for t in words.split() if re.search(r"\w", t)] or [words]
    if each == "item":
        items = [p.strip() for p in re.split(r"(?<=[.!?,;:…])\s+|\s*(?:—|–| - )\s*", words) if p and p.strip()]
        return items if len(items) > 1 or len(words.split()) > 12 else words.split()
    for pattern in (_STOP, re.compile(r"\s*(?:\.\.\.|…|—|–| - )\s*"), re.compile(r"(?<=[,;:])\s+")):
        parts = [p.strip() for p in pattern.split(words) if p and p.strip()]
        if len(parts) > 1:
            return parts
    tokens = words.split()
    half = len(tokens) // 2
    return [" ".join(tokens[:half]), " ".join(tokens[half:])] if half else [words]


def _hesitations(words: str) -> list[str]:
    """Cut after the first two words and at every natural stop, at most four pieces."""
    tokens = words.split()
    if len(tokens) < 4:
        return [words] if len(tokens) < 2 else [tokens[0], " ".join(tokens[1:])]
    cuts = {2}
    cuts |= {i + 1 for i, token in enumerate(tokens[:-1]) if token[-1] in ",.;:!?…" and i > 2}
    if len(cuts) == 1 and len(tokens) > 6:
        cuts.add(2 + (len(tokens) - 2) // 2)
    edges = [0, *sorted(cuts)[:3], len(tokens)]
    return [" ".join(tokens[a:b]) for a, b in pairwise(edges) if b > a]


def _stress_runs(text: str, stressed: Sequence[str]) -> list[tuple[str, bool]]:
    """The text cut into stressed words and the runs between them. A word in capitals in a line that is not all capitals
    is stressed."""
    tokens = text.split()
    letters = [re.sub(r"[^A-Za-z']", "", t) for t in tokens]
    # Not acronyms: a stressed word has a vowel, and lies among words in lower case.
    mixed = any(w.islower() for w in letters if len(w) > 1)
    wanted = {word.lower() for word in stressed}
    flags = [
        bool(w) and (w.lower() in wanted or (mixed and len(w) > 2 and w.isupper() and bool(re.search("[AEIOUY]", w))))
        for w in letters
    ]
    runs: list[tuple[str, bool]] = []
    for token, flag in zip(tokens, flags):
        word = token.lower() if flag and token.isupper() else token
        if runs and runs[-1][1] == flag:
            runs[-1] = (f"{runs[-1][0]} {word}", flag)
        else:
            runs.append((word, flag))
    return runs or [(text, False)]
