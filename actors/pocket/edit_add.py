"""New material into a clip: where it goes, how loud, what makes way.

None means that the wording does not ask for it after all, so that the next reading gets its turn.
"""

from __future__ import annotations

import re

import numpy as np

from . import edit_tone as tone
from . import edit_words as words
from . import english, sound
from .edit_events import RATE, Found, Wave
from .edit_pick import GAP, anchor_of, background_bed, chosen, continued, runs_of, trimmed
from .edit_which import whole_events
from .edit_work import LONGEST, Work, element, joined, loudness_db, mixed, peak, with_fades
from .sound_traits import traits_of

ADD = (
    r"add(?:s|ed|ing)?|insert\w*|includ\w+|overla\w+|mix(?:ed)?(?: in)?|layer(?:s|ed|ing)?\b(?! of)|introduc\w+|"
    r"put(?!.*\bfirst\b)|let (?=.*\b(?:behind|beneath|underneath|in the background|throughout)\b)|"
    r"(?<!took )(?<!take )(?<!takes )(?<!taken )(?<!taking )place|append\w*|prepend\w*|bring in|throw in|drop in|"
    r"play(?=.*\b(?:over|after|before|at the)\b)|"
    r"follow (?:it|this|that) with|start(?:s|ed)? with|begin(?:s)? with|end(?:s|ed)? with|finish(?:es|ed)? with|"
    r"superimpose"
)
SUPPOSED_ADD = (
    r"there (?:were|was|is|are|had been|would be) (?:also )?(?!no\b|not\b|never\b)|(?:also|too|as well)\b|joined|"
    r"accompanied by|nearby|in the (?:background|distance)|interrupt\w*|"
    r"(?:started|begun|began|starts) (?:to )?|at the same time|suddenly|followed by|another\b"
)


def add(work: Work) -> Wave | None:
    """New material at the place named: start, end, under everything, after or before an event, at a time, or where
    there is room."""
    text = work.text
    verb = re.search(rf"\b(?:{ADD})\b\s*", text)
    said = (
        text[verb.end() :]
        if verb
        else re.sub(r"^(?:and |if )?(?:there (?:were|was|is|are|had been|would be) (?:also )?)", "", text)
    )
    opening = verb.group().strip() if verb else ""
    spot = words.spot(said)
    where = spot.where
    if opening.startswith(("start", "begin", "prepend")):
        where = where or "start"
    if opening.startswith(("end", "finish", "append", "follow")):
        where = where or "end"
    phrase = re.sub(r"^(?:in |a sound of |the sound of |sounds of |also )", "", spot.text).strip(" ,.")
    phrase = re.sub(
        r"\b(?:to|into|in|onto|over) (?:the |this )?(?:clip|recording|audio|scene|track|mix|song|piece|music|speech|"
        r"existing \w+)\b.*$",
        "",
        phrase,
    ).strip(" ,.")
    if not phrase:
        return None
    more = one_more(work, phrase) if where is None or where == "end" else None
    if more is not None:
        return more
    if work.audio_type == "music" and not work.masked.quotes_in(phrase):
        from . import edit_music

        layered = edit_music.layer(work, phrase, where)
        if layered is not None:
            return layered
    return placed(work, phrase, where, spot)


def one_more(work: Work, phrase: str) -> Wave | None:
    """ "a fourth knock", "one more bark", "two more steps": copies that continue the ones that are there; None
    when none is."""
    said = re.match(
        r"^(?:(?:the |an? )?(?P<order>third|fourth|fifth|sixth|seventh|second)|(?P<more>one|two|three|four|"
        r"an?) (?:more|extra|additional|further)|another) (?P<of>.+)$",
        phrase,
    )
    named = sound.match_by_words(said.group("of")) if said else None
    if said is None or named is None:
        return None
    found = chosen(work, words.without_order(said.group("of")))
    if not found.events or found.near < 0.45:
        return None
    run = max(runs_of(work, found), key=len)
    events = [work.scene.events[i] for i in run]
    order = english.ordinal(said.group("order")) if said.group("order") else None
    extra = (order - len(run)) if order else int(english.number(said.group("more") or "one") or 1)
    return continued(work, events, len(events) + extra) if extra > 0 else None


_NUMBERED = r"second|third|fourth|fifth|sixth|seventh|eighth"
AGAIN = (
    rf"\b(?:been|were|was|had|come|came|followed|heard|hear|is|be|with|by) (?:\w+ )?(?:(?:a|an|one|"
    rf"yet) (?:{_NUMBERED}|further|"
    r"extra|additional|other|repeat)|another|one more) \w+|\b(?:once more|one more time|(?:a|for a|"
    r"for the) second time|yet again|"
    r"(?:over )?again|another time)$|\b(?:once more|one more time|a second time|again)\b(?= (?:right|just|"
    r"straight|soon|shortly|"
    r"immediately|a moment|at the end|after|before))|\b(?:another|a (?:second|third|fourth)|one more) [\w -]+? "
    r"(?:had |has |would have )?(?:follow\w*|c(?:a|o)me|c(?:a|o)mes|happen\w*|sound\w*|rang|r[iu]ng|"
    r"straight after|right after|"
    r"soon after|immediately after|shortly after|afterwards)\b"
)
_NOT_A_COPY = r"(?:speaker|person|voice|man|woman|child|boy|girl|instrument|layer|room|half|key|tempo|place)s?\b"


