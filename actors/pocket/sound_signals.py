"""Bells, horns, sirens, rings and beeps: tones with a given pattern. `(traits, n, rng) -> mono wave`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
    modes,
    noise,
    normal,
    rounded,
    shape,
    time_axis,
    tone,
    wander,
)
from .sound_traits import Traits

# Partials of a minor-third church bell relative to its prime, and of a small hand bell.
CHURCH = (0.5, 1.0, 1.19, 1.5, 2.0, 2.51, 2.66, 3.01, 4.17)
HANDBELL = (1.0, 2.0, 2.4, 3.0, 4.5, 5.33, 6.67)


def bell_large(t: Traits, n: int, rng: Rng) -> Wave:
    """A church bell stroke: hum, prime, tierce, quint, nominal."""
    hz = 330 / t.size**0.7
    t60 = [5.0, 3.6, 3.0, 2.2, 2.0, 1.3, 1.2, 1.0, 0.7]
    gains = [0.7, 0.8, 0.7, 0.35, 1.0, 0.4, 0.5, 0.4, 0.3]
    out = modes(frames(3.6), [hz * r for r in CHURCH], t60, gains, rng)
    out += 0.5 * modes(len(out), [hz * r * 1.003 for r in CHURCH], t60, gains, rng)
    add(out, normal(band(noise(frames(0.05), rng), 800, 5000)) * decay(frames(0.05), 0.04), 0.0, 0.4)
    return out


def bell_small(t: Traits, n: int, rng: Rng) -> Wave:
    """A hand bell, desk bell or bicycle bell."""
    hz = 2100 / t.size
    return modes(
        frames(1.6),
        [hz * r for r in HANDBELL],
        [1.5, 1.1, 0.9, 0.8, 0.5, 0.4, 0.3],
        [1, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15],
        rng,
    )


def chimes(t: Traits, n: int, rng: Rng) -> Wave:
    """Wind chimes: tubes struck at random."""
    out = np.zeros(n)
    scale = np.array([1, 1.125, 1.25, 1.5, 1.667, 2.0]) * 1250 / t.size
    at = 0.0
    while at < n / RATE:
        hz = float(scale[rng.integers(6)])
        tube = modes(frames(1.8), [hz, 2.76 * hz, 5.4 * hz], [1.7, 0.9, 0.4], [1, 0.45, 0.2], rng)
        add(out, tube, at, float(rng.uniform(0.3, 1)))
        at += float(rng.exponential(0.22 / t.speed)) + 0.03
    return out


def gong(t: Traits, n: int, rng: Rng) -> Wave:
    """A gong: many modes whose upper half blooms late."""
    m = frames(3.6)
    hz = 95 / t.size**0.5 * np.cumprod(np.concatenate([[1.0], rng.uniform(1.07, 1.2, 26)]))
    low_half = modes(m, list(hz[:12]), list(np.linspace(4.5, 2.5, 12)), list(rng.uniform(0.4, 1, 12)), rng)
    high_half = modes(m, list(hz[12:]), list(np.linspace(2.4, 1.2, 15)), list(rng.uniform(0.3, 1, 15)), rng)
    return normal(low_half) + 0.6 * normal(high_half * shape(m, [(0, 0.15), (0.08, 1), (1, 1)]))


def cymbal(t: Traits, n: int, rng: Rng) -> Wave:
    """A cymbal crash."""
    m = frames(1.8)
    hz = rng.uniform(400, 12000, 60) / t.size**0.3
    ring = modes(m, list(hz), list(rng.uniform(0.6, 1.8, 60)), list(rng.uniform(0.3, 1, 60)), rng)
    return normal(ring) * 0.6 + normal(band(noise(m, rng), 3000, 16000)) * decay(m, 1.4)


def triangle_ding(t: Traits, n: int, rng: Rng) -> Wave:
    """A clear ding."""
    hz = 1750 / t.size
    return modes(frames(1.6), [hz, 2.01 * hz, 3.0 * hz, 5.2 * hz], [1.6, 0.9, 0.6, 0.3], [1, 0.35, 0.15, 0.1], rng)


def doorbell(t: Traits, n: int, rng: Rng) -> Wave:
    """Ding-dong; a buzzer when so named."""
    if t.has("buzzer", "buzz", "buzzing"):
        return buzzer(t, frames(0.9), rng)
    out = np.zeros(frames(1.9))
    for at, hz in ((0.0, 660.0), (0.55, 523.0)):
        add(
            out,
            modes(frames(1.3), [hz, 2 * hz, 3.01 * hz, 4.2 * hz], [1.3, 0.8, 0.5, 0.3], [1, 0.4, 0.25, 0.1], rng),
            at,
        )
    return out


def phone(t: Traits, n: int, rng: Rng) -> Wave:
    """One ring of a telephone: two bells hammered 20 times a second; a trill when modern."""
    m = frames(1.5)
    if t.has("mobile", "cell", "cellphone", "smartphone", "digital", "modern", "ringtone"):
        notes = np.array([1319, 1175, 740, 831, 1109, 988, 587, 659])
        hz = notes[np.minimum((time_axis(m) / 0.12).astype(int) % 8, 7)].astype(float)
        return (
            (tone(hz, m) + 0.25 * tone(2 * hz, m))
            * (0.5 + 0.5 * np.cos(2 * np.pi * (time_axis(m) % 0.12) / 0.24))
            * rounded(np.ones(m), 0.005, 0.05)
        )
    out = np.zeros(m)
    for i in range(int(1.1 * 21)):
        hz = 1180.0 if i % 2 else 1420.0
        add(out, modes(frames(0.4), [hz, 2.1 * hz, 3.4 * hz], [0.4, 0.25, 0.15], [1, 0.5, 0.3], rng), i / 21)
    return out


def dial(t: Traits, n: int, rng: Rng) -> Wave:
    """Dial tone, or keys being dialled when so named; engaged tone when busy."""
    if t.has("busy", "engaged"):
        return (tone(480, n) + tone(620, n)) * ((time_axis(n) % 1.0) < 0.5)
    if t.has("dialling", "dialing", "dialled", "dials", "keypad", "touch-tone", "touchtone"):
        rows, cols = (697, 770, 852, 941), (1209, 1336, 1477)
        out = np.zeros(n)
        for i in range(int(n / RATE / 0.3) + 1):
            k = frames(0.17)
            add(
                out,
                (tone(rows[int(rng.integers(4))], k) + tone(cols[int(rng.integers(3))], k))
                * rounded(np.ones(k), 0.004, 0.004),
                i * 0.3,
            )
        return out
    return tone(350, n) + tone(440, n)


def alarm(t: Traits, n: int, rng: Rng) -> Wave:
    """An alarm clock or detector: beeps in groups."""
    smoke = t.has("smoke", "fire", "detector")
    hz, on, off, group, rest = (3100.0, 0.45, 0.25, 3, 0.8) if smoke else (2050.0, 0.09, 0.07, 4, 0.45)
    x = tone(hz, n) + 0.35 * tone(3 * hz, n) + 0.2 * tone(2 * hz, n)
    period = group * (on + off) / t.speed + rest
    at = time_axis(n) % period
    return x * (((at * t.speed) % (on + off) < on) & (at < group * (on + off) / t.speed))


def car_alarm(t: Traits, n: int, rng: Rng) -> Wave:
    """A car alarm: fast rising sweeps."""
    sweep = (time_axis(n) * 3.2 * t.speed) % 1.0
    hz = 750 + 1150 * sweep
    return tone(hz, n) + 0.4 * tone(3 * hz, n) + 0.3 * tone(2 * hz, n)


def siren(t: Traits, n: int, rng: Rng) -> Wave:
    """Police wail, ambulance two-tone, or a slow civil siren."""
    when = time_axis(n) * t.speed
    if t.has("ambulance", "two-tone", "european", "hi-lo"):
        hz = np.where((when % 1.1) < 0.55, 660.0, 880.0)
    elif t.has("air-raid", "raid", "civil", "tornado", "defense", "defence"):
        hz = 260 + 260 * (0.5 - 0.5 * np.cos(2 * np.pi * when / 6))
    else:
        hz = 620 + 820 * (0.5 - 0.5 * np.cos(2 * np.pi * when / 2.6)) ** 0.8
    return tone(hz, n) + 0.45 * tone(2 * hz, n) + 0.3 * tone(3 * hz, n) + 0.02 * noise(n, rng)


def horn(t: Traits, n: int, rng: Rng) -> Wave:
    """A car horn blast: two reeds a third apart; lower for trucks, ships and trains."""
    m = frames(0.65 if not t.has("long", "long-held", "sustained") else 1.6)
    chord: Sequence[float] = (415.0, 523.0)
    if t.has("ship", "ship's", "boat", "foghorn", "ferry", "ocean-liner", "fog"):
        chord, m = (98.0, 147.0), frames(2.2)
    elif t.has("train", "locomotive", "diesel"):
        chord, m = (277.0, 330.0, 415.0, 494.0), frames(1.5)
    elif t.has("truck", "lorry", "bus"):
        chord = (233.0, 294.0)
    x = sum(np.asarray(buzz(hz / t.size**0.3 * (1 + 0.002 * wander(m, 6, rng)), m, 0.62)) for hz in chord)
    return formants(np.asarray(x), [(500, 350, 1.0), (1150, 600, 1.0), (2400, 900, 0.8)]) * rounded(
        np.ones(m), 0.02, 0.05
    )


def bike_horn(t: Traits, n: int, rng: Rng) -> Wave:
    """A squeeze horn: honk."""
    m = frames(0.4)
    return formants(
        buzz(310 / t.size * shape(m, [(0, 0.9), (0.2, 1.05), (1, 0.9)]), m, 0.85), [(900, 200, 1), (1600, 300, 1)]
    ) * rounded(np.ones(m), 0.02, 0.08)


def steam_whistle(t: Traits, n: int, rng: Rng) -> Wave:
    """A train's steam whistle or a kettle: tones in rushing steam; a kettle rises as it comes to the boil."""
    if t.has("kettle", "teakettle", "teapot"):
        climb = shape(n, [(0, 0.55), (0.45, 0.95), (0.6, 1.0), (1, 1.0)]) if t.level_trend >= 0 else np.ones(n)
        env = (
            shape(n, [(0, 0.06), (0.3, 0.3), (0.6, 1), (1, 1)]) if t.level_trend > 0 else rounded(np.ones(n), 0.2, 0.05)
        )
        hz = 2300 / t.size**0.5 * climb * (1 + 0.01 * wander(n, 7, rng))
        return (tone(hz, n) + 0.5 * tone(1.26 * hz, n) + 0.1 * tone(2 * hz, n)) * env + 0.14 * normal(
            band(noise(n, rng), 2000, 9000)
        )
    m = frames(1.4)
    x = sum(tone(hz * shape(m, [(0, 0.9), (0.1, 1), (0.9, 1), (1, 0.93)]), m) for hz in (520.0, 622.0, 784.0, 1040.0))
    return (np.asarray(x) + 0.9 * normal(band(noise(m, rng), 600, 6000))) * shape(
        m, [(0, 0), (0.08, 1), (0.85, 1), (1, 0)]
    )


