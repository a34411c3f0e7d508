"""Traits of voices: who speaks, how old, in what manner and mood."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from .reading import Asked, digits, plain
from .traits import Opinion, Span, Trait, normal

if TYPE_CHECKING:
    from .listen import Evidence

SEX_OF_WORD = {
    "man": r"\b(?:m[ae]n|males?|man's|gentlem[ae]n|father|grandfather|baritone|he|his|uncle|husband|guy|fellow)\b",
    "woman": r"\b(?:wom[ae]n|females?|woman's|lad(?:y|ies)|mother|grandmother|she|her|aunt|wife|soprano)\b",
    "child": r"\b(?:child(?:ren|'s)?|kids?|boys?|girls?|toddlers?)\b",
}
_TYPICAL_F0 = {"man": (np.log2(115), 0.33), "woman": (np.log2(212), 0.3), "child": (np.log2(350), 0.25)}
_CHILD_TAG = "Child speech, kid speaking"


def sex_scores(evidence: Evidence, f0_hz: float, span: Span) -> dict[str, float]:
    """Log-likelihood of man, woman, child for a voice of this F0; the tagger's child class adds a little."""
    place = float(np.log2(f0_hz)) if f0_hz > 0 else float(np.log2(150))
    scores = {who: normal(place, *_TYPICAL_F0[who]) for who in _TYPICAL_F0}
    scores["child"] += 1.2 * evidence.tags.of((_CHILD_TAG,), *span)[1] - 1.3
    return scores


def _clear_f0(evidence: Evidence) -> float:
    """Median of a clear pitch, Hz, for a voice that the detector missed; 0 where there is none."""
    f0, clear = evidence.pitch
    frames = min(len(f0), len(evidence.scene.active))
    good = (clear[:frames] > 0.7) & evidence.scene.active[:frames]
    return float(np.median(f0[:frames][good])) if good.sum() > 20 else 0.0


