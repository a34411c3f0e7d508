"""Sounds taken out, exchanged for others, or re-made of something else.

None means that the wording does not ask for it after all, so that the next reading gets its turn.
"""

from __future__ import annotations

import re
from dataclasses import replace as changed

import numpy as np

from . import edit_tone as tone
from . import edit_words as words
from . import english, sound, space
from .edit_events import RATE, Found, Wave, is_generic, split_background
from .edit_pick import chosen, erased, merged, runs_of, spans_of, trimmed
from .edit_which import which
from .edit_work import Work, element, joined, loudness_db, mixed, peak, with_fades
from .sound_traits import SIZES, Traits, traits_of

REMOVE = (
    r"remov\w+|delet\w+|tak(?:e|es|en|ing) (?:out|away|off)|tak(?:e|es|ing)(?= .*\b(?:out|away)\b)|"
    r"leave(?= .*\bout\b)|eras\w+|eliminat\w+|get(?:ting)? rid of|drop(?:ped|"
    r"ping)?(?= the)|cut(?:ting)? out|mut(?:e|ed|ing)\b|strip\w*|omit\w*|discard\w*|silenc(?:e|ed|ing)\b(?= the)|"
    r"(?<![\w ])silence (?!of\b|gap|for\b|after\b|before\b|between\b|at\b|in\b)|"
    r"subtract\w*|leav\w+ out"
)
STOPS = (
    r"\b(?:stop(?:s|ped|ping)?|end(?:s|ed)|ceas\w+|cut off|halt\w*|finish\w*|(?:turned|switched|taken|shut) off|"
    r"broke off|"
    r"fell silent|went silent)\b.*\b(?:after|at|half ?way|midway)\b"
)
NEVER = (
    r"\bno\b|\bnobody\b|\bno ?one\b|\bnone\b|\bnothing\b|\bnever\b|\bnot\b|n't\b|\bwithout\b|\bno longer\b|"
    r"\babsent\b|\bmissing\b|\bgone\b|\bstopped\b"
)


def remove(work: Work) -> Wave | None:
    """Without the events, the background or the part of time that the clause names."""
    text = work.text
    named = words.part(text)
    verb = re.search(rf"\b(?:{REMOVE})\b\s*(.+)$", text)
    raw = re.sub(r" (?:out|away)$", "", verb.group(1)) if verb else ""
    numbered = which(raw)
    target = (raw if numbered is not None else words.thing(raw)) if verb else absent_thing(text)
    if target is None:
        return None
    if named is not None and (not target or is_generic(_plain(target)) or words.part(target) is not None):
        start, stop = words.span_of(named, work.wave.shape[1], RATE)
        if verb and re.match(r"mut|silenc", verb.group()):
            return erased(work, [(start, stop)])
        return joined([work.wave[:, :start], work.wave[:, stop:]])
    if re.search(r"\bbackground\b", text) and (is_generic(_plain(target)) or not target):
        return split_background(work.wave, work.scene)[0]
    if work.audio_type == "music":
        from . import edit_music

        without = edit_music.without_part(work, target)
        if without is not None:
            return without
    found = chosen(work, target)
    if found.background:
        return split_background(work.wave, work.scene)[0]
    if not found.events:
        return None
    if work.audio_type == "speech" and len(found.events) >= len(work.scene.events) and work.scene.has_background:
        return split_background(work.wave, work.scene)[0]
    if len(found.events) >= len(work.scene.events) > 1 and not is_generic(target) and found.near < 0.5:
        return None
    return erased(work, merged(spans_of(work, found)))


def _plain(target: str) -> str:
    return re.sub(r"\b(?:background|first|second|third|last|final|half|few|couple|seconds?|\d+)\b", "", target).strip()


def absent_thing(text: str) -> str | None:
    """What a supposition says never was: "the dog had not barked" -> "dog barked"."""
    gone = english.without(text)[1]
    if gone:
        return words.thing(gone[0])
    nobody = re.search(r"^(?:nobody|no ?one|nothing|none of them)\s+(?:had |has |have |would |ever )*(.+)$", text)
    if nobody:
        return words.thing(nobody.group(1))
    never = re.search(
        r"^(.+?)\s+(?:had|has|have|did|does|was|were|is|would|could)?\s*(?:never|not|n't)\b\s*(.*)$",
        re.sub(r"n't\b", " not", text),
    )
    if never:
        return words.thing(f"{never.group(1)} {never.group(2)}".replace("been", "").replace("there", "").strip())
    halted = re.search(r"^(.+?)\s+(?:had |were |was |is |are )?(?:absent|missing|gone|stopped|silent|removed)\b", text)
    return words.thing(halted.group(1)) if halted else None


