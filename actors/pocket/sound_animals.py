"""Animals: a pulse source through moving formants, chirps, breath. `(traits, n, rng) -> mono wave`.

Each function makes one call (a bark, a meow) or n frames of a texture (birdsong). `traits.size`
lowers the pitch.
"""

from __future__ import annotations

import numpy as np

from .sound_fitted import call
from .sound_synth import (
    Rng,
    Wave,
    add,
    band,
    buzz,
    formants,
    frames,
    moments,
    noise,
    normal,
    rounded,
    shape,
    time_axis,
    tone,
    voice,
    wander,
)
from .sound_traits import Traits

Vowel = tuple[float, float, float]
AH: Vowel = (760.0, 1250.0, 2600.0)
EH: Vowel = (560.0, 1800.0, 2550.0)
EE: Vowel = (310.0, 2300.0, 3000.0)
OH: Vowel = (480.0, 880.0, 2500.0)
OO: Vowel = (330.0, 780.0, 2300.0)


def scaled(vowel: Vowel, factor: float) -> Vowel:
    return (vowel[0] * factor, vowel[1] * factor, vowel[2] * factor)


def dog(t: Traits, n: int, rng: Rng) -> Wave:
    """A bark."""
    return call("dog", rng, t.size)


def howl(t: Traits, n: int, rng: Rng) -> Wave:
    """A long howl."""
    m = frames(2.2)
    f0 = 430 / t.size * shape(m, [(0, 0.7), (0.2, 1.2), (0.7, 1.15), (1, 0.75)]) * (1 + 0.012 * tone(5, m))
    return voice(f0, [(0, OO), (0.3, OH), (1, OO)], rng, 0.35, 0.03) * shape(
        m, [(0, 0), (0.15, 1), (0.75, 0.9), (1, 0)]
    )


def growl(t: Traits, n: int, rng: Rng) -> Wave:
    """A low rough growl."""
    f0 = 75 / t.size * (1 + 0.25 * wander(n, 20, rng))
    x = voice(f0, [(0, (350, 900, 2200)), (1, (420, 1000, 2300))], rng, 0.9, 0.5)
    return x * (0.45 + 0.55 * wander(n, 28, rng)) * shape(n, [(0, 0), (0.15, 1), (0.85, 1), (1, 0)])


def roar(t: Traits, n: int, rng: Rng) -> Wave:
    """A lion or a monster."""
    m = frames(1.9)
    f0 = 105 / t.size * shape(m, [(0, 0.8), (0.3, 1.3), (1, 0.6)]) * (1 + 0.35 * (wander(m, 60, rng) - 0.5))
    x = voice(f0, [(0, (300, 800, 2200)), (0.35, (650, 1150, 2500)), (1, (350, 800, 2100))], rng, 0.9, 0.9)
    return np.tanh(2 * normal(x)) * shape(m, [(0, 0), (0.2, 1), (0.6, 0.8), (1, 0)])


def cat(t: Traits, n: int, rng: Rng) -> Wave:
    """A meow."""
    return call("cat", rng, t.size)


def purr(t: Traits, n: int, rng: Rng) -> Wave:
    """A purr: low pulses at 25 a second, breathing in and out."""
    pulses = buzz(25 + 2 * wander(n, 2, rng), n, 0.9) * (0.5 + 0.5 * noise(n, rng))
    return formants(pulses, [(140, 90, 1.0), (340, 200, 0.7), (900, 500, 0.25)]) * (0.35 + 0.65 * np.abs(tone(0.45, n)))


def bird(t: Traits, n: int, rng: Rng) -> Wave:
    """A short song of two to five gliding whistles."""
    out = np.zeros(frames(0.9))
    at = 0.0
    base = 3600 / t.size**0.6
    for _ in range(int(rng.integers(2, 5))):
        k = frames(float(rng.uniform(0.06, 0.16)))
        a, b, c = base * (0.8 + 0.7 * rng.random(3))
        chirp = tone(shape(k, [(0, a), (0.5, b), (1, c)]) * (1 + 0.02 * tone(55, k)), k) * rounded(
            np.ones(k), 0.012, 0.03
        )
        add(out, chirp, at, float(rng.uniform(0.6, 1)))
        at += k / 44100 + float(rng.uniform(0.02, 0.08))
    return out[: frames(at)]


