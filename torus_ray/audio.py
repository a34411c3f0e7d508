"""Clips: what a head returns, how it is stored, and how each consumer asks for the rate and channels it needs.

The stored clip is what everybody hears (DESIGN 4): FLAC at the model's own rate and channels, never normalised,
resampled or trimmed. A consumer that needs another rate or one channel converts for itself with :func:`resample` and
:func:`downmix`.

One of the two modules that an adapter may import, so: Python 3.9, numpy, soundfile, soxr.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import soundfile
import soxr

Wave = Any
"""float32 array, (channels, frames); this alias keeps numpy's generics out of Python 3.9."""

SILENT_PEAK = 1e-4
"""A clip whose samples all stay below this is `silent` (METRICS 11)."""
TOO_SHORT_S = 0.1
"""A clip shorter than this, in seconds, is `too_short` (DESIGN 8)."""
MIN_RATE_HZ, MAX_RATE_HZ = 1_000, 655_350
"""FLAC's own bounds; outside them a rate is a mistake."""
MAX_CHANNELS = 8


class BadClip(ValueError):
    """A clip that cannot be stored. `reason` is one of `not_finite`, `empty`, `bad_rate`, `bad_shape`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Clip:
    """Sound in memory.

    wave: float32 (channels, frames), nominally in [-1, 1]; a one-dimensional array is taken as one channel.
    rate_hz: frames a second.
    """

    wave: Wave
    rate_hz: int

    def __post_init__(self) -> None:
        wave = np.asarray(self.wave)
        if wave.dtype.kind in "iu":
            raise BadClip(
                "bad_shape",
                f"a clip holds floats in [-1, 1], got {wave.dtype}; divide int16 by 32768, int32 by 2147483648",
            )
        if wave.ndim == 1:
            wave = wave[np.newaxis, :]
        if wave.ndim != 2 or wave.shape[0] > MAX_CHANNELS:
            raise BadClip(
                "bad_shape",
                f"a clip is (frames,) or (channels, frames) with at most {MAX_CHANNELS} channels, got {wave.shape}",
            )
        rate = self.rate_hz
        if isinstance(rate, bool) or int(rate) != rate or not MIN_RATE_HZ <= rate <= MAX_RATE_HZ:
            raise BadClip(
                "bad_rate", f"a rate is a whole number of Hz from {MIN_RATE_HZ} to {MAX_RATE_HZ}, got {rate!r}"
            )
        object.__setattr__(self, "wave", np.ascontiguousarray(wave, dtype=np.float32))
        object.__setattr__(self, "rate_hz", int(rate))

    @property
    def channels(self) -> int:
        return int(self.wave.shape[0])

    @property
    def frames(self) -> int:
        return int(self.wave.shape[1])

    @property
    def duration_s(self) -> float:
        return self.frames / self.rate_hz


@dataclass(frozen=True)
class StoredClip:
    """A clip as it is kept: FLAC bytes and what was seen while writing them.

    id: sha256 of PCM, rate and channels: the clip's identity (the FLAC bytes carry the encoder's version, this does
    not).
    peak: largest absolute sample before clipping. clipped_samples: how many lay above 1 and were cut.
    """

    data: bytes
    id: str
    rate_hz: int
    channels: int
    frames: int
    bits: int
    peak: float
    clipped_samples: int

    @property
    def duration_s(self) -> float:
        return self.frames / self.rate_hz

    @property
    def silent(self) -> bool:
        return self.peak < SILENT_PEAK

    @property
    def too_short(self) -> bool:
        return self.duration_s < TOO_SHORT_S


def encode(clip: Clip, bits: int = 16) -> StoredClip:
    """FLAC of a clip, losslessly at `bits` (16 or 24) a sample; samples above 1 are cut once, and counted.

    Encoding a decoded clip gives the same identity. Raises BadClip `empty` or `not_finite`.
    """
    if bits not in (16, 24):
        raise ValueError(f"bits is 16 or 24, got {bits!r}")
    if clip.frames == 0 or clip.channels == 0:
        raise BadClip("empty", "the clip has no samples")
    if not np.isfinite(clip.wave).all():
        bad = int(clip.wave.size - np.isfinite(clip.wave).sum())
        raise BadClip("not_finite", f"{bad} of {clip.wave.size} samples are NaN or infinite")
    full = 1 << (bits - 1)
    magnitude = np.abs(clip.wave)
    scaled = np.rint(clip.wave.astype(np.float64) * full)
    pcm = np.clip(scaled, -full, full - 1).astype(np.int32)
    buffer = io.BytesIO()
    # soundfile reads an int32 as left-justified: shift so that `bits` of it are kept.
    frames = np.ascontiguousarray((pcm << (32 - bits)).T)
    soundfile.write(buffer, frames, clip.rate_hz, format="FLAC", subtype="PCM_16" if bits == 16 else "PCM_24")
    return StoredClip(
        data=buffer.getvalue(),
        id=pcm_id(pcm, clip.rate_hz, bits),
        rate_hz=clip.rate_hz,
        channels=clip.channels,
        frames=clip.frames,
        bits=bits,
        peak=float(magnitude.max()),
        clipped_samples=int((magnitude > 1).sum()),
    )


def pcm_id(pcm: Wave, rate_hz: int, bits: int) -> str:
    """sha256 over (rate, channels, bits) and the PCM, int32 (channels, frames), frame by frame."""
    digest = hashlib.sha256(f"pcm:{rate_hz}:{pcm.shape[0]}:{bits}:".encode())
    digest.update(np.ascontiguousarray(pcm.T.astype("<i4")).tobytes())
    return digest.hexdigest()


def decode(data: bytes) -> Clip:
    """The clip in encoded bytes (FLAC, WAV, Ogg: what libsndfile reads). Raises BadClip `unreadable` when it is
    none."""
    try:
        frames, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise BadClip("unreadable", f"not audio that libsndfile can read: {error}") from error
    return Clip(frames.T, rate)


def identify(data: bytes) -> str:
    """The identity (see :class:`StoredClip`) of a stored FLAC file's content. Raises BadClip `unreadable`."""
    try:
        info = soundfile.info(io.BytesIO(data))
        bits = {"PCM_16": 16, "PCM_24": 24}.get(info.subtype)
        if bits is None:
            raise BadClip("unreadable", f"a stored clip is 16 or 24 bit, got {info.subtype}")
        frames, rate = soundfile.read(io.BytesIO(data), dtype="int32", always_2d=True)
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise BadClip("unreadable", f"not audio that libsndfile can read: {error}") from error
    return pcm_id(frames.T >> (32 - bits), rate, bits)


def downmix(clip: Clip) -> Clip:
    """One channel: the mean of all."""
    if clip.channels == 1:
        return clip
    return Clip(clip.wave.mean(axis=0, dtype=np.float64), clip.rate_hz)


def resample(clip: Clip, rate_hz: int) -> Clip:
    """The clip at another rate by soxr "HQ", the project's one resampler; the same object when the rate is right."""
    if clip.rate_hz == rate_hz:
        return clip
    return Clip(soxr.resample(clip.wave.T, clip.rate_hz, rate_hz, quality="HQ").T, rate_hz)


def mono(source: Union[Clip, bytes], rate_hz: int) -> Wave:
    """float32 (frames,) at `rate_hz`: downmixed, then resampled; from a clip or its encoded bytes."""
    clip = decode(source) if isinstance(source, bytes) else source
    return resample(downmix(clip), rate_hz).wave[0]


def silence(duration_s: float = 1.0, rate_hz: int = 16_000) -> Clip:
    """Digital silence, one channel."""
    return Clip(np.zeros((1, round(duration_s * rate_hz)), dtype=np.float32), rate_hz)
