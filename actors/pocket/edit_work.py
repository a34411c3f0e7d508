"""The state of an edit in progress, and the rendering of new material for it."""

from __future__ import annotations

import importlib
import importlib.util
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import english, sound, space
from .edit_events import RATE, Scene, Wave, analyse, levels_db, mono
from .edit_words import Clause

LONGEST = 10 * RATE


@dataclass(frozen=True)
class Work:
    """One clip under edit.

    wave: float64 (channels, frames). audio_type: speech, sound or music. seed: of the request. masked: the whole
    instruction with its
    quotes masked. clause: the wish being obeyed. step: its number, so that two additions differ.
    """

    wave: Wave
    audio_type: str
    seed: int
    masked: english.Masked
    clause: Clause
    step: int = 0

    @cached_property
    def scene(self) -> Scene:
        return analyse(self.wave)

    @cached_property
    def quotes(self) -> tuple[str, ...]:
        """The quoted words of this clause."""
        return tuple(quote.text for quote in self.masked.quotes_in(self.clause.text))

    @property
    def text(self) -> str:
        return self.clause.text

    def rng(self) -> np.random.Generator:
        """Fresh random numbers for this step: the same for the same seed and step."""
        return np.random.default_rng([self.seed & 0xFFFFFFFF, self.step, 977])

    def on(self, wave: Wave) -> Work:
        return replace(self, wave=wave)


def loudness_db(wave: Wave) -> float:
    """Level of what sounds: the 80th percentile of the 10-ms levels within 30 dB of the top."""
    level = levels_db(mono(wave))
    heard = level[level > level.max() - 30]
    return float(np.percentile(heard, 80)) if len(heard) else -60.0


def peak(wave: Wave) -> float:
    return float(np.abs(wave).max(initial=0.0))


def element(work: Work, phrase: str, seconds: float | None = None) -> Wave:
    """New material from a phrase, float64 (channels of the work, frames), at its own level, set at the distance
    and side it names."""
    x = _mono_element(work, phrase, seconds)
    where = english.distance(phrase)
    side = english.pan(phrase)
    room = space.room_of(phrase)
    if room in ("outdoors", None) and where is None and side is None:
        return np.tile(x, (work.wave.shape[0], 1))
    movement = where.moving if where else None
    pan = side.start if side else 0.0
    placed = space.place(x, where.meters if where else 1.0, room if room != "outdoors" else None, pan, movement).astype(
        np.float64
    )
    return placed if work.wave.shape[0] == 2 else placed.mean(axis=0, keepdims=True)


def _mono_element(work: Work, phrase: str, seconds: float | None) -> Wave:
    quoted = work.masked.quotes_in(phrase)
    if quoted:
        from . import edit_speech

        return edit_speech.spoken(" ".join(q.text for q in quoted), phrase, work.rng())
    if _is_music(phrase, work.audio_type):
        made = _scene_element(phrase, "music", work.seed + work.step, seconds)
        if made is not None:
            return made
    return sound.render_event(phrase, seconds, work.rng()).astype(np.float64)


_MUSIC = re.compile(
    r"\b(?:piano|guitars?|violins?|cello|flute|trumpet|sax\w*|organ|strings?|synth\w*|bass ?line|drum ?(?:beat|kit|"
    r"track|loop|machine|pattern|set)s?|drums\b|beat\b|"
    r"music|melody|chords?|harmony|orchestra\w*|choir|harp|marimba|accordion|banjo|ukulele|clarinet|percussion|"
    r"hi-?hats?|counter-?melody|arpeggio\w*|pad\b|song|tune)\b"
)


def _is_music(phrase: str, audio_type: str) -> bool:
    found = _MUSIC.search(phrase.lower())
    return bool(found) and (
        audio_type == "music" or not re.search(r"\b(?:hum|whistl|sing)\w*|music ?box", phrase.lower())
    )


def _scene_element(phrase: str, audio_type: str, seed: int, seconds: float | None) -> Wave | None:
    """From the scene module (`render_element(phrase, audio_type, seed, seconds)`), mono; None where the module is
    not installed."""
    name = f"{__package__}.scene"
    if importlib.util.find_spec(name) is None:
        return None
    made: Any = importlib.import_module(name).render_element(phrase, audio_type, seed, seconds)
    wave = np.asarray(getattr(made, "wave", made), dtype=np.float64)
    return wave.mean(axis=0) if wave.ndim == 2 else wave


def mixed(base: Wave, extra: Wave, at: int) -> Wave:
    """extra over base from frame `at`, at most 10 s; longer than base when extra is. Outside the overlap base
    stays to the sample."""
    at = max(0, at)
    length = min(max(base.shape[1], at + extra.shape[1]), max(LONGEST, base.shape[1]))
    out = np.zeros((base.shape[0], length))
    out[:, : base.shape[1]] = base[:, :length]
    m = min(extra.shape[1], length - at)
    if m > 0:
        part = extra[:, :m].copy()
        if m < extra.shape[1]:
            fade = min(m, RATE // 50)
            part[:, m - fade :] *= np.linspace(1, 0, fade)
        out[:, at : at + m] += part
        top = np.abs(out[:, at : at + m]).max(initial=0.0)
        if top > 0.98:
            out[:, at : at + m] = np.clip(out[:, at : at + m], -0.98, 0.98)
    return out


def joined(parts: list[Wave], fade_s: float = 0.005) -> Wave:
    """Pieces one after the other with short crossfades."""
    fade = int(fade_s * RATE)
    parts = [p for p in parts if p.shape[1] > 0]
    out = parts[0].copy()
    for piece in parts[1:]:
        k = min(fade, out.shape[1], piece.shape[1])
        ramp = np.linspace(0, 1, k) if k else np.zeros(0)
        head = out[:, out.shape[1] - k :] * (1 - ramp) + piece[:, :k] * ramp
        out = np.concatenate([out[:, : out.shape[1] - k], head, piece[:, k:]], axis=1)
    return out


def with_fades(piece: Wave, seconds: float = 0.004) -> Wave:
    """The piece with short ramps at both ends."""
    k = min(int(seconds * RATE), piece.shape[1] // 2)
    out = piece.copy()
    if k:
        out[:, :k] *= np.linspace(0, 1, k)
        out[:, -k:] *= np.linspace(1, 0, k)
    return out