_REPLACE = (
    re.compile(
        r"\b(?:replac\w+|swap\w*(?: out)?|exchang\w+|switch\w*(?: out)?) (?P<old>.+?) (?:with|by|for|to) (?P<new>.+)$"
    ),
    re.compile(r"\bsubstitut\w+ (?P<new>.+?) for (?P<old>.+)$"),
    re.compile(
        r"\b(?:chang\w+|turn\w*|transform\w*|convert\w*|mak(?:e|ing)) (?P<old>.+?) (?:in)?to (?:be )?(?P<new>.+)$"
    ),
    re.compile(r"^(?P<new>.+?),? (?:instead of|rather than|in place of|in lieu of) (?P<old>.+)$"),
    re.compile(r"^(?:use|have|let there be|hear) (?P<new>.+?) instead(?: of (?P<old>.+))?$"),
    re.compile(
        r"^(?P<old>.+?) (?:were|had been|was|is|are|became|becomes|turns? out to be|turned into|been) (?:now |"
        r"actually |"
        r"really |instead |replaced (?:by|with) )?(?P<new>(?:a|an|the sound of|some|several|two|three|four)\b .+)$"
    ),
    re.compile(r"^(?P<old>.+?) (?:belonged|belongs|had belonged) to (?P<owner>(?:a|an) .+)$"),
    re.compile(r"^(?:make|have) (?P<old>the [\w' ]+?) (?P<new>(?:a|an) .+)$"),
    re.compile(r"^(?:instead of|rather than) (?P<old>.+?), (?P<new>.+)$"),
    re.compile(r"^(?P<new>(?:a|an|some|several|two|three) .+?) instead$"),
)


def replace(work: Work) -> Wave | None:
    """One source by another: each event of the old at its place and level by one of the new; a background by a
    background."""
    for pattern in _REPLACE:
        found = pattern.search(work.text)
        if not found:
            continue
        old = words.thing(found.groupdict().get("old") or "")
        owner = found.groupdict().get("owner")
        new = f"{owner} {old}" if owner else found.group("new")
        new = re.sub(r"\binstead\b|\bplease\b", "", new).strip(" ,.")
        new = re.sub(r"^(?:the |a |an )?(?:sounds?|noises?) of ", "", new)
        if work.audio_type == "speech" and english.speaker(new) is not None and english.speaker(old or "voice"):
            return None  # another speaker, no other source
        if _about_no_source(new) or old in ("before", "after") or new in ("before", "after"):
            return None
        return recast(work, old, new)
    return None


def _about_no_source(new: str) -> bool:
    """Whether what follows "to" or "instead of" is a tempo, a level, a room, a manner: no new source."""
    if sound.match_by_words(new) is not None and not re.search(r"\b(?:pitch|tempo|volume|key|speed|bpm)\b", new):
        return False
    return bool(
        space.room_of(new)
        or english.comparatives(new)
        or english.amounts(new)
        or english.key(new)
        or english.manners(new)
        or english.pan(new)
        or re.search(
            r"\b(?:pitch|tempo|volume|key|speed|bpm|half|percent|semitone|octave|quiet|loud|left|right|start|end|"
            r"beginning|reverse)\b",
            new,
        )
    )


