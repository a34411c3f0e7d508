"""Pauses, repetition at a rate, and how a level moves over time, in English text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .english_numbers import LENGTH, NUMBER, count, duration_s, number, seconds_of

SHORT_PAUSE_S, PLAIN_PAUSE_S, LONG_PAUSE_S = 0.4, 0.7, 1.2


def _plain(text: str) -> str:
    """Lower case, without the words that only hedge a length ("about a full second" is "a second")."""
    text = re.sub(
        r"\b(?:about|around|roughly|nearly|almost|exactly|approximately|full|whole|good|some|clear|precisely)\s+"
        rf"(?=(?:{NUMBER}|half|a|an|one|full|whole|seconds?)\b)",
        "",
        text.lower(),
    )
    text = re.sub(r"\b(a|one|half a|half) (?:full|whole|good|clear)[- ](?=second)", r"\1 ", text)
    text = re.sub(r"\b(?:a|one) second and a half\b", "1.5 seconds", text)
    return re.sub(r"\ba second or (?:so|two)\b", "a second", text)


_GAP_WORD = r"(?:silences?|pauses?|gaps?|rests?|breaks?|quiet|stillness|spaces?)"
_PAUSES = (
    rf"\b{LENGTH}[- ]*(?:long )?(?:of )?(?:\w+ )?{_GAP_WORD}\b",
    rf"\b(?:paus\w*|silences?|gaps?|rests|breaks?|wait\w*|quiet)\s+(?:of |for |lasting |lasts? |that lasts? )?{LENGTH}",
    rf"\b{LENGTH}[- ]*(?:\w+ )?(?:in )?(?:between|apart|after (?:each|every|the)|before (?:each|every|the (?:next|"
    rf"second)))",
    rf"\b(?:leav\w+|wait\w*|spaced|separated|left|lets?|letting)\s+(?:at |by |for |out )?{LENGTH}",
)
_SHORT = re.compile(
    rf"\b(?:short|brief|slight|tiny|little|quick|momentary|small)[\w ,-]{{0,12}}{_GAP_WORD}|\bbriefly paus"
)
_LONG = re.compile(rf"\b(?:long|lengthy|extended|drawn[- ]out|heavy|big)[\w ,-]{{0,12}}{_GAP_WORD}")
_PLAIN_PAUSE = re.compile(
    r"\bpaus(?:e|es|ing)\b|\b(?:silence|gap|rest|break)s? (?:in )?(?:between|after)\b|\bafter a (?:beat|moment)\b"
)
_UNBROKEN = re.compile(rf"\b(?:without|no|not)\b[\w ]{{0,18}}\b(?:{_GAP_WORD}|pausing)")


def pause_s(text: str) -> float | None:
    """Seconds of silence stated between things said or heard: "a second after each word", "a two-second pause",
    "a short pause" 0.4, "a long pause" 1.2; None when no pause is named."""
    text = _UNBROKEN.sub(" ", _plain(text))
    for pattern in _PAUSES:
        match = re.search(pattern, text)
        if match:
            return seconds_of(match.group(1), match.group(2))
    if _SHORT.search(text):
        return SHORT_PAUSE_S
    if _LONG.search(text):
        return LONG_PAUSE_S
    return PLAIN_PAUSE_S if _PLAIN_PAUSE.search(text) else None


def pause_each(text: str) -> str | None:
    """Where a stated pause belongs: "word" after every word, "item" after every number, name or phrase; None where
    the text does not say."""
    match = re.search(
        r"\b(?:after|between|before|separat\w+)\s+(?:each|every|the|all|individual|single|all the)?\s*(?:spoken |"
        r"single |"
        r"of the )?(words?|numbers?|digits?|letters?|names?|items?|colou?rs?|counts?|them|ones?\b|phrases?|sentences?|"
        r"each|every)",
        text.lower(),
    )
    if not match:
        return None
    return "word" if match.group(1).startswith("word") else "item"


@dataclass(frozen=True)
class Repetition:
    """Something again and again. gap_s: from one onset to the next. count: how often; None where the text leaves it
    open."""

    gap_s: float
    count: int | None


_EVERY = r"(?:a|per|each|every|in (?:a|each|every))"
_NOT_A_RATE = r"(?![ -]*(?:apart|between|later|of\b|long|pause|half\b|and a half|gap|silence|before|after|or\b))"
_NOT_A_LENGTH = r"(?<!for )(?<!after )(?<!within )(?<!lasting )(?<!lasts )(?<!over )(?<!of )"


def repetition(text: str) -> Repetition | None:
    """The rate that a text states and how often it comes: "two ticks a second for six seconds" is 12 at 0.5 s, "every
    half second", "once a second, five times", "six taps evenly over three seconds"; None when no rate is stated."""
    text = _plain(text)
    found = _rate(text)
    if found is None:
        times, lasting = (
            count(text),
            duration_s(re.sub(r"\b(?:over|across|within|in)\s+(?=\S+ seconds?)", "for ", text)),
        )
        if times and lasting and times > 1 and re.search(r"\beven(?:ly)?\b|\bequal(?:ly)?\b|\bregular(?:ly)?\b", text):
            return Repetition(lasting / times, times)
        return None
    gap, start, stop = found
    rest = f"{text[:start]} {text[stop:]}"
    lasting = duration_s(rest)
    explicit = count(re.sub(rf"\b(?:for|lasting|over)\s+{LENGTH}", " ", rest))
    if explicit is not None and explicit <= 1:
        explicit = None
    if lasting is not None and explicit is None:
        explicit = max(1, round(lasting / gap))
    return Repetition(gap, explicit)


