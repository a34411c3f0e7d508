"""People: one call (a laugh, a cough) or n frames of many (a murmur, applause). `(traits, n, rng) -> mono wave`."""

from __future__ import annotations

import numpy as np
from scipy import signal

from .sound_animals import AH, EE, EH, OH, OO, scaled
from .sound_fitted import call, texture
from .sound_impacts import clap
from .sound_synth import (
    Rng,
    Wave,
    add,
    band,
    decay,
    formants,
    frames,
    grains,
    high,
    low,
    noise,
    normal,
    resonate,
    shape,
    time_axis,
    tone,
    voice,
    wander,
)
from .sound_traits import Traits

VOWELS = (AH, EH, EE, OH, OO)


def murmur(t: Traits, n: int, rng: Rng) -> Wave:
    """Many people talking at once, no word to be understood."""
    out = np.zeros(n)
    for _ in range(10):
        out += float(rng.uniform(0.4, 1)) * normal(_babble(n, rng, float(rng.uniform(95, 235))))
    return out + 0.05 * normal(band(noise(n, rng), 200, 3000))


def _babble(n: int, rng: Rng, hz: float) -> Wave:
    k = 1.0 if hz < 160 else 1.15
    syllables = max(3, int(n / 44100 * 4.6))
    path = [
        (i / syllables, scaled(VOWELS[int(rng.integers(5))], k * float(rng.uniform(0.93, 1.07))))
        for i in range(syllables + 1)
    ]
    f0 = hz * (0.82 + 0.36 * wander(n, 2.2, rng))
    loud = wander(n, 9, rng) ** 1.2 * (wander(n, 0.8, rng) > 0.22)
    loud = np.asarray(signal.lfilter([0.002], [1, -0.998], loud))
    x = voice(f0, path, rng, 0.55, 0.08) * loud
    return x + 0.02 * normal(high(noise(n, rng), 3500) * wander(n, 9, rng) ** 6)


def applause(t: Traits, n: int, rng: Rng) -> Wave:
    """Many hands; few of them when gentle or sparse."""
    few = t.has("scattered", "sparse", "polite", "few", "slow") or t.force < 0.35
    if few:
        return grains(n, 30, rng, lambda r: clap(t, 0, r), 40, 1.0, 14)
    return texture("applause", n, rng)


def cheer(t: Traits, n: int, rng: Rng) -> Wave:
    """A crowd cheering: open vowels at high effort, whoops and applause."""
    out = np.zeros(n)
    for _ in range(9):
        hz = float(rng.uniform(220, 480))
        f0 = hz * (0.85 + 0.4 * wander(n, 1.5, rng))
        x = voice(f0, [(0, scaled(AH, 1.1)), (0.5, scaled(EH, 1.1)), (1, scaled(AH, 1.15))], rng, 0.7, 0.5)
        out += normal(x * (0.3 + 0.7 * wander(n, 1.5, rng)))
    return (
        normal(out)
        + 0.5 * normal(band(noise(n, rng), 600, 4500) * (0.6 + 0.4 * wander(n, 2, rng)))
        + 0.35 * normal(applause(Traits(), n, rng))
    )


def children(t: Traits, n: int, rng: Rng) -> Wave:
    """Children playing and shouting."""
    out = np.zeros(n)
    for _ in range(6):
        out += float(rng.uniform(0.3, 1)) * normal(_babble(n, rng, float(rng.uniform(300, 480))))
    return out


def laugh(t: Traits, n: int, rng: Rng) -> Wave:
    """Ha-ha-ha: seven bursts, falling a little in pitch and level; deep for a man, high for a child."""
    low_voice = t.has("man", "man's", "male", "he", "his", "deep", "belly", "old")
    high_voice = t.has("baby", "child", "child's", "children", "kid", "girl", "giggle", "giggles", "giggling")
    bend = 0.6 if low_voice else 1.3 if high_voice else 1.0
    gap = 0.2 / np.sqrt(t.speed)
    out = np.zeros(frames(7 * gap + 0.25))
    for i in range(7):
        add(out, call("laugh", rng, t.size**0.5, bend * (1.03 - 0.01 * i)), i * gap, 1.0 - 0.05 * i)
    return out


def cough(t: Traits, n: int, rng: Rng) -> Wave:
    """A cough."""
    return call("cough", rng, t.size, 1.5 if t.has("woman", "child", "girl", "baby") else 1.0)


def sneeze(t: Traits, n: int, rng: Rng) -> Wave:
    """Ah - choo."""
    out = np.zeros(frames(0.95))
    k = frames(0.35)
    add(
        out,
        normal(voice(230 * shape(k, [(0, 0.9), (1, 1.25)]), [(0, AH), (1, EH)], rng, 0.4, 0.9))
        * shape(k, [(0, 0), (0.7, 0.5), (1, 0.1)]),
        0.0,
        0.7,
    )
    k = frames(0.4)
    add(out, normal(band(noise(k, rng), 1600, 8500)) * shape(k, [(0, 0), (0.05, 1), (0.4, 0.4), (1, 0)]), 0.42, 1.0)
    add(
        out,
        normal(voice(270 * shape(k, [(0, 1.2), (1, 0.7)]), [(0, EE), (0.5, OO), (1, OO)], rng, 0.5, 0.6))
        * shape(k, [(0, 0), (0.3, 0.7), (1, 0)]),
        0.46,
        0.5,
    )
    return out


