"""Properties of a clip or a part of it as an instruction names them: speed, pitch, filter, room, distance, level.

Any number of them may stand in one clause. What lies outside the part that is named stays to the sample.
"""

from __future__ import annotations

import re

import numpy as np

from . import edit_music as music
from . import edit_tone as tone
from . import edit_words as words
from . import english, sound, space
from .edit_events import RATE, Wave, split_background
from .edit_level import about_level, cut_of, gain_db, turned
from .edit_pick import chosen, merged, spans_of
from .edit_which import which
from .edit_work import LONGEST, Work, joined


def properties(work: Work) -> Wave | None:
    """Speed, pitch, filter, room, distance, side, level and fades, as many as the clause names, in that order;
    None when none is."""
    out = work.wave
    for change in (_speed, _pitch, _filter, _room, _distance, _side, _level, fade):
        changed = change(work.on(out))
        out = out if changed is None else changed
    return None if out is work.wave else out


def _wish(text: str, *names: str) -> english.Comparative | None:
    return next((c for c in english.comparatives(text) if c.property in names), None)


def _speed(work: Work) -> Wave | None:
    text = work.text
    factor = music.tempo_factor(text, work.wave)
    if factor is None:
        wish = _wish(text, "speed")
        if wish is None:
            manner = re.search(
                r"\b(?:rapidly|quickly|briskly|hurried(?:ly)?|at (?:a )?(?:high|double) speed|slowly|leisurely|"
                r"in slow motion|"
                r"half[- ]speed|double[- ]speed|(?:start\w*|were|was|is|been|began|begins) (?:running|sprinting|"
                r"hurrying|rushing|"
                r"jogging|strolling|creeping|dawdling)|(?:runs|ran|hurr(?:ies|ied)|strolls|creeps))\b",
                text,
            )
            if manner is None or re.search(r"\bfad|\bgradual", text):
                return None
            said = manner.group()
            quick = not re.search(r"slow|leisure|half|stroll|creep|dawdl", said)
            factor = 2.0 if "double" in said else 0.5 if "half" in said else 1.4 if quick else 0.68
        elif wish.factor:
            factor = wish.factor if (wish.factor >= 1) == (wish.direction > 0) else 1 / wish.factor
        else:
            step = 1.0 + 0.3 * wish.strength
            factor = step if wish.direction > 0 else 1 / step
    if abs(factor - 1.0) < 0.004:
        return None
    target = _target(work)
    if target is None:
        return tone.stretched(work.wave, factor)[:, :LONGEST]
    start, stop = target[0][0], target[-1][1]
    return joined([work.wave[:, :start], tone.stretched(work.wave[:, start:stop], factor), work.wave[:, stop:]])[
        :, :LONGEST
    ]


def _pitch(work: Work) -> Wave | None:
    text = work.text
    if about_level(text) or cut_of(text) is not None:
        return None
    wish = _wish(text, "pitch")
    shift = english.amount(text, "semitone")
    transposes = re.search(r"\b(?:transpos\w*|modulat\w*|key)\b", text)
    if shift is not None:
        down = re.search(r"\b(?:down|lower\w*|deeper|below|drop\w*|flatter|decreas\w*)\b", text)
        shift = -shift if down else shift
    elif wish is not None and not re.search(
        r"\b(?:lower|higher|raise|drop)\w* (?:the )?(?:volume|level|tempo|speed)", text
    ):
        shift = wish.direction * (
            4.0 * wish.strength
            if work.audio_type != "music"
            else 12.0
            if re.search(r"\b(?:register|octave)", text)
            else 4.0 * wish.strength
        )
    elif work.audio_type == "music" and (transposes or english.keys(text)):
        shift = music.key_shift(text, work.wave)
    elif re.search(r"\bchipmunk|helium|squeaky\b", text):
        shift = 9.0
    elif re.search(r"\b(?:up|down) an octave|octave (?:higher|lower|up|down)", text):
        shift = -12.0 if re.search(r"lower|down", text) else 12.0
    if not shift:
        return None
    shift = float(np.clip(shift, -24, 24))
    target = _target(work)
    keep = work.audio_type == "speech" and abs(shift) < 6
    if target is None:
        return tone.stretched(work.wave, 1.0, shift, keep)
    out = work.wave.copy()
    for start, stop in target:
        out[:, start:stop] = tone.stretched(work.wave[:, start:stop], 1.0, shift)
    return out


def _filter(work: Work) -> Wave | None:
    text = work.text
    band = cut_of(text)
    if band is not None:
        made: Wave | None = tone.band_kept(work.wave, *band)
    elif about_level(text):
        return None
    else:
        made = tone.filtered(work.wave, text, english.degree(text), work.rng())
    target = _target(work) if made is not None else None
    return made if target is None else _only(work.wave, made, target)


