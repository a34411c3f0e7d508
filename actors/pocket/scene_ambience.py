"""What surrounds a speaker: the places and weather a description names, as phrases for sound.match_by_words."""

from __future__ import annotations

import re

from . import english

_AT = (
    r"(?:in|into|through|by|beside|near|next to|at|on|under|over|above|against|amid|amidst|among|with|inside|"
    r"outside in|during|"
    r"despite|from|while|as|where|across|along|behind|beneath)"
)
# What is named -> what is heard there.
_PLACES: tuple[tuple[str, str], ...] = (
    (r"thunder ?storm", "heavy rain with thunder"),
    (r"(?:pouring |heavy |light |gentle |steady |driving )*(?:rain(?:s|ing|fall|storm)?|downpour|drizzle)\b", "{0}"),
    (r"(?:strong |howling |light |cold |gusty |high )*(?:winds?|breeze|gale|blizzard)\b", "{0}"),
    (r"storm\b", "strong wind and rain"),
    (r"waterfall", "waterfall"),
    (r"(?:babbling |running |rushing |small )*(?:stream|brook|creek|river)\b", "stream"),
    (r"(?:sea|ocean|shore|seaside|surf|waves|beach)\b", "ocean waves"),
    (r"(?:camp ?fire|fire ?place|bon ?fire|log fire|crackling fire|fireside)\b", "crackling fire"),
    (
        r"(?:busy |crowded |noisy |city |main )*(?:street|road|highway|motorway|traffic|intersection|crossroads)\b",
        "traffic",
    ),
    (
        r"(?:busy |crowded |noisy |lively |bustling |packed |full )*(?:caf[eé]|restaurant|bar|pub|party|market|"
        r"market ?place|"
        r"canteen|lobby|crowd|crowded \w+|train station|railway station|airport|mall|food court|people talking|"
        r"chatter|babble)\b",
        "crowd murmur",
    ),
    (r"(?:stadium|arena|football match|sports? (?:match|game))\b", "cheering crowd"),
    (r"(?:cheering|roaring) (?:crowd|fans)", "cheering crowd"),
    (r"applause", "applause"),
    (r"(?:crickets|summer night|night insects|cicadas)\b", "crickets chirp"),
    (r"(?:birds(?:ong)?|forest|woods|garden|meadow|park)\b", "birdsong"),
    (r"(?:factory|workshop|machines|machinery)\b", "factory machines"),
    (r"(?:helicopter)\b", "helicopter"),
    (r"(?:airplane|aeroplane|plane|jet) (?:cabin|engine)", "plane engine"),
    (r"(?:moving|rattling|speeding) train|train (?:carriage|car|compartment)", "train rattles"),
    (r"(?:playground|school ?yard)\b", "children playing"),
    (r"(?:static|radio noise)\b", "static"),
    (r"(?:sirens?)\b", "siren"),
    (r"(?:office|keyboards?|typing)\b(?! (?:voice|door))", "typing"),
    (r"(?:air conditioner|fan|ventilat\w+|air conditioning)\b", "fan hum"),
    (r"engine\b", "car engine idling"),
)
# Places that only sound when the text says that they are lively.
_QUIET = re.compile(r"\b(?:quiet|empty|silent|still|deserted|calm)\s+(?:\w+\s+){0,2}$")
_NEEDS_LIFE = frozenset(("traffic", "crowd murmur", "typing", "birdsong", "car engine idling"))
_LIFE = re.compile(
    r"\b(?:busy|crowded|noisy|lively|bustling|packed|full|loud|traffic|crowd|chatter|babble|birds\w*|typing|keyboards?|"
    r"machines|noise|sounds?|background|running|idling|party|market|caf[eé]|restaurant|pub|station|forest)\b"
)


def around(text: str) -> tuple[str, ...]:
    """The sounds of the surroundings that a description of a speaker names, as short phrases; () when it names none."""
    lowered = english.without(text)[0].lower()
    found: list[str] = []
    taken: list[tuple[int, int]] = []
    for pattern, heard in _PLACES:
        match = re.search(
            rf"\b{_AT}\s+(?:(?:an?|the|some|all|of|his|her|\w+ing|very|sound|sounds|noise|it)\s+){{0,4}}?({pattern})",
            lowered,
        )
        match = match or re.search(
            rf"\b({pattern})\s+(?:is |are )?(?:in the background|behind|around|outside|falls?|falling|blow\w*|"
            rf"crash\w*|crackl\w*)",
            lowered,
        )
        if match is None or any(a < match.end(1) and match.start(1) < b for a, b in taken):
            continue
        before = lowered[: match.start(1)]
        if _QUIET.search(before) or _QUIET.search(match.group() + " "):
            continue
        if heard in _NEEDS_LIFE and not _LIFE.search(lowered):
            continue
        taken.append(match.span(1))
        phrase = heard.format(match.group(1))
        faint = re.search(
            r"\b(?:faint\w*|distant|soft\w*|quiet\w*|gentl[ey]|loud\w*|deafening|roaring|barely)\s+(?:\w+\s+){0,2}$",
            before,
        )
        found.append(f"{faint.group().split()[0]} {phrase}" if faint else phrase)
    return tuple(found)
