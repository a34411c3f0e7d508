"""Things that hit, break, roll and creak: struck solids as damped modes, steps and debris as grains.

Each function makes ONE occurrence (or, for a texture, n frames) from what the phrase says: `(traits, n, rng) -> mono
wave`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .sound_fitted import blow
from .sound_synth import (
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
    modes,
    moments,
    noise,
    normal,
    resonate,
    rounded,
    shape,
    tone,
    wander,
)
from .sound_traits import Traits


@dataclass(frozen=True)
class Solid:
    """How a material rings: lowest mode (Hz), its decay (s), mode ratios, share of contact noise, noise corner (Hz)."""

    hz: float
    t60: float
    ratios: Sequence[float]
    click: float
    corner_hz: float


SOLIDS: Mapping[str, Solid] = {
    "wood": Solid(190, 0.14, (1, 1.58, 2.24, 2.9, 3.6, 4.4), 0.35, 2500),
    "metal": Solid(520, 1.1, (1, 1.38, 1.71, 2.09, 2.32, 2.76, 3.31, 3.9, 4.6, 5.4, 6.8, 8.9, 11.3), 0.35, 9000),
    "glass": Solid(1900, 0.7, (1, 1.47, 2.1, 2.9, 3.8, 5.0), 0.2, 14000),
    "ceramic": Solid(1250, 0.28, (1, 1.6, 2.4, 3.1, 4.4), 0.3, 9000),
    "stone": Solid(700, 0.05, (1, 1.7, 2.6, 4.1), 0.8, 6000),
    "plastic": Solid(420, 0.07, (1, 1.9, 2.8, 4.2), 0.4, 4000),
    "carpet": Solid(90, 0.07, (1, 1.8), 0.5, 500),
    "leather": Solid(120, 0.08, (1, 1.7, 2.3), 0.7, 1200),
    "paper": Solid(260, 0.05, (1, 1.9), 0.9, 3500),
    "rubber": Solid(150, 0.12, (1, 1.6, 2.4), 0.3, 900),
    "sand": Solid(80, 0.07, (1, 1.6), 0.6, 600),
    "water": Solid(300, 0.1, (1, 1.6), 0.8, 3000),
}


def strike(material: str, size: float, force: float, rng: Rng, ring: float = 1.0) -> Wave:
    """One blow on a solid: bigger is lower and longer, harder is brighter."""
    solid = SOLIDS.get(material, SOLIDS["wood"])
    ratios = np.asarray(solid.ratios)
    hz = solid.hz / size * ratios * (1 + 0.02 * rng.standard_normal(len(ratios)))
    t60 = solid.t60 * ring * np.sqrt(size) / ratios**0.6
    gains = ratios ** -(1.6 - 1.3 * force) * (0.5 + rng.random(len(ratios)))
    n = frames(max(0.12, float(t60.max()) * 1.1))
    out = normal(modes(n, list(hz), list(t60), list(gains), rng))
    m = min(n, frames(0.03 + 0.02 * size))
    contact = low(noise(m, rng), solid.corner_hz * (0.4 + 1.2 * force)) * decay(m, 0.012 + 0.02 * size)
    out[:m] += solid.click * normal(contact)
    return out


def impact(t: Traits, n: int, rng: Rng) -> Wave:
    """A thing struck, dropped or set down."""
    ringing = t.material if t.material in ("metal", "glass", "ceramic") else t.solid("wood")
    return strike(ringing, t.size, t.force, rng)


def thud(t: Traits, n: int, rng: Rng) -> Wave:
    """A heavy dull fall."""
    m = frames(0.45)
    body = tone(shape(m, [(0, 85 / t.size), (1, 45 / t.size)]), m) * decay(m, 0.32) + 0.6 * tone(
        130 / t.size, m
    ) * decay(m, 0.16)
    out = 0.9 * body + 0.9 * normal(low(noise(m, rng), 380 + 500 * t.force)) * decay(m, 0.14)
    add(out, strike(t.solid("carpet"), 1.3 * t.size, t.force, rng), 0.0, 0.4)
    return out


def knock(t: Traits, n: int, rng: Rng) -> Wave:
    """A knuckle on a door: two short low modes of the panel and the click of bone."""
    out = strike(t.solid("wood"), 0.8 * t.size, 0.3 + 0.5 * t.force, rng, 0.9)
    m = min(len(out), frames(0.1))
    out[:m] += 0.8 * tone(330 / t.size, m) * decay(m, 0.07) + 0.35 * normal(band(noise(m, rng), 900, 3200)) * decay(
        m, 0.018
    )
    return out


def hammer(t: Traits, n: int, rng: Rng) -> Wave:
    """A hammer on a nail: wood below; on metal or stone, that ringing."""
    out = np.zeros(frames(0.6))
    add(out, blow("hammer", rng, t.size), 0.0)
    struck = t.solid("wood")
    if struck != "wood":
        add(out, normal(strike(struck, 0.8 * t.size, 0.9, rng)), 0.0, 0.8)
    return out


def slam(t: Traits, n: int, rng: Rng) -> Wave:
    """A door thrown shut: latch, blow of the panel, rattle of the frame."""
    out = np.zeros(frames(1.0))
    add(out, strike("metal", 0.5, 0.6, rng, 0.15), 0.0, 0.35)
    panel = thud(t, n, rng) + 0.0
    add(out, panel, 0.012, 1.0)
    add(out, strike(t.solid("wood"), 1.5 * t.size, 0.5 + 0.5 * t.force, rng), 0.012, 0.9)
    burst = normal(band(noise(frames(0.25), rng), 120, 1500 + 3000 * t.force)) * decay(frames(0.25), 0.2)
    add(out, burst, 0.012, 0.5)
    for at in (0.09, 0.15, 0.2):
        add(out, strike("wood", 0.9, 0.5, rng), at + 0.02 * rng.random(), 0.18 * t.force)
    return out


def creak(t: Traits, n: int, rng: Rng) -> Wave:
    """Stick and slip: an irregular pulse train in wooden resonances, its rate swinging."""
    m = frames(1.4 / max(t.speed, 0.5))
    rate = 28 + 90 * wander(m, 3.0, rng) * shape(m, [(0, 0.2), (0.4, 1.0), (0.8, 0.7), (1, 1.2)])
    pulses = buzz(rate * (1 + 0.12 * wander(m, 60, rng)), m, 0.95)
    peaks = [(430 / t.size, 60, 1.0), (900 / t.size, 80, 1.0), (1500 / t.size, 110, 0.9), (2400, 160, 0.6)]
    if t.solid("wood") == "metal":
        peaks = [(1100, 30, 1.0), (1750, 30, 0.9), (2900, 50, 0.8)]
    return rounded(formants(pulses, peaks) * (0.3 + 0.7 * wander(m, 6, rng)), 0.05, 0.15)


def door(t: Traits, n: int, rng: Rng) -> Wave:
    """A door opened and closed without force: handle, hinge, panel, latch."""
    out = np.zeros(frames(1.5))
    add(out, strike("metal", 0.45, 0.5, rng, 0.06), 0.0, 0.2)
    add(out, normal(creak(t, n, rng))[: frames(0.5)], 0.2, 0.15)
    add(out, normal(blow("door", rng, t.size)), 0.05, 0.5)
    add(out, normal(blow("door", rng, t.size)), 0.85, 1.0)
    return out


@dataclass(frozen=True)
class Ground:
    """How a step sounds on a ground: material of the blow, its level, grit level, grit band (Hz), grains a second,
    grit length (s)."""

    blow: str
    blow_gain: float
    grit_gain: float
    band_hz: tuple[float, float]
    per_second: float
    length_s: float


GROUNDS: Mapping[str, Ground] = {
    "wood": Ground("wood", 1.0, 0.05, (800, 4000), 300, 0.08),
    "stone": Ground("stone", 1.0, 0.15, (1500, 8000), 600, 0.08),
    "ceramic": Ground("stone", 1.0, 0.1, (1500, 8000), 600, 0.06),
    "metal": Ground("metal", 1.0, 0.05, (1000, 9000), 300, 0.05),
    "gravel": Ground("stone", 0.25, 1.0, (1400, 9000), 420, 0.26),
    "snow": Ground("carpet", 0.4, 1.0, (500, 3200), 1600, 0.34),
    "leaves": Ground("carpet", 0.3, 1.0, (2200, 12000), 260, 0.32),
    "mud": Ground("carpet", 0.6, 0.8, (250, 1600), 160, 0.22),
    "water": Ground("carpet", 0.4, 1.0, (350, 4500), 190, 0.32),
    "sand": Ground("carpet", 0.6, 0.6, (700, 4000), 2200, 0.2),
    "carpet": Ground("carpet", 1.0, 0.12, (200, 1200), 600, 0.08),
    "plastic": Ground("plastic", 1.0, 0.08, (800, 5000), 300, 0.06),
    "glass": Ground("stone", 0.3, 1.0, (3500, 14000), 140, 0.25),
    "paper": Ground("carpet", 0.3, 1.0, (1500, 8000), 300, 0.2),
}


def footstep(t: Traits, n: int, rng: Rng) -> Wave:
    """Heel, then toe, on the ground named."""
    ground = GROUNDS.get(t.solid("mud" if t.wet else "stone"), GROUNDS["stone"])
    m = frames(0.5)
    out = np.zeros(m)
    for at, gain in ((0.0, 1.0), (min(0.07 / np.sqrt(t.speed), 0.07), 0.5)):
        add(out, normal(strike(ground.blow, 1.5 * t.size, 0.3 + 0.5 * t.force, rng, 0.6)), at, gain * ground.blow_gain)
        k = frames(0.12)
        add(out, tone(95 / t.size, k) * decay(k, 0.09), at, 0.5 * gain * min(1.0, ground.blow_gain + 0.2))
    k = frames(ground.length_s)
    wet = ground.blow == "carpet" and ground.band_hz[0] < 400 and ground.grit_gain > 0.5
    grit = grains(k, ground.per_second, rng, lambda r: _crumb(r, *ground.band_hz, wet))
    grit = normal(grit * shape(k, [(0, 0.5), (0.12, 1), (0.4, 0.6), (0.55, 0.8), (1, 0)]))
    add(out, grit, 0.0, ground.grit_gain)
    return out


def _crumb(rng: Rng, low_hz: float, high_hz: float, wet: bool) -> Wave:
    hz = low_hz * (high_hz / low_hz) ** rng.random()
    n = frames(0.02 if wet else 0.006)
    if wet:
        return tone(hz * np.linspace(1, 1.7, n), n) * decay(n, 0.02)
    return (0.4 * tone(hz, n, rng.random() * 6.28) + 0.6 * resonate(noise(n, rng), hz, hz * 0.6)) * decay(n, 0.005)


def shatter(t: Traits, n: int, rng: Rng) -> Wave:
    """A brittle thing breaking: a burst, then shards that ring and settle."""
    kind = "ceramic" if t.material == "ceramic" else "glass"
    m = frames(1.5)
    out = np.zeros(m)
    add(out, normal(high(noise(frames(0.2), rng), 2500)) * decay(frames(0.2), 0.16), 0.0, 1.0)
    add(out, normal(strike(kind, 1.4 * t.size, 0.9, rng)), 0.0, 0.8)
    for at in np.sort(rng.exponential(0.22, int(60 * np.sqrt(t.size)))):
        shard = strike(kind, float(rng.uniform(0.25, 0.9)), 0.7, rng, float(rng.uniform(0.2, 0.5)))
        add(out, normal(shard), float(at), 0.55 * float(np.exp(-at * 2.2)) * float(rng.uniform(0.2, 1)))
    return out


def clink(t: Traits, n: int, rng: Rng) -> Wave:
    """Two glasses or cups touching."""
    kind = t.material if t.material in ("ceramic", "metal", "glass") else "glass"
    out = np.zeros(frames(1.0))
    add(out, normal(strike(kind, 0.9 * t.size, 0.6, rng, 1.3)), 0.0)
    add(out, normal(strike(kind, 0.75 * t.size, 0.6, rng, 1.3)), 0.004, 0.8)
    return out


def coins(t: Traits, n: int, rng: Rng) -> Wave:
    """A coin dropped: it bounces ever faster and spins out."""
    out = np.zeros(frames(1.3))
    gap, at, gain = 0.2, 0.0, 1.0
    while gap > 0.016 and at < 1.1:
        add(out, normal(strike("metal", 0.17 * t.size, 0.8, rng, 0.35)), at, gain)
        at, gap, gain = at + gap, gap * 0.78, gain * 0.86
    return out


def jingle(t: Traits, n: int, rng: Rng) -> Wave:
    """Keys or many coins moving: dense small metal strikes in swings."""
    out = np.zeros(n)
    for at in moments(n, 22 * t.speed, rng, 0.9):
        add(
            out,
            normal(strike("metal", float(rng.uniform(0.11, 0.2)) * t.size, 0.9, rng, 0.22)),
            at,
            float(rng.uniform(0.15, 1)),
        )
    return out * (0.35 + 0.65 * wander(n, 5, rng))


def dishes(t: Traits, n: int, rng: Rng) -> Wave:
    """Plates, pans and cutlery being handled."""
    out = np.zeros(n)
    for at in moments(n, 7 * t.speed, rng, 0.9):
        kind = ("ceramic", "metal", "ceramic", "glass")[int(rng.integers(4))]
        add(out, normal(strike(kind, float(rng.uniform(0.5, 1.2)), 0.8, rng, 0.6)), at, float(rng.uniform(0.2, 1)))
    return out


def bounce(t: Traits, n: int, rng: Rng) -> Wave:
    """One bounce of a ball: a low thump with the ping of the air inside."""
    m = frames(0.35)
    ball = tone(shape(m, [(0, 170 / t.size), (0.2, 120 / t.size), (1, 110 / t.size)]), m) * decay(m, 0.16)
    out = ball + 0.35 * tone(620 / t.size, m) * decay(m, 0.12) + 0.7 * normal(low(noise(m, rng), 1800)) * decay(m, 0.03)
    add(out, strike(t.surface or "wood", 1.2, t.force, rng), 0.0, 0.3)
    return out


def hoof(t: Traits, n: int, rng: Rng) -> Wave:
    """One hoof on hard ground: a hollow clop."""
    m = frames(0.2)
    hz = (820 + 260 * rng.random()) / t.size
    out = tone(hz, m) * decay(m, 0.06) + 0.6 * tone(hz * 1.62, m) * decay(m, 0.04)
    soft = t.solid("stone") in ("leaves", "sand", "mud", "snow", "carpet")
    if soft:
        out = 0.4 * low(out, 500) + tone(110, m) * decay(m, 0.1)
    return out + 0.5 * normal(band(noise(m, rng), 500, 3000)) * decay(m, 0.02)


def roll(t: Traits, n: int, rng: Rng) -> Wave:
    """A thing rolling: bumps on a rumble."""
    body = low(noise(n, rng), 350 / t.size) * (0.6 + 0.4 * tone(4 * t.speed, n))
    out = normal(body)
    for at in moments(n, 18 * t.speed, rng, 0.7):
        add(out, normal(strike(t.solid("wood"), 1.0, 0.4, rng, 0.5)), at, 0.3 * float(rng.random()))
    return out


def scrape(t: Traits, n: int, rng: Rng) -> Wave:
    """A thing dragged: noise through the material's modes, pushed unevenly."""
    solid = SOLIDS.get(t.solid("wood"), SOLIDS["wood"])
    push = 0.3 + 0.7 * wander(n, 5 * t.speed, rng)
    source = noise(n, rng) * (0.5 + 0.5 * np.sign(tone(45 + 25 * wander(n, 4, rng), n)))
    peaks = [(solid.hz * r / t.size * 2, solid.hz * 0.5, 1.0) for r in solid.ratios]
    return (normal(formants(source, peaks)) + 0.25 * normal(high(source, 2000))) * push


