"""How much louder or softer an instruction wants something, in dB, and the frequency it names, in Hz."""

from __future__ import annotations

import re

import numpy as np

from . import english

_LOUDNESS = r"(?:volume|level|loudness|gain|amplitude|sound level|intensity|output)s?"
_WHOSE = r"(?:the |its |his |her |their |this |that |of |overall |whole |entire |total |general |master |[\w-]+'s )*"
_HALF = r"(?:half|50 ?%|50 percent|fifty percent)"
_BARE = r"(?:the |its |in |by |to |at |about |around |roughly |only |of )*"

_SHARES: tuple[tuple[str, float], ...] = (
    (r"(?:one|a) quarter|quartered|25 ?%|25 percent|twenty[- ]five percent", 0.25),
    (r"(?:one|a) third", 1 / 3),
    (r"two[- ]thirds", 2 / 3),
    (r"three[- ]quarters", 0.75),
    (rf"{_HALF}|halv(?:e|es|ed|ing)", 0.5),
    (r"(?:one|a) tenth", 0.1),
    (r"doubl(?:e|es|ed|ing)|twice|two times", 2.0),
    (r"tripl(?:e|es|ed|ing)|three times|thrice", 3.0),
    (r"quadrupl(?:e|es|ed|ing)|four times", 4.0),
)


def about_level(text: str) -> bool:
    """Whether a clause speaks of nothing but how loud something is: its "low", "soft" and "half" are no filter and no
    tempo."""
    speaks = re.search(rf"\b{_LOUDNESS}\b|\bloud\w*\b|\bquiet\w*\b|\bsofter\b|\bdecibels?\b|\bdb\b", text)
    other = re.search(
        r"\b(?:muffl\w*|filter\w*|low[- ]?pass|high[- ]?pass|pitch\w*|tempo|speed|faster|slower|bass|treble|"
        r"frequenc\w*|hertz|k?hz|bright\w*|distort\w*|tremolo|puls\w*|sea level|distan\w*|far|away|closer|nearer|"
        r"room|echo\w*|reverb\w*|through|behind|like|as if|tone)\b",
        text,
    )
    return bool(speaks) and not other


def gain_db(text: str) -> float | None:
    """The change of level by a factor that a clause names: "halve the overall volume" and "half as loud" -6, "twice as
    loud" +6, "to a quarter of its level" -12, "20 percent quieter" -1.9; None when it names no factor of loudness."""
    percent = re.search(rf"({english.NUMBER}) ?(?:percent|%)", text)
    loud = re.search(rf"\b(?:{_LOUDNESS}|loud(?:er|ness|ly)?|quiet(?:er|ly)?|soft(?:er|ly)?|fainter)\b", text)
    if not loud or english.amount(text, "dB") is not None:
        return None
    if percent:
        value = (english.number(percent.group(1)) or 100.0) / 100
        before = text[: percent.start()].rstrip()
        down = re.search(
            r"\b(?:quiet\w*|soft\w*|lower\w*|less|reduc\w*|decreas\w*|down|drop\w*|cut\w*|fainter)\b", text
        )
        factor = value if re.search(r"\b(?:to|at)$", before) else 1 - value if down else 1 + value
        return float(20 * np.log10(max(factor, 0.003)))
    for pattern, factor in _SHARES:
        said = re.search(
            rf"(?<!first )(?<!second )(?<!last )(?<!latter )(?<!other )\b(?:{pattern})\b"
            r"(?! (?:second|minute|a second|way|an hour))",
            text,
        )
        if not said or not _tied(text, said):
            continue
        inverse = factor > 1 and re.search(
            r"\b(?:as|times) (?:quiet|soft|faint)|\b(?:quieter|softer|fainter)\b", text[said.start() :]
        )
        return float(20 * np.log10(1 / factor if inverse else factor))
    return None


def _tied(text: str, said: re.Match[str]) -> bool:
    """Whether a share belongs to a word of loudness: "half the volume", "volume by half", "half as loud"."""
    after, before = text[said.end() :], text[: said.start()]
    return bool(
        re.match(rf" {_WHOSE}(?:\w+ ){{0,2}}{_LOUDNESS}\b", after)
        or re.match(r" (?:as|times as) (?:loud|quiet|soft|faint)", after)
        or re.match(r" (?:louder|quieter|softer|fainter)", after)
        or re.search(rf"\b(?:{_LOUDNESS}|loud\w*|quieter|softer)\b(?: \w+){{0,5}}? {_BARE}$", before)
    )


def turned(text: str) -> int:
    """+1 or -1 for "turn/bring ... up/down" said of a source, else 0."""
    said = re.search(
        r"\b(?:turn\w*|crank\w*|dial\w*|bring\w* (?:the|all|it|them|everything|its)) (?:[\w'-]+ )*?"
        r"(up|down)\b(?! (?:an? )?(?:\w+ )?(?:octave|semitone|note|step))",
        text,
    )
    if said is None or re.search(r"\b(?:pitch|tempo|speed|bpm|upside|key|tune)\b", text):
        return 0
    return 1 if said.group(1) == "up" else -1