def _room(work: Work) -> Wave | None:
    text = re.split(r"\b(?:instead of|rather than|and not)\b", work.text)[0]
    text = re.sub(r"\b(?:footsteps?|walk\w*|steps?) (?:\w+ )*?(?:on|across|through) (?:a |the )?[\w ]+", "", text)
    wish = _wish(text, "reverb")
    name = "dry" if wish and wish.direction < 0 else space.room_of(text) or ("reverberant" if wish else None)
    if name is None or (name == "outdoors" and re.search(r"\b(?:birds?|dogs?|rain|wind)\b", text)):
        return None
    if name in ("outdoors", "room") and not re.search(
        r"\b(?:in|inside|at|outside|outdoors|within|reverb\w*|recorded|from|near)\b", text
    ):
        return None
    room = "dry" if name == "outdoors" else name
    if english.degree(text) < 0.6 and room in ("reverberant",):
        room = "room"
    # The clip may ring on only into its own silence or up to 10 s; a device or a wall has no tail.
    tail = space.ROOMS[room].wet > 0.3 and work.wave.shape[1] < LONGEST
    where = english.distance(text)
    far = (where is not None and where.meters > 6) or _wish(text, "distance") is not None
    most = 1.0 if work.audio_type != "speech" else tone.CLEAR - 0.12 if far else tone.CLEAR
    made = tone.roomed(work.wave, room, tail, most)[:, :LONGEST]
    target = _target(work)
    return made if target is None else _only(work.wave, made[:, : work.wave.shape[1]], target)


def _distance(work: Work) -> Wave | None:
    text = work.text
    movement = next((m for pattern, m in _MOVES if re.search(rf"\b(?:{pattern})", text)), None)
    if movement is not None:
        return tone.in_motion(work.wave, movement)
    wish = _wish(text, "distance")
    where = english.distance(text)
    if space.room_of(text) == "next room" or (wish is None and where is None):
        return None
    if where is not None and where.moving:
        return tone.in_motion(work.wave, where.moving)
    if wish is not None:
        meters = 12.0 * wish.strength if wish.direction > 0 else 0.5
    else:
        meters = where.meters if where else 1.0
    if where is not None and wish is None and 0.9 < meters < 1.1:
        meters = 0.6
    placed = space.room_of(text) not in (None, "outdoors")  # that place has given its reverberation already
    speech = work.audio_type == "speech"
    made = tone.moved_away(work.wave, meters, wet=not (placed and speech), speech=speech)
    target = _target(work)
    return made if target is None else _only(work.wave, made, target)


_MOVES = (
    (
        r"(?:mov|pan|travel|sweep|pass|go|walk|driv|fl)\w* (?:by )?(?:\w+ )?from (?:the )?left to (?:the )?right|"
        r"from left to right|left[- ]to[- ]right",
        "left to right",
    ),
    (r"from (?:the )?right to (?:the )?left|right[- ]to[- ]left", "right to left"),
    (r"(?:pass|driv|fl|go|walk|run)\w* (?:by|past)\b|passing by", "passing"),
    (r"approach\w*|(?:com|mov|get|draw|walk|driv)\w* (?:\w+ )?(?:closer|nearer|towards?)|coming closer", "approaching"),
    (r"reced\w*|(?:mov|walk|driv|fad|drift|go|run)\w* (?:\w+ )?(?:away|into the distance)\b", "receding"),
)


def _side(work: Work) -> Wave | None:
    side = english.pan(work.text)
    if side is None or any(re.search(pattern, work.text) for pattern, _ in _MOVES[:2]):
        return None
    return tone.sided(work.wave, side.start, side.end)


