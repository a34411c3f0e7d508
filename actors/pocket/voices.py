"""The speaking voices: Kokoro-82M (int8 ONNX) with blended style vectors, and Piper as another man and as fallback.

Kokoro's style vector has two halves: the first 128 numbers colour the voice, the last 128 move its pitch and timing.
Both halves are blended on their own from the five voices that ship in the package, which gives men, women, children and
moods from one model. The phonemes are espeak-ng's English IPA, as bundled by piper-tts.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import weights

RATE_HZ = 24_000
"""Kokoro's rate; Piper's 22,050 Hz is brought to it."""
MAX_TOKENS = 500
_COLOUR = 128
"""Where the style's colour half ends and its prosody half begins."""
KOKORO_ROLES = (*weights.KOKORO_PARTS, "speech.kokoro.voices", "speech.kokoro.vocabulary")

Blend = Mapping[str, float]


@dataclass(frozen=True)
class Voice:
    """One voice. colour and prosody: weights over Kokoro's voices (they add up to 1). resample: played back this much
    faster, which raises pitch and formants together (a smaller head). rate: its habitual speed. tremor: depth of an old
    voice's shake, 0 to 1. fallback_semitones: where Piper's one voice must go to stand in for it."""

    name: str
    colour: Blend
    prosody: Blend
    resample: float = 1.0
    rate: float = 1.0
    tremor: float = 0.0
    engine: str = "kokoro"
    fallback_semitones: float = 0.0


def _one(name: str, blend: Blend, **more: Any) -> Voice:
    return Voice(name, blend, more.pop("prosody", blend), **more)


# Median F0 of each, measured over two sentences, stands behind it (Hz).
VOICES: dict[str, tuple[Voice, ...]] = {
    "woman": (
        _one("woman-1", {"jf_alpha": 0.72, "jm_kumo": 0.28}, fallback_semitones=8),
        _one("woman-2", {"jf_gongitsune": 0.95, "jm_kumo": 0.05}, rate=1.05, fallback_semitones=10),
        _one("woman-3", {"jf_nezumi": 0.9, "jm_kumo": 0.1}, resample=0.94, fallback_semitones=7),
    ),
    "man": (
        _one("man-1", {"jm_kumo": 0.88, "jf_nezumi": 0.12}),
        Voice("man-2", {"jm_kumo": 1.0}, {"jm_kumo": 1.0}, engine="piper"),
        _one("man-3", {"jm_kumo": 0.74, "jf_tebukuro": 0.26}, resample=0.9, fallback_semitones=-2),
    ),
    "girl": (
        _one("girl-1", {"jf_tebukuro": 1.0}, resample=1.1, fallback_semitones=15),
        _one("girl-2", {"jf_alpha": 0.6, "jf_tebukuro": 0.4}, resample=1.22, fallback_semitones=14),
    ),
    "boy": (
        _one("boy-1", {"jf_tebukuro": 0.75, "jm_kumo": 0.25}, resample=1.2, fallback_semitones=13),
        _one("boy-2", {"jf_alpha": 0.6, "jf_tebukuro": 0.15, "jm_kumo": 0.25}, resample=1.22, fallback_semitones=12),
    ),
    "old woman": (
        _one("old-woman-1", {"jf_gongitsune": 0.62, "jm_kumo": 0.38}, rate=0.84, tremor=0.8, fallback_semitones=5),
        _one("old-woman-2", {"jf_nezumi": 0.68, "jm_kumo": 0.32}, rate=0.82, tremor=0.7, fallback_semitones=6),
    ),
    "old man": (
        _one("old-man-1", {"jm_kumo": 1.15, "jf_alpha": -0.15}, rate=0.82, tremor=0.8, fallback_semitones=-4),
        _one(
            "old-man-2",
            {"jm_kumo": 1.05, "jf_gongitsune": -0.05},
            resample=0.95,
            rate=0.85,
            tremor=0.7,
            fallback_semitones=-3,
        ),
    ),
}
"""Kind of speaker -> its voices; a second speaker of a kind gets the second."""

_HIGHER = {"jf_tebukuro": 1.0}
_LOWER = {"jm_kumo": 1.2, "jf_alpha": -0.2}


def leaning(blend: Blend, lift: float) -> dict[str, float]:
    """The blend moved by `lift` (-1 to 1) towards a low flat prosody (below 0) or a high lively one (above)."""
    target = _HIGHER if lift > 0 else _LOWER
    share = min(abs(lift), 1.0)
    names = {*blend, *target}
    return {name: (1 - share) * blend.get(name, 0.0) + share * target.get(name, 0.0) for name in sorted(names)}


