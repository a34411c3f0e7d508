"""Which events of a clip an instruction means, and what is left without them. Waves are (channels, frames)."""

from __future__ import annotations

import re

import numpy as np

from . import edit_words as words
from . import sound
from .edit_events import RATE, Event, Found, Wave, background_print, is_generic, levels_db, locate, mono
from .edit_which import kinds, which, whole_events
from .edit_work import LONGEST, Work, joined, loudness_db, mixed, with_fades

GAP = int(0.25 * RATE)
"""Silence between neighbours that are put side by side, in frames."""


def erased(work: Work, spans: list[tuple[int, int]]) -> Wave:
    """Without what lies in the spans: silence there, or the clip's own background when it has one."""
    out = work.wave.copy()
    bed = background_bed(work) if work.scene.has_background else None
    for start, stop in spans:
        m = stop - start
        if m <= 0:
            continue
        ramp = min(int(0.008 * RATE), m // 2)
        hole = np.ones(m)
        if ramp:
            hole[:ramp], hole[m - ramp :] = np.linspace(1, 0, ramp), np.linspace(0, 1, ramp)
            hole[ramp : m - ramp] = 0.0
        out[:, start:stop] *= hole
        if bed is not None:
            out[:, start:stop] += bed[:, start:stop] * np.sqrt(1 - hole**2)
    return out


def background_bed(work: Work) -> Wave:
    """As long as the clip: noise with the spectrum of what always sounds in it."""
    power = background_print(work.wave, work.scene) / 1.4
    rng = work.rng()
    out = np.zeros_like(work.wave)
    window = np.hanning(2049)[:-1]
    for channel in range(out.shape[0]):
        size = np.sqrt(power[channel]) * 2048 / np.sqrt(2)
        for at in range(0, out.shape[1], 1024):
            phase = np.exp(2j * np.pi * rng.random(len(size)))
            piece = np.fft.irfft(size * phase, 2048) * np.sqrt(window)
            m = min(2048, out.shape[1] - at)
            out[channel, at : at + m] += piece[:m] * np.sqrt(window[:m])
    level = 10 ** ((work.scene.floor_db - loudness_db(out)) / 20)
    return out * min(level, 4.0)


def spans_of(work: Work, found: Found) -> list[tuple[int, int]]:
    """[start, end) of the chosen events, from 9 ms before each rise to 9 ms before the next attack."""
    lead = int(0.009 * RATE)
    starts = {e.start for e in work.scene.events}
    spans = [(_from_rise(work, work.scene.events[i].start) - lead, work.scene.events[i].end) for i in found.events]
    return [(max(0, a), b - lead if any(abs(b - s) < 3 * lead for s in starts) else b) for a, b in spans]


def _from_rise(work: Work, start: int) -> int:
    """Back from an attack over what leads up to it (a latch, a breath), at most 60 ms and never into the event
    before."""
    level, quiet = work.scene.level_db, max(work.scene.floor_db + 6.0, float(work.scene.level_db.max()) - 55.0)
    before = max((e.end for e in work.scene.events if e.start < start), default=0)
    hop = start // 441
    while hop > max(start // 441 - 6, before // 441) and level[hop - 1] > quiet:
        hop -= 1
    return min(start, max(hop * 441, min(before, start)))


def chosen(work: Work, named: str) -> Found:
    """The events that a name with or without a number picks: "the second knock", "middle one", "last but one beep"."""
    selected = which(f"the {named}") if named else None
    if selected is None:
        return locate(work.wave, work.scene, words.without_order(named) or "sound", work.seed)
    base = f"the {named}".replace(selected.said, " ", 1)
    base = words.thing(re.sub(rf"^[\W]*(?:the |of |in |these |those |all |{_SMALL} )*", "", " ".join(base.split())))
    found = locate(work.wave, work.scene, base or "sound", work.seed)
    for units in (_units_named(work, base, found), whole_events(work.scene)):
        picked = selected.of(len(units))
        if picked:
            return Found(tuple(i for k in picked for i in units[k]), False, max(found.near, 0.6))
    return Found((), False, found.near)


_SMALL = r"(?:two|three|four|five|six|seven|eight|nine|ten|\d+)"
_COUNTED = re.compile(r"\b(?:events?|hits?|beats?|notes?|ones?|tones?|clicks?|strokes?|strikes?)\b")


def _units_named(work: Work, base: str, found: Found) -> list[tuple[int, ...]]:
    """What is counted: the events of the named kind where the clip holds several kinds, else all of them; "sounds"
    are the groups of unlike ones."""
    scene, every = work.scene, whole_events(work.scene)
    sorts = kinds(work.wave, scene)
    if len(sorts) < 2 or not base:
        return every
    if is_generic(base):
        return every if _COUNTED.search(base) else list(scene.groups)
    if found.background or not found.events or (sound.match_by_words(base) is None and found.near < 0.5):
        return every
    meant = {i for sort in sorts if set(sort) & set(found.events) for i in sort}
    if len(meant) == len(scene.events):
        meant = set(found.events)
    return [unit for unit in every if unit[0] in meant]


def merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if out and start - out[-1][1] < RATE // 20:
            out[-1] = (out[-1][0], max(stop, out[-1][1]))
        else:
            out.append((start, stop))
    return out


def runs_of(work: Work, found: Found) -> list[list[int]]:
    """Chosen events by the group they belong to."""
    out = [[i for i in g if i in found.events] for g in work.scene.groups]
    return [run for run in out if run]


def trimmed(extra: Wave) -> Wave:
    """Without a tail that lies 45 dB under its peak."""
    level = levels_db(mono(extra))
    loud = np.flatnonzero(level > level.max() - 45)
    return extra[:, : min(extra.shape[1], (int(loud[-1]) + 3) * 441)] if len(loud) else extra


def anchor_of(work: Work, spot: words.Spot) -> tuple[int, int] | None:
    """[start, end) of the event that "after the second knock" names; the gap for "between"."""
    scene = work.scene
    if not scene.events:
        return None
    if spot.where == "between":
        if len(scene.groups) > 1:
            return scene.span(scene.groups[0])[1], scene.span(scene.groups[1])[0]
        return (scene.events[0].end, scene.events[1].start) if len(scene.events) > 1 else None
    named = f"{ordinal_word(spot.order)} {spot.of}".strip()
    found = chosen(work, named)
    if not found.events:
        return None
    if spot.order is None:
        group = [g for g in scene.groups if found.events[0] in g]
        run = [i for i in (group[0] if group else found.events) if i in found.events]
        return scene.events[run[0]].start, scene.events[run[-1]].end
    return scene.events[found.events[0]].start, scene.events[found.events[-1]].end


def ordinal_word(order: int | None) -> str:
    return {None: "", 1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", -1: "last"}.get(
        order, ""
    )


def continued(work: Work, events: list[Event], wanted: int) -> Wave:
    starts = [e.start for e in events]
    gap = int(np.median(np.diff(starts))) if len(starts) > 1 else events[0].end - events[0].start + GAP // 2
    base = work.wave
    room = next_start(work, events[-1]) - events[-1].start
    gap = max(gap, events[0].end - events[0].start + RATE // 20) if len(events) == 1 else gap
    need = (wanted - len(events)) * gap + gap
    if room < need:
        later = base[:, next_start(work, events[-1]) :]
        if next_start(work, events[-1]) < base.shape[1] and later.shape[1]:
            shift = min(need - room, max(LONGEST - work.scene.active[1], 0))
            cut = next_start(work, events[-1])
            base = joined([base[:, :cut], np.zeros((base.shape[0], shift)), base[:, cut:]], 0.0)[:, :LONGEST]
    if events[-1].start + need > LONGEST:
        gap = max(int(0.12 * RATE), (LONGEST - events[-1].start) // (wanted - len(events) + 1))
    out = base
    starts_of_all = {e.start for e in work.scene.events}
    for k in range(wanted - len(events)):
        event = events[k % len(events)]
        end = event.end - RATE // 100 if any(abs(event.end - s) < RATE // 40 for s in starts_of_all) else event.end
        piece = work.wave[:, event.start : min(end, event.start + max(gap, RATE // 3) + RATE // 5)]
        out = mixed(out, with_fades(piece, 0.001), events[-1].start + (k + 1) * gap)
    return out


def next_start(work: Work, event: Event) -> int:
    return min((e.start for e in work.scene.events if e.start > event.start), default=LONGEST)