def recast(work: Work, old: str, new: str) -> Wave | None:
    """The events of `old` (or of what `new` names too) re-made as `new`."""
    same = sound.match_by_words(old) if old else None
    said = sound.match_by_words(new)
    if (
        same is not None
        and (said is None or said.source.weak)
        and traits_of(new).material
        and same.source.kind != "texture"
    ):
        new = f"{same.said} on {new}"  # "change the footsteps to a wooden floor"
    named = sound.match(new)
    if same is None and named.said and old:
        # "on snow instead of gravel": the old phrase names a surface only; the source is that of the new one.
        old = f"{named.said} on {old}" if named.source.kind != "texture" else named.said
    if work.masked.quotes_in(new) and work.audio_type == "speech":
        return None
    found = chosen(work, old or "sound")
    if found.background or (
        named.source.kind == "texture" and work.scene.has_background and (not old or found.near < 0.4)
    ):
        front, _ = split_background(work.wave, work.scene)
        extra = element(work, new, work.wave.shape[1] / RATE)[:, : work.wave.shape[1]]
        extra = extra * 10 ** ((max(work.scene.floor_db + 2.0, -45.0) - loudness_db(extra)) / 20)
        return tone.limited(mixed(front, extra, 0))
    if not found.events and same is None and work.scene.groups:
        # The old name is of no known sound: the largest group is what the clip is about.
        found = Found(max(work.scene.groups, key=len), False, 0.0)
    if not found.events:
        return None
    runs = runs_of(work, found)
    out = erased(work, merged(spans_of(work, found)))
    count = traits_of(new).count
    for k, run in enumerate(runs):
        events = [work.scene.events[i] for i in run]
        start, stop = events[0].start, events[-1].end
        level = loudness_db(work.wave[:, start:stop])
        repeats = named.source.kind != "texture" and len(events) > 1 and count is None
        pieces: list[tuple[int, Wave]] = []
        if repeats:
            pieces = [(e.start, _hit(work, new, k * 50 + j)) for j, e in enumerate(events)]
        else:
            length = (stop - start) / RATE if named.source.kind != "shot" and count is None else None
            pieces = [(start, element(work, new, length))]
        for k_piece, (at, piece) in enumerate(pieces):
            piece = trimmed(piece)
            if k_piece + 1 < len(pieces):
                # A longer sound in place of a short one ends before the next, so that as many are heard.
                room = max(pieces[k_piece + 1][0] - at, RATE // 5)
                piece = tone.faded(piece[:, :room], False, 0.06) if piece.shape[1] > room else piece
            gain = min(10 ** ((level - loudness_db(piece)) / 20), 0.95 / (peak(piece) + 1e-9))
            out = mixed(out, with_fades(piece * gain, 0.001), at)
    return out


def _hit(work: Work, phrase: str, step: int) -> Wave:
    """One single occurrence."""
    found = sound.match(phrase)
    traits = traits_of(phrase)
    one = sound.render_source(
        found.source, _once(traits), None, np.random.default_rng([work.seed & 0xFFFFFFFF, step, 5]), found.said
    )
    return np.tile(one.astype(np.float64), (work.wave.shape[0], 1))


def _once(traits: Traits) -> Traits:
    return changed(traits, count=1, level_trend=0)


def reattribute(work: Work) -> Wave | None:
    """A source kept but made of, on or with something else ("the door were made of metal", "a bigger dog", "the
    path were
    covered with snow"): re-made at its onsets. None when distance, room, side, level or speed is meant."""
    text = work.text
    traits = traits_of(text)
    if not (traits.material or traits.surface or traits.wet or any(w in SIZES for w in traits.words)):
        return None
    elsewhere = space.room_of(text) not in (None, "outdoors", "room")
    if (
        elsewhere
        or english.distance(text)
        or english.pan(text)
        or english.comparatives(re.sub(r"\bdeeper\b", "", text))
    ):
        return None
    named = sound.match_by_words(text)
    if named is None or named.source.weak:
        said = _walked_or_struck(work, traits)
        return recast(work, said, f"{said} on {traits.material}") if said else None
    sized = any(w in SIZES for w in traits.words)
    if (named.source.name not in _TAKES_MATERIAL and not sized) or chosen(work, named.said).near < HEARD:
        return None
    return recast(work, named.said, text)


_TAKES_MATERIAL = frozenset(
    {"footsteps", "knock", "slam", "creak", "door", "hammer", "impact", "thud", "clink", "shatter", "bounce", "hooves"}
    | {"roll", "scrape", "rain", "drill", "tear", "click"}
)
HEARD = 0.5
"""A source counts as heard in a clip when the likest group of events is at least this like it."""
_WITH_GROUND: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        r"paths?|ground|floors?|trails?|surface|pavement|sidewalk|street|road|lawn|field|stairs|carpet",
        ("footsteps", "hooves", "a ball bouncing"),
    ),
    (r"roof|ceiling|umbrella|tent|window|awning", ("rain",)),
    (r"door|gate", ("knocking on a door", "a door slamming", "a creaking door")),
    (r"table|desk|bowl|plate|cup|vase|box|lid", ("a hard object is hit", "a coin dropped")),
)


def _walked_or_struck(work: Work, traits: Traits) -> str | None:
    """The source in the clip that goes with a named ground or body ("the path", "the roof")."""
    for pattern, sources in _WITH_GROUND:
        if traits.material and re.search(rf"\b(?:{pattern})\b", work.text):
            near = {name: chosen(work, name) for name in sources}
            best = max(near, key=lambda name: near[name].near)
            if near[best].near >= HEARD or near[best].background:
                return best
    return None


def is_heard(work: Work, named: sound.Match) -> bool:
    """Whether the clip already holds a source."""
    found = chosen(work, named.said)
    # "a thunderstorm", with its article, is something new, however like it other sounds may be.
    new = re.search(rf"\b(?:an?|some) (?:[\w-]+ ){{0,2}}?{re.escape(named.said)}", work.text)
    return new is None and (found.background or found.near >= HEARD)


def stopped(work: Work) -> Wave | None:
    """A source that stops early: after a number of its events, or at a time counted from its start."""
    name = sound.match_by_words(work.text)
    found = chosen(work, name.said if name else "sound")
    after = re.search(r"\b(?:after|at|half ?way|midway)\b.*$", work.text)
    if not after or not (found.events or found.background):
        return None
    moment = english.moment(work.text)
    count = english.count(after.group()) if moment is None else None
    events = [work.scene.events[i] for i in found.events]
    end = work.scene.active[1]
    if count and events and count < len(events):
        return erased(work, [(events[count].start - RATE // 100, events[-1].end)])
    if moment is None:
        return None
    start = events[0].start if events and not found.background else work.scene.active[0]
    begin = start + int(moment.seconds * RATE) if "half" not in after.group() else (start + end) // 2
    if found.background:
        front, bed = split_background(work.wave, work.scene)
        gate = np.ones(work.wave.shape[1])
        gate[begin:] = 0.0
        return front + bed * np.convolve(gate, np.ones(441) / 441, "same")
    last = events[-1].end
    return erased(work, [(min(begin, last), last)]) if begin < last else None
