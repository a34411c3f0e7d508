"""Weather, water and fire: filtered noise and scattered grains. `(traits, n, rng) -> mono wave`; textures fill n
frames."""

from __future__ import annotations

import numpy as np

from .sound_fitted import texture
from .sound_impacts import strike
from .sound_synth import (
    Rng,
    Wave,
    add,
    band,
    chirp_grain,
    decay,
    frames,
    grains,
    high,
    low,
    moments,
    noise,
    normal,
    resonate,
    rounded,
    shape,
    tilted,
    time_axis,
    tone,
    wander,
)
from .sound_traits import Traits

SOUNDING_ROOFS = ("metal", "glass", "plastic", "wood", "carpet", "leaves", "paper", "ceramic")


def rain(t: Traits, n: int, rng: Rng) -> Wave:
    """Drops: a hiss of many far ones and single near ones, on the surface named."""
    heavy = t.force
    hiss = high(tilted(n, rng, 1.5 + 1.5 * heavy), 500 - 250 * heavy) * (0.85 + 0.15 * wander(n, 1.5, rng))
    drops = grains(n, 60 + 900 * heavy**2, rng, lambda r: _raindrop(r), 40, 1.0, 24)
    out = 0.35 * normal(hiss) * (0.3 + heavy) + 0.5 * normal(drops)
    kind = t.solid("")
    if kind in SOUNDING_ROOFS:
        hard = kind if kind in ("metal", "glass", "plastic", "wood", "ceramic") else "carpet"
        small = {"metal": 0.55, "glass": 0.9}.get(hard, 0.6)
        ring = {"metal": 0.12, "glass": 0.12}.get(hard, 0.8)
        hits = grains(
            n,
            25 + 160 * heavy,
            rng,
            lambda r: normal(strike(hard, small * float(r.uniform(0.7, 1.4)), 0.7, r, ring)),
            24,
            1.0,
            20,
        )
        out = 0.55 * out + 0.8 * normal(hits)
    if kind == "water" or t.has("puddle", "puddles"):
        out += 0.4 * normal(grains(n, 30, rng, lambda r: chirp_grain(r, 500, 1800, 0.05, 0.6)))
    return out


def _raindrop(rng: Rng) -> Wave:
    n = frames(0.012)
    return resonate(noise(n, rng), float(rng.uniform(1500, 7000)), 2500) * decay(n, float(rng.uniform(0.003, 0.011)))


def thunder(t: Traits, n: int, rng: Rng) -> Wave:
    """A crack, if near, and rolling rumbles."""
    m = frames(3.5 * np.sqrt(t.size))
    rumble = low(tilted(m, rng, 6), 220, 2)
    swell = np.zeros(m)
    for at in np.concatenate([[0.0], np.cumsum(rng.exponential(0.32, 9))]):
        k = frames(1.6)
        add(
            swell,
            shape(k, [(0, 0), (0.05, 1), (1, 0)]) ** 1.5,
            float(at),
            float(rng.uniform(0.4, 1)) * float(np.exp(-at * 0.55)),
        )
    out = normal(rumble * swell) + 0.25 * normal(band(noise(m, rng), 80, 700) * swell**2)
    if t.force > 0.4:
        crack = (
            normal(band(noise(frames(0.7), rng), 150, 5500))
            * decay(frames(0.7), 0.5)
            * (0.3 + 0.7 * wander(frames(0.7), 40, rng))
        )
        add(out, crack, 0.0, 0.3 + 0.7 * (t.force - 0.4))
    return rounded(out, 0.004, 0.8)


def wind(t: Traits, n: int, rng: Rng) -> Wave:
    """Gusts: noise whose band and level wander together, with a whistling edge when strong."""
    gust = wander(n, 0.5, rng)
    body = tilted(n, rng, 5)
    slow = low(body, 420) * (0.5 + gust)
    edge = np.zeros(n)
    hop = 1024
    source = noise(n, rng)
    for i in range(0, n, hop):
        hz = 320 + 520 * gust[i] * (0.6 + t.force)
        edge[i : i + hop + 512] += _taper(
            resonate(source[max(0, i - 2048) : i + hop + 512], hz, 70 + 60 * gust[i])[-(min(n, i + hop + 512) - i) :],
            hop,
        )
    return normal(slow) + (0.25 + 1.1 * t.force) * normal(edge * gust**1.5)


def _taper(x: Wave, hop: int) -> Wave:
    # Neighbouring pieces overlap by 512 frames and are cross-faded, so that a moving filter leaves no clicks.
    out = x.copy()
    k = min(512, len(out))
    out[:k] *= np.linspace(0, 1, k)
    if len(out) > hop:
        out[hop:] *= np.linspace(1, 0, len(out) - hop)
    return out


