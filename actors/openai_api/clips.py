"""A stored clip as an API takes it: a WAV file in base64, its samples untouched unless the card says otherwise."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any, Optional

import soundfile

from torus_ray.audio import decode, downmix, resample, silence
from torus_ray.heads import Refused


@dataclass(frozen=True)
class ClipRules:
    """What becomes of a clip on its way. rate_hz: resampled to it; None: the clip's own. mono: downmixed.

    needed: the model takes no request without audio, so where there is none it gets a second of silence.
    max_mb: the largest WAV file that is sent, in MB of base64 text.
    """

    rate_hz: Optional[int] = None
    mono: bool = False
    needed: bool = False
    max_mb: float = 20.0


@dataclass(frozen=True)
class Sound:
    """A clip ready to be sent. data: base64 of a WAV file. seconds: how long it is."""

    data: str
    seconds: float

    @property
    def part(self) -> Any:
        """The content part of a message."""
        return {"type": "input_audio", "input_audio": {"data": self.data, "format": "wav"}}


def sound_of(clip: Optional[bytes], rules: ClipRules) -> Optional[Sound]:
    """A stored clip as it is sent, once for all questions about it. Raises Refused where it is too large to be sent."""
    if clip is None and not rules.needed:
        return None
    wav, seconds = _wav(clip, rules)
    data = base64.b64encode(wav).decode()
    if len(data) > rules.max_mb * 1e6:
        raise Refused(
            "clip_too_large",
            f"{seconds:.1f} s of audio are {len(data) / 1e6:.1f} MB in base64, the card allows {rules.max_mb:g}",
        )
    return Sound(data, seconds)


def _wav(clip: Optional[bytes], rules: ClipRules) -> Any:
    file = io.BytesIO()
    if clip is not None and rules.rate_hz is None and not rules.mono:
        # Integers in and out: the file holds the very samples of the stored clip.
        subtype = soundfile.info(io.BytesIO(clip)).subtype
        frames, rate = soundfile.read(io.BytesIO(clip), dtype="int32", always_2d=True)
        soundfile.write(file, frames, rate, format="WAV", subtype=subtype)
        return file.getvalue(), len(frames) / rate
    heard = silence() if clip is None else decode(clip)
    heard = downmix(heard) if rules.mono else heard
    heard = resample(heard, rules.rate_hz) if rules.rate_hz else heard
    soundfile.write(file, heard.wave.T, heard.rate_hz, format="WAV", subtype="PCM_16")
    return file.getvalue(), heard.duration_s