def breathing(t: Traits, n: int, rng: Rng) -> Wave:
    """In and out; heavy breathing is louder and faster."""
    phase = (time_axis(n) * 0.32 * t.speed * (1.6 if t.force > 0.7 or t.has("panting", "pant") else 1.0)) % 1.0
    inn = np.clip(np.sin(np.pi * phase / 0.42), 0, 1) * (phase < 0.42)
    out = np.clip(np.sin(np.pi * (phase - 0.5) / 0.45), 0, 1) * (phase >= 0.5)
    x = noise(n, rng)
    return (
        formants(x, [(900, 500, 0.6), (2000, 900, 1.0), (4500, 2500, 0.8)]) * inn
        + formants(x, [(600, 400, 1.0), (1400, 700, 1.0), (2900, 1500, 0.5)]) * out
    )


def snore(t: Traits, n: int, rng: Rng) -> Wave:
    """A rattling breath."""
    return call("snore", rng, t.size)


def heartbeat(t: Traits, n: int, rng: Rng) -> Wave:
    """Lub-dub."""
    out = np.zeros(frames(0.5))
    for at, hz, gain in ((0.0, 52.0, 1.0), (0.29 / np.sqrt(t.speed), 66.0, 0.7)):
        k = frames(0.16)
        beat = tone(shape(k, [(0, hz * 1.4), (1, hz * 0.8)]), k) * shape(k, [(0, 0), (0.15, 1), (1, 0)]) ** 1.3
        add(out, beat + 0.1 * normal(low(noise(k, rng), 160)) * decay(k, 0.12), at, gain)
    return out


def baby(t: Traits, n: int, rng: Rng) -> Wave:
    """A baby's cry: one wail."""
    m = frames(1.0)
    f0 = 450 * shape(m, [(0, 0.8), (0.2, 1.12), (0.7, 1.05), (1, 0.75)]) * (1 + 0.02 * tone(7, m))
    x = voice(f0, [(0, scaled(EH, 1.5)), (0.3, scaled(AH, 1.5)), (1, scaled(EH, 1.45))], rng, 0.75, 0.12)
    return x * shape(m, [(0, 0), (0.1, 1), (0.8, 0.85), (1, 0)])


def scream(t: Traits, n: int, rng: Rng) -> Wave:
    """A scream."""
    m = frames(1.2)
    f0 = (
        950 / t.size * shape(m, [(0, 0.7), (0.1, 1.05), (0.7, 1.1), (1, 0.8)]) * (1 + 0.05 * (wander(m, 70, rng) - 0.5))
    )
    return np.tanh(2 * normal(voice(f0, [(0, scaled(AH, 1.3)), (1, scaled(EH, 1.3))], rng, 0.8, 0.5))) * shape(
        m, [(0, 0), (0.06, 1), (0.8, 0.9), (1, 0)]
    )


def sigh(t: Traits, n: int, rng: Rng) -> Wave:
    """A sigh, a yawn, a gasp: one long breath."""
    m = frames(1.2)
    x = formants(noise(m, rng), [(600, 300, 1.0), (1300, 500, 0.8), (2600, 900, 0.4)])
    low_voice = voice(180 * shape(m, [(0, 1.1), (1, 0.7)]), [(0, AH), (1, OH)], rng, 0.3, 0.3)
    return (normal(x) + 0.4 * normal(low_voice)) * shape(m, [(0, 0), (0.2, 1), (1, 0)])


def whistle(t: Traits, n: int, rng: Rng) -> Wave:
    """A person whistling: a nearly pure tone with vibrato and breath."""
    if t.has("referee", "referee's", "pea", "police", "sports", "coach", "coach's"):
        return _pea_whistle(rng)
    m = frames(1.1)
    hz = 1500 / t.size * shape(m, [(0, 0.85), (0.15, 1.0), (0.5, 1.25), (0.8, 1.2), (1, 0.95)])
    x = tone(hz * (1 + 0.012 * tone(5.5, m)), m) * shape(m, [(0, 0), (0.1, 1), (0.85, 0.9), (1, 0)])
    return x + 0.02 * normal(resonate(noise(m, rng), 1700, 700))


def _pea_whistle(rng: Rng) -> Wave:
    m = frames(0.8)
    trill = 1 + 0.5 * tone(38, m)
    x = tone(2750 * (1 + 0.012 * tone(38, m)), m) * trill + 0.5 * tone(3150 * (1 + 0.012 * tone(38, m)), m) * trill
    return (x + 0.25 * noise(m, rng)) * shape(m, [(0, 0), (0.04, 1), (0.9, 0.9), (1, 0)])


def hum(t: Traits, n: int, rng: Rng) -> Wave:
    """A person humming a slow line."""
    steps = np.array([0, 2, 4, 2, 0, -3, 0, 4])
    seconds = np.arange(n) / 44100
    f0 = (140 if t.has("man", "male", "deep") else 230) * 2.0 ** (steps[(seconds / 0.5).astype(int) % 8] / 12)
    f0 = np.asarray(signal.lfilter([0.0008], [1, -0.9992], f0 - f0[0])) + f0[0]
    return voice(f0 * (1 + 0.008 * tone(5.2, n)), [(0, (280, 900, 2200)), (1, (280, 900, 2200))], rng, 0.35, 0.02)


def chew(t: Traits, n: int, rng: Rng) -> Wave:
    """One bite or gulp."""
    m = frames(0.22)
    return normal(
        grains(m, 260, rng, lambda r: resonate(noise(frames(0.006), r), float(r.uniform(600, 3500)), 1200))
    ) * shape(m, [(0, 0.2), (0.3, 1), (1, 0)])
