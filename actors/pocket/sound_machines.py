"""Engines, vehicles, tools, household machines and small mechanisms. `(traits, n, rng) -> mono wave`."""

from __future__ import annotations

import numpy as np

from .sound_fitted import motor
from .sound_impacts import strike
from .sound_synth import (
    RATE,
    Rng,
    Wave,
    add,
    band,
    buzz,
    decay,
    formants,
    frames,
    grains,
    high,
    low,
    moments,
    noise,
    normal,
    shape,
    tilted,
    time_axis,
    tone,
    wander,
)
from .sound_traits import Traits


def _engine(n: int, firing_hz: Wave, rng: Rng, brightness: float = 0.6, rough: float = 0.3) -> Wave:
    """Firing pulses with uneven cylinders through an exhaust."""
    uneven = 1 + rough * tone(firing_hz / 4, n) + 0.5 * rough * tone(firing_hz / 2, n)
    pulses = buzz(firing_hz * (1 + 0.01 * (wander(n, 25, rng) - 0.5)), n, brightness) * uneven
    body = formants(pulses, [(90, 80, 1.2), (240, 160, 1.0), (520, 300, 0.7), (1200, 700, 0.4), (2600, 1500, 0.2)])
    air = band(noise(n, rng), 150, 3500) * (0.5 + 0.5 * np.clip(buzz(firing_hz, n, 0.4), 0, 1))
    return normal(body) + 0.18 * normal(air) + 0.2 * normal(low(tilted(n, rng, 5), 180))


def _trend(t: Traits, n: int, low_to_high: float) -> Wave:
    """Speed over the length: constant, or rising or falling by the factor."""
    ends = {1: (1.0, low_to_high), -1: (low_to_high, 1.0), 0: (1.0, 1.0)}[t.tempo_trend]
    return np.geomspace(ends[0], ends[1], n)


def car_idle(t: Traits, n: int, rng: Rng) -> Wave:
    """A car or truck engine running."""
    slow = 0.75 if t.has("truck", "lorry", "bus", "tractor", "diesel") else 1.0
    return motor("car_idle", n, rng, slow / t.size**0.3 * t.speed * _trend(t, n, 3.2))


def car_rev(t: Traits, n: int, rng: Rng) -> Wave:
    """An engine accelerating through its range, or slowing down when that is said."""
    course = [(0, 1.0), (0.15, 1.1), (0.8, 3.2), (1, 3.0)] if t.tempo_trend >= 0 else [(0, 3.0), (1, 0.9)]
    return motor("car_rev", n, rng, shape(n, course))


def engine_start(t: Traits, n: int, rng: Rng) -> Wave:
    """The starter motor turns, the engine catches."""
    m = max(n, frames(2.0))
    out = np.zeros(m)
    k = frames(0.9)
    crank = (buzz(11 + 2 * wander(k, 4, rng), k, 0.5) + 0.5) * normal(
        formants(buzz(230 + 30 * tone(11, k), k, 0.6), [(500, 200, 1), (1400, 500, 1)])
    )
    add(out, normal(crank), 0.0, 0.6)
    rest = m - frames(0.85)
    add(
        out,
        _engine(rest, shape(rest, [(0, 40), (0.2, 90), (0.5, 55), (1, 52)]), rng)
        * shape(rest, [(0, 0), (0.08, 1), (1, 0.7)]),
        0.85,
    )
    return out


def car_pass(t: Traits, n: int, rng: Rng) -> Wave:
    """A vehicle passing: tyre noise and engine, level and pitch bent by its motion."""
    x = np.linspace(-1, 1, n) * 2.6 * t.speed * n / RATE / 3
    near = 1 / np.sqrt(1 + (x * 3) ** 2)
    doppler = 1 - 0.09 * x / np.sqrt(0.12 + x**2)
    tyres = band(tilted(n, rng, 2.5), 250, 4500)
    bright = high(noise(n, rng), 1500)
    return (normal(tyres) + 0.35 * normal(bright) * near + 0.5 * _engine(n, 70 * doppler, rng)) * near**1.6


