"""A scene: the items of a prompt rendered, placed in time and space, and mixed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from torus_ray.audio import Clip

from . import english, music, scene_change, scene_level, scene_lines, scene_read, scene_sound, space, speech
from .scene_read import Item, Reading
from .speech import Line

RATE_HZ = 44_100
LONGEST_S = 10.0
_GAP_S = {"speech": 0.32, "sound": 0.3, "music": 0.15, "silence": 0.0}
_LEAD_S, _TAIL_S = 0.1, 0.2
"""Room before and after speech, so that nothing of a word is cut."""


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
    spoken = any(p.item.kind == "speech" and not p.bed for p in placed)
    if spoken and seconds is None and max(p.end for p in placed) < limit - 0.02:
        placed = _with_room(placed, limit)
    return Clip(_mixed(placed, limit), RATE_HZ)


def _with_room(placed: list[Placed], limit: float) -> list[Placed]:
    """With a little silence before the first word and after the last; beds keep to the whole."""
    lead = min(_LEAD_S, limit - max(p.end for p in placed))
    moved = [p if p.bed else replace(p, start=p.start + lead) for p in placed]
    end = min(limit, max(p.end for p in moved) + _TAIL_S)
    last = max((p for p in moved if not p.bed), key=lambda p: p.end)
    silence = np.zeros((last.wave.shape[0], max(0, round((end - last.end) * RATE_HZ))), np.float32)
    return [replace(p, wave=np.concatenate([p.wave, silence], axis=1)) if p is last else p for p in moved]


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
    lines = scene_lines.lines_of(reading, rngs[-1], limit)
    between = _between_s(reading)
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
            cursor, gap = _heard_end(found, cursor) + _silence_s(item), 0.0
            continue
        if beds[i]:
            continue
        wave = fixed.get(i)
        if wave is None:
            wave = _wave(item, (), _length_in_turn(item, share, len(items), limit, seconds), rngs[i])
        stated = _stated_gap_s(item, between)
        if stated is not None and found:
            start_from, wait = _heard_end(found, cursor), max(0.0, stated - _quiet_start_s(wave))
            found[-1] = replace(found[-1], wave=scene_level.silenced(found[-1].wave, start_from - found[-1].start))
        else:
            start_from, wait = cursor, gap if found else 0.0
            if i and items[i - 1].kind == "silence" and found:
                start_from = cursor - _quiet_start_s(wave)
                heard = _heard_end(found, cursor)
                found[-1] = replace(found[-1], wave=scene_level.silenced(found[-1].wave, heard - found[-1].start))
        start = _start(item, start_from, previous_start, wait, limit)
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
            if items[i].relation == "background" and not moment:
                begin = 0.0
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
    if re.search(r"\bimmediately\b|\bright after\b|\bat once\b|\binterrupt", item.text.lower()):
        wait = 0.03
    elif moment is not None and item.relation == "first":
        wait = moment.seconds if not moment.from_end else 0.0
    return cursor + wait


def _between_s(reading: Reading) -> float | None:
    """The silence that the prompt states between all its parts ("with two seconds of silence between them")."""
    if len([i for i in reading.items if i.kind != "silence"]) < 2 or any(i.kind == "silence" for i in reading.items):
        return None
    match = re.search(
        r"[^.;]*\b(?:between|after)\s+(?:each|every|them|the|one|both)\b[^.;]*", reading.whole, re.IGNORECASE
    )
    return english.pause_s(match.group()) if match else None


def _stated_gap_s(item: Item, between: float | None) -> float | None:
    """The silence stated before an item: of its own ("after a long pause, a man says"), else the scene's."""
    if item.relation in ("together", "during", "background", "first"):
        return None
    own = re.search(
        r"\bafter (?:an?|another|about|around|half|\w+ seconds?)\b[^.,]*\b(?:pause|silence|gap|beat|moment|quiet)\b|"
        r"^\W*(?:an?|another) [^.,]*\b(?:pause|silence|gap)\b|\b(?:an?|\w+ seconds?) (?:\w+ )?(?:pause|"
        r"silence) (?:later|before)",
        item.text.lower(),
    )
    if own:
        return english.pause_s(own.group()) or 0.7
    return between


def _heard_end(found: list[Placed], cursor: float) -> float:
    """Where what sounds last falls silent."""
    ends = [p.start + scene_level.heard_s(p.wave)[1] for p in found if p.end >= cursor - 1e-6]
    return max(ends, default=cursor)


