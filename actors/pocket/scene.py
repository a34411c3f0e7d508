"""A scene: the items of a prompt rendered, placed in time and space, and mixed."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from torus_ray.audio import Clip

from . import english, music, scene_change, scene_read, sound, space, speech
from .scene_read import Item, Reading
from .speech import Line
from .voices import Voice

RATE_HZ = 44_100
LONGEST_S = 10.0
_GAP_S = {"speech": 0.32, "sound": 0.3, "music": 0.15, "silence": 0.0}
_BED_DB = {"music": -13.0, "sound": -8.0, "speech": -12.0}
_BED_UNDER_SOUND_DB = -5.0


@dataclass(frozen=True)
class Placed:
    """An item with its sound, float32 (channels, frames), and its start in seconds. bed: it lies under the others."""

    item: Item
    wave: np.ndarray
    start: float
    bed: bool = False

    @property
    def end(self) -> float:
        return self.start + self.wave.shape[1] / RATE_HZ


def render_scene(prompt: str, audio_type: str, seed: int, words: str | None = None) -> Clip:
    """The clip of a prompt: 44.1 kHz, mono or stereo, at most 10 s. The same arguments give the same samples.

    audio_type: speech, sound or music: what an ambiguous phrase is taken for; each may hold all three. words: what is
    said when the prompt quotes nothing.
    """
    described = scene_change.resolve(prompt)
    reading = scene_read.read(described, audio_type, words)
    return _rendered(reading, seed, None)


def render_element(phrase: str, audio_type: str, seed: int, seconds: float | None = None) -> Clip:
    """One more element, for an editor to mix in: as :func:`render_scene`, with a wanted length for what can last
    (music, textures)."""
    reading = scene_read.read(phrase, audio_type)
    return _rendered(reading, seed, seconds)


def _rendered(reading: Reading, seed: int, seconds: float | None) -> Clip:
    rng = np.random.default_rng([seed, 0x5CE4E])
    limit = min(LONGEST_S, seconds or _whole_length(reading.whole) or LONGEST_S)
    placed = _placed(reading, limit, seconds, rng)
    return Clip(_mixed(placed, limit), RATE_HZ)


def _whole_length(text: str) -> float | None:
    """The length of the whole clip, when the prompt names it ("a ten-second clip")."""
    match = re.search(
        rf"({english.NUMBER})[- ]seconds?(?:[- ]long)?\s+(?:\w+\s+)?(?:clip|recording|scene|audio|soundscape|piece|"
        rf"track|loop)\b",
        text.lower(),
    )
    return english.number(match.group(1)) if match else None


# --- time ------------------------------------------------------------------------------------------------------------


def _placed(reading: Reading, limit: float, seconds: float | None, rng: np.random.Generator) -> list[Placed]:
    items = list(reading.items)
    rngs = rng.spawn(len(items) + 1)
    lines = _lines(reading, rngs[-1], limit)
    beds = [_is_bed(items, i) for i in range(len(items))]
    fixed: dict[int, np.ndarray] = {}
    for i, item in enumerate(items):
        if not item.flexible and item.kind in ("speech", "sound"):
            fixed[i] = _wave(item, lines.get(i, ()), _own_length(item), rngs[i])
    used = sum(
        w.shape[-1] / RATE_HZ + 0.3
        for i, w in fixed.items()
        if not beds[i] and items[i].relation not in ("together", "during", "background")
    )
    in_turn = [i for i, item in enumerate(items) if item.flexible and not beds[i]]
    share = max(1.5, (limit - used - 0.3 * len(in_turn)) / max(1, len(in_turn)))
    found: list[Placed] = []
    cursor = previous_start = 0.0
    gap = 0.0
    for i, item in enumerate(items):
        if item.kind == "silence":
            cursor += _silence_s(item)
            continue
        if beds[i]:
            continue
        wave = fixed.get(i)
        if wave is None:
            wave = _wave(item, (), _length_in_turn(item, share, len(items), limit, seconds), rngs[i])
        start = _start(item, cursor, previous_start, gap if found else 0.0, limit)
        if item.relation == "during" and found:
            start = found[-1].start + 0.45 * (found[-1].end - found[-1].start)
        placed = Placed(item, wave, min(start, max(0.0, limit - 0.5)))
        found.append(placed)
        cursor = max(cursor, placed.end)
        if item.relation not in ("together", "during"):
            previous_start = placed.start
        gap = _GAP_S[item.kind]
    end = _scene_end(found, items, limit, seconds)
    for i, item in enumerate(items):
        if beds[i] and item.kind != "silence":
            begin = _bed_start(items, i, found)
            moment = english.moment(item.text)
            begin = moment.seconds if moment and not moment.from_end else begin
            length = english.duration_s(item.text) or end - begin
            wave = _wave(item, lines.get(i, ()), min(length, limit - begin), rngs[i])
            found.append(Placed(item, wave, begin, bed=True))
    return found


def _is_bed(items: list[Item], index: int) -> bool:
    """Whether an item lies under others: said so, or it can last and something sounds with it or is told after it
    without "then"."""
    item = items[index]
    if item.relation == "background":
        return len(items) > 1
    if not item.flexible or english.duration_s(item.text) is not None:
        return False
    if item.relation == "together":
        return True
    later = items[index + 1 :]
    if not later:
        return False
    return later[0].relation in ("together", "during") or (
        later[0].relation == "next_sentence" and item.relation in ("first", "next_sentence")
    )


def _bed_start(items: list[Item], index: int, found: list[Placed]) -> float:
    """A bed that joins in later starts with what it joins."""
    if items[index].relation != "together":
        if items[index].relation in ("then", "next_sentence") and index:
            before = [p.end for p in found if any(p.item is item for item in items[:index])]
            return max(before, default=0.0) if items[index].relation == "then" else 0.0
        return 0.0
    before = [p.start for p in found if any(p.item is item for item in items[:index])]
    return before[-1] if before else 0.0


def _scene_end(found: list[Placed], items: list[Item], limit: float, seconds: float | None) -> float:
    end = max((p.end for p in found), default=0.0)
    if seconds or not found:
        return min(limit, seconds or max(end, 8.0))
    only_beds_sound = any(item.relation == "background" or item.flexible for item in items)
    return min(limit, max(end + (0.8 if only_beds_sound else 0.0), 5.0 if only_beds_sound else 0.0))


def _start(item: Item, cursor: float, previous_start: float, gap: float, limit: float) -> float:
    moment = english.moment(item.text)
    if moment is not None and item.relation != "first" and not re.search(r"\b(?:pause|silence)\b", item.text.lower()):
        return max(0.0, limit - moment.seconds) if moment.from_end else moment.seconds
    if item.relation in ("together", "background"):
        return previous_start
    wait = gap
    match = re.search(
        r"\b(?:after|following) (?:a|an)\b[^.,]*\b(?:pause|silence|gap|beat|moment)\b|^(?:a|an) [^.,]*\b(?:pause|"
        r"silence)\b",
        item.text.lower(),
    )
    if match:
        wait = english.duration_s(re.sub(r"^after\s", "", match.group())) or (
            0.6 if "short" in match.group() or "brief" in match.group() else 1.2
        )
    elif re.search(r"\bimmediately\b|\bright after\b|\bat once\b|\binterrupt", item.text.lower()):
        wait = 0.03
    elif moment is not None and item.relation == "first":
        wait = moment.seconds if not moment.from_end else 0.0
    return cursor + wait


def _silence_s(item: Item) -> float:
    short = re.search(r"\b(?:short|brief)\b", item.text.lower())
    moment = english.moment(item.text)  # "after two seconds of silence"
    return english.duration_s(item.text) or (moment.seconds if moment else 0.6 if short else 1.2)


def _own_length(item: Item) -> float | None:
    return english.duration_s(item.text) if item.kind == "sound" and english.interval_s(item.text) is None else None


def _length_in_turn(item: Item, share: float, count: int, limit: float, seconds: float | None) -> float | None:
    said = english.duration_s(item.text)
    if said is not None:
        return min(said, limit)
    if count == 1:
        return seconds or (None if item.kind == "music" else min(limit, 7.0))
    return min(share, 6.0 if item.kind == "music" else 3.2)


# --- sound -----------------------------------------------------------------------------------------------------------


def _wave(item: Item, lines: tuple[Line, ...], seconds: float | None, rng: np.random.Generator) -> np.ndarray:
    """The item as float32 (channels, frames) where it stands in the room; mono stays one channel."""
    if item.kind == "music":
        return _music_in_place(music.render(item.text, seconds, rng), item.text)
    if item.kind == "speech":
        pieces: list[np.ndarray] = []
        for line in lines:
            pieces += [speech.render(line, rng), np.zeros(int(0.35 * RATE_HZ), np.float32)]
        wave = np.concatenate(pieces[:-1]) if pieces else np.zeros(1, np.float32)
        times = english.count(item.text) if re.search(r"\btimes\b|\btwice\b|\bthrice\b", item.text.lower()) else None
        if times and times > 1 and len(lines) == 1:
            rest = np.zeros(int((english.interval_s(item.text) or 0.4) * RATE_HZ), np.float32)
            wave = np.concatenate([wave, *([rest, wave] * (min(times, 4) - 1))])
    else:
        wave = sound.render_event(item.text, seconds, rng)
    return _in_place(wave, item)


def _in_place(wave: np.ndarray, item: Item) -> np.ndarray:
    text = item.text
    room = space.room_of(text)
    device = room is not None and space.ROOMS[room].drive > 0
    if item.kind == "speech" and device:
        room = None  # the voice went through the device already
    distance, pan = english.distance(text), english.pan(text)
    movement = None
    if distance and distance.moving:
        movement = distance.moving
    elif re.search(
        r"\b(?:pass(?:es|ing)?|driv(?:es|ing)|fl(?:ies|ying)|zoom\w*|rush\w*|speed\w*|whoosh\w*|rac(?:es|ing)) "
        r"(?:by|past|overhead)\b",
        text.lower(),
    ):
        movement = "passing"
    elif pan and pan.start != pan.end:
        movement = "left to right" if pan.start < pan.end else "right to left"
    if room is None and distance is None and pan is None and movement is None:
        return wave[np.newaxis, :]
    placed = space.place(
        wave, distance.meters if distance and not movement else 1.0, room, pan.start if pan else 0.0, movement
    )
    return placed[:1] if np.allclose(placed[0], placed[-1], atol=1e-6) else placed


def _music_in_place(wave: np.ndarray, text: str) -> np.ndarray:
    room, distance = space.room_of(text), english.distance(text)
    if distance and distance.meters > 2 and not distance.moving:
        wave = np.stack([space.farther(channel, distance.meters) for channel in wave])
    if room and room != "dry":
        wave = space.reverberated(wave, room)
    return wave.astype(np.float32)


# --- voices ----------------------------------------------------------------------------------------------------------


def _lines(reading: Reading, rng: np.random.Generator, limit: float) -> dict[int, tuple[Line, ...]]:
    """The lines of each speech item: who says what, and how."""
    said = [(i, item) for i, item in enumerate(reading.items) if item.kind == "speech"]
    people: list[english.Speaker | None] = []
    who: list[list[int]] = []
    for _, item in said:
        speakers = _speakers_of(item)
        numbers = [_identify(speaker, people, item.text) for speaker in speakers]
        count = max(1, len(item.quotes))
        who.append([numbers[n % len(numbers)] for n in range(count)])
    voices = speech.cast(people or [None], rng)
    seconds = sum(len(" ".join(item.quotes).split()) / 2.7 + 0.3 for _, item in said)
    hurry = float(np.clip(seconds / (limit - 0.3), 1.0, 1.5)) if limit > 1 else 1.0
    return {
        i: tuple(
            _line(item, quote, voices[number], reading, hurry)
            for quote, number in zip(item.quotes or (_invented(item),), numbers)
        )
        for (i, item), numbers in zip(said, who)
    }


def _speakers_of(item: Item) -> list[english.Speaker | None]:
    """One speaker, or two where a dialogue's quotes follow each other ("a man and a woman talk: ..., ...")."""
    if len(item.quotes) >= 2:
        parts = re.split(r"\s+and\s+|\s+to\s+(?=an?\b)", item.text)
        found = [
            s
            for s in (english.speaker(part) for part in parts[:3])
            if s is not None and not re.match(r"^(?:he|she|his|her)$", s.label)
        ]
        if len(found) >= 2 and (found[0].sex, found[0].age) != (found[1].sex, found[1].age):
            return list(found[:2])
    return [item.speaker]


