"""Names of instruments, percussion and styles, and what General MIDI has for them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Instrument:
    """name: a plain name. pattern: how prompts write it. program: General MIDI, 0 to 127. center: MIDI pitch of its
    usual middle. chordal: it can play chords alone. sustained: its notes hold."""

    name: str
    pattern: str
    program: int
    center: int
    chordal: bool = False
    sustained: bool = True


def _row(name: str, pattern: str, program: int, center: int, kind: str = "") -> Instrument:
    return Instrument(name, pattern, program, center, "c" in kind, "p" not in kind)


# kind: c plays chords, p plucked or struck (its notes die away). Longer names come before shorter ones inside them.
INSTRUMENTS: tuple[Instrument, ...] = (
    _row("electric piano", r"electric pianos?|rhodes|wurlitzer", 4, 64, "cp"),
    _row(
        "honky-tonk piano",
        r"honky[- ]?tonk(?: pianos?)?|saloon pianos?|ragtime pianos?|tack pianos?|player pianos?",
        3,
        67,
        "cp",
    ),
    _row("toy piano", r"toy pianos?|celest[ae]s?", 8, 79, "cp"),
    _row("harpsichord", r"harpsichords?|spinets?", 6, 67, "cp"),
    _row("clavinet", r"clavi(?:net|chord)s?", 7, 62, "cp"),
    _row("music box", r"music(?:al)? box(?:es)?", 10, 82, "cp"),
    _row("glockenspiel", r"glockenspiels?|bell lyra", 9, 86, "p"),
    _row("vibraphone", r"vibraphones?|vibes", 11, 69, "cp"),
    _row("marimba", r"marimbas?|balafons?|gamelans?", 12, 64, "p"),
    _row("xylophone", r"xylophones?", 13, 77, "p"),
    _row("tubular bells", r"tubular bells?|church bells?|chimes|carillon", 14, 67, "p"),
    _row("dulcimer", r"(?:hammered )?dulcimers?|santo?ors?|zithers?|cimbaloms?|psaltery", 15, 69, "cp"),
    _row("church organ", r"(?:church|pipe|cathedral) organs?", 19, 62, "c"),
    _row("reed organ", r"(?:reed|pump) organs?|harmoniums?|melodions?", 20, 64, "c"),
    _row("organ", r"(?:hammond|electric|jazz|rock|drawbar)? ?organs?", 16, 64, "c"),
    _row("bandoneon", r"bandone[oó]ns?|concertinas?", 23, 67, "c"),
    _row("accordion", r"accord(?:ion|ian|eon)s?|squeeze ?box", 21, 67, "c"),
    _row("harmonica", r"harmonicas?|mouth organs?|blues harp", 22, 72),
    _row(
        "distorted guitar",
        r"(?:distort\w*|overdriven|fuzz\w*|heavy|crunchy|metal|rock) (?:electric )?guitars?",
        30,
        55,
        "c",
    ),
    _row("bass guitar", r"(?:electric )?bass guitars?|electric bass(?:es)?|fretless bass", 33, 40, "p"),
    _row("muted guitar", r"(?:palm[- ])?muted (?:electric )?guitars?", 28, 55, "p"),
    _row("electric guitar", r"(?:clean )?electric guitars?|jazz guitars?", 27, 60, "cp"),
    _row("slide guitar", r"(?:slide|steel|lap steel|pedal steel|hawaiian) guitars?", 25, 60, "cp"),
    _row("nylon guitar", r"(?:nylon(?:[- ]string)?|classical|spanish|flamenco) guitars?", 24, 59, "cp"),
    _row("ukulele", r"ukuleles?|ukes?|cuatros?|charangos?", 24, 69, "cp"),
    _row("guitar", r"(?:acoustic |folk |steel[- ]string(?:ed)? |twelve[- ]string )?guitars?", 25, 59, "cp"),
    _row("mandolin", r"mandolins?|bouzoukis?|balalaikas?", 25, 72, "cp"),
    _row("lute", r"lutes?|ouds?|theorbo", 24, 58, "cp"),
    _row("synth bass", r"(?:synth(?:esi[sz]er)?|sub|acid|electronic)[- ]?bass(?:es)?(?: line)?|808s?", 38, 36, "p"),
    _row("contrabass", r"(?:bowed |arco )(?:double |upright )?bass(?:es)?|contrabass(?:es)?", 43, 38),
    _row("upright bass", r"(?:upright|double|acoustic|walking|string|stand[- ]?up|jazz) bass(?:es)?", 32, 40, "p"),
    _row("bass clarinet", r"bass clarinets?", 71, 50),
    _row("bass drum", r"(?!)", 0, 36),
    _row("pizzicato strings", r"pizzicato(?: strings?| violins?)?|plucked strings", 45, 64, "p"),
    _row("tremolo strings", r"tremolo strings?", 44, 64, "c"),
    _row("synth strings", r"synth(?:esi[sz]er)? strings|string pads?", 50, 64, "c"),
    _row("strings", r"(?:string (?:section|orchestra|ensemble)|strings|orchestra)", 48, 64, "c"),
    _row("viola", r"violas?(?! da)", 41, 60),
    _row("cello", r"(?:violon)?cell(?:o|os|i)|viola da gamba", 42, 50),
    _row("fiddle", r"fiddles?|hardanger|hurdy[- ]gurdy", 110, 72),
    _row("violin", r"violins?|erhus?|solo string", 40, 74),
    _row("harp", r"harps?|lyres?|kora", 46, 67, "cp"),
    _row("timpani", r"timpani|kettle ?drums?", 47, 43, "p"),
    _row(
        "choir", r"choirs?|choral|chorus of voices|voices|chant(?:ing)?|vocals?|singers?|aahs?|a cappella", 52, 62, "c"
    ),
    _row("humming voice", r"hum(?:ming|s)?|oohs?|soprano|wordless voice|sung|sing(?:s|ing)?|singer", 53, 67),
    _row("muted trumpet", r"muted trumpets?|harmon mute", 59, 70),
    _row("trumpet", r"trumpets?|cornets?|bugles?|flugelhorns?", 56, 70),
    _row("trombone", r"trombones?|sackbuts?", 57, 53),
    _row("tuba", r"tubas?|sousaphones?|euphoniums?", 58, 41),
    _row("french horn", r"(?:french )?horns?(?! (?:honk|beep))|alphorns?", 60, 58),
    _row("brass section", r"brass(?: section| band| ensemble)?|fanfares?|horn section", 61, 62, "c"),
    _row("soprano sax", r"soprano sax(?:ophone)?s?", 64, 74),
    _row("baritone sax", r"baritone sax(?:ophone)?s?", 67, 50),
    _row("tenor sax", r"tenor sax(?:ophone)?s?", 66, 57),
    _row("alto sax", r"(?:alto )?sax(?:ophone)?s?", 65, 65),
    _row("english horn", r"english horns?|cor anglais", 69, 65),
    _row("oboe", r"oboes?|duduk", 68, 72),
    _row("bassoon", r"bassoons?", 70, 48),
    _row("clarinet", r"clarinets?|chalumeau", 71, 67),
    _row("piccolo", r"piccolos?|fifes?", 72, 88),
    _row("pan flute", r"pan ?(?:flute|pipe)s?|zampoña|siku", 75, 76),
    _row("recorder", r"recorders?", 74, 79),
    _row("shakuhachi", r"shakuhachi|bamboo flutes?|dizi|bansuri|ney", 77, 72),
    _row("tin whistle", r"(?:tin|penny|irish) whistles?", 78, 84),
    _row("whistling", r"whistl(?:e|es|ing)", 78, 81),
    _row("ocarina", r"ocarinas?", 79, 79),
    _row("flute", r"flutes?", 73, 77),
    _row("bagpipes", r"bagpipes?|uilleann pipes", 109, 69),
    _row(
        "chiptune lead",
        r"chip ?tune\w*|8[- ]?bit|square[- ]wave(?: lead| synth)?|video game (?:music|melody|tune)",
        80,
        72,
    ),
    _row(
        "synth pad",
        r"(?:warm |soft |ambient |synth(?:esi[sz]er)? |lush )*pads?|synth(?:esi[sz]er)? (?:drone|chords?|wash)",
        89,
        62,
        "c",
    ),
    _row(
        "synth lead",
        r"(?:synth(?:esi[sz]er)?|saw(?:tooth)?|electronic) (?:leads?|melod(?:y|ies)|arp\w*)|theremins?|lead synth\w*",
        81,
        69,
    ),
    _row("synthesizer", r"synth(?:esi[sz]er)?s?|keyboards?|moog", 81, 67, "c"),
    _row("sitar", r"sitars?|veena|sarod", 104, 62, "p"),
    _row("banjo", r"banjos?", 105, 64, "cp"),
    _row("shamisen", r"shamisens?|pipa|sanshin", 106, 64, "p"),
    _row("koto", r"kotos?|guzhengs?|guqin", 107, 67, "cp"),
    _row("kalimba", r"kalimbas?|mbiras?|thumb pianos?", 108, 74, "p"),
    _row("steel drums", r"steel ?(?:drums?|pans?)|steelpans?", 114, 72, "p"),
    _row("didgeridoo", r"didgeridoos?", 109, 38),
    _row("piano", r"(?:grand |upright |solo )?pianos?|piano", 0, 66, "cp"),
    _row("bass", r"bass(?:es)?(?: line)?s?(?! drum| clarinet| voice| note| register)", 33, 40, "p"),
)

PERCUSSION: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    (
        "drum kit",
        r"drum ?(?:kit|set|beat|machine|groove|pattern|loop)s?|(?<!steel )(?<!hand )(?<!kettle)(?<!snare )(?<!bass "
        r")(?<!taiko )(?<!african )(?<!frame )drums?\b(?! ?roll)|drumm\w+|percussion|beats?(?= (?:enter|start|kick|"
        r"drop|join|come))|backbeat|break ?beat",
        (),
    ),
    ("snare", r"snares?(?: drums?)?|military drums?|drum ?rolls?", (38,)),
    ("kick", r"kick(?: drums?)?|bass drums?", (36,)),
    ("hi-hat", r"hi[- ]?hats?|highhats?", (42,)),
    ("cymbal", r"cymbals?|crash(?:es)?(?= cymbal)", (49,)),
    ("ride", r"ride cymbals?|brush(?:ed|es)?", (51,)),
    (
        "toms",
        r"toms?(?:[- ]toms?)?|taikos?(?: drums?)?|tribal drums?|war drums?|floor toms?|african drums?|frame drums?|"
        r"bodhr[aá]n",
        (41, 45),
    ),
    ("hand drum", r"bongos?|hand drums?|djembes?|tablas?|darbukas?|caj[oó]n|congas?", (60, 61)),
    ("clap", r"(?:hand ?)?claps?|clapping", (39,)),
    ("snap", r"finger snaps?|snap(?:s|ping)", (37,)),
    ("tambourine", r"tambourines?", (54,)),
    ("shaker", r"shakers?|maracas?|egg shakers?|rattles?", (70,)),
    ("cowbell", r"cow ?bells?|agogo", (56,)),
    ("triangle", r"triangles?", (81,)),
    ("wood block", r"wood ?blocks?|claves?|castanets?|metronomes?", (76,)),
    ("sleigh bells", r"sleigh bells|jingle bells", (54,)),
    ("gong", r"gongs?|tam[- ]tams?", (52,)),
)

"""Unpitched percussion: name, pattern, General MIDI drum notes (empty: a whole kit)."""


@dataclass(frozen=True)
class Named:
    """An instrument found in a text at `start`; percussion has `drum_notes` (empty: the kit) and no instrument."""

    start: int
    end: int
    name: str
    instrument: Instrument | None
    drum_notes: tuple[int, ...] = ()


def find(text: str) -> tuple[Named, ...]:
    """Every instrument and percussion of a text, in order, longest names first, none inside another."""
    lowered = text.lower()
    taken = [False] * (len(lowered) + 1)
    found: list[Named] = []
    table: list[tuple[str, str, Instrument | None, tuple[int, ...]]] = [
        (name, pattern, None, notes) for name, pattern, notes in PERCUSSION if name != "drum kit"
    ]
    table += [(i.name, i.pattern, i, ()) for i in INSTRUMENTS]
    table += [(name, pattern, None, notes) for name, pattern, notes in PERCUSSION if name == "drum kit"]
    for name, pattern, instrument, notes in table:
        for match in re.finditer(rf"\b(?:{pattern})(?!\w)", lowered):
            if match.group().strip() and not any(taken[match.start() : match.end()]):
                taken[match.start() : match.end()] = [True] * (match.end() - match.start())
                found.append(Named(match.start(), match.end(), name, instrument, notes))
    return tuple(sorted(found, key=lambda n: n.start))


def instrument(name: str) -> Instrument:
    """The instrument of that name."""
    return next(i for i in INSTRUMENTS if i.name == name)


def is_music(text: str) -> bool:
    """Whether a phrase asks for music: it names an instrument played as such, a style as music, or a musical word."""
    lowered = text.lower()
    strong = (
        r"\bmusic(?:al|ian|ians)?\b(?! box(?:es)? (?:open|clos))|\bmelod(?:y|ies|ic)\b|\bchords?\b|\bbpm\b|\btune\b|"
        r"\bsong\b|\bsonata\b|\bwaltz\b|\bjazz\w*\b|"
        r"\borchestra\w*\b|\btempo\b|\barpeggi\w+\b|\bostinato\b|\bbass ?line\b|\briff\b|\blullaby\b|\bsymphon\w+|"
        r"\bband (?:play|start)\w*|\bfanfare\b|\bmarching band\b|"
        r"\b(?:rock|pop|techno|house|blues|funk|reggae|folk|metal|punk|ambient|electronic) (?:music|track|song|beat|"
        r"groove|piece|band)\b|\bdrum ?(?:beat|kit|groove|solo|loop)\b|\b[a-g](?:[ -](?:flat|sharp))? (?:major|"
        r"minor)\b"
    )
    if re.search(strong, lowered):
        return True
    weak = {
        "whistling",
        "humming voice",
        "bass",
        "tubular bells",
        "choir",
        "french horn",
        "clap",
        "snap",
        "shaker",
        "gong",
        "triangle",
        "organ",
        "wood block",
        "cowbell",
        "recorder",
        "harp",
    }
    names = [n for n in find(text) if n.name not in weak]
    return bool(names)
