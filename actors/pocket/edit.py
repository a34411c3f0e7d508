"""Edits by instruction: free English in, the clip changed as it says, the rest left as it was.

The instruction is cut into clauses (edit_words). Each clause is read by the table RULES, in order: the first rule
whose words stand in it
and whose operation applies obeys it. A clause that no rule reads is given to the operation whose description is
nearest in meaning.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from torus_ray.audio import Clip, resample

from . import edit_add, edit_replace, english, music_names, sound, space
from . import edit_music as music
from . import edit_order as order
from . import edit_speech as voice
from . import edit_tone as tone
from . import edit_words as words
from .edit_events import RATE, Wave
from .edit_level import about_level, cut_of, gain_db
from .edit_properties import fade, properties
from .edit_work import LONGEST, Work
from .sound_traits import MATERIALS, SIZES

Act = Callable[[Work], "Wave | None"]


@dataclass(frozen=True)
class Rule:
    """One operation. words: what in a clause calls it. act: the operation; None = not meant after all. says: what
    it does, for readings
    by meaning. only: the audio types it is for. supposed: whether the clause must be a supposition."""

    name: str
    words: str
    act: Act
    says: str = ""
    only: tuple[str, ...] = ("speech", "sound", "music")
    supposed: bool = False


# --- the table --------------------------------------------------------------------------------------------------------


def _backwards(work: Work) -> Wave:
    return np.ascontiguousarray(work.wave[:, ::-1])


def _clean(work: Work) -> Wave:
    return tone.denoised(work.wave, work.audio_type == "speech", bool(re.search(r"\bhum\b", work.text)))


def _instrument(work: Work) -> Wave | None:
    if re.search(rf"\b(?:{edit_add.ADD}|{edit_replace.REMOVE})\b", work.text):
        return None
    if work.audio_type != "music" and len({n.instrument for n in music_names.find(work.text)} - {None}) < 2:
        return None
    return music.reinstrumented(work, work.text)


def _said(work: Work) -> Wave | None:
    """Other words in place of the old, or, where somebody else speaks or a place is named, beside them."""
    if re.search(rf"^(?:{edit_add.ADD})\b", work.text):
        return None
    if _ANSWERS.search(work.text) and not re.search(r"\binstead\b|\brather than\b|\breplac", work.text):
        spot = words.spot(work.text)
        return edit_add.placed(work, spot.text, spot.where or "end", spot)
    return voice.respeak(work)


_ANSWERS = re.compile(
    r"\b(?:answer\w*|repl(?:y|ies|ied|ying)|respond\w*|adds?|continues?|calls? back|interrupt\w*|(?:another|second|"
    r"different|other|new) (?:speaker|person|voice|man|woman|child|boy|girl)|"
    r"at the (?:very )?(?:end|start|beginning)|then (?:says?|asks?)|also says?)\b"
)


def _absent(work: Work) -> Wave | None:
    return edit_replace.remove(work)


def _unheard(work: Work) -> Wave | None:
    """A supposed source that the clip does not hold yet ("a thunderstorm had been raging outside") is added."""
    named = sound.match_by_words(work.text)
    if work.audio_type == "music" or named is None or named.source.weak or english.comparatives(work.text):
        return None
    if space.room_of(work.text) not in (None, "outdoors", "room") or re.search(
        rf"\bthe (?:\w+ )?{re.escape(named.said)}", work.text
    ):
        return None
    if edit_replace.is_heard(work, named):
        return None
    spot = words.spot(work.text)
    return edit_add.placed(work, spot.text, spot.where, spot)


def _addition(work: Work) -> Wave | None:
    """`add`, unless what is added is an effect ("add reverb", "add more bass", "add a fade out")."""
    said = re.sub(rf"^.*?\b(?:{edit_add.ADD})\b\s*", "", work.text)
    effect = re.match(
        rf"(?:an?|some|more|a lot of|lots of|heavy|light|slight|gentle|subtle|strong|the|long|short|\s)*(?:{_EFFECTS})",
        said,
    )
    sided = re.match(r"(?:put|place) the\b", work.text) and english.pan(work.text)
    return None if effect or sided else edit_add.add(work)


_EFFECTS = (
    r"reverb\w*|echo\w*|delay|distortion|overdrive|fade|vibrato|tremolo|chorus effect|flang\w*|bass\b(?! (?:guitar|"
    r"line|drum))|treble|filter|silence|pause|brightness|"
    r"low[- ]?pass|high[- ]?pass|crescendo|diminuendo|vinyl (?:effect|crackle)|muffl\w*|room|volume|gain|compression|"
    r"spatial|panning|low end|high end|warmth"
)
_PAUSE = (
    r"(?:add|insert|put|include|leave|place|introduce|there (?:were|was|is|had been)|with)\b.*\b(?:silen(?:ce|t gap)|"
    r"pause|gap)\b|\bpause (?:for|of)\b"
)
_NOISE = (
    r"(?:de-?nois\w*|de-?hiss\w*|(?:remov\w*|reduc\w*|clean\w*|eliminat\w*|get(?:ting)? rid of|"
    r"filter(?:ing)? out|suppress\w*|"
    r"without|no|strip\w*|tak(?:e|es|ing) (?:away|out|off)?|los(?:e|ing)|scrub\w*|cut(?:ting)?(?: out)?|"
    r"silenc\w+|eras\w+|"
    r"delet\w+|lift\w*|mut(?:e|ing)|turn\w* off|less|free of)\b[\w -]*\b"
    r"(?:nois(?:e|iness)\b(?! (?:of|made|from the (?!background)))|hiss(?:ing|es)?\b|static\b|hum\b|crackle\b|"
    r"white noise)|clean(?:er)? (?:up|recording|audio)|(?:noise|hiss)[- ](?:free|reduc\w*|remov\w*)|"
    r"(?:hiss\w*|noise) (?:had |has |were |was |is |should |to )*(?:been |be )?(?:gone|absent|removed|"
    r"taken (?:away|out)|"
    r"not (?:been )?there|disappear\w*)|(?:hiss\w*|noise) had(?:n't| not| never) been)"
)
_DRY = (
    r"(?:remov\w*|reduc\w*|less|without|no|eliminat\w*|get rid of|tak\w* away)(?: \w+)? (?:reverb\w*|echo\w*|"
    r"room sound|reverberation)|(?<!been )\bdr(?:y|ier|yer)\b(?! (?:day|weather|leaves|grass|twig|ground|leaf))|"
    r"\bdereverb\w*|\banechoic"
)
_MATTER = "|".join(sorted({word for named in MATERIALS.values() for word in named} | set(SIZES), key=len, reverse=True))
_SPEAKERS = (
    r"whisper\w*|shout\w*|yell\w*|scream\w*|child\w*|kids?|toddler|boy|girl|youngster|teenager|m[ae]n\b|"
    r"wom[ae]n\b|male|female|"
    r"old\w*|elderly|aged|robot\w*|angr\w*|furious\w*|annoyed|irritat\w*|stern\w*|impatient\w*|excit\w*|enthusias\w*|"
    r"sad\w*|mournful\w*|melanchol\w*|sorrow\w*|dejected|happ\w*|cheer\w*|joyful\w*|tired\w*|exhaust\w*|weary|"
    r"wearily|sleepy|"
    r"sleepily|drows\w*|groggy|fatigued|bored|afraid|scared|frightened|terrified|nervous\w*|anxious\w*|"
    r"trembl\w*|gentleman|lady|"
    r"grand\w+|granny|uncle|aunt|mother|father|mum|mom|dad|husband|wife|son|daughter|brother|sister|hurr\w*|"
    r"rush\w*|urgent\w*|"
    r"frantic\w*|in haste|hast\w*|panick\w*|calm\w*|hesita\w*|halting\w*"
)

RULES: tuple[Rule, ...] = (
    Rule("band", r"hz\b|hertz\b|\dk\b", lambda w: properties(w) if cut_of(w.text) else None),
    Rule("level", r".", lambda w: properties(w) if about_level(w.text) and gain_db(w.text) is not None else None),
    Rule("once-more", edit_add.AGAIN, edit_add.once_more),
    Rule("denoise", _NOISE, _clean, "remove the background noise and clean up the recording"),
    Rule("dry", _DRY, lambda w: tone.dried(w.wave), "make it sound dry and close, without echo or reverberation"),
    Rule("reorder", order.ORDER, order.reorder, "swap the order of the sounds"),
    Rule(
        "backwards",
        r"\bbackwards?\b|in reverse\b|\brevers(?:e|ed|ing|al)\b|time[- ]revers\w*",
        _backwards,
        "play it backwards",
    ),
    Rule("respeak", r"[\ue000-\uf8ff]", _said, only=("speech", "sound")),
    Rule("silence", _PAUSE, order.silence, "insert a pause of silence"),
    Rule(
        "fade",
        r"\bfad(?:e|es|ed|ing)\b[- ]?(?:\w+ ){0,2}?(?:in|out|away|to silence|at the end)\b|\bfade\b",
        fade,
        "fade in at the beginning or out at the end",
    ),
    Rule(
        "move",
        r"\b(?:mov|shift|push|bring|plac|put)\w* .*(?:\bto the (?:very )?(?:end|beginning|start|front|middle)\b|"
        r"\b(?:later|earlier)\b)",
        order.move_block,
        "move one sound to the end",
    ),
    Rule(
        "length",
        r"\b(?:extend|lengthen|prolong|trim|shorten|crop|truncate|longer|shorter)\w*|\bcut (?:it |the \w+ )?(?:down|"
        r"to|off|short)\b|\bkeep (?:only )?the (?:first|last)|\bonly the (?:first|last)",
        order.lengthen,
        "make it longer, or cut it to a shorter length",
    ),
    Rule(
        "instrument",
        r"\b(?:play\w*|perform\w*|replac\w*|chang\w*|switch\w*|swap\w*|turn\w*|on|by|with|as|use|were|was|into|"
        r"instrument)\b",
        _instrument,
        only=("music", "sound"),
    ),
    Rule("recount", order.COUNT, order.recount, "change how many times it happens"),
    Rule("repeat", rf"\b(?:{order.REPEAT})", order.repeat, "repeat it again"),
    Rule(
        "replace",
        r"\b(?:belong|replac|swap|switch|substitut|exchang|chang|turn|transform|convert|mak|instead|rather than|"
        r"in place of|were|was|is|are|had been|been|became|become|use)\w*",
        edit_replace.replace,
        "replace one sound by another",
    ),
    Rule(
        "voice",
        rf"\b(?:{_SPEAKERS})\b",
        lambda w: None if re.search(rf"^(?:{edit_add.ADD}|{edit_replace.REMOVE})\b", w.text) else voice.revoiced(w),
        "another person says it, in another voice or mood",
        only=("speech",),
    ),
    Rule("remove", rf"\b(?:{edit_replace.REMOVE})\b", edit_replace.remove, "remove a sound"),
    Rule("add", rf"\b(?:{edit_add.ADD})\b", _addition, "add another sound"),
    Rule("stopped", edit_replace.STOPS, edit_replace.stopped, "the sound stops early"),
    Rule("absent", edit_replace.NEVER, _absent, supposed=True),
    Rule("before-after", r"\b(?:before|after|first|last)\b", order.before_after, "one sound comes before the other"),
    Rule("unheard", r".", _unheard, supposed=True),
    Rule(
        "reattribute",
        rf"\b(?:{_MATTER})\b",
        edit_replace.reattribute,
        "the same thing made of another material, of another size or on another surface",
    ),
    Rule("properties", r".", properties),
    Rule("joined", edit_add.SUPPOSED_ADD, edit_add.add, supposed=True),
)

# Readings by meaning: description -> a plain clause that the table reads.
MEANINGS: tuple[tuple[str, str], ...] = (
    ("it sounds far away, from a great distance", "make it much more distant"),
    ("it is heard from very near, right in front of the listener", "make it closer"),
    ("it is heard through a wall or from another room", "as heard from the next room"),
    ("it is heard in a huge echoing space", "as recorded in a cathedral"),
    ("it is in a small dry room with soft furniture", "remove the reverb"),
    ("it is outdoors in the open", "make it dry"),
    ("it is submerged under water", "as heard underwater"),
    ("it is blurred and muffled, ears or microphone are covered or wrapped in cloth", "make it muffled"),
    ("it is clear, crisp and bright", "make it brighter"),
    ("it happens in a hurry, with more energy and haste", "make it faster"),
    ("it is lazy, tired and takes its time", "make it slower"),
    ("it is stronger, harder and more powerful", "make it louder"),
    ("it is gentle and careful, hardly to be heard", "make it quieter"),
    ("it has a higher, smaller, younger voice", "make the pitch higher"),
    ("it has a lower, bigger, heavier voice", "make the pitch lower"),
    ("it grows in intensity as it goes on", "make it gradually louder"),
    ("it dies down and disappears at the end", "fade out at the end"),
    ("it comes through a telephone or a bad loudspeaker", "as heard over the telephone"),
    ("time runs backwards", "play it backwards"),
    ("the weather is dry and fair, no rain falls", "remove the rain"),
    ("the storm, the weather or the surroundings change", "add wind in the background"),
)


def apply_edit(clip: Clip, prompt: str, audio_type: str, seed: int) -> Clip:
    """The clip changed as the prompt says: same rate, at most 10 s (or its own length). The same inputs give the
    same samples."""
    at_rate = resample(clip, RATE)
    before = np.asarray(at_rate.wave, dtype=np.float64)
    wave = edited(before, prompt, audio_type, seed)
    wave = np.nan_to_num(wave[:, : max(LONGEST, before.shape[1])])
    if wave.shape[1] == 0 or wave is before:
        return clip
    out = Clip(np.clip(wave, -1.0, 1.0).astype(np.float32), RATE)
    return resample(out, clip.rate_hz)


def edited(wave: Wave, prompt: str, audio_type: str, seed: int) -> Wave:
    """As :func:`apply_edit` on float64 (channels, frames) at 44.1 kHz."""
    masked = english.mask(prompt)
    for step, clause in enumerate(words.clauses(masked.text)):
        wave = obeyed(Work(wave, audio_type, seed, masked, clause, step))
    return wave


def obeyed(work: Work) -> Wave:
    """One clause carried out: by the first rule that reads it, else by the nearest meaning, else the named sound
    added."""
    made = by_rule(work)
    if made is not None:
        return made
    if sound.match_by_words(work.text) is None or work.clause.supposed:
        made = by_rule(_restated(work))
        if made is not None:
            return made
    spot = words.spot(work.text)
    added = edit_add.placed(work, spot.text, spot.where, spot) if sound.match_by_words(spot.text) else None
    return work.wave if added is None else added


def by_rule(work: Work) -> Wave | None:
    """What the first rule makes of the clause, or None."""
    for rule in RULES:
        if work.audio_type not in rule.only or (rule.supposed and not work.clause.supposed):
            continue
        if re.search(rule.words, work.text):
            made = rule.act(work)
            if made is not None:
                return made
    return None


def rule_of(clause: words.Clause, work: Work) -> str | None:
    """The name of the rule that obeys a clause; None when none does."""
    for rule in RULES:
        if (
            work.audio_type in rule.only
            and (clause.supposed or not rule.supposed)
            and re.search(rule.words, clause.text)
            and rule.act(work) is not None
        ):
            return rule.name
    return None


def _restated(work: Work) -> Work:
    from dataclasses import replace as changed

    near = _meanings() @ sound.embedder()([work.text])[0]
    plain = MEANINGS[int(np.argmax(near))][1]
    return changed(work, clause=words.Clause(plain, work.clause.supposed))


@functools.cache
def _meanings() -> np.ndarray:
    return sound.embedder()([text for text, _ in MEANINGS])