def whip(t: Traits, n: int, rng: Rng) -> Wave:
    """A slap, the crack of a whip."""
    k = frames(0.25)
    return normal(high(noise(k, rng), 700)) * decay(k, 0.08) + 0.3 * normal(band(noise(k, rng), 500, 2500)) * decay(
        k, 0.16
    )


def clap(t: Traits, n: int, rng: Rng) -> Wave:
    """One hand clap."""
    return blow("clap", rng, t.size)


def snap(t: Traits, n: int, rng: Rng) -> Wave:
    """A finger snap, a twig: a short bright resonance."""
    m = frames(0.12)
    hz = 2100 + 500 * rng.random()
    return normal(resonate(noise(m, rng), hz, 350)) * decay(m, 0.05) + 0.4 * normal(high(noise(m, rng), 3000)) * decay(
        m, 0.012
    )


def chop(t: Traits, n: int, rng: Rng) -> Wave:
    """A knife or an axe: a crack, then wood."""
    out = np.zeros(frames(0.35))
    add(out, normal(high(noise(frames(0.05), rng), 1200)) * decay(frames(0.05), 0.025), 0.0, 0.6)
    add(out, normal(strike("wood", 0.9 * t.size, 0.8, rng)), 0.004, 1.0)
    return out


def drum_hit(t: Traits, n: int, rng: Rng) -> Wave:
    """A drum struck once."""
    m = frames(0.6)
    hz = 110 / t.size
    skin = tone(hz * shape(m, [(0, 1.5), (0.08, 1.05), (1, 1)]), m) * decay(m, 0.45) + 0.5 * tone(hz * 1.6, m) * decay(
        m, 0.25
    )
    return skin + 0.5 * normal(noise(m, rng)) * decay(m, 0.05 if not t.has("snare") else 0.22)


def saw_stroke(t: Traits, n: int, rng: Rng) -> Wave:
    """One stroke of a hand saw: teeth at a rising then falling rate through the wood."""
    m = frames(0.34 / np.sqrt(t.speed))
    rate = 190 * shape(m, [(0, 0.5), (0.5, 1.0), (1, 0.6)]) * (0.9 + 0.2 * rng.random())
    teeth = (0.4 + buzz(rate, m, 0.8)) * noise(m, rng)
    peaks = [(1100, 500, 1.0), (2300, 900, 1.0), (4200, 1500, 0.9)]
    return formants(teeth, peaks) * shape(m, [(0, 0), (0.2, 0.9), (0.7, 1), (1, 0)])


def crunch(t: Traits, n: int, rng: Rng) -> Wave:
    """A crisp thing bitten or crushed."""
    m = frames(0.28)
    grit = grains(m, 500, rng, lambda r: _crumb(r, 900, 6000, False))
    return normal(grit * shape(m, [(0, 1), (0.3, 0.8), (1, 0)])) + 0.3 * normal(low(noise(m, rng), 900)) * decay(
        m, 0.12
    )
