"""Who plays what: from the words about a section to its parts, each an instrument with a job."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from . import english, music_figures, music_names, music_styles
from .english import Meter
from .music_figures import Figure
from .music_names import Named
from .music_styles import Style

DRUMS = -1

"""The program of a part for unpitched percussion."""


@dataclass(frozen=True)
class Part:
    """One instrument with one job.

    role: melody, counter, chords, waltz, offbeat, stride, arpeggio, bass, walking, pulse, drone, ostinato, sparse,
    scale, repeated, tremolo, figure or drums. program: General MIDI, or DRUMS. center: middle pitch. contour: +1
    rising, -1 falling, 0 free. groove: the name of a drum groove, or None with `drum_notes`. voices: how many play it
    (harmonised in thirds). text: what the prompt says. figure: the pattern described, for that role.
    """

    name: str
    program: int
    role: str
    center: int
    chordal: bool
    articulation: str | None = None
    contour: int = 0
    groove: str | None = None
    drum_notes: tuple[int, ...] = ()
    voices: int = 1
    level_db: float = 0.0
    turn: int | None = None
    text: str = ""
    figure: Figure | None = None


def beat_quarters(meter: Meter) -> float:
    """The felt beat in quarter notes: a dotted quarter in 6/8, 9/8, 12/8, else a note of the meter's unit (an eighth
    counts as half)."""
    if meter.unit == 8 and meter.beats % 3 == 0 and meter.beats > 3:
        return 1.5
    return 4.0 / meter.unit if meter.unit <= 4 else 0.5


def bar_quarters(meter: Meter) -> float:
    """A bar in quarter notes."""
    return meter.beats * 4.0 / meter.unit


_ROLES: tuple[tuple[str, str], ...] = (
    (r"call[- ]and[- ]response|answers?|responds?|trad(?:es?|ing)", "melody"),
    (r"walking(?: bass)?", "walking"),
    (r"arpeggi\w*|broken chords|finger[- ]?pick\w*|rippling|cascading", "arpeggio"),
    (r"off[- ]?beats?|up[- ]?strokes?|skank\w*", "offbeat"),
    (
        r"drone|droning|(?:single |one )?(?:sustained|held|long|continuous) (?:note|tone|chord|drone)|pedal (?:note|"
        r"tone|point)",
        "drone",
    ),
    (
        r"ostinato|riffs?|repeat(?:ed|ing|s)? (?:\w+[- ])?(?:figure|pattern|motif|phrase|riff|notes? pattern)|"
        r"loop\w*|vamp\w*",
        "ostinato",
    ),
    (r"tremolo|trill\w*", "tremolo"),
    (r"(?:repeat(?:ed|s|ing)?|same|single) (?:\w+ )?note|one note|pulsing|pulse", "repeated"),
    (
        r"scales?|runs? (?:up|down)|run up|glissando|(?:ascending|descending|rising|falling) (?:notes|line|run|figure)",
        "scale",
    ),
    (r"bass ?lines?|bass part|bass notes|low end", "bass"),
    (
        r"chords?|strum\w*|harmon(?:y|ies|ize\w*)|comp(?:s|ing)?\b|pads?|accompan\w*|block|background|backing|chord "
        r"progression|stabs?|beneath|under(?:neath)?",
        "chords",
    ),
    (r"sparse|occasional|isolated|scattered", "sparse"),
    (r"counter[- ]?melod\w*|descant|second voice", "counter"),
    (r"melod\w*|leads?|solo\w*|tune|theme|line|sings?|plays? a|air\b|phrase", "melody"),
)

_CHORDS_BY_STYLE = {"waltz": "waltz", "ragtime": "stride"}

_PROGRAM_PLUCKED = {40: 45, 41: 45, 42: 45, 48: 45, 43: 45, 110: 45}


def parts_of(text: str, style: Style | None, absent: tuple[str, ...], meter: Meter, fallback: bool) -> tuple[Part, ...]:
    named = [n for n in music_names.find(text) if not _is_absent(n.name, absent)]
    # "bass" right before "line" by another instrument is a role, not an instrument
    parts: list[Part] = []
    edges = [n.start for n in named] + [len(text)]
    for index, item in enumerate(named):
        before = text[named[index - 1].end if index else 0 : item.start]
        after = text[item.end : edges[index + 1]]
        parts.append(_part(item, before, after, text, [n.name for n in named], meter, style))
    parts = _merged(parts)
    has_drums = any(p.program == DRUMS for p in parts)
    melodic = [p for p in parts if p.program != DRUMS]
    solo = bool(re.search(r"\b(?:solo|alone|unaccompanied|only|just|a single|lone|by itself|no other)\b", text.lower()))
    only_drums = (
        has_drums and not melodic and (solo or not style or re.search(r"\bdrum|\bpercussion|\bbeat", text.lower()))
    )
    shape = music_figures.figure(text)
    if not melodic and fallback and shape is not None and not has_drums:
        piano = music_names.instrument("piano")
        parts.append(_shaped(Part("piano", piano.program, "figure", piano.center, True, figure=shape), text))
    elif not melodic and fallback and not only_drums:
        for spec in (style or music_styles.DEFAULT_STYLE).instruments:
            name, _, role = spec.partition(":")
            if not _is_absent(name, absent):
                found = music_names.instrument(name)
                parts.append(_shaped(Part(name, found.program, role, found.center, found.chordal), text))
        if style and style.groove and not has_drums and not _is_absent("drum", absent) and not solo:
            parts.append(Part("drum kit", DRUMS, "drums", 0, False, groove=style.groove))
    elif (
        len(melodic) == 1
        and melodic[0].chordal
        and melodic[0].role in ("", "melody")
        and not re.search(
            r"\bmelody (?:only|alone)\b|\bsingle[- ]note|\bmonophonic|\bone hand|\bunaccompanied|\bone note at a time",
            text.lower(),
        )
    ):
        # One keyboard or plucked instrument plays its own accompaniment.
        style_role = _CHORDS_BY_STYLE.get(style.name if style else "", "waltz" if meter.beats == 3 else "chords")
        role = "bass" if melodic[0].name in ("organ", "accordion") else style_role
        parts[parts.index(melodic[0])] = replace(melodic[0], role="melody")
        parts.append(replace(melodic[0], role=role, center=melodic[0].center - 12, level_db=-6.0, voices=1))
    return tuple(_roles_spread(parts))


def _is_absent(name: str, absent: tuple[str, ...]) -> bool:
    stem = name.split()[-1].rstrip("s")
    return any(stem in thing or (name == "drum kit" and re.search(r"drum|percussion|beat", thing)) for thing in absent)


def _part(item: Named, before: str, after: str, text: str, names: list[str], meter: Meter, style: Style | None) -> Part:
    own = re.split(
        r"[.;]|,(?! \w+ing)|\band (?!response)|\bwith\b|\bwhile\b|\bover\b|\bplus\b|\bthen\b", after, maxsplit=1
    )[0]
    lead_in = re.split(r"[.;,]|\band (?!response)|\bwith\b|\bwhile\b|\bplus\b|\bthen\b", before)[-1]
    near = f"{lead_in} {text[item.start : item.end]} {own}".lower()
    if item.instrument is None:
        if item.drum_notes:
            return Part(item.name, DRUMS, "drums", 0, False, drum_notes=item.drum_notes, text=near)
        groove = _groove(text) or (style.groove if style else None) or ("swing" if style and style.swing else "rock")
        return Part("drum kit", DRUMS, "drums", 0, False, groove=groove, text=near)
    instrument = item.instrument
    role = next((r for pattern, r in _ROLES if re.search(rf"\b(?:{pattern})\b", near.replace(item.name, ""))), None)
    if role is None and len(set(names)) == 1:
        role = next((r for pattern, r in _ROLES if re.search(rf"\b(?:{pattern})\b", text.lower())), None)
    if role is None:
        role = (
            "bass" if ("bass" in item.name and item.name != "bass clarinet") or item.name in ("tuba", "timpani") else ""
        )
    alone = len(set(names)) == 1
    shape = music_figures.figure(text if alone else near)
    if shape is not None:
        role = "figure"
    if role == "drone" and not instrument.sustained:
        role = "repeated"
    voices = (english.count(lead_in) if shape is None else None) or 1
    voices = max(voices, 2 if re.search(r"\bduet|\bduo|\btwo[- ]part|\bharmon(?:y|ies)\b", near) else 1)
    voices = max(voices, 3 if re.search(r"\btrio|\bthree[- ]part", near) else 1)
    part = Part(
        instrument.name,
        instrument.program,
        role,
        instrument.center,
        instrument.chordal,
        voices=min(voices, 4),
        text=near,
        figure=shape,
    )
    return _shaped(part, near if len(set(names)) > 1 else text)


def _shaped(part: Part, text: str) -> Part:
    lowered = text.lower()
    register, articulation = english.register(lowered), english.articulation(lowered)
    shift = {"very_low": -24, "low": -13, "mid": 0, "high": 12, "very_high": 19}.get(register or "mid", 0)
    absolute = {"very_low": 36, "low": 46, "high": 80, "very_high": 88}.get(register or "", part.center)
    center = part.center
    if shift < 0:
        center = max(min(part.center - 4, absolute), part.center - 22, 31)
    elif shift > 0:
        center = min(max(part.center + 5, absolute), part.center + 20, 96)
    contour = 0
    if re.search(r"\b(?:ascend\w*|rising|rises|upward\w*|climb\w*|goes up|going up|low to high)\b", lowered):
        contour = 1
    if re.search(r"\b(?:descend\w*|falling|falls|downward\w*|goes down|going down|high to low)\b", lowered):
        contour = -1
    program = part.program
    if articulation == "pizzicato" and program in _PROGRAM_PLUCKED:
        program = _PROGRAM_PLUCKED[program]
    level = english.dynamics(lowered).level_db / 2
    return replace(
        part,
        center=center,
        contour=contour,
        articulation=articulation or part.articulation,
        program=program,
        level_db=part.level_db + level,
    )


def _merged(parts: list[Part]) -> list[Part]:
    """The same instrument named twice with one job is one part; its descriptions add up."""
    found: list[Part] = []
    for part in parts:
        same = next(
            (
                i
                for i, p in enumerate(found)
                if p.name == part.name and (p.role == part.role or not part.role or not p.role)
            ),
            None,
        )
        if same is None:
            found.append(part)
            continue
        old = found[same]
        found[same] = replace(
            old,
            role=old.role or part.role,
            contour=old.contour or part.contour,
            articulation=old.articulation or part.articulation,
            groove=old.groove or part.groove,
        )
    return found


def _roles_spread(parts: list[Part]) -> list[Part]:
    """Parts without a stated job: the first takes the melody, the next chords or a counter-melody."""
    has_melody = any(p.role in ("melody", "scale", "arpeggio", "ostinato", "figure") for p in parts)
    found: list[Part] = []
    for part in parts:
        if part.role:
            found.append(part)
            continue
        if not has_melody:
            has_melody, role = True, "melody"
        else:
            role = "chords" if part.chordal else "counter"
        found.append(replace(part, role=role))
    return found


def _groove(text: str) -> str | None:
    lowered = text.lower()
    table = (
        (r"four[- ]on[- ]the[- ]floor|techno|house|disco|dance|kick on every beat", "four on the floor"),
        (r"bossa|samba", "bossa"),
        (r"latin|salsa", "latin"),
        (r"reggae|ska", "reggae"),
        (r"hip[- ]?hop|trap|lo[- ]?fi|boom bap", "hip hop"),
        (r"funk\w*", "funk"),
        (r"break ?beat|drum (?:and|&|n) bass|jungle", "breakbeat"),
        (r"swing|jazz\w*", "swing"),
        (r"shuffle|blues", "shuffle"),
        (r"march\w*|military", "march"),
        (r"polka", "polka"),
        (r"rock|backbeat|metal|punk", "rock"),
    )
    return next((name for pattern, name in table if re.search(rf"\b(?:{pattern})\b", lowered)), None)
