"""Number, order, repetition, length and gaps of what a clip holds.

None means that the wording does not ask for it after all, so that the next reading gets its turn.
"""

from __future__ import annotations

import itertools
import re

import numpy as np

from . import edit_tone as tone
from . import edit_words as words
from . import english, sound
from .edit_events import RATE, Event, Found, Wave, analyse, is_generic, split_background
from .edit_pick import anchor_of, background_bed, chosen, continued, erased, merged, runs_of, spans_of
from .edit_work import LONGEST, Work, joined, mixed, with_fades
from .sound_traits import Traits

COUNT = (
    r"\bmake (?:it|that|them) (?:only |just )?(?:one|two|three|four|five|six|seven|eight|nine|ten|\d+) "
    r"(?!percent|db|bpm|hz|khz|semitone|second|octave|minute|times)[a-z]|"
    r"\b(?:only |just |exactly )?(?:once|twice|thrice|(?:\w+|\d+) times)\b|\b(?:only|just|exactly|a total of) (?:one|"
    r"two|three|four|five|six|seven|eight|\d)\b|\b(?:one|two|three|four|\d) (?:more|fewer|less|additional|extra)\b|"
    r"\b(?:two|three|four|five|six|seven|eight|\d) \w+(?: \w+)? (?:instead|rather)|\binstead of (?:one|two|three|"
    r"four|five|six|\d|once|twice)\b"
)


def recount(work: Work) -> Wave | None:
    """Another number of the same events: copies at their own spacing, or fewer of them."""
    text = re.split(r"\b(?:instead of|rather than|not)\b", work.text)[0]
    more = re.search(r"\b(one|two|three|four|\d) (more|additional|extra|fewer|less)\b", text)
    target = re.sub(r"^(?:make|have|let|change|turn|reduce|increase) ", "", text)
    name = sound.match_by_words(target)
    found = chosen(work, name.said if name else "sound")
    if not found.events:
        return None
    run = max(runs_of(work, found), key=len)
    wanted = english.count(text)
    if more:
        step = int(english.number(more.group(1)) or 1)
        wanted = len(run) + (step if more.group(2) in ("more", "additional", "extra") else -step)
    if (
        wanted is None
        or (wanted == len(run) and _strokes(name) == 1)
        or re.search(r"\btimes (?:as|faster|slower|louder|higher)|\btwice (?:as|the)\b", text)
    ):
        return None
    events = [work.scene.events[i] for i in run]
    strokes = _strokes(name)
    if strokes > 1 and not more:
        return _units(work, run, strokes, wanted)
    if wanted < len(run):
        return erased(work, merged(spans_of(work, Found(tuple(run[max(wanted, 0) :]), False, 1.0))))
    return continued(work, events, wanted)


def _strokes(name: sound.Match | None) -> int:
    """Onsets in one occurrence of a source: two for a ding-dong."""
    if name is None or name.source.kind != "shot":
        return 1
    one = sound.render_source(name.source, Traits(count=1), None, np.random.default_rng(0))
    return max(1, len(analyse(one[np.newaxis, :].astype(np.float64)).events))


def _units(work: Work, run: list[int], strokes: int, wanted: int) -> Wave | None:
    """Another number of occurrences of several onsets each."""
    units = [run[i : i + strokes] for i in range(0, len(run), strokes)]
    if wanted == len(units):
        return None
    if wanted < len(units):
        return erased(work, merged(spans_of(work, Found(tuple(i for u in units[wanted:] for i in u), False, 1.0))))
    whole = [Event(work.scene.events[u[0]].start, work.scene.events[u[-1]].end) for u in units]
    return continued(work, whole, wanted)


ORDER = (
    r"(?:swap|switch|exchang|revers|invert|flip|chang)\w*(?: around)? (?:the )?(?:order|sequence|positions?|places|"
    r"timing)|(?:opposite|reversed?|other|swapped|different|inverse) order|order (?:\w+ ){0,6}(?:swapped|reversed|"
    r"switched|flipped|inverted)|"
    r"(?:swap|switch|exchang)\w* (?:the )?(?:first|two|halves|both|sounds|events)\b|(?:swap|switch) (?!.*\b(?:for|"
    r"with)\b).* and |other way (?:a)?round|chang\w+ places"
)