def _rate(text: str) -> tuple[float, int, int] | None:
    """(seconds from onset to onset, where the phrase starts, where it ends)."""
    units = {"second": 1.0, "minute": 60.0}
    match = re.search(rf"\b(once|twice|thrice|{NUMBER} times?)\s+{_EVERY}\s+(second|minute)\b{_NOT_A_RATE}", text)
    if match:
        times = {"once": 1.0, "twice": 2.0, "thrice": 3.0}.get(match.group(1)) or number(
            match.group(1).split(" time")[0]
        )
        return (units[match.group(2)] / times, *match.span()) if times else None
    match = re.search(rf"\b(once|twice|thrice|{NUMBER} times?)\s+every\s+{LENGTH}", text)
    if match:
        times = {"once": 1.0, "twice": 2.0, "thrice": 3.0}.get(match.group(1)) or number(
            match.group(1).split(" time")[0]
        )
        every = seconds_of(match.group(2), match.group(3))
        return (every / times, *match.span()) if times and every else None
    match = re.search(
        rf"\b({NUMBER})\s+(?:(?!for\b|after\b|at\b)[\w'-]+\s+){{0,6}}?{_NOT_A_LENGTH}{_EVERY}\s+(second|minute)\b{_NOT_A_RATE}",
        text,
    )
    if match:
        times = number(match.group(1))
        head = match.start()
        return (units[match.group(2)] / times, head, match.end()) if times else None
    match = re.search(r"\b(?:every|each) other second\b", text)
    if match:
        return 2.0, *match.span()
    for pattern in (rf"\b(?:every|each|per)\s+{LENGTH}", rf"\b{LENGTH}[ -]*(?:apart|intervals?|spacing)\b"):
        match = re.search(pattern, text)
        if match:
            gap = seconds_of(match.group(1), match.group(2))
            return (gap, *match.span()) if gap else None
    match = re.search(r"\b(?:once )?(?:every|each|per|a) second\b", text)
    if match and not match.group().startswith("a "):
        return 1.0, *match.span()
    return None


Curve = tuple[tuple[float, float], ...]
"""A level over time: (share of the length 0 to 1, dB against the loudest)."""