def once_more(work: Work) -> Wave | None:
    """A supposed repetition ("had there been a second knock right after", "as if he had dropped it again"): one copy
    of that event after it; what was there stays. None where nothing like it is there, or in music and quoted speech."""
    text = work.text
    if not work.clause.supposed or work.quotes or work.audio_type != "sound" or not work.scene.events:
        return None
    if re.search(rf"\b(?:play|repeat|loop)\w*\b|\b(?:second|another|third|more) (?:\w+ )?{_NOT_A_COPY}", text):
        return None
    new = re.search(
        rf"\b(?:another|one more|(?:a|an|one|yet an?) (?:{_NUMBERED}|further|extra|additional|other|repeat))"
        r"(?: (?:and|much|very|slightly|quick|final))* (?!time\b)(?P<of>[\w' -]+)",
        text,
    )
    of = (
        re.split(
            r"\b(?:right|just|straight|soon|shortly|immediately|after|afterwards|follow\w*|had|at|a moment|in)\b",
            new.group("of"),
        )[0]
        if new
        else ""
    )
    named = sound.match_by_words(of) if of else sound.match_by_words(text)
    found = chosen(work, named.said if named else "sound")
    sorts = {i: tuple(g) for g in work.scene.groups for i in g}
    if named is not None and (found.background or found.near < 0.35) and new is not None and len(work.scene.groups) > 1:
        return None  # something that the clip does not hold yet is added, not copied
    if named is None or not found.events or (new is None and found.near < 0.5):
        found = Found(work.scene.groups[-1], False, 0.0)
    events = found.events
    units = [unit for unit in whole_events(work.scene) if unit[0] in events]
    # "Again" repeats all of what happened, a bounce with its rebounds; "a second knock" one stroke of several.
    last = units[-1] if new is not None and len(units) > 1 and _even(work, units) else sorts[events[-1]]
    start, stop = work.scene.events[last[0]].start, work.scene.events[last[-1]].end
    return _copied(work, start, stop, [work.scene.events[u[0]].start for u in units] if new and last in units else [])


def _even(work: Work, units: list[tuple[int, ...]]) -> bool:
    """Whether the events are as loud as each other within 8 dB: strokes, and no bounces that die down."""
    level = [loudness_db(work.wave[:, work.scene.events[u[0]].start : work.scene.events[u[-1]].end]) for u in units]
    return max(level) - min(level) < 8.0