def birdsong(t: Traits, n: int, rng: Rng) -> Wave:
    """Several birds singing in turn."""
    out = np.zeros(n)
    for at in moments(n, 1.9 * t.speed, rng, 0.7):
        add(out, bird(Traits(size=t.size * float(rng.uniform(0.8, 1.3))), n, rng), at, float(rng.uniform(0.35, 1)))
    return out


def crow(t: Traits, n: int, rng: Rng) -> Wave:
    """A caw."""
    return call("crow", rng, t.size)


def owl(t: Traits, n: int, rng: Rng) -> Wave:
    """Hoo, hoo-hoo."""
    out = np.zeros(frames(1.5))
    for at, length, gain in ((0.0, 0.36, 0.8), (0.55, 0.18, 0.7), (0.78, 0.5, 1.0)):
        k = frames(length)
        hz = 390 / t.size * shape(k, [(0, 0.94), (0.3, 1), (1, 0.94)])
        add(
            out,
            (tone(hz, k) + 0.15 * tone(2 * hz, k) + 0.015 * noise(k, rng)) * rounded(np.ones(k), 0.06, 0.12),
            at,
            gain,
        )
    return out


def dove(t: Traits, n: int, rng: Rng) -> Wave:
    """A coo."""
    m = frames(0.8)
    hz = 480 / t.size * shape(m, [(0, 0.9), (0.4, 1.1), (1, 0.9)])
    return (
        (tone(hz, m) + 0.1 * tone(2 * hz, m))
        * (0.7 + 0.3 * tone(22, m))
        * shape(m, [(0, 0), (0.2, 1), (0.8, 0.8), (1, 0)])
    )


def duck(t: Traits, n: int, rng: Rng) -> Wave:
    """A quack."""
    return call("duck", rng, t.size)


def rooster(t: Traits, n: int, rng: Rng) -> Wave:
    """Cock-a-doodle-doo: three short notes and the long one."""
    out = np.zeros(frames(2.2))
    for at, length, bend in ((0.0, 0.16, 0.8), (0.22, 0.12, 1.0), (0.38, 0.16, 0.95)):
        short = call("rooster", rng, t.size, bend)[frames(0.2) :][: frames(length)]
        add(out, rounded(short, 0.02, 0.04), at, 0.6)
    add(out, call("rooster", rng, t.size), 0.6)
    return out


def hen(t: Traits, n: int, rng: Rng) -> Wave:
    """A cluck."""
    return call("hen", rng, t.size)


def cow(t: Traits, n: int, rng: Rng) -> Wave:
    """A moo."""
    return call("cow", rng, t.size)


def sheep(t: Traits, n: int, rng: Rng) -> Wave:
    """A bleat: a voice shaken seven times a second."""
    m = frames(0.9)
    f0 = (
        (360 if not t.has("goat", "goats") else 430)
        / t.size**0.7
        * (1 + 0.07 * tone(8.5, m))
        * shape(m, [(0, 1), (0.4, 1.03), (1, 0.9)])
    )
    x = voice(f0, [(0, (600, 1500, 2600)), (0.2, (850, 1700, 2700)), (1, (700, 1600, 2600))], rng, 0.8, 0.2)
    return x * (0.74 + 0.26 * tone(8.5, m)) * shape(m, [(0, 0), (0.08, 1), (0.75, 0.8), (1, 0)])


def pig(t: Traits, n: int, rng: Rng) -> Wave:
    """An oink: a snort that turns to voice."""
    m = frames(0.34)
    f0 = 130 / t.size * shape(m, [(0, 1), (0.5, 1.6), (1, 1.2)]) * (1 + 0.3 * (wander(m, 90, rng) - 0.5))
    x = voice(f0, [(0, (400, 1100, 2300)), (1, (700, 1500, 2500))], rng, 0.95, 0.9)
    return np.tanh(2 * normal(x)) * shape(m, [(0, 0), (0.1, 1), (0.6, 0.8), (1, 0)])


