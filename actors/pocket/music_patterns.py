"""What each role plays: melody, chords, bass and patterns as events in quarter notes from the section's start."""

from __future__ import annotations

import re

import numpy as np

from . import music_figures
from .english import MODES, Key
from .music_parts import Part, bar_quarters, beat_quarters
from .music_plan import Section

Rng = np.random.Generator


_RHYTHMS: dict[float, tuple[tuple[float, ...], ...]] = {
    2.0: ((1, 1), (1, 0.5, 0.5), (0.5, 0.5, 1)),
    3.0: ((1, 1, 1), (2, 1), (1, 1, 0.5, 0.5), (1.5, 0.5, 1)),
    4.0: ((1, 1, 1, 1), (1, 0.5, 0.5, 1, 1), (1.5, 0.5, 1, 1), (1, 1, 2), (1, 1, 0.5, 0.5, 1), (2, 1, 1)),
    5.0: ((1, 1, 1, 1, 1), (1, 0.5, 0.5, 1, 1, 1), (2, 1, 1, 1)),
}

_COMPOUND: tuple[tuple[float, ...], ...] = ((1, 0.5), (0.5, 0.5, 0.5), (0.75, 0.25, 0.5), (1.5,))


def parent(key: Key) -> tuple[int, ...]:
    """The seven-note scale that gives the chords of a key (pentatonic and blues borrow major and mixolydian)."""
    borrowed = {
        "pentatonic": "major",
        "minor pentatonic": "minor",
        "blues": "mixolydian",
        "chromatic": "major",
        "whole tone": "lydian",
    }
    return MODES[borrowed.get(key.mode, key.mode)]


def chord(key: Key, degree: int) -> tuple[int, ...]:
    """Pitch classes of the triad on a scale degree (0 is the tonic); minor keys raise the leading note of their
    dominant."""
    scale = parent(key)
    notes = [scale[(degree + step) % 7] for step in (0, 2, 4)]
    if degree == 4 and key.mode == "minor":
        notes[1] = 11
    if key.mode == "blues" and degree in (0, 3, 4):
        notes = [scale[degree], (scale[degree] + 4) % 12, (scale[degree] + 7) % 12]
    return tuple((key.tonic + n) % 12 for n in notes)


def nearest(pitch: float, classes: tuple[int, ...]) -> int:
    """The pitch closest to `pitch` whose pitch class is one of `classes`."""
    low = int(np.floor(pitch)) - 6
    return min((p for p in range(low, low + 14) if p % 12 in classes), key=lambda p: (abs(p - pitch), p))


Event = tuple[float, float, int, int]

"""(start, length, pitch, velocity), times in quarter notes from the section's start."""


def _cells(section: Section, rng: Rng) -> list[tuple[float, ...]]:
    """Two rhythms for a bar (question and answer), as note lengths in quarters."""
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    if beat == 1.5:
        counts = round(bar / beat)
        picks = [[_COMPOUND[int(rng.integers(len(_COMPOUND) - 1))] for _ in range(counts)] for _ in range(2)]
        return [tuple(v for cell in pick for v in cell) for pick in picks]
    if beat == 0.5:
        groups = {5: (1.5, 1.0), 7: (1.0, 1.0, 1.5)}.get(section.meter.beats, (bar,))
        cell = tuple(v for g in groups for v in ((1.0, 0.5) if g == 1.5 else (0.5, 0.5) if g == 1.0 else (g,)))
        return [cell, tuple(groups)]
    options = _RHYTHMS.get(bar / beat) or (tuple([1.0] * round(bar / beat)),)
    plain = options[:1] if section.bpm > 170 else options
    return [tuple(v * beat for v in plain[int(rng.integers(len(plain)))]) for _ in range(2)]