def _copied(work: Work, start: int, stop: int, starts: list[int]) -> Wave:
    """A copy of [start, stop) after it, at the spacing of `starts` if there are several; what follows moves back only
    when the copy would fall on it."""
    lead = min(start, RATE // 100)
    piece = with_fades(trimmed(work.wave[:, start - lead : stop]), 0.002)
    gap = int(np.median(np.diff(starts))) if len(starts) > 1 else max(piece.shape[1], RATE // 4) + GAP // 2
    at = max(start - lead + gap, min(stop, start + gap))
    later = [e.start for e in work.scene.events if e.start >= stop - RATE // 50]
    base = work.wave
    if later and at + piece.shape[1] > later[0]:
        shift = min(at + piece.shape[1] + GAP // 2 - later[0], LONGEST - work.scene.active[1])
        if shift > 0:
            cut = later[0] - RATE // 100
            hole = np.zeros((base.shape[0], shift))
            if work.scene.has_background:
                hole = np.resize(background_bed(work), hole.shape)
            base = np.concatenate([base[:, :cut], hole, base[:, cut:]], axis=1)[:, :LONGEST]
    at = min(at, LONGEST - min(piece.shape[1], RATE // 2))
    return mixed(base, piece, at)


def placed(work: Work, phrase: str, where: str | None, spot: words.Spot) -> Wave:
    """A phrase rendered and set into the clip."""
    found = sound.match(phrase)
    steady = found.source.kind == "texture" and not work.masked.quotes_in(phrase) and traits_of(phrase).count is None
    n = work.wave.shape[1]
    if where is None and steady and (english.duration_s(phrase) is None):
        where = "under"
    length = english.duration_s(phrase)
    if where == "under" or (where == "over" and steady):
        extra = element(work, phrase, (length or n / RATE))
        extra = extra[:, :n] if not length else extra
        return mixed(work.wave, with_fades(_at_level(work, extra, phrase, -13.0), 0.15), 0)
    extra = trimmed(element(work, phrase, length))
    extra = with_fades(_at_level(work, extra, phrase, 0.0), 0.002)
    stop = work.scene.active[1]
    anchor = anchor_of(work, spot) if where in ("after", "before", "over", "between") else None
    if where == "start" or (where == "before" and anchor is None):
        return _put_first(work, extra)
    if where == "at":
        return mixed(work.wave, extra, min(int((spot.seconds or 0) * RATE), max(n - RATE // 4, 0)))
    if where == "middle":
        return mixed(work.wave, extra, max(0, n // 2 - extra.shape[1] // 2))
    if anchor is not None:
        return _beside(work, extra, where or "after", *anchor)
    if where in ("end", "after"):
        at = min(stop + GAP, LONGEST - min(extra.shape[1], 3 * RATE))
        return mixed(work.wave, extra, max(at, 0))
    return mixed(work.wave, extra, _roomiest(work, extra.shape[1]))


def _at_level(work: Work, extra: Wave, phrase: str, offset_db: float) -> Wave:
    """As loud as the clip, changed by what the phrase says of loudness and distance."""
    force = traits_of(phrase).force
    db = offset_db + 18.0 * (force - 0.5)
    far = english.distance(phrase)
    if far and far.meters > 3:
        db -= 10.0
    target = max(loudness_db(work.wave), -40.0) + db
    gain = 10 ** ((target - loudness_db(extra)) / 20)
    return extra * min(gain, 0.9 / (peak(extra) + 1e-9))


def _put_first(work: Work, extra: Wave) -> Wave:
    """Before everything: in the silence that is there, else the rest moves back as far as 10 s allow."""
    start, stop = work.scene.active
    need = extra.shape[1] + GAP
    shift = max(0, min(need - start, LONGEST - stop))
    if shift + start < need and shift + start > GAP:
        extra = tone.faded(extra[:, : max(shift + start - GAP // 2, RATE // 3)], False, 0.1)
    base = np.pad(work.wave, ((0, 0), (shift, 0)))[:, :LONGEST] if shift else work.wave
    return mixed(base, extra, max(0, start + shift - need))


def _beside(work: Work, extra: Wave, where: str, start: int, stop: int) -> Wave:
    """Right after, right before, between or over [start, stop); what follows moves back when there is no room and
    10 s allow it."""
    n = work.wave.shape[1]
    if where == "over":
        return mixed(work.wave, extra, start)
    if where == "before":
        room = start - _previous_end(work, start)
        if room >= extra.shape[1] + GAP:
            return mixed(work.wave, extra, start - extra.shape[1] - GAP // 2)
        cut = max(0, start - GAP // 4)
    else:
        later = [e.start for e in work.scene.events if e.start >= stop - RATE // 50]
        room = (later[0] if later else LONGEST) - stop
        if where == "between":
            room = start and max(stop - start, 0)
            stop, start = start, start
        if not later and where == "after":
            return mixed(work.wave, extra, min(stop + GAP // 2, max(LONGEST - extra.shape[1], 0)))
        if room >= extra.shape[1] + GAP // 2:
            return mixed(
                work.wave, extra, stop + max((room - extra.shape[1]) // 3, 0) if where == "between" else stop + GAP // 3
            )
        cut = min(stop, n)
    gap = extra.shape[1] + GAP
    used = work.scene.active[1]
    gap = min(gap, max(LONGEST - used, 0))
    if gap < RATE // 4:
        return mixed(work.wave, extra, cut)
    hole = (
        background_bed(work)[:, :1].repeat(gap, axis=1) * 0
        if not work.scene.has_background
        else np.resize(background_bed(work), (work.wave.shape[0], gap))
    )
    base = joined([work.wave[:, :cut], hole, work.wave[:, cut:]], 0.003)[:, :LONGEST]
    return mixed(base, extra, cut + GAP // 3)


def _previous_end(work: Work, start: int) -> int:
    ends = [e.end for e in work.scene.events if e.end <= start + RATE // 50]
    return max(ends, default=0)


def _roomiest(work: Work, length: int) -> int:
    """Where a new event is heard best: in the longest quiet stretch, else after the end when 10 s allow it, else
    at 40 %."""
    n = work.wave.shape[1]
    edges = [(0, work.scene.events[0].start)] if work.scene.events else []
    edges += [(a.end, b.start) for a, b in zip(work.scene.events, work.scene.events[1:], strict=False)]
    edges.append((work.scene.active[1], n))
    start, stop = max(edges, key=lambda e: e[1] - e[0])
    if stop - start > length + GAP:
        return start + GAP // 2
    if work.scene.active[1] + GAP + length <= LONGEST and work.audio_type != "music":
        return work.scene.active[1] + GAP
    return int(n * 0.4)