def speaker(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    turns = [t for t in evidence.voice.turns if t.start_s < span[1] and t.stop_s > span[0] and t.f0_hz > 0]
    overlap = [min(t.stop_s, span[1]) - max(t.start_s, span[0]) for t in turns]
    f0 = turns[int(np.argmax(overlap))].f0_hz if turns else evidence.voice.f0_median_hz or _clear_f0(evidence)
    return sex_scores(evidence, f0, span)


def age(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    f0 = evidence.voice.f0_median_hz or _clear_f0(evidence) or 150.0
    slow = max(0.0, 4.0 - evidence.voice.rate) if evidence.speech.present else 0.0
    child = normal(float(np.log2(f0)), float(np.log2(310)), 0.25)
    return {"child": child, "young": -0.7, "middle": -0.6, "old": -1.4 + 0.5 * slow}


# Valence and arousal, -1 to 1, of words for moods (general English; after the circumplex of Russell 1980).
MOODS: dict[str, tuple[float, float]] = {
    "joy": (0.8, 0.6),
    "happ": (0.8, 0.4),
    "cheer": (0.8, 0.5),
    "glee": (0.8, 0.8),
    "excit": (0.6, 0.9),
    "thrill": (0.6, 0.9),
    "enthusias": (0.7, 0.8),
    "delight": (0.8, 0.5),
    "triumph": (0.7, 0.8),
    "playful": (0.7, 0.5),
    "amuse": (0.6, 0.3),
    "proud": (0.5, 0.3),
    "eager": (0.5, 0.6),
    "lively": (0.5, 0.7),
    "energetic": (0.4, 0.8),
    "festive": (0.7, 0.7),
    "hopeful": (0.5, 0.1),
    "tender": (0.5, -0.5),
    "gentle": (0.4, -0.6),
    "warm": (0.5, -0.3),
    "seren": (0.5, -0.7),
    "peace": (0.5, -0.8),
    "calm": (0.3, -0.7),
    "relax": (0.4, -0.7),
    "sooth": (0.4, -0.7),
    "dream": (0.2, -0.6),
    "sleep": (0.0, -0.9),
    "tired": (-0.3, -0.8),
    "weary": (-0.4, -0.7),
    "bored": (-0.4, -0.7),
    "flat": (-0.1, -0.6),
    "neutral": (0.0, -0.1),
    "matter-of-fact": (0.0, -0.2),
    "formal": (0.0, -0.1),
    "serious": (-0.2, -0.2),
    "solemn": (-0.3, -0.5),
    "sad": (-0.7, -0.5),
    "sorrow": (-0.7, -0.5),
    "mourn": (-0.8, -0.6),
    "grie": (-0.8, -0.3),
    "melanchol": (-0.6, -0.6),
    "wistful": (-0.3, -0.5),
    "resign": (-0.5, -0.6),
    "gloom": (-0.7, -0.5),
    "disappoint": (-0.6, -0.3),
    "bitter": (-0.6, 0.1),
    "nervous": (-0.4, 0.6),
    "anxious": (-0.5, 0.6),
    "worr": (-0.5, 0.4),
    "tense": (-0.5, 0.6),
    "fear": (-0.7, 0.7),
    "scared": (-0.7, 0.7),
    "fright": (-0.7, 0.8),
    "terrif": (-0.8, 0.9),
    "panic": (-0.7, 0.9),
    "urgent": (-0.2, 0.8),
    "alarm": (-0.5, 0.8),
    "angr": (-0.7, 0.8),
    "furious": (-0.8, 0.9),
    "irritat": (-0.6, 0.4),
    "impatien": (-0.4, 0.6),
    "stern": (-0.4, 0.3),
    "menac": (-0.6, 0.4),
    "ominous": (-0.6, 0.1),
    "dramatic": (-0.1, 0.7),
    "aggress": (-0.6, 0.9),
    "frantic": (-0.4, 0.9),
    "surpris": (0.2, 0.8),
    "astonish": (0.2, 0.8),
    "agitat": (-0.4, 0.8),
    "doubt": (-0.3, -0.1),
    "hesita": (-0.2, -0.3),
    "confident": (0.4, 0.4),
}
_MOOD = re.compile(r"\b(" + "|".join(sorted(MOODS, key=len, reverse=True)) + r")[a-z]*")


def feeling(evidence: Evidence) -> tuple[float, float]:
    """(valence, arousal) of the clip, -1 to 1: pace, pitch range and effort of a voice; mode, tempo and level of
    music.
    """
    if evidence.kind == "speech":
        voice = evidence.voice
        centre = 220.0 if voice.f0_median_hz > 155 else 112.0
        height = float(np.log2(max(voice.f0_median_hz, 60.0) / centre))
        arousal = 0.4 * (voice.rate - 4.5) + 0.06 * (voice.range_st - 7.5) + 0.6 * height + 0.05 * (voice.tilt_db + 12)
        valence = 0.05 * (voice.range_st - 7.5) + 0.25 * height + 0.1 * (voice.rate - 4.5)
    else:
        music, scene = evidence.music, evidence.scene
        density = len(scene.onsets_s) / max(scene.span_s[1] - scene.span_s[0], 0.5)
        arousal = 0.9 * float(np.log2(max(music.tempo_bpm, 50.0) / 100.0)) + 0.12 * (density - 3.0)
        valence = (0.5 if music.mode == "major" else -0.5) * min(1.0, 4 * music.mode_margin + 0.3) + 0.3 * arousal
    return float(np.clip(valence, -1, 1)), float(np.clip(arousal, -1, 1))


def mood(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Options by how near their mood words lie to the clip's valence and arousal."""
    found = [[MOODS[w] for w in _MOOD.findall(o)] for o in asked.options]
    share = sum(bool(f) for f in found) / len(found)
    cued = bool(
        re.search(r"mood|feel|emotion|express|atmospher|manner|deliver|tone|sound like|attitude|character", asked.stem)
    )
    if share < 0.5 or evidence.kind in ("silence", "sound"):
        return None
    here = np.asarray(feeling(evidence))
    width = np.asarray([0.9, 0.55]) if evidence.kind == "speech" else np.asarray([0.6, 0.6])
    scores = [float(-0.5 * np.sum(((np.mean(f, axis=0) - here) / width) ** 2)) if f else None for f in found]
    return Opinion("mood", tuple(scores), 0.8 * share, cued)


def manner(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    if evidence.kind in ("music", "silence"):
        return {}
    if not evidence.speech.spans_s:
        # Syllables without a pitch that the detector does not take for speech are most like a whisper.
        unpitched = float(np.mean(evidence.pitch[1] > 0.7)) < 0.1 and len(evidence.scene.onsets_s) >= 3
        return {"whisper": -0.3 if unpitched else -2.0, "plain": -1.5, "shout": -2.2, "sung": -2.2}
    voice, tags = evidence.voice, evidence.tags
    whisper = tags.of(("Whispering",), *span)[1]
    shout = tags.of(("Shout", "Yell", "Screaming"), *span)[1]
    sung = tags.of(("Singing", "Choir", "Chant", "Humming"), *span)[1]
    laugh = tags.of(("Laughter", "Giggle", "Chuckle, chortle"), *span)[1]
    cry = tags.of(("Crying, sobbing", "Whimper", "Wail, moan"), *span)[1]
    share = len(voice.pauses) / max(len(evidence.speech.words), 1)
    return {
        "whisper": normal(voice.voiced, 0.06, 0.1) + 1.5 * whisper,
        "shout": -3.0 + 3.5 * shout + 0.12 * (voice.tilt_db + 8),
        "sung": -2.5 + 5.0 * sung,
        "laugh": -2.5 + 5.0 * laugh,
        "cry": -2.7 + 5.0 * cry,
        "hesitant": normal(share, 0.4, 0.15) - 0.2,
        "hurried": normal(min(voice.rate, 6.3), 6.3, 0.8) - 0.2,
        "slow": normal(max(voice.rate, 3.1), 3.1, 0.5) - 0.2,
        "monotone": normal(voice.range_st, 2.5, 1.6) - 0.3,
        "animated": normal(voice.range_st, 12.0, 3.0) - 0.5,
        "plain": normal(voice.rate, 4.4, 0.7)
        + normal(voice.range_st, 6.5, 3.0)
        + normal(min(voice.voiced, 0.45), 0.45, 0.2),
        "question": -1.0
        + 0.35 * float(np.clip(voice.end_slope_st, -4, 6))
        + (1.0 if evidence.speech.text.endswith("?") else 0.0),
        "statement": -0.6 - 0.2 * float(np.clip(voice.end_slope_st, -4, 6)),
    }


def voices(asked: Asked, evidence: Evidence) -> Opinion | None:
    """Options that name several voices ("a man, then two women"): by number, by sex, and by order of the turns."""
    claims = [[(m.start(), who) for who, p in SEX_OF_WORD.items() for m in re.finditer(p, o)] for o in asked.options]
    if sum(bool(c) for c in claims) < 4 or not evidence.speech.present:
        return None
    turns = evidence.voice.turns
    if not turns or (
        max(len(c) for c in claims) < 2 and not any(re.search(r"\b(two|three|both|2|3)\b", o) for o in asked.options)
    ):
        return None
    sexes = []
    for k in range(evidence.voice.speakers):
        first = evidence.voice.of(k)[0]
        sexes.append(sex_scores(evidence, evidence.voice.speaker_f0(k), (first.start_s, first.stop_s)))
    scores: list[float | None] = []
    for option, claim in zip(asked.options, claims, strict=True):
        if not claim:
            scores.append(None)
            continue
        named = [who for _, who in sorted(claim)]
        ordered = bool(re.search(r"then|follow|before|after|,", option))
        if not ordered or len(named) == 1:
            named = [w for w, n in _numbered(option, named) for _ in range(n)]
        scores.append(_fit(named, sexes, [t.speaker for t in turns], ordered))
    return Opinion("voices", tuple(scores), 1.0, bool(re.search(r"voice|who|speak|talk|person|people", asked.stem)))


def _numbered(option: str, named: list[str]) -> list[tuple[str, int]]:
    """Each named kind with the number before it ("two women": 2), one where none is said."""
    counted = []
    for who in named:
        found = re.search(
            r"\b(\d+)\s+(?:\w+\s+)?(?=" + SEX_OF_WORD[who].removeprefix(r"\b") + ")", digits(plain(option))
        )
        plural = re.search(r"\bmen\b|\bwomen\b|\bchildren\b|\bboys\b|\bgirls\b", option)
        counted.append((who, int(found[1]) if found else 2 if plural and len(named) == 1 else 1))
    return counted


def _fit(named: list[str], sexes: list[dict[str, float]], order: list[int], ordered: bool) -> float:
    sequence = order if ordered and len(named) > len(sexes) else list(dict.fromkeys(order))
    heard = [sexes[k] for k in sequence]
    # Adjacent turns of one speaker are one turn of the option.
    merged = [h for i, h in enumerate(heard) if i == 0 or sequence[i] != sequence[i - 1]]
    penalty = -1.5 * abs(len(merged) - len(named))
    if ordered:
        return penalty + float(sum(h[w] for h, w in zip(merged, named, strict=False)))
    rest, total = list(named), 0.0
    for h in merged:
        if rest:
            best = max(rest, key=lambda w: h[w])
            total += h[best]
            rest.remove(best)
    return penalty + total


TRAITS = (
    Trait(
        "speaker",
        r"voice|who|speak|talk|person|gender|says|said",
        {"man": SEX_OF_WORD["man"], "woman": SEX_OF_WORD["woman"], "child": SEX_OF_WORD["child"]},
        {},
        speaker,
    ),
    Trait(
        "age",
        r"\bage\b|how old|\bold\b|young",
        {
            "child": SEX_OF_WORD["child"] + r"|\btoddler",
            "old": r"\b(?:old|older|elderly|aged|grand(?:father|mother))\b",
            "young": r"\b(?:young|younger|teen\w*|youthful)\b",
            "middle": r"middle[- ]aged|\badult\b",
        },
        {},
        age,
    ),
    Trait(
        "manner",
        r"\bhow\b|manner|deliver|tone|spoken|said|voice|style|speech|express|pace|speed",
        {
            "whisper": r"whisper\w*|under (?:his|her|the|their) breath|hushed|breathy",
            "shout": r"shout\w*|yell\w*|scream\w*|call(?:s|ed|ing) out|bellow\w*",
            "sung": r"\bsung\b|\bsing\w*|chant\w*|hum(?:s|med|ming)\b",
            "laugh": r"laugh\w*|giggl\w*|chuckl\w*",
            "cry": r"\bcry\w*|\bcries\b|sob\w*|tearful\w*|weep\w*",
            "hesitant": r"hesita\w*|halting\w*|with (?:long |many )?pauses|falter\w*|stammer\w*|broken up",
            "monotone": r"monoton\w*|robotic\w*|deadpan|without (?:any )?(?:inflection|expression)",
            "animated": r"animated\w*|sing-?song|exaggerat\w*|expressive\w*|lilting",
            "hurried": r"hurried\w*|rapid\w*|rush\w*|breathless\w*|(?:very )?fast|quick\w*|brisk\w*",
            "slow": r"slow\w*|drawl\w*|drawn out|deliberate\w*|unhurried\w*|leisur\w*",
            "question": r"question\w*|asking|rising (?:end|intonation)\w*|as if unsure",
            "statement": r"statement|falling (?:end|intonation)\w*|declar\w*",
            "plain": (
                r"\bplain\w*|normal\w*|ordinary|conversational\w*|matter-of-fact|even(?:ly)?\b|neutral\w*|"
                r"moderate\w*"
            ),
        },
        {},
        manner,
    ),
)
SCORERS = (mood, voices)