def ocean(t: Traits, n: int, rng: Rng) -> Wave:
    """Waves: slow swells that break into brighter hiss."""
    period = 5.0 / t.speed
    phase = time_axis(n) / period + 0.62
    rise = (phase % 1.0) ** 2.2
    fall = np.where(phase % 1.0 < 0.08, 1 - (phase % 1.0) / 0.08, 0.0)
    swell = np.maximum(rise, fall)
    swell = np.convolve(swell, np.hanning(2048) / np.hanning(2048).sum(), "same")
    deep = low(tilted(n, rng, 4), 900) * (0.4 + 0.6 * swell)
    foam = band(tilted(n, rng, 2), 700, 7000) * swell
    return normal(deep) + (0.5 + 0.5 * t.force) * normal(foam)


def stream(t: Traits, n: int, rng: Rng) -> Wave:
    """Running water: many bubbles over a soft rush."""
    rush = band(tilted(n, rng, 3), 300, 5000) * (0.7 + 0.3 * wander(n, 4, rng))
    drops = grains(
        n,
        150 * (0.4 + t.force),
        rng,
        lambda r: chirp_grain(r, 350, 2600, float(r.uniform(0.02, 0.06)), 0.4),
        48,
        1.0,
        18,
    )
    return 0.35 * (0.5 + t.force) * normal(rush) + normal(drops)


def waterfall(t: Traits, n: int, rng: Rng) -> Wave:
    """A broad steady rush."""
    return normal(tilted(n, rng, 3.2) * (0.9 + 0.1 * wander(n, 3, rng))) + 0.3 * normal(
        grains(n, 250, rng, lambda r: chirp_grain(r, 300, 1500, 0.04, 0.3))
    )


def tap(t: Traits, n: int, rng: Rng) -> Wave:
    """A tap or shower running into a basin."""
    rush = band(noise(n, rng), 900, 9000) * (0.9 + 0.1 * wander(n, 8, rng))
    bowl = resonate(rush, 700, 200) + resonate(rush, 1700, 300)
    drops = grains(n, 120, rng, lambda r: chirp_grain(r, 600, 2500, 0.03, 0.3), 40)
    return 0.6 * normal(rush) + 0.5 * normal(bowl) + 0.45 * normal(drops)


def drip(t: Traits, n: int, rng: Rng) -> Wave:
    """One drop: a tick, then a bubble that rises in pitch."""
    m = frames(0.22)
    hz = (820 + 300 * rng.random()) / t.size
    k = frames(0.13)
    out = np.zeros(m)
    add(out, normal(high(noise(frames(0.006), rng), 2000)) * decay(frames(0.006), 0.006), 0.0, 0.3)
    add(out, tone(hz * shape(k, [(0, 1), (1, 1.75)]), k) * decay(k, 0.12), 0.012, 1.0)
    add(out, tone(hz * 1.45 * shape(k, [(0, 1), (1, 1.5)]), k) * decay(k, 0.07), 0.05, 0.35)
    return out


def pour(t: Traits, n: int, rng: Rng) -> Wave:
    """Liquid into a vessel: the column of air above shortens, so its resonance rises."""
    stream_ = normal(texture("pour", n, rng))
    hz = (420 + 1500 * np.linspace(0, 1, n) ** 2) / t.size
    column = np.zeros(n)
    hop = 2048
    for i in range(0, n, hop):
        heard = stream_[max(0, i - 2048) : i + hop + 512]
        part = resonate(heard, float(hz[i]), 120)[-(min(n, i + hop + 512) - i) :]
        column[i : i + hop + 512] += _taper(part, hop)
    return (stream_ + 0.7 * normal(column)) * shape(n, [(0, 0.6), (0.04, 1), (0.96, 1), (1, 0.2)])


def bubbles(t: Traits, n: int, rng: Rng) -> Wave:
    """Bubbles rising, or a pot at the boil."""
    per_s = (14 if t.has("bubble", "bubbles") else 40) * t.speed * (0.5 + t.force)
    out = normal(
        grains(n, per_s, rng, lambda r: chirp_grain(r, 180, 900, float(r.uniform(0.05, 0.11)), 0.8), 48, 0.9, 14)
    )
    if t.has("boiling", "boil", "simmering", "boils"):
        out += 0.25 * normal(low(tilted(n, rng, 4), 1500))
    return out


def splash(t: Traits, n: int, rng: Rng) -> Wave:
    """A thing falls into water: a burst of drops that thins out; a cavity under a large one."""
    m = frames(0.9 * np.sqrt(t.size))
    out = texture("splash", m, rng) * shape(m, [(0, 0), (0.04, 1), (0.5, 0.7), (1, 0)])
    if t.size > 1.2:
        k = frames(0.25)
        add(out, tone(shape(k, [(0, 140), (1, 420)]) / t.size, k) * rounded(np.ones(k), 0.02, 0.1), 0.06, 0.4)
    return out


def plop(t: Traits, n: int, rng: Rng) -> Wave:
    """A small stone into a pond."""
    k = frames(0.3)
    out = tone(shape(k, [(0, 220), (0.2, 260), (1, 700)]) / t.size, k) * rounded(decay(k, 0.28), 0.01, 0.05)
    out += 0.3 * normal(band(noise(k, rng), 600, 5000)) * decay(k, 0.1)
    return out