def traffic(t: Traits, n: int, rng: Rng) -> Wave:
    """A road with many cars: a low rush that swells now and then."""
    out = 0.5 * normal(low(tilted(n, rng, 4), 1200)) * (0.7 + 0.3 * wander(n, 0.5, rng))
    for at in moments(n, 0.45, rng, 0.8):
        k = frames(3.0)
        add(out, normal(car_pass(Traits(), k, rng)), at - 1.2, float(rng.uniform(0.4, 1.0)))
    return out


def motorbike(t: Traits, n: int, rng: Rng) -> Wave:
    """A motorcycle that opens its throttle, or slows down when that is said."""
    course = [(0, 1.0), (0.15, 1.1), (0.8, 3.2), (1, 3.0)] if t.tempo_trend >= 0 else [(0, 3.0), (1, 1.0)]
    return motor("motorbike", n, rng, shape(n, course) / t.size**0.3)


def helicopter(t: Traits, n: int, rng: Rng) -> Wave:
    """Blades slapping the air over turbine noise."""
    return motor("helicopter", n, rng, t.speed / t.size**0.3)


def plane(t: Traits, n: int, rng: Rng) -> Wave:
    """A jet: broadband roar with a whine; a propeller plane when so named."""
    if t.has("propeller", "biplane", "cessna", "prop"):
        return _engine(n, np.full(n, 82.0 * t.speed), rng, 0.6, 0.1) + 0.3 * normal(tilted(n, rng, 3))
    roar = tilted(n, rng, 3.2) * (0.85 + 0.15 * wander(n, 3, rng))
    whine = tone(2600 * (1 + 0.02 * wander(n, 1, rng)), n) + 0.6 * tone(3900, n)
    return normal(low(roar, 2600)) * shape(n, [(0, 0.35), (0.5, 1), (1, 0.45)]) + 0.02 * whine


def boat(t: Traits, n: int, rng: Rng) -> Wave:
    """A motor boat: a chugging diesel and water at the bow."""
    motor = _engine(n, np.full(n, 30.0 / t.size**0.3 * t.speed), rng, 0.6, 0.5)
    wash = band(tilted(n, rng, 3), 300, 5000) * (0.4 + 0.6 * wander(n, 2.5, rng))
    return motor + 0.5 * normal(wash)


def train(t: Traits, n: int, rng: Rng) -> Wave:
    """A train on its rails: rumble and the double clack of each joint."""
    out = normal(motor("train", n, rng, np.clip(_trend(t, n, 2.4) * t.speed, 0.3, 3.0)))
    speed = np.cumsum(_trend(t, n, 2.4)) / RATE * t.speed * 1.25
    beats = np.flatnonzero(np.diff(np.floor(speed))) / RATE
    for beat in np.concatenate([[0.0], beats]):
        for shift, gain in ((0.0, 1.0), (0.11, 0.8), (0.3, 0.7), (0.41, 0.6)):
            k = frames(0.18)
            clack = normal(band(noise(k, rng), 180, 2600)) * decay(k, 0.09) + 0.5 * tone(95, k) * decay(k, 0.12)
            add(out, clack, beat + shift / t.speed, 0.35 * gain)
    if t.has("steam"):
        out += 0.6 * normal(band(noise(n, rng), 500, 5000) * np.clip(buzz(4.5 * t.speed, n, 0.15), 0, 1))
    return out


def bicycle(t: Traits, n: int, rng: Rng) -> Wave:
    """A freewheel ticking."""
    out = 0.05 * normal(band(noise(n, rng), 500, 4000))
    for at in moments(n, 17 * t.speed, rng, 0.06):
        add(out, normal(strike("metal", 0.25, 0.9, rng, 0.03)), at, 0.8)
    return out


def skid(t: Traits, n: int, rng: Rng) -> Wave:
    """Tyres screaming."""
    f0 = 880 / t.size * (1 + 0.06 * wander(n, 6, rng)) * shape(n, [(0, 1.05), (1, 0.85)])
    x = buzz(f0, n, 0.7) + 0.7 * buzz(f0 * 1.36, n, 0.6) + 0.5 * noise(n, rng)
    return (
        formants(x, [(950, 200, 1.0), (1900, 400, 0.8), (3000, 900, 0.5)])
        * (0.5 + 0.5 * wander(n, 30, rng))
        * shape(n, [(0, 0), (0.05, 1), (0.85, 1), (1, 0)])
    )