def _identify(speaker: english.Speaker | None, people: list[english.Speaker | None], text: str) -> int:
    """The number of a speaker among those met so far; a new one is added."""
    if people:
        if speaker is None:
            return len(people) - 1
        other = re.search(
            rf"\b(?:another|second|other|different|third|new)\b[\w\s-]{{0,20}}{re.escape(speaker.label)}", text.lower()
        )
        if not other:
            pronoun = re.fullmatch(r"he|she|him|her|his|himself|herself|it|they", speaker.label)
            loose = pronoun or speaker.label in ("voice", "speaker", "person", "someone", "somebody")
            for i in range(len(people) - 1, -1, -1):
                known = people[i]
                if known is None or (speaker.sex and known.sex and speaker.sex != known.sex):
                    continue
                if loose and (pronoun or re.search(rf"\bthe (?:same )?{speaker.label}\b", text.lower())):
                    return i
                if known.label == speaker.label and known.age == speaker.age and known.register == speaker.register:
                    return i
    people.append(speaker)
    return len(people) - 1


def _line(item: Item, quote: str, voice: Voice, reading: Reading, hurry: float) -> Line:
    text = item.text
    manners = english.manners(_without_places(text))
    device = space.room_of(text)
    if device in ("telephone", "radio", "megaphone"):
        manners = (
            *(m for m in manners if m not in ("telephone", "radio")),
            "telephone" if device == "telephone" else "radio",
        )
    rate = hurry
    strong = english.degree(text)
    if {"fast", "slow"} & set(manners) and strong != 1.0:
        rate *= {True: 1.0 + 0.14 * np.sign(strong - 1), False: 1.0 - 0.12 * np.sign(strong - 1)}["fast" in manners]
    pause = None
    if (
        re.search(r"\bpaus(?:e|es|ing)\b|\bsilence between\b|\bgap between\b", text.lower())
        and "without" not in text.lower()
    ):
        pause = english.duration_s(text) or (1.5 if "long" in text.lower() else 0.9)
    return Line(quote, voice, tuple(dict.fromkeys(manners)), float(rate), 0.0, pause, reading.stressed)