def fire(t: Traits, n: int, rng: Rng) -> Wave:
    """Crackles of all sizes over a low flutter."""
    crackle = grains(n, 26 * (0.5 + t.force), rng, lambda r: _crackle(r), 48, 1.0, 26)
    fine = grains(n, 160, rng, lambda r: _crackle(r) * 0.3, 32, 1.0, 26)
    flutter = low(tilted(n, rng, 5), 320) * (0.5 + 0.5 * wander(n, 7, rng))
    return normal(crackle) + 0.4 * normal(fine) + (0.1 + 0.25 * t.force) * normal(flutter)


def _crackle(rng: Rng) -> Wave:
    t60 = float(rng.uniform(0.002, 0.018))
    n = frames(t60 * 1.2)
    return normal(resonate(noise(n, rng), float(rng.uniform(1200, 8000)), 3500)) * decay(n, t60)


def explosion(t: Traits, n: int, rng: Rng) -> Wave:
    """A blast: broadband onset, then falling rumble."""
    m = frames(2.4 * np.sqrt(t.size))
    out = normal(noise(m, rng) * decay(m, 0.25)) * 0.8
    out += 1.2 * normal(low(tilted(m, rng, 5), 600 / t.size) * decay(m, 1.9))
    k = frames(0.5)
    add(out, tone(shape(k, [(0, 110), (1, 30)]) / t.size, k) * decay(k, 0.6), 0.0, 1.0)
    debris = grains(m, 40, rng, lambda r: _crackle(r)) * shape(m, [(0, 0), (0.1, 1), (0.7, 0), (1, 0)])
    return np.tanh(1.6 * out) + 0.12 * normal(debris)


def gunshot(t: Traits, n: int, rng: Rng) -> Wave:
    """A sharp report with a short tail."""
    m = frames(0.9)
    out = normal(noise(m, rng)) * decay(m, 0.12) + 0.7 * normal(low(noise(m, rng), 700)) * decay(m, 0.4)
    return np.tanh(2.5 * out)


def firework(t: Traits, n: int, rng: Rng) -> Wave:
    """A rocket whistles up, bursts, crackles."""
    out = np.zeros(frames(3.0))
    k = frames(0.9)
    add(
        out,
        (tone(shape(k, [(0, 1300), (1, 2700)]), k) + 0.2 * noise(k, rng)) * shape(k, [(0, 0), (0.2, 1), (1, 0.4)]),
        0.0,
        0.12,
    )
    add(out, explosion(t, n, rng)[: frames(1.6)], 0.95, 1.0)
    m = frames(1.5)
    add(out, normal(grains(m, 70, rng, lambda r: _crackle(r))) * shape(m, [(0, 0.3), (0.2, 1), (1, 0)]), 1.35, 0.5)
    return out


def balloon(t: Traits, n: int, rng: Rng) -> Wave:
    """A pop: one sharp pressure step and a very short tail."""
    m = frames(0.22)
    out = normal(high(noise(m, rng), 400)) * decay(m, 0.045)
    out[: frames(0.0015)] += 1.5
    return out + 0.5 * tone(420 / t.size, m) * decay(m, 0.05)


def cork(t: Traits, n: int, rng: Rng) -> Wave:
    """A cork: the neck of the bottle sounds once."""
    m = frames(0.18)
    return tone(shape(m, [(0, 420), (0.2, 640), (1, 600)]) / t.size, m) * decay(m, 0.09) + 0.35 * normal(
        high(noise(m, rng), 1500)
    ) * decay(m, 0.04)


def sizzle(t: Traits, n: int, rng: Rng) -> Wave:
    """Frying: dense fine crackles and steam."""
    fine = grains(n, 700 * (0.5 + t.force), rng, lambda r: _crackle(r), 40, 1.0, 30)
    return normal(fine) + 0.2 * normal(high(noise(n, rng), 3500))


def hiss(t: Traits, n: int, rng: Rng) -> Wave:
    """Steam, spray, a leak, a snake."""
    return (
        high(noise(n, rng), 2800)
        * shape(n, [(0, 0.4), (0.03, 1), (0.93, 0.9), (1, 0)])
        * (0.9 + 0.1 * wander(n, 25, rng))
    )


def rustle(t: Traits, n: int, rng: Rng) -> Wave:
    """Leaves in the wind: fine dry grains in slow gusts."""
    fine = grains(n, 420, rng, lambda r: _crackle(r), 48, 1.0, 26)
    return normal(fine * (0.15 + wander(n, 1.3, rng) ** 2)) + 0.2 * normal(
        high(noise(n, rng), 3500) * (0.1 + wander(n, 1.3, rng))
    )


def rockfall(t: Traits, n: int, rng: Rng) -> Wave:
    """Stones tumbling, rubble, an avalanche."""
    out = 0.5 * normal(low(tilted(n, rng, 4), 400) * wander(n, 4, rng))
    for at in moments(n, 26, rng, 0.9):
        add(out, normal(strike("stone", float(rng.uniform(0.6, 2.5)), 0.7, rng)), at, float(rng.uniform(0.1, 1)))
    return out
