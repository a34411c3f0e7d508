"""Styles of music, and what each implies where a prompt is silent."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """What a style implies where the prompt is silent. instruments: names of INSTRUMENTS, with roles after a colon."""

    name: str
    pattern: str
    instruments: tuple[str, ...]
    bpm: float
    groove: str | None = None
    mode: str | None = None
    swing: bool = False


STYLES: tuple[Style, ...] = (
    Style(
        "metal",
        r"(?:heavy |death |thrash )?metal",
        ("distorted guitar:ostinato", "bass guitar:bass"),
        152,
        "rock",
        "minor",
    ),
    Style("punk", r"punk", ("distorted guitar:chords", "bass guitar:bass"), 176, "rock", "major"),
    Style(
        "rock",
        r"rock(?:abilly)?(?! (?:guitar|organ))",
        ("distorted guitar:chords", "electric guitar:melody", "bass guitar:bass"),
        126,
        "rock",
    ),
    Style(
        "swing",
        r"swing|big band",
        ("brass section:chords", "tenor sax:melody", "upright bass:walking"),
        150,
        "swing",
        "major",
        True,
    ),
    Style(
        "jazz", r"jazz\w*|bebop", ("piano:chords", "alto sax:melody", "upright bass:walking"), 126, "swing", None, True
    ),
    Style(
        "blues",
        r"blues\w*",
        ("electric guitar:melody", "piano:chords", "bass guitar:walking"),
        92,
        "shuffle",
        "blues",
        True,
    ),
    Style(
        "funk", r"funk\w*", ("clavinet:ostinato", "bass guitar:bass", "electric guitar:offbeat"), 108, "funk", "dorian"
    ),
    Style(
        "reggae",
        r"reggae|ska|dub\b",
        ("electric guitar:offbeat", "organ:melody", "bass guitar:bass"),
        78,
        "reggae",
        "major",
    ),
    Style(
        "bossa nova",
        r"bossa(?: nova)?",
        ("nylon guitar:chords", "flute:melody", "upright bass:bass"),
        128,
        "bossa",
        "major",
    ),
    Style(
        "latin",
        r"samba|salsa|mambo|rumba|cha[- ]cha|latin|mariachi|calypso|cumbia",
        ("piano:ostinato", "trumpet:melody", "bass guitar:bass"),
        112,
        "latin",
    ),
    Style(
        "tango",
        r"tango",
        ("bandoneon:melody", "violin:counter", "piano:chords", "upright bass:bass"),
        116,
        None,
        "minor",
    ),
    Style("flamenco", r"flamenco", ("nylon guitar:melody", "nylon guitar:chords"), 132, None, "phrygian"),
    Style(
        "country",
        r"country(?! road)|bluegrass|hoedown|western",
        ("banjo:arpeggio", "fiddle:melody", "guitar:chords", "upright bass:bass"),
        124,
        None,
        "major",
    ),
    Style(
        "celtic",
        r"celtic|irish|scottish|jigs?|reels?(?! )",
        ("fiddle:melody", "tin whistle:melody", "guitar:chords"),
        118,
        None,
        "dorian",
    ),
    Style("polka", r"polka|oom[- ]?pah", ("accordion:melody", "tuba:bass", "clarinet:melody"), 120, "polka", "major"),
    Style(
        "march",
        r"march(?:ing band)?|parade|military",
        ("brass section:melody", "piccolo:melody", "tuba:bass"),
        116,
        "march",
        "major",
    ),
    Style("waltz", r"waltz(?:es)?", ("strings:melody", "piano:waltz"), 140, None),
    Style("ragtime", r"ragtime", ("honky-tonk piano:melody", "honky-tonk piano:stride"), 100, None, "major"),
    Style(
        "circus",
        r"circus|carnival|merry[- ]go[- ]round|carousel",
        ("organ:melody", "tuba:bass", "organ:offbeat"),
        150,
        None,
        "major",
    ),
    Style(
        "drum and bass",
        r"drum (?:and|&|n|'n') bass|dnb|jungle(?= (?:beat|music))",
        ("synth bass:bass", "synth pad:chords"),
        174,
        "breakbeat",
        "minor",
    ),
    Style(
        "techno",
        r"techno|rave|edm|electro(?:nic)? dance|trance|dance music|club",
        ("synth bass:offbeat", "synth lead:ostinato", "synth pad:chords"),
        130,
        "four on the floor",
        "minor",
    ),
    Style(
        "house",
        r"house(?= (?:music|beat|track|groove))|disco",
        ("electric piano:offbeat", "bass guitar:bass", "strings:melody"),
        120,
        "four on the floor",
    ),
    Style(
        "hip hop",
        r"hip[- ]?hop|trap|rap(?= beat)|lo[- ]?fi|boom bap",
        ("electric piano:chords", "synth bass:bass"),
        86,
        "hip hop",
        "minor",
        True,
    ),
    Style(
        "synthwave",
        r"synth[- ]?wave|synth[- ]?pop|80s|eighties",
        ("synth bass:pulse", "synth pad:chords", "synth lead:melody"),
        112,
        "rock",
        "minor",
    ),
    Style(
        "electronic",
        r"electronic\w*|synth music",
        ("synth lead:melody", "synth bass:bass", "synth pad:chords"),
        118,
        "four on the floor",
    ),
    Style(
        "ambient",
        r"ambient|atmospheric|meditat\w+|new age|drone music|ethereal|dreamy",
        ("synth pad:chords", "vibraphone:sparse"),
        62,
        None,
    ),
    Style("lullaby", r"lullab(?:y|ies)|cradle song", ("music box:melody", "music box:arpeggio"), 76, None, "major"),
    Style(
        "fanfare",
        r"fanfare|royal|regal",
        ("trumpet:melody", "brass section:chords", "timpani:bass"),
        108,
        None,
        "major",
    ),
    Style("hymn", r"hymn\w*|gospel|chorale|sacred", ("choir:chords", "church organ:chords"), 76, None, "major"),
    Style(
        "horror",
        r"horror|suspense\w*|thriller|spooky|creepy",
        ("tremolo strings:drone", "piano:sparse", "cello:ostinato"),
        72,
        None,
        "phrygian",
    ),
    Style(
        "epic",
        r"epic|cinematic|trailer|heroic|orchestral|film (?:score|music)|symphon\w+",
        ("strings:ostinato", "french horn:melody", "cello:bass", "timpani:bass"),
        100,
        None,
    ),
    Style(
        "baroque",
        r"baroque|minuet|renaissance|medieval",
        ("harpsichord:arpeggio", "recorder:melody", "cello:bass"),
        104,
        None,
    ),
    Style(
        "string quartet",
        r"string quartet|chamber",
        ("violin:melody", "violin:counter", "viola:chords", "cello:bass"),
        96,
        None,
    ),
    Style(
        "classical",
        r"classical(?! guitar)|sonata|nocturne|etude|romantic",
        ("piano:melody", "piano:arpeggio"),
        96,
        None,
    ),
    Style("indian", r"indian|raga|bollywood", ("sitar:melody", "reed organ:drone"), 96, "hand", "mixolydian"),
    Style(
        "east asian",
        r"chinese|japanese|oriental|east asian",
        ("koto:arpeggio", "shakuhachi:melody"),
        88,
        None,
        "pentatonic",
    ),
    Style("african", r"african|tribal", ("marimba:ostinato", "kalimba:melody"), 112, "hand", "pentatonic"),
    Style("hawaiian", r"hawaiian|tropical|island", ("ukulele:chords", "steel drums:melody"), 108, None, "major"),
    Style("folk", r"folk\w*|singer[- ]songwriter|campfire|acoustic", ("guitar:arpeggio", "fiddle:melody"), 104, None),
    Style(
        "pop",
        r"pop(?: song| music| tune)?|jingle|corporate|commercial",
        ("piano:chords", "synth lead:melody", "bass guitar:bass"),
        116,
        "rock",
        "major",
    ),
    Style(
        "lounge",
        r"lounge|elevator|smooth",
        ("electric piano:chords", "alto sax:melody", "upright bass:bass"),
        88,
        "bossa",
    ),
)

DEFAULT_STYLE = Style("plain", r"", ("piano:melody", "piano:chords"), 108, None)


def style(text: str) -> Style | None:
    """The style a text names first in the table's order, or None."""
    lowered = text.lower()
    return next((s for s in STYLES if re.search(rf"\b(?:{s.pattern})\b", lowered)), None)