def horse(t: Traits, n: int, rng: Rng) -> Wave:
    """A neigh: a high shaken voice that falls."""
    m = frames(1.7)
    f0 = 850 / t.size * shape(m, [(0, 0.7), (0.15, 1.25), (0.5, 0.95), (1, 0.45)]) * (1 + 0.12 * tone(10.5, m))
    x = voice(f0, [(0, (900, 1700, 2900)), (0.4, (1200, 2000, 3200)), (1, (700, 1500, 2600))], rng, 0.75, 0.35)
    return x * (0.78 + 0.22 * tone(10.5, m)) * shape(m, [(0, 0), (0.1, 1), (0.6, 0.8), (1, 0)])


def elephant(t: Traits, n: int, rng: Rng) -> Wave:
    """A trumpet call."""
    m = frames(1.4)
    f0 = (
        420 / t.size * shape(m, [(0, 0.8), (0.25, 1.3), (0.8, 1.2), (1, 0.8)]) * (1 + 0.05 * (wander(m, 40, rng) - 0.5))
    )
    return np.tanh(3 * normal(voice(f0, [(0, (700, 1400, 2600)), (1, (900, 1700, 2900))], rng, 0.9, 0.4))) * shape(
        m, [(0, 0), (0.1, 1), (0.8, 0.9), (1, 0)]
    )


def frog(t: Traits, n: int, rng: Rng) -> Wave:
    """A croak: a burst of pulses through a resonant throat."""
    m = frames(0.4)
    pulses = buzz(shape(m, [(0, 34), (0.5, 46), (1, 60)]), m, 0.95)
    hz = 720 / t.size**0.5
    x = formants(pulses, [(hz, 120, 1.0), (2.3 * hz, 240, 0.8), (3.6 * hz, 400, 0.3)])
    return x * shape(m, [(0, 0), (0.15, 0.7), (0.75, 1), (1, 0)])


def cricket(t: Traits, n: int, rng: Rng) -> Wave:
    """Crickets: near 4.5 kHz, three pulses a chirp, two or three chirps a second, from a few places."""
    out = np.zeros(n)
    for gain in (1.0, 0.35, 0.2):
        hz = 4500 * (0.96 + 0.1 * rng.random()) / t.size**0.3
        beat = time_axis(n) * (2.5 * t.speed) * (0.9 + 0.2 * rng.random()) + (0.0 if gain == 1.0 else rng.random())
        pulse = np.clip(np.sin(2 * np.pi * ((beat % 1.0) / 0.42 * 3 - 0.0)), 0, 1) * ((beat % 1.0) < 0.42)
        out += gain * tone(hz, n) * pulse * (0.9 + 0.1 * noise(n, rng))
    return out + 0.004 * noise(n, rng)


def bee(t: Traits, n: int, rng: Rng) -> Wave:
    """A bee or fly passing to and fro; a mosquito when so named."""
    hz = (620 if t.has("mosquito", "mosquitoes", "gnat") else 215) / t.size**0.5
    near = 0.2 + 0.8 * wander(n, 0.9, rng)
    f0 = hz * (0.94 + 0.12 * near + 0.03 * wander(n, 9, rng))
    wings = buzz(f0, n, 0.55) + 0.5 * buzz(f0 * 1.012, n, 0.5)
    return formants(wings + 0.05 * noise(n, rng), [(hz * 2, 300, 1.0), (1100, 700, 0.8), (2900, 1500, 0.7)]) * near


def wings(t: Traits, n: int, rng: Rng) -> Wave:
    """Wings flapping: one beat."""
    m = frames(0.13)
    return normal(band(noise(m, rng), 250, 2500)) * shape(m, [(0, 0), (0.3, 1), (1, 0)])


def whale(t: Traits, n: int, rng: Rng) -> Wave:
    """A long gliding moan."""
    m = frames(2.6)
    hz = 240 / t.size * shape(m, [(0, 1), (0.3, 1.6), (0.6, 1.3), (1, 2.0)])
    return (tone(hz, m) + 0.4 * tone(2 * hz, m) + 0.15 * tone(3 * hz, m)) * shape(
        m, [(0, 0), (0.2, 1), (0.8, 0.8), (1, 0)]
    )