# --- frequencies ------------------------------------------------------------------------------------------------------

_THOUSANDS = re.compile(rf"\b({english.NUMBER}|a) thousand(?: (?:and )?({english.NUMBER}))?\b")
_FREQUENCY = re.compile(
    rf"(?P<value>{english.NUMBER})(?: point (?P<tenths>{english.NUMBER}))?[ -]?"
    r"(?P<unit>k(?:ilo)? ?hertz|khz|k(?= |$|,)|hertz|hz|cycles(?: per second)?)",
)


def frequencies_hz(text: str) -> tuple[tuple[int, float], ...]:
    """(place in the text, Hz) of every frequency in digits or words: "1.5 kHz", "two kilohertz", "one point two
    kilohertz", "five hundred hertz", "2,500 Hz", "two thousand hertz", "1k"."""
    plain = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.lower())
    plain = re.sub(
        rf"\b(between|from) ({english.NUMBER}) (and|to) ({english.NUMBER})(?= ?(k?hz|hertz|kilohertz))",
        r"\1 \2 \5 \3 \4",
        plain,
    )
    plain = re.sub(r"\bhundred and (?!a (?:half|quarter))", "hundred ", plain)
    plain = re.sub(r"\bhalf a (?=kilo|khz)", "0.5 ", plain)
    plain = re.sub(r"\b(?:a|one) and a half (?=kilo|khz)", "1.5 ", plain)
    plain = re.sub(r"\ba (?=kilohertz|khz)", "1 ", plain)
    plain = _THOUSANDS.sub(_thousands, plain)
    found = []
    for match in _FREQUENCY.finditer(plain):
        value = english.number(match.group("value")) or 0.0
        if match.group("tenths"):
            digits = f"{english.number(match.group('tenths')) or 0:.0f}"
            value += float(f"0.{digits}")
        hz = value * (1000.0 if match.group("unit").startswith("k") else 1.0)
        if 10.0 <= hz <= 24000.0:
            found.append((match.start(), hz))
    return tuple(found)


def _thousands(match: re.Match[str]) -> str:
    value = 1000 * (1.0 if match.group(1) == "a" else english.number(match.group(1)) or 0.0)
    return f"{value + (english.number(match.group(2)) or 0.0 if match.group(2) else 0.0):g}"


_ABOVE = r"(?:above|over|beyond|higher than|greater than|upwards? of|past|from)"
_BELOW = r"(?:below|under|beneath|lower than|less than|up to|underneath)"
_PASSES = (
    r"\b(?:keep\w*|leav\w+ (?:only|just)|only|pass(?:es|ing)?|retain\w*|preserv\w*|let(?:s|ting)?\b.*\bthrough|"
    r"just the|nothing (?:but|except)|isolat\w*|low[- ]pass|high[- ]pass)\b"
)


def cut_of(text: str) -> tuple[float, float] | None:
    """The band [low, high] in Hz that a clause lets through: "cut everything above two kilohertz" (0, 2000), "keep only
    what lies below 500 Hz" (0, 500), "nothing under 300 hertz" (300, top); None when it names no cut."""
    named = frequencies_hz(text)
    if not named or re.search(r"\b(?:sine|tone at|tone of|beep|whistle|pitch|tuned)\b", text):
        return None
    top = 22050.0
    span = re.search(r"\b(?:between|from|band[- ]?pass\w*|band of)\b", text)
    if len(named) >= 2 and span:
        return min(hz for _, hz in named[:2]), max(hz for _, hz in named[:2])
    hz = named[0][1]
    if re.search(r"\blow[- ]?pass\w*", text):
        return 0.0, hz
    if re.search(r"\bhigh[- ]?pass\w*", text):
        return hz, top
    above, below = re.search(rf"\b{_ABOVE}\b", text), re.search(rf"\b{_BELOW}\b", text)
    if not above and not below:
        if re.search(r"\b(?:highs|high (?:end|frequenc\w*|tones|notes)|treble)\b", text):
            return 0.0, hz
        if re.search(r"\b(?:lows|low (?:end|frequenc\w*|tones)|bass)\b", text):
            return hz, top
        return None
    upper = bool(above) and (not below or above.start() < below.start())
    nothing = re.search(r"\b(?:nothing|no \w+|none|without)\b", text) and not re.search(
        r"\bnothing (?:but|except)", text
    )
    passes = bool(re.search(_PASSES, text)) and not nothing
    removes = re.search(r"\b(?:cut|remov|filter|roll|tak|strip|attenuat|kill|drop|delet|eliminat|get rid)\w*", text)
    if passes and not (removes and not re.search(r"\b(?:only|just)\b.*\b(?:remain|left|pass)", text)):
        upper = not upper
    if not passes and re.search(r"\b(?:boost|louder|amplif|rais|quieter|softer)\w*", text):
        return None
    return (0.0, hz) if upper else (hz, top)