class Kokoro:
    """Kokoro on one thread. `speak(ipa, voice, lift, speed)` gives float32 mono at 24 kHz."""

    def __init__(self) -> None:
        self._session = _session(str(weights.kokoro_model()))
        with np.load(weights.path("speech.kokoro.voices")) as styles:
            self._styles = {name: styles[name].reshape(-1, 2 * _COLOUR) for name in styles.files}
        self._vocabulary: dict[str, int] = json.loads(
            weights.path("speech.kokoro.vocabulary").read_text(encoding="utf-8")
        )["vocab"]

    def speak(self, ipa: str, voice: Voice, lift: float, speed: float) -> np.ndarray:
        tokens = [self._vocabulary[c] for c in ipa if c in self._vocabulary][:MAX_TOKENS]
        if not tokens:
            return np.zeros(0, np.float32)
        row = min(len(tokens), min(len(s) for s in self._styles.values()) - 1)
        colour = self._blend(voice.colour, row)[:_COLOUR]
        prosody = self._blend(leaning(voice.prosody, lift), row)[_COLOUR:]
        feed = {
            "tokens": np.array([[0, *tokens, 0]], np.int64),
            "style": np.concatenate([colour, prosody]).reshape(1, -1).astype(np.float32),
            "speed": np.array([speed], np.float32),
        }
        wave: np.ndarray = np.asarray(self._session.run(None, feed)[0], np.float32).ravel()
        return wave

    def _blend(self, blend: Blend, row: int) -> np.ndarray:
        return np.sum([share * self._styles[name][row] for name, share in blend.items()], axis=0)


class Piper:
    """Piper's "joe" on one thread: another man, and everybody when Kokoro's weights are not installed."""

    def __init__(self) -> None:
        config = json.loads(weights.path("speech.piper.config").read_text(encoding="utf-8"))
        self._ids: dict[str, list[int]] = config["phoneme_id_map"]
        self._rate_hz = int(config["audio"]["sample_rate"])
        inference = config.get("inference", {})
        self._noise = (float(inference.get("noise_scale", 0.667)), float(inference.get("noise_w", 0.8)))
        self._session = _session(str(weights.path("speech.piper")))

    def speak(self, ipa: str, speed: float) -> np.ndarray:
        """float32 mono at 24 kHz. The model draws its noise inside the graph, so its scales are 0: same words, same
        bytes."""
        import soxr

        ids = [*self._ids["^"], *self._ids["_"]]
        for char in ipa:
            if char in self._ids:
                ids += [*self._ids[char], *self._ids["_"]]
        ids += self._ids["$"]
        feed = {
            "input": np.array([ids], np.int64),
            "input_lengths": np.array([len(ids)], np.int64),
            "scales": np.array([0.0, 1.0 / speed, 0.0], np.float32),
        }
        wave = np.asarray(self._session.run(None, feed)[0], np.float32).ravel()
        return np.asarray(soxr.resample(wave, self._rate_hz, RATE_HZ, quality="HQ"), np.float32)


def _session(model: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@functools.cache
def kokoro() -> Kokoro:
    """The one Kokoro of this process, loaded at first use."""
    return Kokoro()


@functools.cache
def piper() -> Piper:
    """The one Piper of this process, loaded at first use."""
    return Piper()


@functools.cache
def _phonemizer() -> Any:
    from piper.phonemize_espeak import EspeakPhonemizer

    return EspeakPhonemizer()


@functools.lru_cache(maxsize=256)
def phonemes(text: str) -> str:
    """American English IPA of a text, with its punctuation, from espeak-ng."""
    return " ".join("".join(sentence) for sentence in _phonemizer().phonemize("en-us", text))


def speak(text: str, voice: Voice, lift: float = 0.0, speed: float = 1.0) -> np.ndarray:
    """Words in a voice: float32 mono at 24 kHz, silence at both ends trimmed.

    lift: -1 flat and low to 1 high and lively. speed: 1 is the voice's habit. One model call. Kokoro's voices fall back
    to Piper, moved in pitch, when Kokoro's packages are not installed, and the Piper voice to Kokoro.
    """
    ipa = phonemes(text)
    # Played back faster by `resample`, so spoken slower by as much: the words keep their pace.
    speed = float(np.clip(speed * voice.rate / voice.resample, 0.45, 2.2))
    use_kokoro = voice.engine == "kokoro" or not weights.available("speech.piper", "speech.piper.config")
    if use_kokoro and weights.available(*KOKORO_ROLES):
        wave, moved = kokoro().speak(ipa, voice, lift, speed), voice.resample
    elif voice.engine == "piper":
        wave, moved = piper().speak(ipa, speed * voice.resample), 2 ** (3.0 * lift / 12)
    else:
        moved = 2 ** ((voice.fallback_semitones + 3.0 * lift) / 12)
        wave = piper().speak(ipa, speed * voice.resample / moved)
    return trim(_faster(wave, moved))


def _faster(wave: np.ndarray, ratio: float) -> np.ndarray:
    """Played back `ratio` times faster at the same rate: pitch and formants rise together."""
    if abs(ratio - 1) < 1e-3 or not wave.size:
        return wave
    import soxr

    return np.asarray(soxr.resample(wave, RATE_HZ * ratio, RATE_HZ, quality="HQ"), np.float32)


def trim(wave: np.ndarray, threshold: float = 0.0012, pad_s: float = 0.06) -> np.ndarray:
    """Without the silence at both ends, but for `pad_s`: weak consonants at the ends stay."""
    loud = np.flatnonzero(np.abs(wave) > threshold)
    if not loud.size:
        return wave[:0]
    pad = int(pad_s * RATE_HZ)
    return wave[max(0, loud[0] - pad) : loud[-1] + pad]
