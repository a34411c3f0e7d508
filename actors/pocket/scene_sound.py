"""The sound of one item: its source at a stated rate, with stated silences, along a level that moves."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from . import english, scene_level, sound, speech
from .sound_traits import traits_of

RATE_HZ = 44_100
_CURVED_S = 8.0


def render(phrase: str, seconds: float | None, rng: np.random.Generator) -> np.ndarray:
    """Mono float32 at 44.1 kHz, as sound.render_event; a rate ("two a second for six seconds") gives exact spacing, a
    stated silence is kept between occurrences, and a level that rises, falls or does both is followed."""
    found, traits = sound.match(phrase), traits_of(phrase)
    far = english.distance(phrase)
    moves = scene_level.comes_and_goes(phrase.lower()) or (far is not None and far.moving is not None)
    # A source that moves gets its level from its way; a kettle builds up by itself.
    curve = None if moves or found.source.name == "kettle" else english.level_curve(phrase)
    if moves:
        traits = replace(traits, level_trend=0)
    if curve is not None:
        traits = replace(traits, level_trend=0)
    again = english.repetition(phrase)
    if again is not None:
        times = again.count or max(1, int(np.ceil((seconds or 6.0) / again.gap_s - 0.05)))
        times = min(times, int((sound.LONGEST_S - 0.1) / again.gap_s) + 1)
        even = replace(traits, count=times, gap_s=again.gap_s, tempo_trend=0)
        wave = sound.render_source(found.source, even, None, rng, found.said)
        return _along(wave, curve, flat=False)
    pause = english.pause_s(phrase)
    times = traits.count or 0
    if pause is not None and times > 1 and (english.interval_s(phrase) is None or _silent(phrase)):
        single = replace(traits, count=1, gap_s=None)
        hits = [sound.render_source(found.source, single, None, rng, found.said) for _ in range(min(times, 6))]
        hits = [scene_level.silenced(h[np.newaxis], scene_level.heard_s(h)[1])[0] for h in hits]
        return _along(
            speech.joined([hits[n % len(hits)] for n in range(times)], [pause] * (times - 1), RATE_HZ), curve, False
        )
    texture = found.source.kind != "shot" and not times
    length = seconds if seconds is not None or curve is None or not texture else _CURVED_S
    wave = sound.render_source(found.source, traits, length, rng, found.said)
    return _along(wave, curve, flat=texture)


def _silent(phrase: str) -> bool:
    return bool(re.search(r"\b(?:silence|pause|gap|quiet|rest)", phrase.lower()))


def _along(wave: np.ndarray, curve: english.Curve | None, flat: bool) -> np.ndarray:
    if curve is None or wave.size < RATE_HZ // 2:
        return wave
    if flat:
        return scene_level.shaped(wave, curve)
    return np.asarray(wave * speech.curve_gain(curve, wave.size), np.float32)
