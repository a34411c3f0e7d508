"""What heads are asked in the contract: prompts of each type, clips of each rate and length, one question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from torus_ray.audio import Clip, encode, silence
from torus_ray.heads import (
    AnswerRequest,
    CaptionRequest,
    EditRequest,
    GenerateRequest,
    MeasureRequest,
    Question,
    Request,
)
from torus_ray.protocol.texts import texts_of
from torus_ray.protocol.words import quoted_words
from torus_ray.systems import HeadCard, TextsCard

SEED, OTHER_SEED = 0, 1
BASE_S, SHORT_S, LONG_S, SILENT_S = 2.0, 0.1, 60.0, 5.0
BASE_RATE_HZ = 24_000
FORMS = ((16_000, 1), (44_100, 2), (48_000, 1))
"""(rate in Hz, channels) of clips beside the plain one: what the systems of the paper put out."""

PROMPTS: Mapping[str, tuple[str, str]] = {
    "speech": (
        'A woman says "the train leaves at nine in the morning" in a calm voice.',
        'An old man shouts "close the window, it is raining" across a room.',
    ),
    "sound": (
        "A dog barks three times in a yard, then a car drives past.",
        "Steady rain falls on a tin roof while a clock ticks.",
    ),
    "music": (
        "A slow piano melody in a minor key over soft strings.",
        "A fast drum loop with an electric bass.",
    ),
}
EDITS: Mapping[str, tuple[str, str]] = {
    "speech": (
        'Make the voice much quieter; it still says "the train leaves at nine in the morning".',
        'Now a man says "the train leaves at ten".',
    ),
    "sound": ("Make it much quieter.", "Add a bell that rings twice at the end."),
    "music": ("Make it much quieter.", "Add a drum that plays on every beat."),
}
STEM = "What is heard first?"
OPTIONS = (
    "a low steady tone",
    "a bell that rings twice",
    "a barking dog",
    "a woman who speaks",
    "a fast drum loop",
    "rain on a roof",
)


@dataclass(frozen=True)
class Head:
    """One head as it is asked here: its operation, its part of the card, the words that the system's card may say
    otherwise."""

    operation: str
    card: HeadCard
    texts: TextsCard

    @property
    def hears(self) -> bool:
        return self.operation != "generate"

    @property
    def renders(self) -> bool:
        return self.operation in ("generate", "edit")

    @property
    def kinds(self) -> tuple[str, ...]:
        """What it is told apart by: audio types of a head that renders, measures of one that measures."""
        if self.operation == "measure":
            return tuple(self.card.measures)
        return self.card.audio_types if self.renders else ("",)

    def request(self, kind: str = "", *, clip: bytes = b"", number: int = 0, seed: int = SEED) -> Request:
        """The request number 0 or 1 of a kind (of the head's first where nothing is said), about a clip (the plain
        one where nothing is said). Its id is the asker's to give."""
        kind, clip = kind or self.kinds[0], clip or tone(number)
        if self.operation in ("generate", "edit"):
            prompt = (PROMPTS if self.operation == "generate" else EDITS)[kind][number]
            words = quoted_words(prompt) or "the train leaves at nine" if self.card.words else None
            if self.operation == "generate":
                return GenerateRequest("", prompt, kind, seed, words)
            return EditRequest("", prompt, clip, kind, seed, words)
        texts = texts_of(**self.texts.model_dump())
        if self.operation == "caption":
            return CaptionRequest("", texts.caption_instruction, clip, seed)
        if self.operation == "measure":
            return MeasureRequest("", kind, clip, seed)
        return AnswerRequest("", _questions(texts.ask, 1 + number), clip, seed)


def _questions(ask: Callable[[str, Sequence[str]], str], count: int) -> tuple[Question, ...]:
    turned = [OPTIONS[at:] + OPTIONS[:at] for at in range(count)]
    return tuple(Question(STEM, options, ask(STEM, options)) for options in turned)


@cache
def tone(number: int = 0, seconds: float = BASE_S, rate_hz: int = BASE_RATE_HZ, channels: int = 1) -> bytes:
    """FLAC of a tone with harmonics that swells four times a second; 0 and 1 differ in pitch and level."""
    time_s = np.arange(round(seconds * rate_hz)) / rate_hz
    swell = 0.6 + 0.4 * np.sin(2 * np.pi * 4 * time_s)
    pitch_hz, level = ((220.0, 0.3), (410.0, 0.15))[number]
    harmonics = sum(np.sin(2 * np.pi * pitch_hz * k * time_s) / k for k in range(1, 6))
    wave = np.stack([level * swell * harmonics * (1.0 - 0.3 * channel) for channel in range(channels)])
    return encode(Clip(np.clip(wave, -1, 1), rate_hz)).data


@cache
def quiet() -> bytes:
    """FLAC of digital silence."""
    return encode(silence(SILENT_S, BASE_RATE_HZ)).data


BROKEN = b"fLaC" + bytes(range(256))
"""Bytes that begin like a clip and are none: whoever decodes them gets an exception."""
