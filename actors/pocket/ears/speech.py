"""Speech in a clip: where somebody speaks (Silero VAD), and which words when (Whisper base, else tiny.en; int8,
beam 1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import files
from .onnx import session
from .signal import RATE_HZ, Array, close_gaps, runs

LEAD_S, TAIL_S = 0.1, 0.3
"""Silence added around a clip before recognition, seconds."""
MARGIN_S = 0.35
"""How far around detected speech the recogniser listens, seconds."""
_CHUNK, _CONTEXT = 512, 64


@dataclass(frozen=True)
class Word:
    """A recognised word, its time in seconds, and the recogniser's probability."""

    text: str
    start_s: float
    stop_s: float
    probability: float


@dataclass(frozen=True)
class Speech:
    """What is said.

    text: the transcript, "" where nobody speaks. words: in order. spans_s: stretches of voice by the VAD.
    voiced_share: part of the clip that the VAD calls speech.
    """

    text: str
    words: tuple[Word, ...]
    spans_s: tuple[tuple[float, float], ...]
    voiced_share: float

    @property
    def present(self) -> bool:
        return bool(self.words)


class VoiceDetector:
    """Silero VAD v6 on 32-ms chunks."""

    def __init__(self, weights: Mapping[str, str], threads: int) -> None:
        self._net = session(files.need("silero_vad", weights).read_bytes(), threads)

    def __call__(self, wave: Array) -> Array:
        """Speech probability of each 32-ms chunk of one channel at 16 kHz."""
        chunks = max(1, -(-len(wave) // _CHUNK))
        padded = np.zeros(_CONTEXT + chunks * _CHUNK, dtype=np.float32)
        padded[_CONTEXT : _CONTEXT + len(wave)] = wave
        peak = float(np.abs(padded).max())
        if peak < 1e-4:
            return np.zeros(chunks)
        # The detector misses quiet (distant) voices, so it hears every clip at the same peak.
        padded *= 0.5 / peak
        rows = np.lib.stride_tricks.sliding_window_view(padded, _CONTEXT + _CHUNK)[::_CHUNK]
        state = np.zeros((1, 1, 128), dtype=np.float32)
        return self._net.run(None, {"input": np.ascontiguousarray(rows), "h": state, "c": state})[0].ravel()


def spans(probability: Array, threshold: float = 0.5) -> tuple[tuple[float, float], ...]:
    """Stretches of speech in seconds, gaps under 0.2 s closed, shorter than 0.1 s dropped."""
    found = close_gaps(runs(np.asarray(probability) > threshold), 6)
    step = _CHUNK / RATE_HZ
    return tuple((a * step, b * step) for a, b in found if (b - a) * step >= 0.1)


class Recognizer:
    """Whisper base from the parts named `whisper_base_*`, else tiny.en from `whisper_tiny`."""

    def __init__(self, weights: Mapping[str, str], threads: int) -> None:
        from faster_whisper import WhisperModel

        common: dict[str, Any] = {"device": "cpu", "compute_type": "int8", "cpu_threads": threads}
        parts = ("part1", "part2", "config", "tokenizer", "vocabulary")
        paths = {part: files.find(f"whisper_base_{part}", weights) for part in parts}
        if all(path is not None and path.is_file() for path in paths.values()):
            data = {part: path.read_bytes() for part, path in paths.items() if path is not None}
            contents = {
                "model.bin": data["part1"] + data["part2"],
                "config.json": data["config"],
                "tokenizer.json": data["tokenizer"],
                "vocabulary.txt": data["vocabulary"],
            }
            self.name = "whisper-base"
            self._net = WhisperModel("whisper-base", files=contents, **common)
        else:
            self.name = "whisper-tiny.en"
            self._net = WhisperModel(str(files.need("whisper_tiny", weights).parent), **common)

    def __call__(self, wave: Array, spans_s: Sequence[tuple[float, float]] = ()) -> tuple[str, tuple[Word, ...]]:
        """Transcript and words of one channel at 16 kHz.

        Only `spans_s` (each widened by :data:`MARGIN_S`) are heard, the rest is silence: the recogniser makes up words
        for a siren. Segments that look like no speech, or that repeat themselves, are dropped.
        """
        heard = np.asarray(wave, dtype=np.float32)
        if spans_s:
            keep = np.zeros(len(heard), dtype=bool)
            for start, stop in spans_s:
                keep[max(0, round((start - MARGIN_S) * RATE_HZ)) : round((stop + MARGIN_S) * RATE_HZ)] = True
            heard = np.where(keep, heard, 0.0).astype(np.float32)
        lead = round(LEAD_S * RATE_HZ)
        padded = np.pad(heard, (lead, round(TAIL_S * RATE_HZ)))
        peak = float(np.abs(padded).max())
        if 0 < peak < 0.3:
            padded *= 0.5 / peak
        most = int(12 * len(wave) / RATE_HZ) + 16
        segments, _ = self._net.transcribe(
            padded,
            language="en",
            beam_size=1,
            best_of=1,
            temperature=0.0,
            word_timestamps=True,
            condition_on_previous_text=False,
            without_timestamps=False,
            max_new_tokens=most,
        )
        words: list[Word] = []
        for segment in segments:
            unsure = segment.no_speech_prob > 0.8 and segment.avg_logprob < -1.0
            if unsure or segment.compression_ratio > 2.4:
                continue
            for word in segment.words or ():
                start, stop = max(0.0, word.start - LEAD_S), max(0.0, word.end - LEAD_S)
                words.append(Word(word.word.strip(), float(start), float(stop), float(word.probability)))
        text = " ".join(word.text for word in words)
        return re.sub(r"\s+", " ", text).strip(), tuple(words)
