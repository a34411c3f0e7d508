"""Small things in a house: keys, clocks, paper, brushes, scissors. `(traits, n, rng) -> mono wave`."""

from __future__ import annotations

import numpy as np

from .sound_impacts import strike
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
    noise,
    normal,
    resonate,
    rounded,
    shape,
    tone,
    wander,
)
from .sound_traits import Traits


def typing(t: Traits, n: int, rng: Rng) -> Wave:
    """One key of a keyboard: press and release; a typewriter strikes harder."""
    old = t.has("typewriter", "mechanical")
    out = np.zeros(frames(0.16))
    for at, gain in ((0.0, 1.0), (0.055 + 0.03 * rng.random(), 0.45)):
        add(out, normal(strike("plastic", float(rng.uniform(0.32, 0.5)), 0.8, rng, 0.3)), at, gain)
        add(out, normal(high(noise(frames(0.012), rng), 1800)) * decay(frames(0.012), 0.009), at, 0.7 * gain)
    if old:
        add(out, normal(strike("metal", 0.5, 0.9, rng, 0.06)), 0.0, 0.9)
    return out


def tick(t: Traits, n: int, rng: Rng) -> Wave:
    """One tick of a clock: a tiny escapement click with a case behind it."""
    out = np.zeros(frames(0.12))
    add(out, normal(high(noise(frames(0.004), rng), 2500)) * decay(frames(0.004), 0.004), 0.0, 1.0)
    add(out, normal(strike("metal", 0.22 * t.size, 0.8, rng, 0.025)), 0.001, 0.7)
    add(out, normal(strike("wood", 0.5 * t.size, 0.6, rng, 0.5)), 0.003, 0.5)
    return out


def click(t: Traits, n: int, rng: Rng) -> Wave:
    """A switch, a mouse, a pen: two close clicks."""
    out = np.zeros(frames(0.14))
    for at, gain in ((0.0, 1.0), (0.07, 0.6)):
        add(out, normal(strike(t.solid("plastic"), 0.3 * t.size, 0.9, rng, 0.25)), at, gain)
    return out


def camera(t: Traits, n: int, rng: Rng) -> Wave:
    """A shutter: mirror up, curtain, mirror down."""
    out = np.zeros(frames(0.32))
    for at, gain in ((0.0, 1.0), (0.075, 0.8), (0.11, 0.6)):
        k = frames(0.05)
        add(out, normal(band(noise(k, rng), 900, 9000)) * decay(k, 0.03), at, gain)
        add(out, normal(strike("metal", 0.4, 0.8, rng, 0.04)), at, 0.5 * gain)
    k = frames(0.12)
    add(
        out,
        normal(formants(buzz(240, k, 0.9), [(1800, 600, 1), (3600, 1200, 1)])) * rounded(np.ones(k), 0.02, 0.03),
        0.14,
        0.15,
    )
    return out


def zipper(t: Traits, n: int, rng: Rng) -> Wave:
    """Teeth closing at a rising rate."""
    m = frames(0.75 / t.speed)
    rate = shape(m, [(0, 55), (0.6, 150), (1, 210)])
    teeth = buzz(rate * (1 + 0.1 * (wander(m, 50, rng) - 0.5)), m, 0.95) * (0.3 + 0.7 * np.abs(noise(m, rng)))
    x = formants(teeth, [(1800, 700, 0.7), (3600, 1200, 1.0), (6500, 2200, 1.0)])
    return normal(x) * shape(m, [(0, 0.3), (0.2, 0.8), (0.95, 1), (1, 0)]) + 0.1 * normal(high(noise(m, rng), 3000))


def paper(t: Traits, n: int, rng: Rng) -> Wave:
    """Paper or a bag being handled: dry crackles in bursts."""
    fine = grains(
        n,
        260,
        rng,
        lambda r: resonate(noise(frames(0.004), r), float(r.uniform(1500, 9000)), 3000) * decay(frames(0.004), 0.004),
        48,
        1.0,
        26,
    )
    hand = np.clip(wander(n, 4, rng) * 1.6 - 0.4, 0.03, 1)
    return normal(fine * hand) + 0.15 * normal(high(noise(n, rng), 2500) * hand)


def tear(t: Traits, n: int, rng: Rng) -> Wave:
    """Paper or cloth torn: the fibres part ever faster."""
    m = frames(0.7 / t.speed)
    rate = shape(m, [(0, 120), (0.7, 420), (1, 600)])
    rip = (0.25 + np.clip(buzz(rate, m, 0.6), 0, 1)) * noise(m, rng)
    corner = 500 if t.solid("paper") == "carpet" else 1400
    return high(rip, corner) * shape(m, [(0, 0.4), (0.3, 0.8), (0.95, 1), (1, 0)])


def page(t: Traits, n: int, rng: Rng) -> Wave:
    """A page turned: a sweep of air and a slap."""
    m = frames(0.5)
    sweep = (
        high(noise(m, rng), 1800)
        * shape(m, [(0, 0), (0.35, 1), (0.6, 0.2), (0.7, 0.9), (1, 0)])
        * (0.5 + 0.5 * wander(m, 60, rng))
    )
    return normal(sweep)


def writing(t: Traits, n: int, rng: Rng) -> Wave:
    """A pen or chalk: short strokes."""
    stroke = np.clip(np.abs(tone(3.4 * t.speed * (0.8 + 0.4 * wander(n, 2, rng)), n)) * 1.4 - 0.3, 0, 1)
    return band(noise(n, rng), 1800, 8500) * stroke * (0.4 + 0.6 * wander(n, 60, rng))


def brush(t: Traits, n: int, rng: Rng) -> Wave:
    """Sweeping, brushing, scrubbing: strokes of bristle noise."""
    stroke = np.clip(tone(1.5 * t.speed, n), 0, 1) ** 0.7 + 0.6 * np.clip(-tone(1.5 * t.speed, n), 0, 1) ** 0.7
    return band(noise(n, rng), 1200, 9000) * stroke


def spray(t: Traits, n: int, rng: Rng) -> Wave:
    """A spray can: one burst of hiss."""
    m = min(n, frames(0.6)) if n else frames(0.6)
    return high(noise(m, rng), 3200) * shape(m, [(0, 0), (0.04, 1), (0.85, 0.9), (1, 0)])


def scissors(t: Traits, n: int, rng: Rng) -> Wave:
    """One cut: blades slide, then meet."""
    m = frames(0.24)
    out = normal(band(noise(m, rng), 2800, 11000)) * shape(m, [(0, 0.1), (0.5, 0.5), (0.62, 0), (1, 0)])
    add(out, normal(strike("metal", 0.22, 0.9, rng, 0.08)), 0.14, 0.8)
    return out


def spring(t: Traits, n: int, rng: Rng) -> Wave:
    """Boing."""
    m = frames(0.8)
    hz = 190 / t.size * (1 + 0.35 * tone(shape(m, [(0, 9), (1, 15)]), m) * decay(m, 1.2)) * shape(m, [(0, 1), (1, 1.5)])
    return buzz(hz, m, 0.5) * decay(m, 0.9)