def drill(t: Traits, n: int, rng: Rng) -> Wave:
    """An electric drill: motor whine with gear teeth; jackhammer-like when it meets stone."""
    hz = 185 * t.speed / t.size**0.4 * shape(n, [(0, 0.4), (0.08, 1.0), (0.5, 0.94), (0.92, 1.0), (1, 0.5)])
    x = buzz(hz, n, 0.75) + 0.7 * buzz(hz * 5.1, n, 0.6) * (0.8 + 0.2 * wander(n, 30, rng)) + 0.3 * noise(n, rng)
    out = formants(x, [(700, 300, 0.8), (1900, 700, 1.0), (3600, 1200, 1.0), (6000, 2500, 0.6)])
    if t.solid("wood") in ("stone", "ceramic"):
        out = normal(out) + 0.8 * normal(noise(n, rng) * np.clip(buzz(45, n, 0.4), 0, 1))
    return out


def jackhammer(t: Traits, n: int, rng: Rng) -> Wave:
    """Blows on stone, 17 a second."""
    out = 0.15 * normal(band(noise(n, rng), 200, 4000))
    for at in moments(n, 17 * t.speed, rng, 0.05):
        k = frames(0.07)
        add(out, normal(band(noise(k, rng), 150, 5000)) * decay(k, 0.05) + tone(95, k) * decay(k, 0.06), at, 0.9)
    return out


def power_saw(t: Traits, n: int, rng: Rng) -> Wave:
    """A circular saw or chainsaw biting."""
    hz = (110 if t.has("chainsaw", "chain") else 330) * t.speed
    load = wander(n, 1.2, rng)
    x = buzz(hz * (1.1 - 0.25 * load), n, 0.8) * (1 + 0.4 * tone(hz / 2, n)) + 0.35 * noise(n, rng)
    return np.tanh(2 * normal(formants(x, [(400, 200, 1.0), (1300, 500, 1.0), (2900, 900, 0.9), (5200, 2000, 0.6)])))


def mower(t: Traits, n: int, rng: Rng) -> Wave:
    """A lawn mower."""
    return _engine(n, np.full(n, 48.0 * t.speed) * (1 + 0.02 * wander(n, 2, rng)), rng, 0.8, 0.35) + 0.35 * normal(
        band(noise(n, rng), 300, 5000)
    )


def vacuum(t: Traits, n: int, rng: Rng) -> Wave:
    """A vacuum cleaner or hair dryer: a motor tone in rushing air."""
    hz = (
        (310 if t.has("dryer", "hairdryer") else 205)
        * (1 + 0.006 * wander(n, 3, rng))
        * shape(n, [(0, 0.6), (0.06, 1), (1, 1)])
    )
    air = band(tilted(n, rng, 2), 250, 8000)
    motor = formants(buzz(hz, n, 0.7), [(hz_mid, 150, 1.0) for hz_mid in (420.0, 830.0, 1650.0, 3100.0)])
    return normal(air) + 0.55 * normal(motor)


def fan(t: Traits, n: int, rng: Rng) -> Wave:
    """A fan or air conditioner: steady air, blades just audible."""
    blades = 1 + 0.25 * tone(17 * t.speed, n)
    return (
        normal(low(tilted(n, rng, 4), 1500) * blades)
        + 0.12 * normal(buzz(100, n, 0.3))
        + 0.1 * normal(band(noise(n, rng), 800, 3000))
    )


def washer(t: Traits, n: int, rng: Rng) -> Wave:
    """A washing machine: the drum turns, the load falls, water slaps."""
    turn = 0.5 + 0.5 * tone(0.9 * t.speed, n)
    motor = normal(buzz(98 * (0.98 + 0.04 * turn), n, 0.5)) * (0.4 + 0.6 * turn)
    slosh = normal(band(tilted(n, rng, 3), 150, 2500) * turn**2)
    out = 0.5 * motor + 0.9 * slosh + 0.3 * normal(low(tilted(n, rng, 4), 250))
    for at in moments(n, 0.9 * t.speed, rng, 0.1):
        add(out, normal(low(noise(frames(0.25), rng), 260)) * decay(frames(0.25), 0.2), at, 0.7)
    return out