def reorder(work: Work) -> Wave | None:
    """The two halves, or the sounds, in the other order."""
    if re.search(r"\bhal(?:f|ves)\b", work.text):
        half = work.wave.shape[1] // 2
        return joined([work.wave[:, half:], work.wave[:, :half]])
    return _swapped(work)


def _swapped(work: Work) -> Wave | None:
    scene = work.scene
    blocks = [scene.span(g) for g in scene.groups]
    if len(blocks) < 2 and len(scene.events) >= 2:
        blocks = [(e.start, e.end) for e in scene.events]
    if len(blocks) < 2:
        half = work.wave.shape[1] // 2
        return joined([work.wave[:, half:], work.wave[:, :half]])
    front = split_background(work.wave, scene)[0] if scene.has_background else work.wave
    pieces = [front[:, a:b] for a, b in blocks]
    gaps = [max(0, b[0] - a[1]) for a, b in itertools.pairwise(blocks)]
    order = list(range(len(blocks)))[::-1]
    tail = work.wave.shape[1] - blocks[-1][1]
    parts = [front[:, : blocks[0][0]]]
    for k, index in enumerate(order):
        parts.append(with_fades(pieces[index], 0.003))
        if k < len(gaps):
            parts.append(np.zeros((front.shape[0], gaps[len(gaps) - 1 - k])))
    parts.append(np.zeros((front.shape[0], max(tail, 0))))
    out = np.concatenate(parts, axis=1)[:, : work.wave.shape[1]]
    if scene.has_background:
        bed = background_bed(work)
        out = out + bed[:, : out.shape[1]]
    return np.pad(out, ((0, 0), (0, work.wave.shape[1] - out.shape[1])))


def before_after(work: Work) -> Wave | None:
    """ "the bell had rung before the dog barked": swapped when the clip has it the other way."""
    text = re.sub(r"\b(?:instead of|rather than) (?:before|after)\b.*$", "", work.text).strip()
    said = re.search(r"^(?P<a>.+?)\s+(?P<how>before|after|first|last)\b\s*(?P<b>.*)$", text)
    if not said or len(work.scene.groups) < 2:
        return None
    a, b = sound.match_by_words(said.group("a")), sound.match_by_words(said.group("b")) if said.group("b") else None
    if a is None or (b is None and said.group("how") in ("before", "after")) or (b and b.source == a.source):
        return None
    first = chosen(work, a.said)
    other = (
        chosen(work, b.said)
        if b
        else Found(tuple(i for i in range(len(work.scene.events)) if i not in first.events), False, 1.0)
    )
    if (
        not first.events
        or not other.events
        or min(first.near, other.near) < 0.3
        or set(first.events) & set(other.events)
    ):
        return None
    earlier = first.events[0] < other.events[0]
    wants_earlier = said.group("how") in ("before", "first")
    return work.wave if earlier == wants_earlier else _swapped(work)


