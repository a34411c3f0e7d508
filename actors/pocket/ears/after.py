"""What comes after a struck sound, and what lies behind a voice: sounds lifted out of what covers them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from torus_ray.audio import Clip

from .events import Event
from .reading import ORDINALS, Asked
from .signal import HOP_S, RATE_HZ, Array, close_gaps, runs, windows
from .sources import features, meaning, moment_of, parts, physical, prototype_of, source_score
from .speech import spans
from .traits import Opinion

if TYPE_CHECKING:
    from .listen import Evidence

_SIZE, _HOP = 512, 128
_AFTER = re.compile(
    r"\b(?:after|follow(?:s|ing|ed)?|once|next to come after|succeeds?)\b (?:the |a |an )?"
    r"(?:(first|second|third|fourth|last|final) )?([a-z' -]+?)"
    r"(?: (?:ends?|stops?|starts?|begins?|is|has|sounds?|dies|fades)\b|[,?]|$)"
)
_NOTHING = (
    r"\bnothing\b|\bnone\b|\bsilence\b|\bno (?:other |further |more )?(?:sound|background|noise)|\bno one\b|nobody"
)
_AGAIN = r"\bagain\b|once more|another|\bsecond\b|repeat\w*|same (?:sound|stroke|one)|\bmore\b"


def lifted(wave: Array, start_s: float, stop_s: float) -> Array:
    """A span of `wave` (n,) at 16 kHz without what already sounded just before it: its spectrum is taken away."""
    first, last = int(start_s * RATE_HZ), min(int(stop_s * RATE_HZ), len(wave))
    lead = max(0, first - 1600)
    hann = np.sqrt(np.hanning(_SIZE + 1)[:-1])
    spectrum = np.fft.rfft(windows(wave[lead:last], _SIZE, _HOP) * hann, axis=1)
    size = np.abs(spectrum)
    before = max((first - lead) // _HOP - 3, 0)
    if before >= 2:
        # Beats between partials let what rings come back stronger, so somewhat more than was there is taken.
        gone = 1.3 * size[:before].max(axis=0)
        spectrum *= np.maximum(1.0 - gone / np.maximum(size, 1e-9), 0.02)
    out = np.zeros(len(spectrum) * _HOP + 2 * _SIZE)
    for k, frame in enumerate(np.fft.irfft(spectrum, n=_SIZE, axis=1) * hann * (2 * _HOP / _SIZE)):
        out[k * _HOP : k * _HOP + _SIZE] += frame
    return out[_SIZE // 2 + first - lead : _SIZE // 2 + last - lead].astype(np.float32)


def later_events(asked: Asked, evidence: Evidence) -> tuple[Event, list[Event]] | None:
    """(the stroke that the stem names, the events after it); None where the stem names none or the clip is crowded."""
    found = _AFTER.search(asked.stem)
    events = list(evidence.scene.events)
    if not found or not events or len(events) > 8 or evidence.speech.present:
        return None
    ordinal, phrase = found.groups()
    if ordinal:
        k = ORDINALS[ordinal]
        if not -len(events) <= k < len(events):
            return None
    else:
        k = _named(phrase, evidence, events)
    k %= len(events)
    return events[k], events[k + 1 :]


def _named(phrase: str, evidence: Evidence, events: list[Event]) -> int:
    """Index of the stroke that a phrase names: the first, unless another is nearer to how such a source sounds."""
    prototype, moment = prototype_of(phrase), moment_of(phrase, evidence)
    if prototype is None:
        start = moment[0] if moment else events[0].start_s
        return next((i for i, e in enumerate(events) if e.start_s >= start - 1.0), 0)
    fits = [physical(prototype, features(evidence, (e.start_s, min(e.stop_s, e.start_s + 1.0)))) for e in events]
    return next(i for i, f in enumerate(fits) if f >= max(fits) - 0.6)


def _likeness(evidence: Evidence, a: Event, b: Event) -> float:
    """Likeness 0-1 of what two onsets add, by the cosine of their spectra (square roots)."""
    x, y = (np.sqrt(evidence.scene.added(e.start_s)) for e in (a, b))
    return float(x @ y / max(float(np.linalg.norm(x) * np.linalg.norm(y)), 1e-12))


def lone_score(option: str, heard: Evidence, whole: Evidence | None = None) -> float | None:
    """Log-score of an option as the whole of a clip that holds one source; how it sounds counts more than the tags."""
    found: list[float] = []
    span = heard.scene.span_s
    for phrase in parts(option):
        score, prototype = source_score(phrase, heard, span), prototype_of(phrase)
        if score is not None:
            classes = [name for name, _ in meaning(phrase, heard).classes]
            if "Speech" in classes and not spans(heard.models.detector(heard.wave)):
                score -= 2.0
            if classes[:1] == ["Music"]:
                # The tagger calls any tone music.
                score -= 1.5
            elif whole is not None and classes:
                # What rings only now and then shows in the whole clip, where the gaps hold only its tail.
                score += 0.5 * float(np.log(np.mean(whole.tags.of(classes)) + 0.02) + 3.9)
            found.append(score + (0.6 * physical(prototype, features(heard, span)) if prototype else -0.6))
    return float(np.mean(found)) if found else None


def _brief(heard: Evidence) -> bool:
    """Whether what was lifted lies mostly in short strokes: nine tenths of its power within 0.15 s of their attacks."""
    power = 10 ** (heard.scene.level / 10)
    near = np.zeros(len(power), dtype=bool)
    for start in heard.scene.onsets_s:
        near[int(start / HOP_S) : int(start / HOP_S) + 15] = True
    return bool(power[near].sum() > 0.9 * power.sum()) and near.mean() < 0.7


def follows(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Options that name what comes after a stroke, by what the later onsets add to its decay."""
    if re.search(r"how (?:many|often|long|much|loud)|\bbefore\b", asked.stem):
        return None
    pair = later_events(asked, evidence)
    known = [bool(re.search(_NOTHING, o)) or bool(meaning(o, evidence).classes) for o in asked.options]
    if pair is None or sum(known) < 3:
        return None
    anchor, later = pair
    again = _likeness(evidence, anchor, later[0]) if later else 0.0
    heard = (
        _sub(evidence, later[0].start_s, min(evidence.scene.span_s[1] + 0.3, later[0].start_s + 3.0)) if later else None
    )
    brief = heard is not None and _brief(heard)
    scores: list[float | None] = []
    for option in asked.options:
        if re.search(_NOTHING, option):
            scores.append(0.0 if not later else -9.0)
        elif heard is None:
            scores.append(-3.5)
        elif re.search(_AGAIN, option) and again > 0.7:
            scores.append(2.0)
        else:
            found = lone_score(option, heard)
            prototype = prototype_of(option)
            strikes = prototype is not None and (prototype.features[2] or 0.0) > 0.6
            fits = 1.0 if strikes == brief else -1.0
            scores.append(None if found is None else found + fits - (2.0 if again > 0.7 else 0.0))
    return Opinion("follows", tuple(scores), 1.5, True)


