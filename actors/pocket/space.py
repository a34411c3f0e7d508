"""Places, distance, side and motion: what lies between a source and the listener.

A room is early reflections and a seeded decaying noise by its RT60; a barrier or a device is a band. Distance is
level, high cut and a
larger share of room. Motion is gain, high cut, Doppler and pan over time. Waves are float, (frames,) or (channels,
frames), 44.1 kHz.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import signal

from . import english

RATE = 44100
Wave = np.ndarray[Any, np.dtype[np.float64]]
SOUND_M_S = 343.0


@dataclass(frozen=True)
class Room:
    """A place. rt60_s: decay at 1 kHz. wet: reverberant share 0-1. first_ms: delay of the first reflection.
    bright: 1 keeps the highs of
    the tail, 0 loses them quickly. band_hz: what passes the wall, the device or the water. gain_db: its loss.
    drive: overload of a device.
    echoes_ms: distinct late echoes."""

    rt60_s: float
    wet: float
    first_ms: float = 8.0
    bright: float = 0.5
    band_hz: tuple[float, float] = (0.0, 22050.0)
    gain_db: float = 0.0
    drive: float = 0.0
    echoes_ms: tuple[float, ...] = ()


ROOMS: Mapping[str, Room] = {
    "dry": Room(0.08, 0.0),
    "outdoors": Room(0.2, 0.05, 18.0, 0.3),
    "room": Room(0.45, 0.22, 5.0, 0.4),
    "kitchen": Room(0.7, 0.32, 4.0, 0.8),
    "bathroom": Room(1.0, 0.42, 3.0, 0.95),
    "stairwell": Room(1.8, 0.45, 6.0, 0.8),
    "hall": Room(2.1, 0.42, 20.0, 0.5),
    "large hall": Room(2.9, 0.48, 28.0, 0.5),
    "reverberant": Room(2.3, 0.48, 15.0, 0.55),
    "cathedral": Room(4.8, 0.58, 35.0, 0.4),
    "cave": Room(3.4, 0.6, 22.0, 0.35, echoes_ms=(210.0, 390.0)),
    "tunnel": Room(2.6, 0.58, 10.0, 0.6, echoes_ms=(120.0, 240.0, 360.0)),
    "canyon": Room(1.6, 0.3, 160.0, 0.35, echoes_ms=(420.0, 830.0, 1240.0)),
    "car": Room(0.12, 0.25, 1.5, 0.3, (60.0, 7000.0)),
    "box": Room(0.15, 0.3, 1.0, 0.4, (250.0, 2800.0)),
    "next room": Room(0.5, 0.35, 6.0, 0.1, (40.0, 650.0), -6.0),
    "underwater": Room(0.6, 0.35, 2.0, 0.0, (30.0, 450.0), 8.0),
    "telephone": Room(0.05, 0.0, band_hz=(320.0, 3300.0), drive=0.4),
    "radio": Room(0.05, 0.0, band_hz=(250.0, 4200.0), drive=0.5),
    "megaphone": Room(0.3, 0.12, 12.0, 0.6, (500.0, 4200.0), drive=1.0),
}
"""Places and devices by name."""
_NAMES: tuple[tuple[str, str], ...] = (
    (r"under ?water|submerged|beneath the (?:water|surface)|below the surface", "underwater"),
    (
        r"(?:from |in |into )?(?:the |an? )?(?:next|other|another|adjacent|neighbou?ring)(?: \w+)? rooms?|(?:behind|"
        r"through|beyond|other side of) (?:a |the |an? )?(?:\w+ )?"
        r"(?:walls?|doors?|windows?|curtains?|glass|partition)|next door|neighbou?r's|(?:down|up)stairs|closed door|"
        r"(?:apartment|flat|floor) (?:above|below)|from outside the (?:house|room|building)",
        "next room",
    ),
    (r"megaphone|bull ?horn|loud ?speaker|tannoy|public address|\bpa system|p\.a\. system", "megaphone"),
    (
        r"(?:tele)?phone(?: \w+)? (?:line|call|quality|speaker|connection|receiver)|(?:over|on|through|via|"
        r"down) (?:a|the) (?:\w+ )?(?:tele)?phone|telephonic|intercom|voice ?mail|walkie[- ]talkie",
        "telephone",
    ),
    (
        r"(?:old |am |transistor |vintage |small |cheap )*radio\b|gramophone|tinny speaker|small speaker|"
        r"laptop speaker|cheap speaker",
        "radio",
    ),
    (
        r"(?:inside|in|within) (?:a |the |an? )?(?:\w+ )?(?:car|vehicle|taxi|van|truck|car's interior)\b|car interior",
        "car",
    ),
    (
        r"(?:inside|in|within) (?:a |the |an? )?(?:\w+ ){0,2}(?:box|cupboard|suitcase|drawer|bag|can|bucket|jar)\b",
        "box",
    ),
    (r"kitchen", "kitchen"),
    (r"closet|wardrobe", "dry"),
    (
        r"swimming pool|sports hall|gymnasium|indoor pool|train station|airport|museum|empty (?:house|apartment|"
        r"building)|aquarium hall",
        "large hall",
    ),
    (r"cistern|well\b(?= shaft)|bottom of a well|water tank|silo", "cave"),
)


def room_of(text: str) -> str | None:
    """The place or device that a text names, a key of ROOMS; None when it names none."""
    lowered = text.lower()
    if re.search(
        r"\b(?:no|without(?: any)?|less|free of|remove(?: the| all)?|dry) (?:reverb\w*|echo\w*|room)", lowered
    ):
        return "dry"
    for pattern, name in _NAMES:
        if re.search(rf"\b(?:{pattern})", lowered):
            return name
    found = english.room(text)
    return found.name if found and found.name in ROOMS else None


METERS: Mapping[str, float] = {
    "very close": 0.4,
    "close": 1.0,
    "near": 1.5,
    "middle": 6.0,
    "far": 25.0,
    "distant": 25.0,
    "very far": 60.0,
}
MOVEMENTS = ("approaching", "receding", "passing", "left to right", "right to left")


def place(
    wave: Wave,
    distance: str | float = 1.0,
    room: str | None = None,
    pan: float = 0.0,
    movement: str | None = None,
    tail: bool = True,
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A mono source set into a scene: float32 (2, frames).

    distance: metres, or a key of METERS, or English ("in the distance"). room: a key of ROOMS, or English, or None
    for none.
    pan: -1 left to +1 right. movement: one of MOVEMENTS, or None. tail: whether the room may ring past the
    source's end.
    """
    meters = meters_of(distance)
    place_of = ROOMS.get(room or "dry") or ROOMS[room_of(room or "") or "dry"]
    source = np.asarray(wave, dtype=np.float64)
    moved = move(source, movement) if movement else farther(source, meters)
    stereo = moved if moved.ndim == 2 else panned(moved, pan)
    wet = min(0.9, place_of.wet * (1 + 0.25 * np.log2(max(meters, 1.0)))) if place_of.wet else 0.0
    return reverberated(stereo, place_of, wet, tail).astype(np.float32)