def move_block(work: Work) -> Wave | None:
    """ "move the bell to the end", "shift the dog two seconds later"."""
    said = re.search(
        r"\b(?:move|shift|push|bring|place|put)\w* (?:the )?(?P<of>.+?) (?:to the (?:very )?(?P<where>end|beginning|"
        r"start|front|middle)|(?P<amount>[\w .]+?) (?P<way>later|earlier))",
        work.text,
    )
    if not said:
        return None
    found = chosen(work, words.thing(said.group("of")))
    if not found.events:
        return None
    spans = merged(spans_of(work, found))
    start, stop = spans[0][0], spans[-1][1]
    piece = with_fades(work.wave[:, start:stop], 0.003)
    if said.group("way"):
        shift = int((english.duration_s(f"for {said.group('amount')}") or 1.0) * RATE) * (
            1 if said.group("way") == "later" else -1
        )
        return mixed(erased(work, spans), piece, max(0, start + shift))
    rest = joined([work.wave[:, :start], work.wave[:, stop:]])
    if said.group("where") == "middle":
        return mixed(erased(work, spans), piece, work.wave.shape[1] // 2)
    parts = [rest, piece] if said.group("where") == "end" else [piece, rest]
    return joined(parts)[:, :LONGEST]


REPEAT = r"repeat\w*|loop\w*|duplicat\w+|play (?:it|the \w+) (?:again|twice)|again\b|echo (?:the )?last"


def repeat(work: Work) -> Wave | None:
    """The whole, or a named event, again and again."""
    times = english.count(work.text) or 2
    named = re.search(
        r"\b(?:repeat|loop|duplicate)\w* (?:the )?(.+?)(?: (?:\w+ times|twice|once|again|at the end|"
        r"over and over).*)?$",
        work.text,
    )
    target = words.thing(named.group(1)) if named else ""
    part = words.part(work.text)
    if part is not None:
        start, stop = words.span_of(part, work.wave.shape[1], RATE)
        return joined([work.wave[:, :stop]] + [work.wave[:, start:stop]] * max(times - 1, 1) + [work.wave[:, stop:]])[
            :, :LONGEST
        ]
    if target and not is_generic(target):
        found = chosen(work, target)
        if found.events and len(found.events) < len(work.scene.events):
            run = runs_of(work, found)[-1]
            events = [work.scene.events[i] for i in run]
            return continued(
                work,
                events,
                len(events) + max(times - 1, 1) * len(events)
                if english.ordinals(f"the {target}") == ()
                else len(events) + max(times - 1, 1),
            )
    return joined([work.wave] * max(times, 2))[:, :LONGEST]


def lengthen(work: Work) -> Wave | None:
    """Longer or shorter: looped to a length, or cut to it."""
    seconds = english.duration_s(re.sub(r"\bto\b", "for", work.text))
    n = work.wave.shape[1]
    longer = re.search(r"\b(?:extend|lengthen|prolong|longer)\w*", work.text)
    if not longer and not re.search(
        r"\b(?:trim|shorten|shorter|crop|cut (?:it |the \w+ )?(?:down|to|off|short)|limit|only the|"
        r"keep (?:only )?the)\w*",
        work.text,
    ):
        return None
    part = words.part(work.text)
    if part is not None and not longer:
        start, stop = words.span_of(part, n, RATE)
        keeps = re.search(r"\bkeep|\bonly|\bto (?:just )?the (?:first|last)", work.text)
        return (
            tone.faded(work.wave[:, start:stop], False, 0.01)
            if keeps
            else joined([work.wave[:, :start], work.wave[:, stop:]])
        )
    wanted = (
        int(seconds * RATE)
        if seconds
        else int(n * ((english.ratio(work.text) or 1.5) if longer else (english.ratio(work.text) or 0.6)))
    )
    if re.search(r"\bby\b", work.text) and seconds:
        wanted = n + int(seconds * RATE) * (1 if longer else -1)
    wanted = int(np.clip(wanted, RATE // 5, LONGEST))
    if wanted <= n:
        return tone.faded(work.wave[:, :wanted], False, 0.02)
    return joined([work.wave] * (wanted // n + 2), 0.05)[:, :wanted]


def silence(work: Work) -> Wave | None:
    """A silent gap where the clause says."""
    seconds = english.duration_s(work.text) or 1.0
    spot = words.spot(re.sub(r"\b[\w.\-]+[- ]seconds?(?: of| long)?\b", "", work.text))
    n = work.wave.shape[1]
    anchor = anchor_of(work, spot) if spot.where in ("after", "before", "between") else None
    at = {"start": 0, "end": n}.get(spot.where or "", n // 2)
    if spot.where == "at" or english.moment(work.text) is not None:
        moment = english.moment(work.text)
        at = int(moment.seconds * RATE) if moment and not moment.from_end else at
    if anchor is not None:
        at = {"before": anchor[0], "between": (anchor[0] + anchor[1]) // 2}.get(spot.where or "", anchor[1])
    elif spot.where is None and len(work.scene.groups) > 1:
        at = (work.scene.span(work.scene.groups[0])[1] + work.scene.span(work.scene.groups[1])[0]) // 2
    at = min(max(at, 0), n)
    gap = np.zeros((work.wave.shape[0], int(seconds * RATE)))
    return np.concatenate([work.wave[:, :at], gap, work.wave[:, at:]], axis=1)[:, :LONGEST]
