"""Clips: what is stored is what was given, its identity is its sound's, and what cannot be stored says why."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from torus_ray.audio import (
    MAX_CHANNELS,
    BadClip,
    Clip,
    decode,
    downmix,
    encode,
    identify,
    mono,
    resample,
    silence,
)

RATE_HZ = 16_000


def tone(frames: int = 1_600, channels: int = 1, level: float = 0.5) -> Clip:
    wave = level * np.sin(2 * np.pi * 440 * np.arange(frames) / RATE_HZ)
    return Clip(np.stack([wave * (1 - 0.3 * channel) for channel in range(channels)]), RATE_HZ)


waves = arrays.arrays(
    np.float32,
    st.tuples(st.integers(1, 3), st.integers(1, 400)),
    elements=st.floats(-1.5, 1.5, width=32),
)


# --- storing ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(wave=waves, bits=st.sampled_from((16, 24)), rate_hz=st.sampled_from((8_000, 22_050, 44_100, 48_000, 192_000)))
def test_a_stored_clip_is_the_given_one_to_half_a_step_and_keeps_its_identity(
    wave: np.ndarray, bits: int, rate_hz: int
) -> None:
    stored = encode(Clip(wave, rate_hz), bits)
    heard = decode(stored.data)
    step = 1 / (1 << (bits - 1))
    cut = np.clip(wave, -1, 1 - step)
    assert (heard.rate_hz, heard.wave.shape) == (rate_hz, wave.shape)
    assert np.abs(heard.wave - cut).max() <= step / 2 + 1e-7
    assert encode(heard, bits).id == stored.id == identify(stored.data)
    assert stored.clipped_samples == int((np.abs(wave) > 1).sum())
    assert math.isclose(stored.peak, float(np.abs(wave).max()))
    assert (stored.frames, stored.channels, stored.bits) == (wave.shape[1], wave.shape[0], bits)


def test_identity_is_of_the_sound_and_not_of_its_encoding() -> None:
    stored = encode(tone())
    pcm, rate = soundfile.read(io.BytesIO(stored.data), dtype="int16", always_2d=True)
    other = io.BytesIO()
    soundfile.write(other, pcm, rate, format="FLAC", subtype="PCM_16", compression_level=0)
    wav = io.BytesIO()
    soundfile.write(wav, pcm, rate, format="WAV", subtype="PCM_16")
    assert other.getvalue() != stored.data
    assert identify(other.getvalue()) == identify(wav.getvalue()) == stored.id


def test_identity_tells_rate_channels_bits_and_samples_apart() -> None:
    clip = tone(channels=2)
    louder = Clip(clip.wave * np.float32(1.001), RATE_HZ)
    flat = Clip(clip.wave.T.reshape(1, -1), RATE_HZ)
    found = [encode(clip), encode(Clip(clip.wave, 16_001)), encode(clip, 24), encode(louder), encode(flat)]
    assert len({stored.id for stored in found}) == len(found)


def test_16_bit_full_scale_and_beyond() -> None:
    stored = encode(Clip(np.array([1.0, -1.0, 2.0, -3.0]), RATE_HZ))
    assert decode(stored.data).wave.tolist() == [[32767 / 32768, -1.0, 32767 / 32768, -1.0]]
    assert (stored.clipped_samples, stored.peak) == (2, 3.0)


def test_quiet_and_short_are_flags_not_errors() -> None:
    assert encode(silence(0.05)).silent
    assert encode(silence(0.05)).too_short
    assert not encode(tone()).silent
    assert not encode(silence(0.1)).too_short
    assert encode(silence(1.0)).duration_s == 1.0


# --- what cannot be stored --------------------------------------------------------------------------------------------


def reason(wave: object, rate_hz: object = RATE_HZ) -> str:
    with pytest.raises(BadClip) as caught:
        encode(Clip(wave, rate_hz))  # type: ignore[arg-type]
    assert str(caught.value)
    return caught.value.reason


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_sample_that_is_no_number_is_not_finite(bad: float) -> None:
    wave = np.zeros(100, np.float32)
    wave[50] = bad
    assert reason(wave) == "not_finite"


def test_a_float64_beyond_float32_is_not_finite() -> None:
    with np.errstate(over="ignore"):
        assert reason(np.array([1e300, 0.0])) == "not_finite"


@pytest.mark.parametrize("shape", [(0,), (1, 0), (2, 0), (0, 10)])
def test_no_samples_is_empty(shape: tuple[int, ...]) -> None:
    assert reason(np.zeros(shape)) == "empty"


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.uint8])
def test_whole_numbers_are_no_clip_and_the_mend_is_named(dtype: type) -> None:
    with pytest.raises(BadClip, match="divide") as caught:
        Clip(np.zeros(10, dtype), RATE_HZ)
    assert caught.value.reason == "bad_shape"


@pytest.mark.parametrize("shape", [(1, 1, 10), (MAX_CHANNELS + 1, 10), (160, 2), ()])
def test_a_shape_that_is_no_clip(shape: tuple[int, ...]) -> None:
    assert reason(np.zeros(shape)) == "bad_shape"


@pytest.mark.parametrize("rate", [0, -16_000, 999, 700_000, 16_000.5, True])
def test_a_rate_that_is_a_lie(rate: object) -> None:
    assert reason(np.zeros(10), rate) == "bad_rate"


@pytest.mark.parametrize("data", [b"", b"not audio", encode(silence(0.1)).data[:40]])
def test_bytes_that_are_no_audio_are_unreadable(data: bytes) -> None:
    for read in (decode, identify):
        with pytest.raises(BadClip) as caught:
            read(data)
        assert caught.value.reason == "unreadable"


def test_bits_are_16_or_24() -> None:
    with pytest.raises(ValueError, match="16 or 24"):
        encode(tone(), 32)


# --- for consumers ----------------------------------------------------------------------------------------------------


def test_downmix_is_the_mean_and_leaves_one_channel_alone() -> None:
    clip = tone(channels=3)
    assert np.allclose(downmix(clip).wave[0], clip.wave.mean(axis=0), atol=1e-7)
    assert downmix(tone()).channels == 1
    mono_clip = tone()
    assert downmix(mono_clip) is mono_clip


@pytest.mark.parametrize("rate_hz", [8_000, 22_050, 44_100, 48_000])
def test_resampling_keeps_pitch_level_and_duration(rate_hz: int) -> None:
    clip = tone(frames=RATE_HZ)
    there = resample(clip, rate_hz)
    assert there.rate_hz == rate_hz
    assert abs(there.duration_s - clip.duration_s) < 0.002
    middle = there.wave[0][rate_hz // 4 : 3 * rate_hz // 4]
    assert abs(np.sqrt((middle**2).mean()) - 0.5 / math.sqrt(2)) < 0.005
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    assert abs(spectrum.argmax() * rate_hz / len(middle) - 440) < 3


def test_resampling_to_its_own_rate_changes_nothing() -> None:
    clip = tone()
    assert resample(clip, RATE_HZ) is clip


def test_mono_takes_a_clip_or_its_bytes() -> None:
    clip = tone(channels=2)
    assert np.allclose(mono(encode(clip, 24).data, 8_000), mono(clip, 8_000), atol=1e-5)
    assert mono(clip, 8_000).shape == (800,)


def test_one_dimension_is_one_channel_and_the_array_given_is_not_kept() -> None:
    wave = np.zeros(10, np.float64)
    clip = Clip(wave, np.int64(RATE_HZ))  # type: ignore[arg-type]
    wave[:] = 1
    assert clip.wave.shape == (1, 10)
    assert clip.wave.dtype == np.float32
    assert clip.wave.max() == 0
    assert type(clip.rate_hz) is int