def _sub(evidence: Evidence, start_s: float, stop_s: float) -> Evidence:
    """Evidence of a span of a clip without what rang before."""
    wave = lifted(evidence.wave, start_s, max(stop_s, start_s + 0.3))
    top = float(np.abs(wave).max(initial=0.0))
    return type(evidence)(Clip(wave * (0.5 / top) if top > 1e-6 else wave, RATE_HZ), evidence.models)


def gap_mask(evidence: Evidence) -> Array:
    """Frames (10 ms) in which nobody speaks and no strong sound has just been: where a background lies bare."""
    level = evidence.scene.level
    mask = np.ones(len(level), dtype=bool)
    for a, b in evidence.speech.spans_s:
        mask[max(0, int((a - 0.12) / HOP_S)) : int((b + 0.2) / HOP_S)] = False
    start, stop = (int(t / HOP_S) for t in evidence.scene.span_s)
    if not evidence.speech.spans_s:
        mask[: start + 1] = mask[stop:] = False
        mask &= level < evidence.scene.peak_db - 12.0
    return mask


def floor_under_voice(evidence: Evidence) -> tuple[float, float]:
    """(steady, strongest) level between the words, dB re the level of the voice; -60 where there is no gap to hear."""
    level = np.maximum(evidence.scene.level, -90.0)
    mask = gap_mask(evidence)
    voice = float(np.percentile(level[~mask], 85)) if (~mask).any() else evidence.scene.peak_db
    if mask.sum() < 15:
        return -60.0, -60.0
    return float(np.percentile(level[mask], 20)) - voice, float(np.percentile(level[mask], 95)) - voice


