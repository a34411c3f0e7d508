"""The listeners that the adapter knows, as data: `model_type` in a checkpoint's config.json -> how it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

RATE_HZ = 16_000
"""What every one of them hears, in one channel."""


@dataclass(frozen=True)
class Family:
    """model, processor: classes of transformers. longest_s: the longest clip that is heard whole, in seconds.

    audio_first: whether the clip comes before the text in a turn, as the model's own examples have it.
    speaker: the class that also speaks; `model` is then the part of it that listens. speech_hz: its rate.
    """

    model: str
    processor: str
    longest_s: float
    audio_first: bool = True
    speaker: str = ""
    speech_hz: int = 24_000


FAMILIES: Mapping[str, Family] = {
    "qwen2_audio": Family("Qwen2AudioForConditionalGeneration", "Qwen2AudioProcessor", 30.0),
    "audioflamingo3": Family(
        "AudioFlamingo3ForConditionalGeneration", "AudioFlamingo3Processor", 600.0, audio_first=False
    ),
    # Audio-Flamingo-Next as well: its checkpoints say musicflamingo.
    "musicflamingo": Family(
        "MusicFlamingoForConditionalGeneration", "MusicFlamingoProcessor", 1_800.0, audio_first=False
    ),
    "qwen2_5_omni": Family(
        "Qwen2_5OmniThinkerForConditionalGeneration",
        "Qwen2_5OmniProcessor",
        300.0,
        speaker="Qwen2_5OmniForConditionalGeneration",
    ),
    "qwen3_omni_moe": Family(
        "Qwen3OmniMoeThinkerForConditionalGeneration",
        "Qwen3OmniMoeProcessor",
        300.0,
        speaker="Qwen3OmniMoeForConditionalGeneration",
    ),
}