def blender(t: Traits, n: int, rng: Rng) -> Wave:
    """A blender or mixer."""
    hz = 240 * t.speed * shape(n, [(0, 0.5), (0.08, 1), (1, 1)]) * (1 + 0.04 * wander(n, 9, rng))
    return np.tanh(
        1.5 * normal(formants(buzz(hz, n, 0.85), [(480, 160, 1.0), (1000, 300, 1.0), (2300, 700, 0.8)]))
        + 0.5 * normal(band(noise(n, rng), 700, 7000))
    )


def shaver(t: Traits, n: int, rng: Rng) -> Wave:
    """An electric shaver, clipper or toothbrush."""
    hz = 118 * t.speed * (1 + 0.01 * wander(n, 4, rng))
    return formants(buzz(hz, n, 0.9), [(350, 200, 0.7), (1400, 500, 1.0), (3400, 1200, 0.9)]) * (
        0.8 + 0.2 * wander(n, 4, rng)
    )


def sewing(t: Traits, n: int, rng: Rng) -> Wave:
    """A sewing machine: needle strokes on a motor."""
    out = 0.15 * normal(formants(buzz(150 * t.speed, n, 0.6), [(600, 300, 1), (1800, 700, 1)]))
    for at in moments(n, 11 * t.speed, rng, 0.03):
        add(out, normal(strike("metal", 0.6, 0.6, rng, 0.05)), at, 0.6)
        add(out, normal(strike("wood", 0.7, 0.6, rng)), at, 0.4)
    return out


def printer(t: Traits, n: int, rng: Rng) -> Wave:
    """A printer: the head zips across and back."""
    phase = (time_axis(n) * 1.3 * t.speed) % 1.0
    zip_ = formants(buzz(330 + 120 * phase, n, 0.8), [(900, 300, 1), (2200, 700, 1)]) * (phase < 0.7)
    return normal(zip_) + 0.25 * normal(band(noise(n, rng), 800, 6000)) * (phase < 0.8)


def factory(t: Traits, n: int, rng: Rng) -> Wave:
    """Machinery: a hum with regular clanks and steam."""
    out = 0.5 * normal(low(tilted(n, rng, 4), 600)) + 0.25 * normal(buzz(50, n, 0.6))
    for i, at in enumerate(moments(n, 2.2 * t.speed, rng, 0.03)):
        add(out, normal(strike("metal" if i % 2 else "wood", 1.6, 0.7, rng, 0.25)), at, 0.8)
    return out


def mains(t: Traits, n: int, rng: Rng) -> Wave:
    """The hum of a refrigerator, transformer or neon tube."""
    return (
        tone(100, n)
        + 0.6 * tone(50, n)
        + 0.35 * tone(200, n)
        + 0.2 * tone(300, n)
        + 0.05 * normal(low(tilted(n, rng, 4), 400))
    )


def static(t: Traits, n: int, rng: Rng) -> Wave:
    """White noise, radio static; pink or brown when so named."""
    tilt = 3.0 if t.has("pink") else 6.0 if t.has("brown", "red") else 0.0
    out = tilted(n, rng, tilt) if tilt else noise(n, rng)
    if t.has("crackle", "crackling", "crackly", "radio", "interference"):
        out = out * (0.6 + 0.4 * wander(n, 12, rng)) + 2.0 * grains(n, 12, rng, lambda r: noise(frames(0.004), r))
    return out


def whoosh(t: Traits, n: int, rng: Rng) -> Wave:
    """Something sweeps by."""
    m = frames(0.7 / t.speed)
    source = noise(m, rng)
    bright, dark = band(source, 900, 4500), band(source, 250, 1200)
    env = shape(m, [(0, 0), (0.45, 1), (1, 0)]) ** 2
    return (normal(dark) + normal(bright) * env) * env