def bare_background(evidence: Evidence) -> Evidence | None:
    """Evidence of the gaps between the words, joined; None where they are too short or too quiet to hold anything."""
    mask = gap_mask(evidence)
    steady, strongest = floor_under_voice(evidence)
    if mask.sum() < 25 or max(steady + 4.0, strongest - 8.0) < -38.0:
        return None
    fade = np.linspace(0.0, 1.0, 80)
    joined: list[Array] = []
    for a, b in close_gaps(runs(mask), 1):
        piece = evidence.wave[a * 160 : b * 160].astype(np.float64)
        if len(piece) >= 1600:
            piece[:80] *= fade
            piece[-80:] *= fade[::-1]
            joined.append(piece)
    if not joined:
        return None
    wave = np.concatenate(joined).astype(np.float32)
    # A short gap is heard over and over until the tagger has its second.
    wave = np.tile(wave, -(-16_000 // len(wave)))
    top = float(np.abs(wave).max(initial=0.0))
    return type(evidence)(Clip(wave * (0.5 / top) if top > 1e-6 else wave, RATE_HZ), evidence.models)


def background(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Options that name what lies behind the voice, by the gaps between the words over the whole clip."""
    if not re.search(
        r"background|behind|underneath|beneath|\bunder the|backdrop|ambien|besides|apart from|accompan|other than|else",
        asked.stem,
    ) or re.search(r"how (?:many|loud|far)|\bwhen\b", asked.stem):
        return None
    if not evidence.speech.present:
        return None
    nothing = [bool(re.search(_NOTHING + r"|\bclean\b|\bsilent\b|\bquiet$", o)) for o in asked.options]
    named = [bool(meaning(o, evidence).classes) for o in asked.options]
    if sum(a or b for a, b in zip(nothing, named, strict=True)) < 3:
        return None
    steady, _ = floor_under_voice(evidence)
    bare = evidence.backdrop
    # A room's tail and a recording's own hiss lie about 40 dB under the voice; a scene's background does not.
    present = -3.0 if bare is None else float(np.clip((steady + 38.0) / 2.5, -4.0, 4.0))
    named_scores = {}
    for k, (option, none) in enumerate(zip(asked.options, nothing, strict=True)):
        score = None if none or bare is None else lone_score(option, bare, evidence)
        if score is not None:
            named_scores[k] = score
    total = float(np.logaddexp.reduce(list(named_scores.values()))) if named_scores else 0.0
    sure = -float(np.logaddexp(0.0, -present))
    scores: list[float | None] = []
    for k, none in enumerate(nothing):
        if none:
            scores.append(-float(np.logaddexp(0.0, present)))
        elif bare is None:
            scores.append(-3.0)
        else:
            # Shares of two so that the kinds do not outweigh whether there is anything at all.
            scores.append(sure + max(named_scores[k] - total, -5.0) / 2 if k in named_scores else None)
    return Opinion("background", tuple(scores), 1.5, True)


SCORERS = (follows, background)