def meters_of(distance: str | float) -> float:
    """Metres of a distance given as a number, a key of METERS or English; 1 when it says nothing."""
    if not isinstance(distance, str):
        return float(distance)
    if distance in METERS:
        return METERS[distance]
    found = english.distance(distance)
    return found.meters if found else 1.0


def farther(wave: Wave, meters: float) -> Wave:
    """The same source at that many metres (1 = as it is): softer by 5 dB a doubling beyond 1 m and duller."""
    if abs(meters - 1.0) < 1e-6:
        return np.asarray(wave, dtype=np.float64)
    gain = (
        10 ** (max(-30.0, -5.0 * np.log2(meters)) / 20) if meters > 1 else min(1.6, 10 ** (-3.0 * np.log2(meters) / 20))
    )
    corner = 20000.0 / (1.0 + max(meters - 1.0, 0.0) / 5.0) ** 0.9
    return gain * (low_pass(wave, max(corner, 900.0)) if meters > 1.5 else np.asarray(wave, dtype=np.float64))


def low_pass(wave: Wave, hz: float, order: int = 2) -> Wave:
    """Butterworth low-pass along time."""
    if hz >= 20000:
        return np.asarray(wave, dtype=np.float64)
    return np.asarray(signal.sosfilt(signal.butter(order, hz, "low", fs=RATE, output="sos"), wave, axis=-1))


def high_pass(wave: Wave, hz: float, order: int = 2) -> Wave:
    """Butterworth high-pass along time."""
    if hz <= 20:
        return np.asarray(wave, dtype=np.float64)
    return np.asarray(signal.sosfilt(signal.butter(order, hz, "high", fs=RATE, output="sos"), wave, axis=-1))


def panned(wave: Wave, pan: float | Wave) -> Wave:
    """(2, frames) from a mono wave by the equal-power law; pan may change over time. The centre keeps the level of
    the mono sum."""
    angle = (np.clip(np.asarray(pan, dtype=np.float64), -1, 1) + 1) * np.pi / 4
    return (
        np.stack([wave * np.cos(angle), wave * np.sin(angle)]) * np.sqrt(2.0) / (1.0 + 0.41 * np.abs(np.asarray(pan)))
    )


def move(wave: Wave, movement: str, near_m: float = 1.5, far_m: float = 35.0) -> Wave:
    """A mono source in motion: (frames,) when it comes or goes, (2, frames) when it crosses. The length stays."""
    n = len(wave)
    where = np.linspace(0.0, 1.0, n)
    if movement in ("approaching", "receding"):
        meters = far_m * (near_m / far_m) ** (where if movement == "approaching" else 1 - where)
        return _faded_highs(wave, meters) * np.minimum(1.0, (near_m / meters) ** 0.85)
    sign = -1.0 if movement == "right to left" else 1.0
    if movement == "passing":
        along = (where - 0.5) * 2 * far_m * 0.7
        meters = np.hypot(along, 2.5)
        speed = np.gradient(meters) * RATE
        # A tenth of the true closing speed at most: the pitch bends as it should and the length stays.
        delay = (
            (meters - meters.min()) / SOUND_M_S
            if float(np.abs(speed).max()) < 40
            else (meters - meters.min()) / SOUND_M_S * 40 / float(np.abs(speed).max())
        )
        warped = np.interp(np.clip(np.arange(n) - (delay - delay[0]) * RATE, 0, n - 1), np.arange(n), wave)
        return panned(_faded_highs(warped, meters) * (2.5 / meters) ** 0.8, sign * np.clip(along / 12, -0.9, 0.9))
    return panned(wave, sign * np.linspace(-0.95, 0.95, n))