def _level(work: Work) -> Wave | None:
    text = work.text
    moves = english.dynamics(text)
    if moves.shape in ("crescendo", "diminuendo", "swell"):
        if moves.shape == "swell":
            n = work.wave.shape[1]
            return tone.limited(work.wave * 10 ** (-18 * np.abs(np.linspace(-1, 1, n)) / 20))
        return tone.sloped(work.wave, moves.slope > 0)
    factor_db = gain_db(text)
    if factor_db is not None:
        return _louder(work, float(10 ** (np.clip(factor_db, -50, 24) / 20)))
    wish = _wish(text, "level")
    turn = turned(text)
    if wish is None and turn:
        wish = english.Comparative("level", turn, english.degree(text), None)
    decibels = english.amount(text, "dB")
    effort = re.search(
        r"\b(harder|stronger|more (?:forceful|powerful|violent)\w*|with more force|gentler|more gent\w+|lighter|"
        r"weaker)\b",
        text,
    )
    if wish is None and decibels is None and effort:
        hard = not re.match(r"gentl|more gent|light|weak", effort.group(1))
        made = tone.shelf(work.wave, 2000.0, 4.0 if hard else -5.0, True)
        target = _target(work)
        gain = 10 ** ((6.0 if hard else -9.0) * min(english.degree(text), 1.6) / 20)
        return tone.with_gain(made if target is None else _only(work.wave, made, target), target, gain)
    if wish is None and decibels is None:
        absolute = re.search(r"\b(?:very |much |barely )?(loud|quiet|soft|faint|hushed)(?:ly)?\b", text)
        if absolute is None or not re.search(
            r"\b(?:mak|turn|be|were|was|is|play|sound|had|spoke|sp[eo]ak|sung|sang)\w*", text
        ):
            return None
        db = 8.0 if absolute.group(1) == "loud" else -12.0
    elif decibels is not None:
        down = (wish is not None and wish.direction < 0) or re.search(
            r"\b(?:down|lower\w*|reduc\w*|quieter|softer|decreas\w*|drop\w*|attenuat\w*|cut)\b", text
        )
        db = -abs(decibels) if down else decibels
    else:
        assert wish is not None
        factor = wish.factor
        db = (
            20 * np.log10(factor if wish.direction > 0 or factor < 1 else 1 / factor)
            if factor
            else wish.direction * (7.0 if wish.direction > 0 else 9.0) * wish.strength
        )
    gain = float(10 ** (np.clip(db, -50, 24) / 20))
    if re.search(r"\bbackground\b", text) and not work.scene.has_background:
        return tone.with_gain(work.wave, None, gain)
    if re.search(r"\bbackground\b", text):
        front, bed = split_background(work.wave, work.scene)
        return tone.limited(front + gain * bed)
    return _louder(work, gain)


def _louder(work: Work, gain: float) -> Wave:
    target = _target(work)
    top = float(np.abs(work.wave).max(initial=0.0))
    if target is None and gain > 1 and top * gain > 0.97:
        # Loud clips have no headroom: what is over the top is compressed, as a limiter would.
        return np.tanh(work.wave * gain * 0.9) / np.tanh(max(top * gain * 0.9, 1.0)) * 0.97
    return tone.with_gain(work.wave, target, gain)


def fade(work: Work) -> Wave | None:
    text = work.text
    into = re.search(r"\bfad\w*[- ]?(?:it )?in\b(?!to the distance)", text)
    out_of = re.search(
        r"\bfad\w*[- ]?(?:it |the \w+ )?(?:out|away|to silence|to nothing|at the end|over the (?:last|final))\b|"
        r"\bdies? away|\bdying away|\bfade(?:s|d)?$",
        text,
    )
    part = words.part(text)
    seconds = english.duration_s(text) or (
        (part.stop - part.start) * (work.wave.shape[1] / RATE if part.share else 1) if part else None
    )
    out = work.wave
    if into:
        out = tone.faded(out, True, seconds)
    if out_of:
        out = tone.faded(out, False, seconds)
    return None if out is work.wave else out


def _only(before: Wave, after: Wave, spans: list[tuple[int, int]]) -> Wave:
    """The changed wave inside the spans, the old one, to the sample, outside; 15-ms crossfades inside."""
    out = before.copy()
    for start, stop in spans:
        m = min(stop, after.shape[1]) - start
        r = min(int(0.015 * RATE), m // 2)
        mix = np.ones(m)
        mix[:r], mix[m - r :] = np.linspace(0, 1, r), np.linspace(1, 0, r)
        out[:, start : start + m] = before[:, start : start + m] * (1 - mix) + after[:, start : start + m] * mix
    return out


def _target(work: Work) -> list[tuple[int, int]] | None:
    """The stretches that a property is for: a part of time, a numbered event, one source among several; None = the
    whole clip."""
    text = work.text
    part = words.part(text)
    if part is not None:
        return [words.span_of(part, work.wave.shape[1], RATE)]
    selected = which(text)
    if work.audio_type == "music" and (selected is None or not _ONE.search(text)):
        return None
    named = sound.match_by_words(re.split(r"\b(?:as|like|than|in|from|to)\b", text)[0])
    if not work.scene.events or (named is None and selected is None):
        return None
    if named is None and not _ONE.search(text):
        return None
    found = chosen(work, f"{selected.said if selected else ''} {named.said if named else 'one'}".strip())
    if found.background or not found.events or len(found.events) >= len(work.scene.events):
        return None
    return merged(spans_of(work, found))


_ONE = re.compile(
    r"\b(?:sound|event|one|hit|noise|word|note|beat|group|tone|beep|click|stroke|strike|chord|blow|tap|pulse|thud|"
    r"number \w+)s?\b|\b(?:first|second|third|fourth|fifth|last|middle) (?:is|was|were|had|be|should|to be|much|"
    r"louder|quieter|softer|higher|lower|twice|half|by|up|down)\b"
)