def beep(t: Traits, n: int, rng: Rng) -> Wave:
    """One electronic beep (a microwave, a scanner, a monitor)."""
    m = frames(0.16 if not t.has("long") else 0.6)
    hz = 1000.0 / t.size if t.has("truck", "reversing", "monitor") else 2000.0 / t.size
    return (tone(hz, m) + 0.15 * tone(3 * hz, m)) * rounded(np.ones(m), 0.004, 0.006)


def buzzer(t: Traits, n: int, rng: Rng) -> Wave:
    """A game-show or door buzzer."""
    m = min(n, frames(0.9)) if n else frames(0.9)
    return formants(buzz(125 / t.size, m, 0.95), [(600, 300, 1), (1500, 700, 1), (3000, 1500, 0.6)]) * rounded(
        np.ones(m), 0.006, 0.02
    )


def sonar(t: Traits, n: int, rng: Rng) -> Wave:
    """A ping with a long tail."""
    m = frames(1.8)
    return tone(1250 / t.size, m) * decay(m, 1.8) + 0.1 * tone(1256 / t.size, m) * decay(m, 2.4)


def laser(t: Traits, n: int, rng: Rng) -> Wave:
    """A game zap: a fast falling sweep."""
    m = frames(0.35)
    hz = np.geomspace(2600, 260, m) / t.size
    return (tone(hz, m) + 0.4 * tone(2 * hz, m)) * decay(m, 0.5)


def pure_tone(t: Traits, n: int, rng: Rng) -> Wave:
    """A steady electronic tone; middle A unless high or low is said."""
    return tone(440 / t.size, n) * rounded(np.ones(n), 0.01, 0.02)


def sweep(t: Traits, n: int, rng: Rng) -> Wave:
    """A tone gliding up (or down when falling is said)."""
    ends = (
        (2000.0, 200.0) if t.level_trend < 0 or t.has("falling", "down", "descending", "downward") else (200.0, 2000.0)
    )
    return tone(np.geomspace(*ends, n), n) * rounded(np.ones(n), 0.01, 0.03)


def music_box(t: Traits, n: int, rng: Rng) -> Wave:
    """A music box turning out a small tune."""
    scale = (0, 4, 7, 12, 7, 4, 5, 9, 12, 9, 5, 2, 7, 11, 14, 11)
    out = np.zeros(n)
    for i in range(int(n / RATE / (0.25 / t.speed)) + 1):
        hz = 1046.5 * 2 ** (scale[i % 16] / 12) / t.size
        add(out, modes(frames(0.9), [hz, 2.9 * hz], [0.9, 0.4], [1, 0.2], rng), i * 0.25 / t.speed)
    return out
