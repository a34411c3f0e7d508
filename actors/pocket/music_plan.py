"""From a prompt to a plan of a piece: sections in time, each with tempo, key, meter and parts. No notes yet."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from . import english, music_figures, music_names, music_styles
from .english import Key, Meter
from .music_parts import DRUMS, Part, bar_quarters, beat_quarters, parts_of
from .music_styles import Style

MAX_SECONDS = 9.8


@dataclass(frozen=True)
class Section:
    """Some whole bars. bpm: felt beats a minute at its start; bpm_end at its end. silent: a rest for all. new: names of
    parts just entered."""

    parts: tuple[Part, ...]
    bpm: float
    bpm_end: float
    key: Key
    meter: Meter
    bars: int
    theme: int = 0
    silent: bool = False
    level_db: float = 0.0
    swing: bool = False
    stop_time: bool = False


@dataclass(frozen=True)
class Plan:
    """The piece. dynamics: of the whole. ending: cadence, abrupt, fade or ring. seconds: the length asked for.
    curve: how the level moves, or None."""

    sections: tuple[Section, ...]
    dynamics: english.Dynamics
    ending: str
    seconds: float
    curve: english.Curve | None = None


def make_plan(prompt: str, rng: np.random.Generator, seconds: float | None = None) -> Plan:
    """The plan of a prompt. `rng` decides only what the prompt leaves open. seconds: a wanted length, at most 9.8 s."""
    masked = english.mask(prompt)
    said, absent = english.without(masked.text)
    named_seconds = (
        english.duration_s(said) if re.search(r"\b(?:clip|piece|lasting|long|loop|track|for)\b", said) else None
    )
    wanted = seconds or (named_seconds if named_seconds and named_seconds >= 2 else None) or MAX_SECONDS
    wanted = min(wanted, MAX_SECONDS)
    style = music_styles.style(said)
    texts = _section_texts(said)
    base = _base(said, style, rng)
    sections: list[Section] = []
    parts: tuple[Part, ...] = ()
    for index, (text, verb) in enumerate(texts):
        previous = sections[-1] if sections else base
        heading = _section(text, previous, index)
        if verb == "rest":
            sections.append(replace(heading, parts=parts, silent=True))
            continue
        fresh = parts_of(text, style if index == 0 else None, absent, heading.meter, fallback=index == 0)
        parts = _joined(parts, fresh, verb, text)
        sections.append(replace(heading, parts=parts))
    sections = _with_key_change(said, sections)
    sections = _with_tempo_change(said, sections)
    sections = _call_and_response(said, sections)
    exact = _exact_bars(sections)
    if exact is not None:
        sections, ending = [replace(sections[0], bars=exact)], "ring"
    else:
        sections = _fitted(sections, wanted, [_entrance_s(text, sections[0]) for text, _ in texts])
        ending = _ending(said)
    if ending == "cadence" and all(p.role == "figure" for p in sections[-1].parts if p.program != DRUMS):
        ending = "cadence" if all(p.program == DRUMS for p in sections[-1].parts) else "ring"
    dynamics = english.dynamics(said)
    curve = english.level_curve(said, "music")
    if (
        curve is not None
        and not (curve[0][1] < -10 and curve[-1][1] < -10)
        and dynamics.shape in ("fade_in", "fade_out")
    ):
        curve = None  # a plain fade has its own shape
    return Plan(tuple(sections), dynamics, ending, wanted, curve)


def _exact_bars(sections: list[Section]) -> int | None:
    """The bars that a counted pattern takes, where it is all that is played."""
    parts = sections[0].parts
    if len(sections) != 1 or not parts or any(p.figure is None or p.figure.count is None for p in parts):
        return None
    section = sections[0]
    beat_s = 60.0 / section.bpm
    bar_s = bar_quarters(section.meter) / beat_quarters(section.meter) * beat_s
    longest = max(music_figures.total_s(p.figure, beat_s) or 0.0 for p in parts if p.figure)
    return max(1, int(np.ceil(longest / bar_s - 1e-6)))


def _base(text: str, style: Style | None, rng: np.random.Generator) -> Section:
    meter = english.meter(text) or Meter(4, 4)
    tempo = english.tempo(_without_change(text))
    if tempo is not None:
        bpm = tempo.bpm
        if not tempo.exact and re.search(r"\bwaltz|\bjig|\breel|\bpolka", text.lower()):
            bpm = {True: min(bpm * 1.4, 200.0), False: bpm}[meter.beats == 3]
    else:
        bpm = style.bpm if style else 108.0
        if meter.unit == 8:
            bpm = 96.0 if meter.beats % 3 == 0 else 220.0
    if meter.unit == 8 and meter.beats % 3 and bpm < 160:
        bpm *= 2  # named in quarters, felt in eighths
    key = english.key(text)
    if key is None:
        mode = english.mode(text) or (style.mode if style else None) or "major"
        tonic = int(rng.choice([0, 2, 5, 7, 9] if mode == "major" else [9, 2, 4, 0, 7]))
        key = Key(tonic, mode, mode)
    return Section(
        (),
        bpm,
        bpm,
        key,
        meter,
        1,
        swing=bool(style and style.swing) or "swing" in text.lower() or "shuffle" in text.lower(),
    )


def _without_change(text: str) -> str:
    """The text before a change of tempo, so that "starts slow, then fast" reads slow."""
    return (
        re.split(r"\bthen\b|\bbefore\b|\bgradually\b|\baccelerat", text, maxsplit=1)[0]
        if english.tempo(text.split("then")[0])
        else text
    )


_REST = re.compile(r"\b(?:brief |short |sudden |long )?(?:silence|pause|rest|break)\b(?!beat| ?down)", re.IGNORECASE)

_ENTER = re.compile(
    r"\b(?:enters?|joins?|comes? in|kicks? in|added|adds?|start(?:s|ing)?(?: up| playing)?|appears?|layers?|layered|"
    r"drops? in|come in|is joined|joined|arrives?|begins?)\b",
    re.IGNORECASE,
)

_LEAVE = re.compile(
    r"\b(?:drops? out|stops?(?! time)|falls? silent|cuts? out|leaves?|disappears?|fades? (?:out|away)|ends)\b",
    re.IGNORECASE,
)

_ONLY = re.compile(r"\b(?:alone|only|just|solo|by itself|on its own)\b", re.IGNORECASE)


def _section_texts(text: str) -> list[tuple[str, str]]:
    """(text, verb) of each section: start, enter (joins what sounds), leave, swap (takes over), rest, same (says
    more)."""
    found: list[tuple[str, str]] = []
    for element in english.split(text):
        piece, relation = element.text, element.relation
        entering = _ENTER.search(piece) and music_names.find(piece)
        sequential = relation in ("then", "during") or (
            relation == "next_sentence" and (entering or _LEAVE.search(piece))
        )
        late = entering and english.moment(piece) is not None
        if not found or not (sequential or late):
            if found:
                found[-1] = (f"{found[-1][0]}. {piece}", found[-1][1])
            else:
                found.extend(_entering_inside(piece))
            continue
        has_names = bool(music_names.find(piece))
        if _REST.search(piece) and not has_names:
            found.append((piece, "rest"))
        elif _LEAVE.search(piece) and has_names and not entering:
            found.append((piece, "leave"))
        elif has_names and not _ONLY.search(piece) and (entering or re.search(r"\bjoin|\badd", piece.lower())):
            found.append((piece, "enter"))
        elif has_names:
            found.append((piece, "swap"))
        elif _ends(piece) or not _changes(piece):
            found[-1] = (f"{found[-1][0]}. {piece}", found[-1][1])
        else:
            found.append((piece, "change"))
    return found or [(text, "start")]


_TAKES_OVER = re.compile(
    r"^(.*?\w)(?:[,;]| and| but| with|\.)+\s+((?:(?!, | and ).)*?\b(?:tak\w+ over|took over|replac\w+|"
    r"tak\w+ (?:up )?(?:the |its )(?:melody|tune|lead|place|solo|theme)|picks? up the (?:melody|tune|theme)|carries on|"
    r"(?:half ?way|midway|second half|later)\b.*\b(?:plays?|solos?|follows?|continues?|answers?))\b.*)$",
    re.IGNORECASE,
)


def _entering_inside(piece: str) -> list[tuple[str, str]]:
    """In "solo piano with drums entering halfway" the newcomer becomes a section of its own."""
    match = re.search(
        r"^(.*?)(?:,| and| with|;)\s+((?:(?!, | and | with ).)*?\b(?:enter\w*|join\w*|com(?:es|ing) in|kick\w* in|"
        r"add\w*|drop\w* in)\b.*)$",
        piece,
        re.IGNORECASE,
    )
    if match and music_names.find(match.group(1)) and music_names.find(match.group(2)):
        return [(match.group(1), "start"), (match.group(2), "enter")]
    match = _TAKES_OVER.match(piece)
    if match and music_names.find(match.group(1)) and music_names.find(match.group(2)):
        return [(match.group(1), "start"), (match.group(2), "swap")]
    return [(piece, "start")]


def _ends(piece: str) -> bool:
    return bool(re.search(r"\b(?:ends?|ending|fad(?:es?|ing)|stops?|resolv\w+|finish\w*|conclud\w+)\b", piece.lower()))


def _changes(piece: str) -> bool:
    said = (
        english.tempo(piece)
        or english.key(piece)
        or english.meter(piece)
        or english.register(piece)
        or english.comparatives(piece)
    )
    return bool(
        said
        or re.search(
            r"\bmodulat\w+|\bkey\b|\bhalf[- ]time|\bdouble[- ]time|\bloud|\bsoft|\bquiet|\bmajor\b|\bminor\b",
            piece.lower(),
        )
    )


def _section(text: str, previous: Section, index: int) -> Section:
    lowered = text.lower()
    tempo, key, meter = english.tempo(_without_change(text)), english.key(text), english.meter(text)
    bpm = previous.bpm_end
    if index == 0:
        return replace(previous, stop_time="stop-time" in lowered or "stop time" in lowered)
    if tempo is not None:
        bpm = tempo.bpm
    for change in english.comparatives(text):
        if change.property == "speed" and tempo is None:
            bpm *= change.factor or (1.4 if change.direction > 0 else 0.68)
    new_meter = meter or previous.meter
    new_key = key or previous.key
    if key is None and (mode := english.mode(text)) and mode != previous.key.mode:
        new_key = Key(previous.key.tonic, mode, mode)
    level = english.dynamics(text).level_db
    theme = previous.theme + (1 if tempo or key or re.search(r"\bnew\b|\bdifferent\b|\bcontrast", lowered) else 0)
    return replace(
        previous, bpm=bpm, bpm_end=bpm, meter=new_meter, key=new_key, level_db=level, theme=theme, silent=False
    )


def _joined(parts: tuple[Part, ...], fresh: tuple[Part, ...], verb: str, text: str) -> tuple[Part, ...]:
    if verb == "leave":
        gone = {p.name for p in fresh}
        rest = tuple(p for p in parts if p.name not in gone)
        return rest if rest != parts else tuple(p for p in parts if p.program != DRUMS) or parts
    if not fresh:
        return parts
    if verb == "enter":
        sung = any(p.role == "melody" for p in parts)
        fresh = tuple(
            replace(p, role="chords" if p.chordal else "counter")
            if sung and p.role == "melody" and not re.search(r"melod|solo|lead|tune|theme", p.text)
            else p
            for p in fresh
        )
        return parts + tuple(p for p in fresh if p.name not in {q.name for q in parts})
    return fresh


def _with_key_change(text: str, sections: list[Section]) -> list[Section]:
    keys = english.keys(text)
    lowered = text.lower()
    if len(sections) == 1 and len(keys) > 1 and keys[0] != keys[1]:
        return [replace(sections[0], key=keys[0]), replace(sections[0], key=keys[1])]
    if len(sections) == 1 and re.search(
        r"\b(?:key change|modulat\w+|changes? key|shifts? (?:up|key)|transposes?)\b", lowered
    ):
        step = english.amount(text, "semitone") or 2.0
        down = re.search(r"\b(?:modulates?|shifts?|changes?|moves?)\s+(?:\w+\s+)?down", lowered)
        tonic = (sections[0].key.tonic + int(-step if down else step)) % 12
        return [sections[0], replace(sections[0], key=replace(sections[0].key, tonic=tonic))]
    if len(sections) == 1 and re.search(
        r"\bmajor (?:to|into) (?:\w+ )?minor\b|\bminor (?:to|into) (?:\w+ )?major\b", lowered
    ):
        first, second = ("major", "minor") if lowered.find("major") < lowered.find("minor") else ("minor", "major")
        base = sections[0]
        return [replace(base, key=replace(base.key, mode=first)), replace(base, key=replace(base.key, mode=second))]
    return sections


def _with_tempo_change(text: str, sections: list[Section]) -> list[Section]:
    change = english.tempo_change(text)
    if change is None or any(s.bpm != sections[0].bpm for s in sections):
        return sections
    at_end = change < 1 and re.search(r"\b(?:at the end|ritardando|rit|end\w*)\b", text.lower())
    if at_end and len(sections) == 1:
        return [sections[0], replace(sections[0], bpm_end=sections[0].bpm * change)]
    steps = np.linspace(1.0, change, len(sections) + 1)
    return [replace(s, bpm=s.bpm * a, bpm_end=s.bpm * b) for s, a, b in zip(sections, steps, steps[1:])]


def _call_and_response(text: str, sections: list[Section]) -> list[Section]:
    if not re.search(
        r"\bcall[- ]and[- ](?:response|answer)|\bcalls?\b.*\b(?:response|respon\w+|answer\w*)|\btrad(?:e|es|ing)\b|"
        r"\balternat\w+|\bback and forth|\banswers?\b|"
        r"\bresponds?\b|\btak(?:e|ing) turns",
        text.lower(),
    ):
        return sections
    found = []
    for section in sections:
        pitched = [
            p for p in section.parts if p.program != DRUMS and p.role in ("melody", "counter", "chords", "ostinato")
        ]
        turns = {id(p): i for i, p in enumerate(pitched[:2])} if len(pitched) > 1 else {}
        found.append(
            replace(
                section,
                parts=tuple(
                    replace(p, turn=turns.get(id(p)), role="melody" if id(p) in turns else p.role)
                    for p in section.parts
                ),
            )
        )
    return found


def _entrance_s(text: str, first: Section) -> float | None:
    """When a section starts, in seconds, where the text says so ("after two bars", "at the four-second mark")."""
    moment = english.moment(text)
    if moment is not None and not moment.from_end:
        return moment.seconds
    match = re.search(rf"\bafter (?:the first )?({english.NUMBER}) (?:bars?|measures?)\b", text.lower())
    if match and (count := english.number(match.group(1))):
        return count * bar_quarters(first.meter) / beat_quarters(first.meter) * 60.0 / first.bpm
    return None


def _fitted(sections: list[Section], seconds: float, entrances: list[float | None]) -> list[Section]:
    """Bars for each section, so that the whole fills `seconds` without passing it; rests are one bar."""
    lengths = [bar_quarters(s.meter) / beat_quarters(s.meter) * 120.0 / (s.bpm + s.bpm_end) for s in sections]
    bars = [1] * len(sections)
    if len(sections) == 2 and len(entrances) == 2 and entrances[1] is not None:
        bars[0] = max(1, min(round(entrances[1] / lengths[0]), int((seconds - lengths[1]) / lengths[0])))
        bars[1] = max(1, int((seconds - bars[0] * lengths[0]) / lengths[1] + 0.15))
        return [replace(s, bars=n) for s, n in zip(sections, bars)]
    while True:
        used = sum(n * length for n, length in zip(bars, lengths))
        growing = [
            i for i, s in enumerate(sections) if not s.silent and used + lengths[i] <= seconds + 0.15 * lengths[i]
        ]
        if not growing:
            return [replace(s, bars=n) for s, n in zip(sections, bars)]
        bars[min(growing, key=lambda i: (bars[i] * lengths[i], i))] += 1


def _ending(text: str) -> str:
    """How a text says that the music ends."""
    lowered = text.lower()
    if re.search(
        r"\b(?:abrupt\w*|cuts? off|sudden(?:ly)? (?:stop\w*|end\w*|silence)|stops? (?:dead|suddenly)|hard stop|"
        r"mid[- ]phrase)\b",
        lowered,
    ):
        return "abrupt"
    if re.search(r"\bfad(?:es?|ing)(?:[ -]?(?:out|away)| to (?:silence|nothing))|\bfade[- ]?out\b", lowered):
        return "fade"
    if re.search(r"\bloop(?:s|ing|able)?\b", lowered):
        return "abrupt"
    return "cadence"