def _without_places(text: str) -> str:
    """Without the words that are about the surroundings, not the voice ("a quiet room")."""
    return re.sub(
        r"\b(?:in|inside|from|at) (?:a|an|the) (?:\w+[ -]){0,3}(?:room|hall|street|cafe|park|church|cathedral|"
        r"kitchen|office|place|house|library|cave)\b",
        " ",
        text,
    )


def _invented(item: Item) -> str:
    """What somebody says of whom no words are given: a plain sentence from the prompt's own content."""
    match = re.search(
        r"\b(?:about|of|on|describing|explaining|announcing|discussing)\s+((?:[\w'-]+\s*){1,8})", item.text
    )
    topic = match.group(1).strip() if match else ""
    greets = re.search(r"\bgreet|\bwelcom|\bintroduc", item.text.lower())
    if greets:
        return "Hello, and welcome."
    if re.search(r"\bcount", item.text.lower()):
        return "One, two, three, four, five."
    return f"Let me tell you about {topic}." if topic else "This is what I wanted to tell you."


# --- mixing ----------------------------------------------------------------------------------------------------------


def _mixed(placed: list[Placed], limit: float) -> np.ndarray:
    """All items at their places and levels: float32 (channels, frames), peak at most 0.98."""
    end = min(limit, max((p.end for p in placed), default=0.5))
    channels = max((p.wave.shape[0] for p in placed), default=1)
    out = np.zeros((channels, max(1, round(end * RATE_HZ))), np.float64)
    kinds = {p.item.kind for p in placed if not p.bed}
    for p in placed:
        start = round(p.start * RATE_HZ)
        wave = p.wave[:, : max(0, out.shape[1] - start)]
        gain = 10 ** (_bed_gain_db(p, kinds) / 20)
        edge = min(wave.shape[1], 1323)
        if start + wave.shape[1] >= out.shape[1] and edge:
            wave = wave.copy()
            wave[:, -edge:] *= np.linspace(1, 0, edge, dtype=np.float32)
        out[:, start : start + wave.shape[1]] += gain * wave
    peak = float(np.abs(out).max(initial=0.0))
    return (out * (0.98 / peak if peak > 0.98 else 1.0)).astype(np.float32)


def _bed_gain_db(placed: Placed, kinds: set[str]) -> float:
    if not placed.bed or not kinds:
        return 0.0
    usual = _BED_DB[placed.item.kind] if "speech" in kinds else _BED_UNDER_SOUND_DB
    loud = re.search(r"\bloud|\bheavy|\bblar|\broar|\bdeafen", placed.item.text.lower())
    return usual + (5.0 if loud else 0.0)
