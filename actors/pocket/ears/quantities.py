"""Quantities: how many, how long, how fast. Options give numbers; evidence gives weighted guesses of the number."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .after import later_events
from .reading import Asked, digits, interval, plain
from .sources import count_of_source, heard_sources
from .traits import Opinion, Span, pieces_of, scope
from .traits_music import tempo_candidates
from .voice import syllables

if TYPE_CHECKING:
    from .listen import Evidence

Guess = tuple[float, float]
"""(value, weight)."""


@dataclass(frozen=True)
class Quantity:
    """A number that a question may ask for.

    cue: stem words. unit: what option or stem must hold besides a number ("" for nothing). guesses: values with
    weights.
    width: relative width of one guess. least: absolute width, in the unit.
    """

    name: str
    cue: str
    unit: str
    guesses: Callable[["Evidence", Span, Asked], Sequence[Guess]]
    width: float
    least: float
    reading: Callable[[str], Span | None] = interval

    def opinion(self, asked: Asked, evidence: Evidence) -> Opinion | None:
        text = asked.stem + " | " + " | ".join(asked.options)
        if not re.search(self.cue, asked.stem) or (self.unit and not re.search(self.unit, text)):
            return None
        ranges = [self.reading(o) for o in asked.options]
        share = sum(r is not None for r in ranges) / len(ranges)
        if share < 0.6 or len(set(ranges)) < 2:
            return None
        guesses = self.guesses(evidence, scope(asked, evidence), asked)
        if not guesses:
            return None
        scores = tuple(None if r is None else self._score(r, guesses) for r in ranges)
        return Opinion(self.name, scores, 1.2 * share, True)

    def _score(self, allowed: Span, guesses: Sequence[Guess]) -> float:
        total = 0.0
        for value, weight in guesses:
            low, high = allowed
            off = low - value if value < low else value - high if value > high else 0.0
            spread = max(self.width * max(value, min(low, 1e6)), self.least)
            total += weight * math.exp(-0.5 * (off / spread) ** 2) / (1.0 if math.isinf(high) or high > low else 0.8)
        return math.log(total + 1e-3)


def event_counts(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    """How often the sound occurs: attacks, bursts or stretches, by which fits how the clip is built and what the
    stem calls it.
    """
    scene = evidence.scene
    pair = later_events(asked, evidence)
    if pair is not None:
        return [(float(len(pair[1])), 1.0)]
    inside = [t for t in scene.onsets_s if span[0] - 0.06 <= t <= span[1] + 0.06]
    segments = [s for s in scene.segments if s[1] > span[0] and s[0] < span[1]]
    groups = [g for g in scene.groups if g[0] >= span[0] - 0.06 and g[0] <= span[1] + 0.06]
    attacks, stretches = len(inside), len(segments)
    # One burst of everything is no grouping at all, unless bursts are asked for.
    bursts = len(groups) if len(groups) > 1 else attacks
    grouped = re.search(
        r"burst|group|series|set|round|flurr|phrase|cluster|call|ring|pass|gust|wave|roll|utteranc|sentence|line",
        asked.stem,
    )
    bursts = len(groups) if grouped else bursts
    clean = attacks == stretches
    weights = (0.35, 0.2, 0.45) if grouped else (0.75, 0.1, 0.15) if scene.struck_share > 0.5 else (0.4, 0.12, 0.48)
    guesses = [(float(attacks), weights[0]), (float(bursts), weights[1]), (float(stretches), weights[2])]
    if clean:
        guesses.append((float(attacks), 0.6))
    named = count_of_source(asked, evidence, span)
    return guesses + ([(float(named), 0.6)] if named is not None and named > 1 else [])


def speaker_count(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    if not evidence.speech.present:
        return [(0.0, 0.5), (1.0, 0.3)]
    return [(float(evidence.voice.speakers), 1.0)]


def turn_count(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    return [(float(len(evidence.voice.turns)), 1.0)] if evidence.speech.present else [(0.0, 1.0)]


def word_count(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    inside = [w for w in evidence.speech.words if span[0] - 0.2 <= w.start_s <= span[1] + 0.2]
    return [(float(len(inside)), 1.0)]


def said_count(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    """How often a quoted word is said."""
    quoted = re.findall(r"[\"']([a-z][a-z ']*)[\"']", asked.stem)
    said = re.findall(r"[a-z']+", evidence.speech.text.lower())
    return [(float(sum(w == quoted[0].strip() for w in said)), 1.0)] if quoted else word_count(evidence, span, asked)


def syllable_count(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    return [(float(sum(syllables(w.text) for w in evidence.speech.words)), 1.0)]


def pause_count(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    silent = len([g for g in evidence.scene.gaps if g[1] - g[0] > 0.2])
    return (
        [(float(len(evidence.voice.pauses)), 0.6), (float(silent), 0.5)]
        if evidence.speech.present
        else [(float(silent), 1.0)]
    )


def note_count(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    line = [n for n in evidence.music.top_line if span[0] - 0.05 <= n.start_s <= span[1]]
    onsets = [t for t in evidence.scene.onsets_s if span[0] - 0.05 <= t <= span[1]]
    pitches = len({n.midi for n in evidence.music.top_line})
    kinds = bool(re.search(r"different|distinct|separate pitches", asked.stem))
    return [(float(pitches), 1.0)] if kinds else [(float(len(line)), 0.5), (float(len(onsets)), 0.6)]


def source_count(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    """How many kinds of source: instrument or sound classes that clearly score, somewhat under-counted by the
    tagger.
    """
    count = len(heard_sources(evidence))
    return [(float(count), 0.6), (float(count + 1), 0.3)]


def gap_seconds(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    """Silence between sounds: between the two that the stem numbers, the longest, or the usual."""
    scene = evidence.scene
    if evidence.speech.present and re.search(r"word|sentence|speak|voice|line|speaker|phrase", asked.stem):
        gaps = list(evidence.voice.pauses)
    else:
        gaps = [g for g in scene.gaps if g[1] - g[0] > 0.05]
    lengths = [b - a for a, b in gaps]
    pieces = pieces_of(asked, evidence)
    if len(asked.ordinals) == 2:
        i, j = asked.ordinals
        if pieces and max(i, j) < len(pieces):
            a, b = pieces[i], pieces[j]
            return [(max(b[0] - a[1], 0.0), 0.7), (max(b[0] - a[0], 0.0), 0.4)]
    between = float(np.median(np.diff(scene.onsets_s))) if len(scene.onsets_s) > 1 else 0.0
    if not lengths:
        return [(0.0, 0.5), (between, 0.5)]
    return [
        (float(max(lengths)), 0.7),
        (float(np.median(lengths)), 0.4),
        (between, 0.35 if scene.struck_share > 0.5 else 0.1),
    ]


def length_seconds(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    """How long something lasts: the clip, all that sounds, or the numbered sound."""
    if re.search(r"clip|recording|whole|in total|altogether|overall", asked.stem):
        return [(evidence.clip.duration_s, 0.6), (span[1] - span[0], 0.5)]
    longest = max((b - a for a, b in evidence.scene.segments), default=0.0)
    return [(span[1] - span[0], 0.7), (float(longest), 0.5), (evidence.clip.duration_s, 0.1)]


def start_seconds(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    """When something starts: the numbered sound, else what comes after the first."""
    if re.search(r"stop|end|cease|finish", asked.stem):
        return [(span[1], 1.0)]
    second = evidence.scene.segments[1][0] if len(evidence.scene.segments) > 1 else span[0]
    return [(span[0], 0.7 if asked.ordinals else 0.5), (second, 0.3)]


def beats_a_minute(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    onsets = [t for t in evidence.scene.onsets_s if span[0] - 0.05 <= t <= span[1]]
    struck = evidence.kind == "sound" or re.search(r"stroke|knock|tap|step|click|beep|drop|\bhit", asked.stem)
    if struck and len(onsets) > 2:
        return [(60.0 / float(np.median(np.diff(onsets))), 1.0)]
    return tempo_candidates(evidence)


def rate_of(option: str) -> Span | None:
    """Events a second that an option names: "one every three seconds" is a third, "four notes a second" four."""
    text = digits(plain(option))
    every = re.search(r"(?:every|each|in|per) (\d+(?:\.\d+)?) seconds?", text)
    other = re.search(r"every (?:other|second) second", plain(option))
    allowed = interval(option)
    if other or every:
        seconds = 2.0 if other else float(every[1]) if every else 1.0
        head = interval(text[: every.start()]) if every else (1.0, 1.0)
        count = head[0] if head else 1.0
        return (count / seconds, count / seconds) if seconds > 0 else None
    return allowed


def times_a_second(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    onsets = [t for t in evidence.scene.onsets_s if span[0] - 0.05 <= t <= span[1]]
    return [(1.0 / float(np.median(np.diff(onsets))), 1.0)] if len(onsets) > 1 else [(0.3, 0.5)]


def beats_a_bar(evidence: Evidence, span: Span, asked: Asked) -> list[Guess]:
    return [(float(n), p) for n, p in evidence.music.meter.items()]


_HOW_MANY = r"how many|how often|(?:the|what) number of|count|times"
QUANTITIES = (
    Quantity("beats a bar", rf"({_HOW_MANY}).*(beats?).*(bar|measure|cycle|group)", "", beats_a_bar, 0.05, 0.3),
    Quantity(
        "rate",
        r"\brate\b|how (?:fast|often|quick)|frequen|per second|a second|\bpace\b|tempo|speed|pulse",
        r"(?:per|a|each|every|\d|two|three|four|five|six) seconds?|hertz|\bhz\b",
        times_a_second,
        0.15,
        0.1,
        rate_of,
    ),
    Quantity(
        "tempo in figures",
        r"tempo|\bpace\b|speed|fast|beats? (?:per|a|each) minute|bpm|pulse|\bminute\b",
        r"\bbpm\b|beats? (?:per|a|each|every) minute|per minute|\d{2,3}\b",
        beats_a_minute,
        0.07,
        3.0,
    ),
    Quantity(
        "voices",
        rf"({_HOW_MANY}).*(voices?|speakers?|people|persons?|talkers?|men\b|women\b|singers?)",
        "",
        speaker_count,
        0.05,
        0.35,
    ),
    Quantity(
        "turns",
        (
            rf"({_HOW_MANY}).*(turns?|sentences?|utterances?|lines?|phrases?)\b(?=.*(?:voice|said|"
            rf"spoken|speak|talk|heard|\?))"
        ),
        "",
        turn_count,
        0.06,
        0.4,
    ),
    Quantity("said", rf"({_HOW_MANY}).*[\"'][a-z]", "", said_count, 0.05, 0.3),
    Quantity("words", rf"({_HOW_MANY}).*\bwords?\b", "", word_count, 0.08, 0.4),
    Quantity("syllables", rf"({_HOW_MANY}).*syllab", "", syllable_count, 0.08, 0.4),
    Quantity("pauses", rf"({_HOW_MANY}).*(pauses?|gaps?|silences?|breaks?|breaths?)", "", pause_count, 0.1, 0.35),
    Quantity("notes", rf"({_HOW_MANY}).*(notes?|pitches|tones?)\b", "", note_count, 0.1, 0.35),
    Quantity(
        "sources",
        rf"({_HOW_MANY}).*(instruments?|sources?|kinds?|types?|layers?|parts\b|different)",
        "",
        source_count,
        0.1,
        0.5,
    ),
    Quantity(
        "gap",
        r"gap|pause|silence|between|apart|interval|break|wait|separat",
        r"\bseconds?\b|\bsecs?\b|\bs\b|\bmilliseconds?",
        gap_seconds,
        0.2,
        0.12,
    ),
    Quantity(
        "start",
        r"\bwhen\b|at what (?:time|moment|point)|how (?:long|soon|many seconds) (?:before|after|into|until)",
        r"\bseconds?\b|\bsecs?\b",
        start_seconds,
        0.12,
        0.25,
    ),
    Quantity(
        "duration", r"how long|duration|length|\blasts?\b", r"\bseconds?\b|\bsecs?\b|\bs\b", length_seconds, 0.15, 0.2
    ),
    Quantity("times", _HOW_MANY, "", event_counts, 0.06, 0.38),
)
"""In order of how special they are: only the first that applies is asked."""


def quantity(asked: Asked, evidence: Evidence) -> Opinion | None:
    for kind in QUANTITIES:
        opinion = kind.opinion(asked, evidence)
        if opinion is not None:
            return opinion
    return None
