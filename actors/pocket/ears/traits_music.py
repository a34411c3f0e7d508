"""Traits of music: tempo words, meter, mode, register, texture, articulation."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .reading import Asked
from .signal import HOP_S, RATE_HZ, Array
from .traits import Span, Trait, normal

if TYPE_CHECKING:
    from .listen import Evidence

TEMPO_WORDS: dict[str, tuple[float, str]] = {
    "grave": (45, r"\bgrave\b|\blargo\b|very slow\w*|extremely slow|crawl\w*|funereal|glacial"),
    "slow": (63, r"\bslow\w*|\badagio\b|\blento\b|dragging|unhurried|leisurely|ballad"),
    "walking": (82, r"\bandante\b|walking|stroll\w*|relaxed|easy"),
    "moderate": (104, r"moderat\w*|\bmedium\b|mid-?tempo|\bcommon\b|middling"),
    "lively": (126, r"\ballegr\w+|lively|brisk\w*|upbeat|quick(?:ly)?\b|jaunty"),
    "fast": (152, r"\bfast\b|\bvivace\b|rapid\w*|energetic|running|driving"),
    "presto": (185, r"\bpresti?s?s?i?m?o\b|very fast|extremely fast|frantic\w*|furious\w*|breakneck|racing"),
}
"""Name of a band: (its centre in beats a minute, its words)."""


def tempo_candidates(evidence: Evidence) -> list[tuple[float, float]]:
    """(beats a minute, weight): the strongest pulse, and the half and double that a listener may count instead."""
    if evidence.music.tempo_levels:
        return list(evidence.music.tempo_levels)
    onsets = evidence.scene.onsets_s
    return [(60.0 / float(np.median(np.diff(onsets))) if len(onsets) > 2 else 90.0, 1.0)]


def tempo(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    if evidence.kind == "speech":
        rate = evidence.voice.rate
        centres = {
            "grave": 2.4,
            "slow": 3.1,
            "walking": 3.7,
            "moderate": 4.3,
            "lively": 5.2,
            "fast": 5.9,
            "presto": 7.0,
        }
        return {name: normal(rate, centre, 0.6) for name, centre in centres.items()}
    if evidence.kind == "sound":
        onsets = [t for t in evidence.scene.onsets_s if span[0] - 0.05 <= t <= span[1]]
        rate = float(np.log2(1.0 / np.median(np.diff(onsets)))) if len(onsets) > 1 else -1.5
        centres = {
            "grave": -1.6,
            "slow": -0.7,
            "walking": 0.1,
            "moderate": 0.8,
            "lively": 1.5,
            "fast": 2.2,
            "presto": 3.0,
        }
        return {name: normal(rate, centre, 0.6) for name, centre in centres.items()}
    return {
        name: float(
            np.log(
                sum(w * np.exp(-0.5 * (np.log2(bpm / centre) / 0.22) ** 2) for bpm, w in tempo_candidates(evidence))
                + 0.01
            )
        )
        for name, (centre, _) in TEMPO_WORDS.items()
    }


def meter(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    p = evidence.music.meter
    scores = {str(n): float(np.log(p[n] + 0.01)) for n in p}
    # Four is counted as two by many, and three as six; a march and a common bar share their accents.
    scores["4"] = float(np.log(p[4] + 0.6 * p[2] + 0.01))
    scores["2"] = float(np.log(p[2] + 0.5 * p[4] + 0.01))
    scores["3"] = float(np.log(p[3] + 0.5 * p[6] + 0.01))
    scores["6"] = float(np.log(p[6] + 0.4 * p[3] + 0.01))
    scores["7"] = -3.5
    scores["free"] = float(np.log(max(0.02, 0.5 - evidence.music.pulse)))
    return scores


def mode(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    sign = 1.0 if evidence.music.mode == "major" else -1.0
    margin = sign * min(evidence.music.mode_margin * 6 + 0.15, 1.5)
    return {"major": margin, "minor": -margin, "pentatonic": -1.0, "chromatic": -1.5, "atonal": -1.5}


def _octave_shift(evidence: Evidence, frames: Array, f0_hz: float) -> int:
    """Octaves to go up from an F0 whose odd partials are empty: the tracker took a period of two or four."""
    power = (evidence.scene.magnitude[frames] ** 2).mean(axis=0)

    def at(hz: float) -> float:
        k = round(hz / (RATE_HZ / 512))
        return float(power[max(k - 1, 0) : k + 2].max()) if 0 < k < 250 else 0.0

    for octave in (0, 1):
        base = f0_hz * 2**octave
        if base < 150 or at(base) + at(3 * base) > 0.03 * (at(2 * base) + at(4 * base)):
            return octave
    return 2


def register_midi(evidence: Evidence, span: Span, single: bool = False) -> float:
    """MIDI number about which the clip (or a span of it) lies: the highest line of the music, else clear pitch, else
    the spectral centroid.

    single: one sound only, whose own pitch counts.
    """
    if evidence.kind == "music" and not single:
        line = evidence.music.skyline(*span)
        if len(line) >= 10:
            return float(np.median(line))
    f0, clear = evidence.pitch
    frames = min(len(f0), len(evidence.scene.active))
    a, b = int(span[0] / HOP_S), min(int(span[1] / HOP_S) + 1, frames)
    good = (clear[a:b] > 0.7) & evidence.scene.active[a:b]
    if good.sum() > 8 and good.mean() > 0.15:
        middle = float(np.median(f0[a:b][good]))
        shift = 0 if evidence.kind == "speech" else _octave_shift(evidence, np.flatnonzero(good) + a, middle)
        return float(69 + 12 * np.log2(middle / 440.0)) + 12.0 * shift
    part = evidence.scene.centroid[a:b][evidence.scene.active[a:b]]
    centroid = float(np.median(part)) if len(part) else 1000.0
    return float(69 + 12 * np.log2(max(centroid, 40.0) / 440.0)) - 12.0


def register(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    if evidence.kind == "music" and re.search(r"\bbass\b|lowest|accompan|bottom", asked.stem):
        line = evidence.music.skyline(*span, top=False)
        midi = float(np.median(line)) if len(line) else register_midi(evidence, span)
    else:
        midi = register_midi(evidence, span)
    shift = -12.0 if evidence.kind == "speech" else 0.0
    midi = float(np.clip(midi, 32 + shift, 93 + shift))
    return {
        "lowest": normal(midi, 33 + shift, 6),
        "low": normal(midi, 44 + shift, 7),
        "middle": normal(midi, 62 + shift, 6),
        "high": normal(midi, 79 + shift, 7),
        "highest": normal(midi, 92 + shift, 8),
    }


def texture(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    voices = evidence.music.polyphony
    return {
        "single": normal(voices, 1.1, 0.35),
        "two": normal(voices, 2.0, 0.45) - 0.2,
        "chords": normal(voices, 3.2, 0.8),
        "full": normal(voices, 4.5, 1.2) - 0.3,
    }


def articulation(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    """How much of the time between attacks is filled, by notes where there are any, and by level."""
    by_notes = evidence.music.filled if evidence.kind == "music" else 0.0
    scene = evidence.scene
    onsets = np.asarray([t for t in scene.onsets_s if span[0] - 0.05 <= t <= span[1]])
    if len(onsets) < 3:
        # Attacks that cannot be told apart are joined, where notes show that there are several.
        return {"short": normal(by_notes, 0.35, 0.2), "joined": -0.2} if by_notes else {"short": -0.7, "joined": -0.7}
    filled = []
    for a, b in pairwise(onsets):
        part = scene.level[int(a / HOP_S) : int(b / HOP_S)]
        if len(part) > 5:
            filled.append(float(np.mean(part > part.max() - 14)))
    share = float(np.median(filled)) if filled else 0.7
    share = 0.5 * (share + by_notes) if by_notes else share
    return {"short": normal(share, 0.35, 0.2), "joined": normal(share, 1.0, 0.18)}


def percussion(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    drums = evidence.tags.of(
        ("Drum", "Drum kit", "Percussion", "Snare drum", "Bass drum", "Cymbal", "Hi-hat", "Drum machine"), *span
    )
    strength = 0.5 * sum(drums)
    return {"drums": float(np.log(strength + 0.03)), "none": float(np.log(max(0.6 - strength, 0.03)))}


TRAITS = (
    Trait(
        "tempo",
        r"tempo|\bpace\b|speed|how (?:fast|quick|slow)|pulse|beat|\brate\b|moving|rapid",
        {},
        {n: p for n, (_, p) in TEMPO_WORDS.items()},
        tempo,
    ),
    Trait(
        "tempo words",
        r"tempo",
        {
            "grave": r"\blargo\b|\bgrave\b",
            "slow": r"\badagio\b|\blento\b|slow tempo",
            "walking": r"\bandante\b|walking (?:tempo|pace)",
            "moderate": r"\bmoderato\b|moderate tempo",
            "lively": r"\ballegr(?:o|etto)\b",
            "fast": r"\bvivace\b|fast tempo",
            "presto": r"\bpresti?s?s?i?m?o\b",
        },
        {},
        tempo,
    ),
    Trait(
        "meter",
        r"meter|metre|time signature|beats? .*(?:bar|measure|group|cycle)|beats? grouped|each bar|\bbars?\b",
        {
            "3": r"waltz|\b3/4\b|triple (?:meter|metre|time)|in threes?\b|three beats|three-beat",
            "4": r"\b4/4\b|four beats|common time|in fours?\b|four-beat|quadruple",
            "2": r"\b2/4\b|march|duple|two beats|in twos?\b|two-beat",
            "6": r"\b6/8\b|six beats|compound|\bjig\b|in sixe?s?\b|lilting six|six-beat",
            "5": r"\b5/4\b|five beats|in fives?\b|five-beat",
            "7": r"\b7/[48]\b|seven beats|in sevens?\b|seven-beat",
            "free": r"free (?:time|rhythm|meter)|unmetered|no (?:clear |steady )?(?:meter|pulse|beat)",
        },
        {
            "2": r"\b(?:two|2)\b",
            "3": r"\b(?:three|3)\b|triple",
            "4": r"\b(?:four|4)\b",
            "5": r"\b(?:five|5)\b",
            "6": r"\b(?:six|6)\b",
            "7": r"\b(?:seven|7)\b",
            "free": r"\bfree\b|\bnone\b",
        },
        meter,
    ),
    Trait(
        "mode",
        r"\bkey\b|\bmode\b|tonal|harmon|scale|chord",
        {
            "major": r"\bmajor\b",
            "minor": r"\bminor\b",
            "pentatonic": r"pentatonic",
            "chromatic": r"chromatic",
            "atonal": r"atonal|no (?:clear )?key",
        },
        {"major": r"bright|happy|sunny|cheerful", "minor": r"dark|sad|somber|sombre|mournful"},
        mode,
    ),
    Trait(
        "register",
        r"register|range|pitch|octave|how (?:high|low)|where .*(?:lie|sit)|tessitura|deep",
        {
            "low": r"(?:low|bass|deep|bottom) (?:register|range|notes?|pitch|octave)",
            "middle": r"(?:middle|mid) (?:register|range|notes?|pitch|octave)",
            "high": r"(?:high|top|treble|upper) (?:register|range|notes?|pitch|octave)",
        },
        {
            "lowest": r"(?:very|extremely) (?:low|deep)|rumbl\w+|deepest|lowest",
            "low": r"below (?:the )?middle|\blow\b|\bdeep\b|\bbass\b|\bbottom\b|lower",
            "middle": r"\bmid(?:dle|dling|-range)?\b|medium|moderate|\btenor\b|\balto\b|central",
            "high": r"above (?:the )?middle|\bhigh\b|treble|soprano|\btop\b|upper|higher|shrill",
            "highest": r"(?:very|extremely) high|piercing\w*|highest|whistl\w+",
        },
        register,
    ),
    Trait(
        "texture",
        r"texture|voic|line|parts|layer|harmony|notes (?:sound|at)|accompan|together",
        {
            "single": (
                r"(?:single|one|unaccompanied|lone|solo) (?:\w+ )?(?:line|note|melody|voice|part)\b|one "
                r"note at a time|monophon\w*|unaccompanied"
            ),
            "two": r"two (?:\w+ )?(?:lines|notes|parts|voices)|in duet|duet\b",
            "chords": r"chords?\b|block harmon\w*|three notes|homophon\w*|arpeggio\w*",
            "full": r"full (?:band|orchestra|ensemble|texture)|many (?:lines|layers|parts)|dense|thick",
        },
        {},
        texture,
    ),
    Trait(
        "articulation",
        r"articul|notes|played|connected|attack|touch|phras|style",
        {
            "short": (
                r"staccato|detached|clipped|short and separate\w*|separat\w+ notes|choppy|bouncy|"
                r"pizzicato|plucked short|crisp and short"
            ),
            "joined": r"legato|connected|smooth\w*|flowing|joined|slurred|sustained|run(?:s|ning)? together|held",
        },
        {"short": r"\bshort\b|separate", "joined": r"\blong\b"},
        articulation,
    ),
    Trait(
        "percussion",
        r"drum|percuss",
        {},
        {"none": r"\bno\b|\bnone\b|without|absent", "drums": r"drum\w*|yes|present|kit|cymbal\w*|beat"},
        percussion,
    ),
)
