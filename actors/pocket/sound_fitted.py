"""Four families of sounds with fitted constants: calls of animals and people, motors, blows, grains.

The constants were found by a random search for what an audio tagger (YAMNet) hears as the thing itself. Size, speed
and force act on
top of them: a larger body is lower, a faster motor higher.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .sound_synth import (
    Rng,
    Wave,
    band,
    buzz,
    decay,
    formants,
    frames,
    grains,
    low,
    noise,
    normal,
    resonate,
    shape,
    tilted,
    time_axis,
    tone,
    voice,
    wander,
)

Vowel = tuple[float, float, float]


@dataclass(frozen=True)
class Call:
    """One voiced call. seconds; hz: F0. bend: F0 as a factor at 0, 25, 60 and 100 % of the call. closed, opened:
    formants (Hz) at the ends
    and at `peak` (fraction). bright, breath: of the source. rough: depth and rate (Hz) of the F0 jitter. drive:
    overload. throb: depth and
    rate of the level. attack: fraction of the call. fall: exponent of its end. hiss: noise between 1.5 and 6 kHz."""

    seconds: float
    hz: float
    bend: tuple[float, float, float, float]
    closed: Vowel
    opened: Vowel
    peak: float
    bright: float
    breath: float
    rough: tuple[float, float]
    drive: float
    throb: tuple[float, float]
    attack: float
    fall: float
    hiss: float


@dataclass(frozen=True)
class Motor:
    """A running motor. hz: firing or blade rate. bright: of its pulses. uneven: level of the 1/4 and 1/2 orders.
    jitter: depth and rate of
    its speed. peaks: (Hz, gain) of four resonances. air, air_hz: level and band of the air noise. chop: how far
    the pulses gate the air.
    rumble: noise under 180 Hz. drive: overload. sway: depth and rate of the level."""

    hz: float
    bright: float
    uneven: tuple[float, float]
    jitter: tuple[float, float]
    peaks: tuple[tuple[float, float], ...]
    air: float
    air_hz: tuple[float, float]
    chop: float
    rumble: float
    drive: float
    sway: tuple[float, float]


@dataclass(frozen=True)
class Blow:
    """One blow. bands: (centre Hz, width as a share, t60 s, gain) of noise. modes: (Hz, t60 s, gain). attack: s.
    second: (delay s, gain) of a
    second contact. drive: overload. spread: how much one blow differs from the next in pitch."""

    bands: tuple[tuple[float, float, float, float], ...]
    modes: tuple[tuple[float, float, float], ...]
    attack: float
    second: tuple[float, float]
    drive: float
    spread: float


@dataclass(frozen=True)
class Grain:
    """A texture of grains on a bed. rate: grains a second. t60: shortest (s) and range (factor). hz: lowest and
    range (factor). width: of the
    grain's resonance as a share. rise: octaves that a tonal grain climbs. tonal: 0 noise to 1 tone. spread_db: of
    the levels. bed: level;
    bed_tilt: dB an octave; bed_hz: its band. gust: depth and rate of the grains' level; sway: of the bed's."""

    rate: float
    t60: tuple[float, float]
    hz: tuple[float, float]
    width: float
    rise: float
    tonal: float
    spread_db: float
    bed: float
    bed_tilt: float
    bed_hz: tuple[float, float]
    gust: tuple[float, float]
    sway: tuple[float, float]


def call(name: str, rng: Rng, size: float = 1.0, bend: float = 1.0) -> Wave:
    """One call of CALLS; `bend` scales its pitch."""
    c = CALLS[name]
    n = frames(c.seconds * size**0.15)
    f0 = bend * c.hz / size**0.7 * shape(n, list(zip((0.0, 0.25, 0.6, 1.0), c.bend, strict=True)))
    f0 = f0 * (1 + c.rough[0] * (wander(n, c.rough[1], rng) - 0.5)) * (0.97 + 0.06 * rng.random())
    k = size**-0.3
    ends, middle = (tuple(f * k for f in vowel) for vowel in (c.closed, c.opened))
    x = voice(f0, [(0.0, ends), (c.peak, middle), (1.0, ends)], rng, c.bright, c.breath)  # type: ignore[list-item]
    x = np.tanh(c.drive * normal(x)) * (1 - c.throb[0] * (0.5 + 0.5 * tone(c.throb[1], n)))
    t = np.linspace(0, 1, n)
    env = np.minimum(1.0, t / c.attack) * (1 - t) ** (c.fall * 0.6)
    return normal(x * env) + c.hiss * normal(band(noise(n, rng), 1500, 6000)) * env


def motor(name: str, n: int, rng: Rng, speed: Wave | float = 1.0) -> Wave:
    """n frames of a motor of MOTORS; `speed` scales its rate, over time if it is a curve."""
    m = MOTORS[name]
    hz = m.hz * (1 + m.jitter[0] * (wander(n, m.jitter[1], rng) - 0.5)) * speed
    pulses = buzz(hz, n, m.bright) * (1 + m.uneven[0] * tone(hz / 4, n) + m.uneven[1] * tone(hz / 2, n))
    body = formants(pulses, [(f, 0.5 * f, g) for f, g in m.peaks])
    gate = 1 - m.chop + m.chop * np.clip(buzz(hz, n, 0.4) + 0.3, 0, 1)
    x = (
        normal(body)
        + m.air * normal(band(noise(n, rng), *m.air_hz) * gate)
        + m.rumble * normal(low(tilted(n, rng, 5), 180))
    )
    return np.tanh(m.drive * normal(x)) * (1 - m.sway[0] * (0.5 + 0.5 * tone(m.sway[1], n)))


def blow(name: str, rng: Rng, size: float = 1.0) -> Wave:
    """One blow of BLOWS."""
    b = BLOWS[name]
    n = frames(max(0.06, 1.15 * max([t for _, _, t, _ in b.bands] + [t for _, t, _ in b.modes])))
    v = (1 + b.spread * rng.standard_normal()) / size**0.6
    out = np.zeros(n)
    for (hz, width, t60, gain), (mode_hz, mode_t60, mode_gain) in zip(b.bands, b.modes, strict=True):
        noisy = band(noise(n, rng), hz * v / (1 + width), hz * v * (1 + width))
        out += gain * normal(noisy) * decay(n, t60)
        out += mode_gain * np.sin(2 * np.pi * mode_hz * v * time_axis(n) + rng.random()) * decay(n, mode_t60)
    out = np.tanh(b.drive * normal(out))
    a = frames(b.attack)
    out[:a] *= np.linspace(0, 1, a)
    if b.second[1] <= 0.05:
        return out
    late = frames(b.second[0])
    both = np.zeros(n + late)
    both[:n] += out
    both[late:] += b.second[1] * out
    return both


def texture(name: str, n: int, rng: Rng, density: float = 1.0, bed: float = 1.0) -> Wave:
    """n frames of a texture of GRAINS; `density` scales the number of grains, `bed` the level of what is under them."""
    g = GRAINS[name]

    def one(r: Rng) -> Wave:
        t60 = g.t60[0] * g.t60[1] ** r.random()
        m = frames(t60 * 1.1)
        hz = min(g.hz[0] * g.hz[1] ** r.random(), 15000.0)
        x = (1 - g.tonal) * normal(resonate(noise(m, r), hz, hz * g.width))
        return (x + g.tonal * tone(hz * 2.0 ** (g.rise * np.linspace(0, 1, m)), m)) * decay(m, t60)

    top = grains(n, g.rate * density, rng, one, 40, 1.0, g.spread_db) * (
        1 - g.gust[0] + g.gust[0] * wander(n, g.gust[1], rng) ** 1.5
    )
    under = band(tilted(n, rng, g.bed_tilt), g.bed_hz[0], max(g.bed_hz[1], g.bed_hz[0] * 1.5))
    under = under * (1 - g.sway[0] + g.sway[0] * wander(n, g.sway[1], rng) ** 1.5)
    return normal(top) + bed * g.bed * normal(under)


CALLS: Mapping[str, Call] = {
    "dog": Call(
        0.3,
        800,
        (0.508, 1.145, 0.773, 0.517),
        (1036, 1767, 2230),
        (896.9, 1347, 2230),
        0.59,
        0.711,
        0.16,
        (0.333, 101.8),
        1.443,
        (0.16, 27.56),
        0.229,
        0.332,
        0.106,
    ),
    "cat": Call(
        1.1,
        419.6,
        (0.548, 1.286, 0.816, 0.6),
        (330.3, 1044, 4200),
        (659, 1370, 4200),
        0.7,
        0.781,
        0.095,
        (0.542, 134.5),
        0.8,
        (0.3, 25.59),
        0.35,
        0.843,
        0.091,
    ),
    "crow": Call(
        0.6,
        1100,
        (0.924, 0.8, 0.936, 0.697),
        (250, 2100, 2641),
        (300, 1943, 2641),
        0.477,
        0.84,
        0.281,
        (0.059, 28.26),
        0.358,
        (0.488, 28.01),
        0.11,
        1.819,
        0.368,
    ),
    "duck": Call(
        0.12,
        1100,
        (1.172, 0.8, 0.864, 0.892),
        (428.9, 2200, 2279),
        (354.9, 2111, 2279),
        0.407,
        0.617,
        0.821,
        (0.559, 200.8),
        0.872,
        (0.4, 28.64),
        0.042,
        0.841,
        0.296,
    ),
    "rooster": Call(
        1,
        636.4,
        (0.942, 1.172, 0.931, 0.4),
        (1039, 2028, 4063),
        (1366, 1412, 4063),
        0.58,
        0.601,
        0.581,
        (0.061, 95.42),
        0.542,
        (0.25, 15.03),
        0.125,
        0.374,
        0,
    ),
    "hen": Call(
        0.124,
        1100,
        (0.5, 1.251, 1.322, 0.953),
        (1100, 1311, 3728),
        (605.3, 1820, 3728),
        0.275,
        0.212,
        0.01,
        (0.6, 130.3),
        0.357,
        (0.345, 6.441),
        0.215,
        1.226,
        0.011,
    ),
    "cow": Call(
        1,
        229.7,
        (1.3, 1.098, 1.158, 0.44),
        (724.1, 1196, 2410),
        (1238, 2283, 2410),
        0.403,
        0.2,
        0.026,
        (0.065, 175.2),
        5,
        (0.025, 38),
        0.313,
        1.177,
        0.146,
    ),
    "laugh": Call(
        0.189,
        340.1,
        (0.661, 1.079, 1.346, 0.979),
        (914.4, 2200, 2645),
        (885.7, 2600, 2645),
        0.215,
        0.95,
        0.01,
        (0.226, 113.3),
        4.192,
        (0.9, 18.23),
        0.044,
        0.57,
        0.063,
    ),
    "cough": Call(
        0.371,
        300,
        (0.5, 1.361, 0.918, 0.708),
        (554.9, 1892, 2822),
        (383, 1466, 2822),
        0.297,
        0.722,
        0.021,
        (0.335, 83.47),
        2.499,
        (0.256, 10.21),
        0.025,
        2.801,
        0.108,
    ),
    "snore": Call(
        1,
        120,
        (0.797, 1.536, 1.252, 1.2),
        (507, 1350, 3265),
        (752.6, 1179, 3265),
        0.405,
        0.741,
        0.49,
        (0.293, 220),
        0.3,
        (0.3, 9.642),
        0.296,
        0.675,
        0.12,
    ),
}

MOTORS: Mapping[str, Motor] = {
    "car_idle": Motor(
        62.89,
        0.2,
        (0.5773, 0.4988),
        (0.1131, 22.34),
        ((90.13, 0.1082), (337.9, 0.0779), (1233, 0.0467), (5565, 0.0683)),
        0.0269,
        (647.5, 6697),
        0.9242,
        0.01,
        0.7513,
        (0.2713, 0.3059),
    ),
    "helicopter": Motor(
        24,
        0.2923,
        (0.9, 0.4425),
        (0.1107, 5.881),
        ((112.8, 0.2636), (404.4, 0.05), (2455, 0.6674), (2600, 0.0165)),
        0.4251,
        (700, 1500),
        0.8824,
        1,
        0.6514,
        (0.3845, 0.9449),
    ),
    "train": Motor(
        31.55,
        0.2906,
        (0.5174, 0.4149),
        (0.12, 3.292),
        ((112, 0.6779), (250, 0.0657), (1780, 0.955), (3307, 0.9643)),
        0.0867,
        (208.8, 3340),
        0.0131,
        0.5868,
        1.172,
        (0.48, 4.213),
    ),
    "motorbike": Motor(
        43.28,
        0.2757,
        (0.9, 0.3416),
        (0.1153, 3.261),
        ((85.45, 0.1375), (567, 0.6659), (1241, 0.7746), (2600, 0.0221)),
        0.0891,
        (220.8, 1956),
        0.903,
        0.0573,
        3.527,
        (0, 1.565),
    ),
    "car_rev": Motor(
        67.32,
        0.3936,
        (0.2996, 0),
        (0.025, 3),
        ((264.9, 0.1891), (789.5, 0.8563), (1065, 0.9259), (5125, 0.5366)),
        0.0888,
        (142.2, 1689),
        0.1482,
        0.1192,
        0.4116,
        (0.0107, 14),
    ),
}

BLOWS: Mapping[str, Blow] = {
    "clap": Blow(
        ((5921, 0.15, 0.0664, 0.1136), (1966, 0.15, 0.1239, 0.4704), (1862, 1.14, 0.2549, 0.4282)),
        ((808.4, 0.0229, 0.3243), (4648, 0.1128, 0.0848), (3502, 0.9, 0.0233)),
        0.0013,
        (0.0489, 0.4282),
        0.6521,
        0.0781,
    ),
    "hammer": Blow(
        ((4220, 0.799, 0.4587, 0.6317), (237.4, 1.6, 0.5, 1), (90, 1.6, 0.0577, 0.9)),
        ((150, 0.0161, 0.01), (103.2, 0.0259, 0.3046), (1462, 0.7117, 0.0144)),
        0.0015,
        (0.0513, 0.9),
        3.82,
        0.0493,
    ),
    "door": Blow(
        ((223.9, 0.3101, 0.2128, 0.149), (306.6, 0.15, 0.0145, 0.393), (117.2, 0.2024, 0.019, 0.1634)),
        ((2013, 0.0225, 0.0299), (78.5, 0.2996, 0.0534), (1361, 0.0481, 0.0111)),
        0.0006,
        (0.0543, 0.1634),
        3.345,
        0.0954,
    ),
}

GRAINS: Mapping[str, Grain] = {
    "applause": Grain(
        380.6,
        (0.0205, 2.928),
        (1060, 8.931),
        0.2521,
        0.7809,
        0,
        27.51,
        0.1576,
        0.1208,
        (701, 2526),
        (0.2162, 0.5634),
        (0, 4.894),
    ),
    "pour": Grain(
        39.89,
        (0.0212, 1.198),
        (706.5, 6.387),
        0.5455,
        0.4224,
        0.9457,
        12.76,
        1.367,
        0.3254,
        (201.2, 4695),
        (1, 4.93),
        (0.9727, 1.22),
    ),
    "splash": Grain(
        38.69,
        (0.0387, 1.875),
        (641.3, 4.652),
        1.5,
        0.9428,
        0.8914,
        6,
        1.571,
        0,
        (58.64, 4997),
        (0.8558, 4.93),
        (1, 2.317),
    ),
}