def _faded_highs(wave: Wave, meters: Wave) -> Wave:
    """Crossfade through three low-passes as the distance changes."""
    depth = np.clip(np.log2(np.maximum(meters, 1.0)) / 5.0, 0, 1) * 2
    steps = (wave, low_pass(wave, 4500.0), low_pass(wave, 1600.0))
    return np.asarray(sum(step * np.clip(1 - np.abs(depth - i), 0, 1) for i, step in enumerate(steps)))


def reverberated(wave: Wave, room: Room | str, wet: float | None = None, tail: bool = True) -> Wave:
    """(channels, frames) in a room. wet: share of reverberation instead of the room's own. tail: whether it may
    get longer."""
    space = ROOMS[room] if isinstance(room, str) else room
    x = np.atleast_2d(np.asarray(wave, dtype=np.float64))
    x = through(x, space)
    share = space.wet if wet is None else wet
    if share <= 0:
        return x
    frames = x.shape[1]
    response = _response(space)[: x.shape[0]]
    room_sound = signal.fftconvolve(x, response if x.shape[0] > 1 else response[:1], axes=1)
    dry_gain, wet_gain = np.cos(share * np.pi / 2 * 0.8), np.sin(share * np.pi / 2)
    out = wet_gain * room_sound
    out[:, :frames] += dry_gain * x
    keep = frames + int(space.rt60_s * 0.75 * RATE) if tail else frames
    out = out[:, :keep]
    if tail:
        fade = min(frames, RATE // 4)
        out[:, -fade:] *= np.linspace(1, 0, fade) ** 0.5 if out.shape[1] > fade else 1.0
    return out


def through(wave: Wave, room: Room | str) -> Wave:
    """What a wall, a device or water lets pass; the level of a device's output is that of its input."""
    space = ROOMS[room] if isinstance(room, str) else room
    low_hz, high_hz = space.band_hz
    if space.drive == 0 and low_hz < 20 and high_hz > 20000 and space.gain_db == 0:
        return np.asarray(wave, dtype=np.float64)
    order = 4 if space.drive or high_hz < 1000 else 2
    out = low_pass(high_pass(wave, low_hz, order), high_hz, order)
    if space.drive:
        level = float(np.sqrt(np.mean(np.square(out)))) + 1e-9
        out = np.tanh(out / level * space.drive) * level / space.drive
        out = low_pass(high_pass(out, low_hz, order), high_hz, order)
        out *= 0.85 * min(
            3.0, float(np.sqrt(np.mean(np.square(wave)))) / (float(np.sqrt(np.mean(np.square(out)))) + 1e-9)
        )
    return out * 10 ** (space.gain_db / 20)


@functools.cache
def _response(room: Room) -> Wave:
    """(2, frames) impulse response of unit energy a channel, without the direct sound: the same in every process."""
    rng = np.random.default_rng(zlib.crc32(repr(room).encode()))
    n = int((room.rt60_s + room.first_ms / 1000 + max(room.echoes_ms, default=0.0) / 1000) * RATE) + 1
    start = int(room.first_ms / 1000 * RATE)
    t = np.arange(n - start) / RATE
    out = np.zeros((2, n))
    for channel in out:
        noise = rng.standard_normal(n - start)
        lows = low_pass(noise, 500.0) * np.exp(-6.9 * t / (room.rt60_s * 1.15))
        mids = low_pass(high_pass(noise, 500.0), 3500.0) * np.exp(-6.9 * t / room.rt60_s)
        highs = (
            high_pass(noise, 3500.0)
            * np.exp(-6.9 * t / (room.rt60_s * (0.25 + 0.6 * room.bright)))
            * (0.3 + 0.7 * room.bright)
        )
        channel[start:] = (lows + mids + highs) * np.minimum(1.0, t / (0.004 + room.first_ms / 1500) + 0.2)
        for i in range(7):
            at = start + int(room.first_ms / 1000 * RATE * (0.1 + 1.4 * i / 7 + 0.4 * rng.random()))
            if at < n:
                channel[at] += 14.0 * 0.8**i * (1 if rng.random() < 0.5 else -1)
        energy = float(np.sqrt(np.sum(channel**2)))
        channel /= energy
        for k, echo in enumerate(room.echoes_ms):
            at = int(echo / 1000 * RATE)
            if at < n - 64:
                channel[at : at + 64] += 0.5 * 0.6**k * np.hanning(64) / 8
    return out / np.sqrt(np.sum(out**2, axis=1, keepdims=True))