_UP = (
    r"build\w*(?: up| in)?|grow\w*(?= (?:\w+ )?(?:loud|strong|in )| to a|$|[.,])|swell\w*|ris(?:e|es|"
    r"ing)(?! (?:and falling )?"
    r"(?:in pitch|scale|notes?|tone|pitch|arpeggi|melod|line|figure|fifth|third|octave))|intensif\w+|crescendo\w*|"
    r"louder(?: and louder)?|picks? up|picking up|strengthen\w*|mount\w*(?= )|approach\w*|"
    r"com(?:es|ing) (?:closer|nearer|toward\w*)|draw\w* (?:near\w*|closer)|gather\w* (?:force|strength|pace)|"
    r"fad(?:es?|ing) in|"
    r"(?:gets?|getting|becom\w+|grow\w*) (?:\w+ )?(?:loud\w*|strong\w*|fierce\w*)"
)
_DOWN = (
    r"fad(?:es?|ing)(?! in)|d(?:ies|ying|ie)(?: away| down| out| off)?|subsid\w+|sink\w*|ebb\w*|reced\w+|"
    r"(?:quieter|softer|fainter)(?: and \w+)?|diminish\w*|decrescendo|diminuendo|trail\w* off|"
    r"(?:leav|driv|mov|go|pull|speed|head|drift|disappear|vanish|roll)\w* (?:\w+ )?(?:away|off|into the distance)|"
    r"fall(?:s|ing)? (?:away|back|silent|again|off)|(?:and|then) falls?\b|wan(?:es|ing)|drops? (?:away|back|off)|"
    r"dwindl\w+|eas(?:es|ing) off|calm\w* down|settl\w+(?= (?:down|back))|leav(?:es|ing)\b|vanish\w*|disappear\w*|"
    r"dies\b"
)
_MUSIC_UP = (
    r"crescendo\w*|swell\w*|louder(?: and louder)?|fad(?:es?|ing) in|build\w*(?: up| in)?|intensif\w+|"
    r"(?:rises?|rising|grow\w*) in (?:volume|loudness|intensity)|(?:gets?|getting|becom\w+|"
    r"grow\w*) (?:\w+ )?(?:loud\w*|strong\w*)"
)
_MUSIC_DOWN = (
    r"decrescendo|diminuendo|fad(?:es?|ing)(?! in)|d(?:ies|ying) (?:away|down|out)|(?:quieter|softer|"
    r"fainter)(?: and \w+)?|"
    r"subsid\w+|sinks?|sinking|diminish\w*|recedes?|ebb\w*|(?:sinks?|falls?|drops?) (?:back|away)|(?:and|then) falls?\b"
)
_LOUDNESS = (
    (r"whisper\w*|barely audible|inaudibl\w+|pianissimo|very (?:soft|quiet)\w*|faint\w*", -20.0),
    (
        r"soft(?:ly)?|quiet(?:ly)?|hushed|gentl[ey]|murmur\w*|mutter\w*|low voice|calm(?:ly)?|\bpiano(?= to forte)",
        -14.0,
    ),
    (r"normal\w*|ordinary|speaking voice|conversational\w*|moderate\w*", -7.0),
    (r"loud(?:er|ly)?|forte|full voice|forceful\w*|raised voice|gale|roar\w*|thunderous", -1.0),
    (r"shout\w*|yell\w*|scream\w*|bellow\w*|very loud\w*|fortissimo|deafening|top of (?:his|her|their) \w+", 0.0),
)
_PATH = re.compile(
    r"\bfrom\b.{0,60}\bto\b|\bat first\b|\b(?:starts?|starting|begins?|beginning|opens?)\b.{0,90}\b(?:ends?|ending|"
    r"finish\w*|"
    r"clos\w+|until|then|before|but|and|to)\b|\bgradual\w*|\buntil\b|\bwork\w* up\b|\b(?:rises?|builds?|grow\w*|"
    r"gets?|moves?|"
    r"going|goes|climbs?|drops?|falls?|sinks?)\b.{0,30}\bto\b|\bthen\b|\blouder\b|\bsteadily\b"
)


def level_curve(text: str, kind: str = "sound") -> Curve | None:
    """How the level moves: up, down, up and down, or from one named loudness to another; None when it stays. kind:
    speech, sound or music (where "rising" and "falling" are about pitch)."""
    lowered = re.sub(r"\b(?:in|of) (?:the )?pitch\b", "in pitch", text.lower())
    named = (
        _from_to(lowered) if kind != "sound" or re.search(r"\bfrom\b|\bat first\b|\bstart|\bbegin", lowered) else None
    )
    if named is not None:
        return named
    up, down = (_MUSIC_UP, _MUSIC_DOWN) if kind == "music" else (_UP, _DOWN)
    if kind == "speech":
        up, down = rf"{_MUSIC_UP}|ris(?:es|ing) to", _MUSIC_DOWN
    marks = sorted(
        [(m.start(), 1) for m in re.finditer(rf"\b(?:{up})", lowered)]
        + [(m.start(), -1) for m in re.finditer(rf"\b(?:{down})", lowered)]
    )
    way = [sign for i, (_, sign) in enumerate(marks) if i == 0 or marks[i - 1][1] != sign]
    comes_and_goes = re.search(r"\bpass(?:es|ing)?\b|\bcomes and goes\b", lowered)
    if way == [1] and comes_and_goes and re.search(r"\bpass", lowered) and "approach" in lowered:
        way = [1, -1]
    if not way:
        return None
    if way == [1]:
        return ((0.0, -24.0), (1.0, 0.0))
    if way == [-1]:
        return ((0.0, 0.0), (0.25, -2.0), (1.0, -26.0))
    levels = [(-22.0 if sign > 0 else 0.0) for sign in way[:4]] + [0.0 if way[:4][-1] > 0 else -24.0]
    return tuple((i / (len(levels) - 1), level) for i, level in enumerate(levels))


def _from_to(text: str) -> Curve | None:
    if not _PATH.search(text):
        return None
    found: list[tuple[int, float]] = []
    for pattern, level in _LOUDNESS:
        found += [(m.start(), level) for m in re.finditer(rf"\b(?:{pattern})\b", text)]
    levels = [level for _, level in sorted(found)]
    steps = [level for i, level in enumerate(levels) if i == 0 or levels[i - 1] != level]
    if len(steps) < 2 or max(steps) - min(steps) < 6.0:
        return None
    return tuple((i / (len(steps) - 1), level) for i, level in enumerate(steps))