def _quiet_start_s(wave: np.ndarray) -> float:
    return scene_level.heard_s(wave)[0]


def _silence_s(item: Item) -> float:
    moment = english.moment(item.text)  # "after two seconds of silence"
    said = english.duration_s(item.text) or english.pause_s(item.text)
    return moment.seconds if moment and not english.duration_s(item.text) else said or 0.9


def _own_length(item: Item) -> float | None:
    return (
        english.duration_s(item.text)
        if item.kind == "sound" and english.interval_s(item.text) is None and english.repetition(item.text) is None
        else None
    )


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
    spoken = item.kind == "speech"
    return _in_place(_spoken(item, lines, rng) if spoken else scene_sound.render(item.text, seconds, rng), item)


def _spoken(item: Item, lines: tuple[Line, ...], rng: np.random.Generator) -> np.ndarray:
    """The lines one after the other, with the pauses stated between them; the whole again where "n times" is said."""
    text = item.text.lower()
    waves = [speech.render(line, rng) for line in lines]
    gap = (english.pause_s(item.text) if len(lines) > 1 else None) or 0.35
    times = english.count(item.text) if re.search(r"\btimes\b|\btwice\b|\bthrice\b", text) else None
    again = english.repetition(item.text)
    if len(lines) == 1 and waves and ((again and again.count) or (times and times > 1)):
        times = min((again.count if again else None) or times or 1, 12)
        if again:
            room = max(0.05, again.gap_s - (np.subtract(*speech.active(waves[0], RATE_HZ)[::-1])) / RATE_HZ)
        else:
            room = english.pause_s(item.text) or english.interval_s(item.text) or 0.4
        return speech.joined(waves * times, [room] * (times - 1), RATE_HZ)
    wave = speech.joined(waves, [gap] * (len(waves) - 1), RATE_HZ)
    return wave if wave.size else np.zeros(1, np.float32)


def _in_place(wave: np.ndarray, item: Item) -> np.ndarray:
    text = item.text
    room = space.room_of(text)
    device = room is not None and space.ROOMS[room].drive > 0
    if item.kind == "speech" and device:
        room = None  # the voice went through the device already
    distance, pan = english.distance(text), english.pan(text)
    movement = None
    lowered = text.lower()
    if distance and distance.moving and scene_level.comes_and_goes(lowered):
        movement = "passing"
    elif distance and distance.moving:
        movement = distance.moving
    elif scene_level.comes_and_goes(lowered) or re.search(
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
    if movement is not None:  # at its nearest as loud as it would stand still
        near = float(np.abs(placed).max(initial=0.0))
        placed = placed * np.float32(min(float(np.abs(wave).max(initial=0.0)) / max(near, 1e-9), 30.0))
    return placed[:1] if np.allclose(placed[0], placed[-1], atol=1e-6) else placed


def _music_in_place(wave: np.ndarray, text: str) -> np.ndarray:
    room, distance = space.room_of(text), english.distance(text)
    if distance and distance.meters > 2 and not distance.moving:
        wave = np.stack([space.farther(channel, distance.meters) for channel in wave])
    if room and room != "dry":
        wave = space.reverberated(wave, room)
    return wave.astype(np.float32)


# --- mixing ----------------------------------------------------------------------------------------------------------


def _mixed(placed: list[Placed], limit: float) -> np.ndarray:
    """All items at their places and levels: float32 (channels, frames), peak at most 0.98."""
    end = min(limit, max((p.end for p in placed), default=0.5))
    channels = max((p.wave.shape[0] for p in placed), default=1)
    out = np.zeros((channels, max(1, round(end * RATE_HZ))), np.float64)
    voice_db = scene_level.voice_db([p.wave for p in placed if p.item.kind == "speech" and not p.bed])
    alone = all(p.bed for p in placed)
    for p in placed:
        start = round(p.start * RATE_HZ)
        wave = p.wave[:, : max(0, out.shape[1] - start)]
        gain = 1.0
        if p.bed and not alone:
            gain = 10 ** (scene_level.bed_gain_db(p.wave, p.item.text, voice_db) / 20)
        edge = min(wave.shape[1], 1323)
        if start + wave.shape[1] >= out.shape[1] and edge:
            wave = wave.copy()
            wave[:, -edge:] *= np.linspace(1, 0, edge, dtype=np.float32)
        out[:, start : start + wave.shape[1]] += gain * wave
    peak = float(np.abs(out).max(initial=0.0))
    return (out * (0.98 / peak if peak > 0.98 else 1.0)).astype(np.float32)