def melody(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar = bar_quarters(section.meter)
    cells = _cells(section, rng)
    scale = tuple((section.key.tonic + s) % 12 for s in MODES[section.key.mode])
    natural_scale = scale
    # A contour for each cell, in scale steps; the motif returns, so that the tune can be remembered.
    motions = [rng.integers(-2, 3, len(cell)) for cell in cells]
    events: list[Event] = []
    pitch = nearest(part.center + int(rng.integers(-2, 4)), (section.key.tonic,))
    for number, degree in enumerate(degrees):
        which = (0, 0, 1, 1)[number % 4] if len(degrees) > 2 else number % 2
        cell, motion, t = cells[which], motions[which], number * bar
        tones = chord(section.key, degree)
        if section.key.mode == "minor":
            leading, natural = (section.key.tonic + 11) % 12, (section.key.tonic + 10) % 12
            scale = tuple(leading if c == natural else c for c in natural_scale) if degree == 4 else natural_scale
        fitting = tuple(c for c in tones if c in scale) or tones
        if degree == 0 and len(fitting) == 3:
            fitting = fitting[:2]  # root and third say the key; the fifth belongs to its neighbour as well
        minor = 3 in MODES[section.key.mode] and 4 not in MODES[section.key.mode]
        drift = 0.0
        if part.contour:
            span = 9.0
            drift = part.contour * span * ((number + 0.5) / len(degrees) - 0.5)
        for i, length in enumerate(cell):
            strong = i == 0 or abs((t - number * bar) % (bar / 2)) < 1e-6
            target = pitch + 1.8 * float(motion[i]) + 0.18 * (part.center + 2 * drift - pitch)
            if part.contour:
                target = part.center + drift + part.contour * 3.5 * (i / len(cell) - 0.5) + 0.5 * float(motion[i])
            wanted = fitting if strong else scale
            if (i == 0 and degree == 0 and not part.contour) or (number == 0 and i == 0):
                wanted = (section.key.tonic,)  # a bar on the tonic chord opens on the tonic: the key is heard
            third = ((section.key.tonic + 3) % 12,)
            if minor and degree == 0 and not part.contour and (i or number):
                # The minor third says minor; a tonic's own overtones would say major.
                if (strong and i) or (not i and number % 2 == 1):
                    wanted = third
                elif not strong and i % 2 == 1:
                    wanted = (section.key.tonic, *third, (section.key.tonic + 2) % 12)
            new = nearest(target, wanted)
            if new == pitch and events and not strong:
                new = nearest(pitch + (1.6 if motion[i] >= 0 else -1.6), scale)
            pitch = int(np.clip(new, part.center - 10, part.center + 12))
            pitch = nearest(pitch, wanted if i == 0 or len(wanted) == 1 else fitting if strong else scale)
            events.append((t, length, pitch, 108 if i == 0 else 98 if strong else 90))
            t += length
    last = events[-1]
    resolved = (
        nearest(last[2], (section.key.tonic,))
        if degrees[-1] == 0
        else nearest(last[2], chord(section.key, degrees[-1]))
    )
    events[-1] = (last[0], last[1], resolved, last[3])
    return events


def _counter(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar = bar_quarters(section.meter)
    events: list[Event] = []
    pitch = float(part.center)
    for number, degree in enumerate(degrees):
        first = nearest(pitch, chord(section.key, degree))
        second = nearest(first + int(rng.choice([-3, 3])), chord(section.key, degree))
        half = bar / 2 if bar in (2.0, 4.0) else bar - 1.0
        events += [(number * bar, half, first, 84), (number * bar + half, bar - half, second, 78)]
        pitch = 0.7 * second + 0.3 * part.center
    return events


def voicing(section: Section, degree: int, center: float, size: int = 3) -> list[int]:
    tones = chord(section.key, degree)
    low = nearest(center - 5, tones[:1])
    found = [low]
    while len(found) < size:
        found.append(next(p for p in range(found[-1] + 1, found[-1] + 13) if p % 12 in tones))
    return found


def _chords(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    sustained = part.program >= 16 and part.program not in (*range(24, 32), 45, 46, 105, 107)
    step = bar if sustained or "sustained" in part.text or "long" in part.text else (bar / 2 if bar == 4.0 else bar)
    if re.search(r"strum|eighth|driving|stab|pulsing|rhythmic|punchy|block", part.text):
        step = beat
    center = min(part.center, 64)
    events: list[Event] = []
    for number, degree in enumerate(degrees):
        root = nearest(center - 14, (chord(section.key, degree)[0],))
        notes = voicing(section, degree, center)
        if part.program in (29, 30):  # distorted thirds blur: power chords
            notes = [root + 7, root + 12]
        for i in range(max(1, round(bar / step))):
            events += [(number * bar + i * step, step, p, 80 if i else 88) for p in [root, *notes]]
    return events


def _waltz(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    events: list[Event] = []
    for number, degree in enumerate(degrees):
        root = nearest(part.center - 12, (chord(section.key, degree)[0],))
        events.append((number * bar, beat, root, 104))
        for b in range(1, max(2, round(bar / beat))):
            events += [(number * bar + b * beat, beat * 0.7, p, 74) for p in voicing(section, degree, part.center)]
    return events


def _stride(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    events: list[Event] = []
    for number, degree in enumerate(degrees):
        for b in range(round(bar / beat)):
            t = number * bar + b * beat
            root = nearest(part.center - 15, (chord(section.key, degree)[0 if b % 4 == 0 else 2],))
            notes = [root] if b % 2 == 0 else voicing(section, degree, part.center - 2)
            events += [(t, beat * 0.6, p, 98 if b % 2 == 0 else 78) for p in notes]
    return events


def _offbeat(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    low = part.center < 45
    events: list[Event] = []
    for number, degree in enumerate(degrees):
        notes = (
            [nearest(part.center, (chord(section.key, degree)[0],))]
            if low
            else voicing(section, degree, min(part.center, 66))
        )
        for b in range(round(bar / beat)):
            events += [(number * bar + b * beat + beat / 2, beat * 0.4, p, 88) for p in notes]
    return events


def _arpeggio(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    step = beat / (3 if beat == 1.5 else 1 if beat == 0.5 else 2)
    events: list[Event] = []
    for number, degree in enumerate(degrees):
        notes = voicing(section, degree, part.center - 6, 5)
        order = {1: [0, 1, 2, 3, 4], -1: [4, 3, 2, 1, 0]}.get(part.contour, [0, 1, 2, 3, 4, 3, 2, 1])
        for i in range(round(bar / step)):
            accent = 100 if i == 0 else 90 if abs((i * step) % beat) < 1e-6 else 80
            events.append((number * bar + i * step, step, notes[order[i % len(order)]], accent))
    return events


def _bass(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    center = min(part.center, 52)
    minor = 3 in MODES[section.key.mode] and 4 not in MODES[section.key.mode]
    events: list[Event] = []
    for number, degree in enumerate(degrees):
        tones = chord(section.key, degree)
        root = nearest(center, (tones[0],))
        beats = max(1, round(bar / beat))
        for b in range(beats):
            third = next((c for c in tones if c == (tones[0] + 3) % 12), None)
            if minor and third is not None and b and b == beats // 2:
                events.append((number * bar + b * beat, beat, nearest(root + 3, (third,)), 98))
                continue
            if beats % 2 == 0 and beats >= 4 and b % 2 and beat == 1.0 and section.bpm > 150:
                continue
            events.append(
                (
                    number * bar + b * beat,
                    beat,
                    root + 12 if b == beats // 2 and beats > 3 and root < 44 else root,
                    104 if b == 0 else 92,
                )
            )
    return events


def _walking(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    scale = tuple((section.key.tonic + s) % 12 for s in parent(section.key))
    events: list[Event] = []
    pitch = float(min(part.center, 50))
    for number, degree in enumerate(degrees):
        tones = chord(section.key, degree)
        way = 1 if pitch < min(part.center, 50) + 3 else -1
        for b in range(max(1, round(bar / beat))):
            note = nearest(pitch, (tones[0],)) if b == 0 else nearest(pitch + 2.4 * way, tones if b == 2 else scale)
            events.append((number * bar + b * beat, beat, note, 102 if b == 0 else 94))
            pitch = float(note)
    return events


def _pulse(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    return [
        (
            number * bar + i * beat / 2,
            beat / 2,
            nearest(part.center, (chord(section.key, degree)[0],)),
            98 if i % 2 == 0 else 84,
        )
        for number, degree in enumerate(degrees)
        for i in range(round(2 * bar / beat))
    ]


def _drone(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    total = section.bars * bar_quarters(section.meter)
    tonic = nearest(part.center - 5, (section.key.tonic,))
    notes = [tonic, tonic + 7] if part.chordal and not re.search(r"single|one note|note", part.text) else [tonic]
    return [(0.0, total, p, 92) for p in notes]


def _ostinato(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    step = beat / (3 if beat == 1.5 else 1 if beat == 0.5 else 2)
    count = round(bar / step)
    steps = rng.choice([0, 0, 2, 4, 7], count)
    steps[0] = 0
    scale = tuple((section.key.tonic + s) % 12 for s in MODES[section.key.mode])
    base = nearest(part.center - 3, (section.key.tonic,))
    figure = [nearest(base + 1.7 * int(s), scale) for s in steps]
    return [
        (n * bar + i * step, step, figure[i], 104 if i == 0 else 88) for n in range(section.bars) for i in range(count)
    ]


def _sparse(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar = bar_quarters(section.meter)
    scale = tuple((section.key.tonic + s) % 12 for s in MODES[section.key.mode])
    return [
        (
            n * bar + float(rng.choice([0.0, 1.0])),
            bar * 0.6,
            nearest(part.center + float(rng.uniform(-6, 6)), scale),
            84,
        )
        for n in range(section.bars)
    ]


def _repeated(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    pitch = nearest(part.center, (section.key.tonic,))
    step = beat / 2 if re.search(r"eighth|fast|rapid|quick", part.text) else beat
    return [(i * step, step, pitch, 102) for i in range(round(section.bars * bar / step))]


def _tremolo(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar = bar_quarters(section.meter)
    events: list[Event] = []
    for number, degree in enumerate(degrees):
        low, high = voicing(section, degree, part.center, 2)
        events += [(number * bar + i * 0.125, 0.125, low if i % 2 else high, 86) for i in range(round(bar * 8))]
    return events


def _scale(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    scale = sorted((section.key.tonic + s) % 12 for s in MODES[section.key.mode])
    total = round(section.bars * bar / beat)
    base = nearest(part.center - 8, (section.key.tonic,))
    ladder = [p for p in range(base, base + 37) if p % 12 in scale]
    count = min(total, 2 * len(MODES[section.key.mode]) + 1)
    steps = ladder[:count]
    if part.contour < 0:
        steps = steps[::-1]
    events = [(i * beat, beat, p, 100) for i, p in enumerate(steps)]
    if total > count:  # a scale that comes to its end is held
        events[-1] = (events[-1][0], (total - count + 1) * beat, events[-1][2], 100)
    return events


def _figure(part: Part, section: Section, degrees: list[int], rng: Rng) -> list[Event]:
    """The pattern as described, no other note: it starts with the section and stops when it is done."""
    if part.figure is None:
        return melody(part, section, degrees, rng)
    bar, beat = bar_quarters(section.meter), beat_quarters(section.meter)
    step = music_figures.step_s(part.figure, 60.0 / section.bpm) * beat * section.bpm / 60.0
    fits = max(1, int(section.bars * bar / step + 1e-6))
    falls = part.figure.ways[0] < 0 and part.figure.kind in ("scale", "chromatic", "notes")
    reach = -8 if part.figure.kind in ("scale", "leaps", "chromatic") and not falls else -4
    tonic = nearest(part.center + reach, (section.key.tonic,))
    found = music_figures.pitches(part.figure, tonic, section.key, part.figure.count or fits)
    hold = 0.5 if part.figure.length == "short" else 1.0
    return [(i * step, step * hold, pitch, 104) for i, pitch in enumerate(found)]


MAKERS = {
    "figure": _figure,
    "melody": melody,
    "counter": _counter,
    "scale": _scale,
    "arpeggio": _arpeggio,
    "bass": _bass,
    "walking": _walking,
    "pulse": _pulse,
    "drone": _drone,
    "ostinato": _ostinato,
    "sparse": _sparse,
    "repeated": _repeated,
    "tremolo": _tremolo,
    "waltz": _waltz,
    "stride": _stride,
    "offbeat": _offbeat,
    "chords": _chords,
}
"""Role -> its maker: (part, section, chord degree of each bar, rng) to events."""
