"""From evidence to words: the facts of a clip as sentences, and a paragraph from which a generator could render it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .events import shape_scores
from .reading import Asked
from .sources import clear_sources
from .traits_level import ending, pitch_five, regularity
from .traits_music import TEMPO_WORDS, articulation, register
from .traits_place import brightness, distance, material, medium, room, side, tonality
from .traits_voice import feeling, manner, sex_scores

if TYPE_CHECKING:
    from .listen import Evidence

NUMBER_WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
NOTHING = Asked("", ())
MANNERS = {
    "whisper": "in a whisper",
    "shout": "shouting",
    "sung": "singing",
    "laugh": "laughing",
    "cry": "crying",
    "hesitant": "haltingly, with pauses",
    "hurried": "fast",
    "slow": "slowly",
    "monotone": "in a monotone",
    "animated": "in a lively, expressive way",
    "plain": "in an even, ordinary way",
}
TEMPO_BANDS = {
    "grave": "very slow",
    "slow": "slow",
    "walking": "walking-pace",
    "moderate": "moderate",
    "lively": "lively",
    "fast": "fast",
    "presto": "very fast",
}
REGISTERS = {"lowest": "very low", "low": "low", "middle": "middle", "high": "high", "highest": "very high"}
MELODIES = {
    "up": "The melody rises.",
    "down": "The melody falls.",
    "hump": "The melody rises and then falls.",
    "valley": "The melody falls and then rises.",
}
GLIDES = {
    "up": "Its pitch rises.",
    "down": "Its pitch falls.",
    "hump": "Its pitch rises and then falls.",
    "valley": "Its pitch falls and then rises.",
}
LEVELS = {
    "up": "It grows louder.",
    "down": "It fades and becomes softer.",
    "hump": "It swells and then dies away.",
    "valley": "It dips and then grows again.",
    "steady": "The loudness stays steady.",
}
PLACES = {
    "dry": "a dry, dead space",
    "small": "a small room",
    "medium": "a medium-sized room",
    "large": "a large, echoing hall",
    "huge": "a huge, cathedral-like space",
}
DISTANCES = {"near": "It is close.", "middle": "It is at a moderate distance.", "far": "It is far away."}
SIDES = {
    "left": "It is on the left.",
    "right": "It is on the right.",
    "to right": "It moves from left to right.",
    "to left": "It moves from right to left.",
}
STROKES = {"dark": "dull, low thud", "medium": "short knock", "bright": "sharp, bright click"}
RINGS = {"dark": "low, ringing stroke", "medium": "short, ringing tone", "bright": "high, bright, ringing tone"}
NOISES = {"dark": "a low, dull rumble", "medium": "a rushing, mid-range noise", "bright": "a steady, bright hiss"}
TONES = {"dark": "a low hum", "medium": "a clear, mid-range tone", "bright": "a high, bright tone"}
COLOURS = {"dark": "low, dull", "medium": "mid-range", "bright": "bright, high"}
SPACINGS = {
    "regular": "evenly spaced",
    "irregular": "unevenly spaced",
    "faster": "coming faster and faster",
    "slower": "coming slower and slower",
}
MATERIALS = {"skin": "a drum skin", "cloth": "something soft", "gravel": "gravel", "water": "water"}


def number(count: int, noun: str) -> str:
    """A small number in words with its noun: three knocks, one knock."""
    word = NUMBER_WORDS[count] if 0 <= count < len(NUMBER_WORDS) else str(count)
    plural = "" if count == 1 else "es" if noun.endswith(("ch", "sh", "s")) else "s"
    return f"{word} {noun}{plural}"


def spelled(text: str) -> str:
    """A transcript with lone small figures in words, as they are said."""
    return re.sub(r"\b(1[0-2]|[1-9])\b(?![:.,]\d)", lambda m: NUMBER_WORDS[int(m[0])], text)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def best(scores: Mapping[str, float], among: Mapping[str, str] | None = None) -> str:
    """The likeliest value, of those that have words."""
    allowed = {k: v for k, v in scores.items() if among is None or k in among}
    return max(allowed, key=lambda k: allowed[k])


def _when(start: float, stop: float, duration: float) -> str:
    if start < 0.15 * duration and stop > 0.85 * duration:
        return "throughout"
    if start < 0.2 * duration:
        return "at the start"
    return "at the end" if stop > 0.8 * duration else "in the middle"


def _turns(evidence: Evidence, names: list[str]) -> list[str]:
    """One sentence a turn: who says what."""
    facts: list[str] = []
    met: set[int] = set()
    for turn in evidence.voice.turns:
        said = " ".join(
            w.text
            for w in evidence.speech.words
            if turn.start_s - 0.05 <= (w.start_s + w.stop_s) / 2 <= turn.stop_s + 0.05
        )
        name = names[turn.speaker]
        alike = [k for k in met if k != turn.speaker and names[k] == name]
        who = f"the {name}" if turn.speaker in met else f"{'another' if alike else 'a'} {name}"
        met.add(turn.speaker)
        if said:
            facts.append(capital(f'{"then " if facts else ""}{who} says: "{spelled(said)}"'))
    return facts


def speech_facts(evidence: Evidence) -> list[str]:
    """Who says which words how."""
    voice = evidence.voice
    how = MANNERS[best(manner(evidence, evidence.scene.span_s, NOTHING) or {"plain": 0.0}, MANNERS)]
    names = []
    for k in range(voice.speakers):
        first = voice.of(k)[0]
        names.append(best(sex_scores(evidence, voice.speaker_f0(k), (first.start_s, first.stop_s))))
    if voice.speakers <= 1:
        facts = [f'A {names[0] if names else "person"} says {how}: "{spelled(evidence.speech.text)}"']
    else:
        facts = [*_turns(evidence, names), f"There are {number(voice.speakers, 'different voice')}, speaking {how}."]
    pauses = len(voice.pauses)
    if pauses:
        facts.append(f"There {'is' if pauses == 1 else 'are'} {number(pauses, 'clear pause')}.")
    _, arousal = feeling(evidence)
    energy = (
        "excited and energetic" if arousal > 0.35 else "subdued and calm" if arousal < -0.35 else "moderate in energy"
    )
    facts.append(f"The delivery is {energy}.")
    behind = _behind_voice(evidence)
    return facts + ([f"In the background there is {' and '.join(behind)}."] if behind else [])


def _behind_voice(evidence: Evidence) -> list[str]:
    """What lies behind a voice: named where the gaps between the words show it clearly, else told by its sound."""
    bare = evidence.backdrop
    if bare is None:
        return []
    names = [name for name, _, _ in clear_sources(bare)][:2]
    if names:
        return names
    whole = bare.scene.span_s
    shade = best(brightness(bare, whole, NOTHING))
    kind = best({k: v for k, v in tonality(bare, whole, NOTHING).items() if k in ("tone", "noise")})
    return [f"faintly {(TONES if kind == 'tone' else NOISES)[shade]}"]


def music_facts(evidence: Evidence) -> list[str]:
    """Instruments, tempo, meter, key, register, texture, articulation, course of the melody."""
    music, whole = evidence.music, evidence.scene.span_s
    names = [name for name, _, _ in clear_sources(evidence)]
    facts = [f"Music with {' and '.join(names)}." if names else "Instrumental music."]
    band = TEMPO_BANDS[min(TEMPO_WORDS, key=lambda n: abs(np.log2(max(music.tempo_bpm, 30.0) / TEMPO_WORDS[n][0])))]
    meter = NUMBER_WORDS[max(music.meter, key=lambda n: music.meter[n])]
    facts.append(
        f"A {band} tempo of about {round(music.tempo_bpm)} beats per minute, "
        f"{meter} beats to the bar, in {music.key_name}."
    )
    joined = best(articulation(evidence, whole, NOTHING)) == "joined"
    many = music.polyphony
    texture = "one note at a time" if many < 1.5 else "two notes at a time" if many < 2.4 else "in chords"
    facts.append(
        f"The notes lie in the {REGISTERS[best(register(evidence, whole, NOTHING))]} register, played {texture}, "
        f"{'smooth and connected' if joined else 'short and detached'}."
    )
    course = best(shape_scores(music.contour, 1.2, 1.8))
    return facts + ([MELODIES[course]] if course in MELODIES else [])


def sound_facts(evidence: Evidence) -> list[str]:
    """Which sources in which order, how many strokes or stretches, how spaced, of what colour."""
    scene, whole = evidence.scene, evidence.scene.span_s
    facts: list[str] = []
    listed = clear_sources(evidence)
    for k, (name, start, stop) in enumerate(listed):
        follows = k > 0 and start > listed[k - 1][1] + 0.5
        facts.append(
            f"{'Then the' if follows else 'The'} sound of {name} {_when(start, stop, evidence.clip.duration_s)}."
        )
    shade = best(brightness(evidence, whole, NOTHING))
    count = len(scene.onsets_s)
    rate = count / max(whole[1] - whole[0], 0.5)
    pitched = _pitched_share(evidence) > 0.5
    ringing = pitched and bool(scene.events) and float(np.median([e.length_s for e in scene.events])) > 0.25
    dying = [scene.level[int(e.start_s * 100) : int(e.stop_s * 100)] for e in scene.events]
    dies = float(np.mean([len(d) > 30 and d.max() - d[-3:].max() > 8.0 for d in dying])) if dying else 0.0
    if count > 12 and rate > 7:
        facts.append(f"A {COLOURS[shade]} rattle or patter of many quick sounds.")
    elif count and (scene.struck_share > 0.5 or (ringing and dies > 0.5)):
        facts.append(capital(f"{number(count, (RINGS if ringing else STROKES)[shade])}."))
        if not listed and not ringing:
            of = best(material(evidence, whole, NOTHING))
            facts.append(f"It sounds like something struck against {MATERIALS.get(of, of)}.")
        if count > 2:
            gap = float(np.median(np.diff(scene.onsets_s)))
            spacing = SPACINGS[best(regularity(evidence, whole, NOTHING), SPACINGS)]
            groups = f", in {number(len(scene.groups), 'group')}" if 1 < len(scene.groups) < count else ""
            facts.append(f"They are {spacing}{groups}, about {gap:.1f} seconds apart.")
    else:
        kind = best({k: v for k, v in tonality(evidence, whole, NOTHING).items() if k in ("tone", "noise")})
        pieces = len(scene.segments)
        course = "without a break" if pieces <= 1 else f"in {number(pieces, 'separate stretch')}"
        tone = kind == "tone" and (pitched or shade != "dark")
        facts.append(capital(f"{(TONES if tone else NOISES)[shade]} {course}."))
        glide = best(shape_scores(pitch_five(evidence, whole), 1.2, 1.8)) if pitched else "steady"
        facts += [GLIDES[glide]] if glide in GLIDES else []
    return facts


def _pitched_share(evidence: Evidence) -> float:
    """Part of the sounding time that has a clear pitch."""
    frames = min(len(evidence.pitch[1]), len(evidence.scene.active))
    inside = evidence.scene.active[:frames]
    return float(np.mean(evidence.pitch[1][:frames][inside] > 0.7)) if inside.any() else 0.0


def shared_facts(evidence: Evidence) -> list[str]:
    """Loudness over time, room, distance, what lies between, side, ending."""
    scene, whole = evidence.scene, evidence.scene.span_s
    facts = [LEVELS[best(shape_scores(scene.level_five, 1.7, 2.5))]]
    rooms = room(evidence, whole, NOTHING)
    if rooms:
        facts.append(f"It is heard in {PLACES[best(rooms, PLACES)]}.")
    facts.append(DISTANCES[best(distance(evidence, whole, NOTHING), DISTANCES)])
    if best(medium(evidence, whole, NOTHING)) == "muffled" and evidence.kind == "speech":
        facts.append("It sounds muffled, as if behind a wall.")
    if evidence.space.stereo:
        where = best(side(evidence, whole, NOTHING))
        facts += [SIDES[where]] if where in SIDES else []
    if best(ending(evidence, whole, NOTHING)) == "ring":
        facts.append("The end rings on.")
    return facts


_FACTS = {"speech": speech_facts, "music": music_facts, "sound": sound_facts}


def sentences(evidence: Evidence) -> list[str]:
    """The facts of a clip as plain sentences, most telling first."""
    if evidence.kind == "silence":
        return ["Silence: nothing is heard."]
    return _FACTS[evidence.kind](evidence) + shared_facts(evidence)


def describe(evidence: Evidence) -> str:
    """One paragraph of plain English."""
    return " ".join(sentences(evidence))
