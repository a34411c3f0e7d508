"""From a free edit prompt to Step-Audio-EditX's closed list of edits. Ours: the paper does not say how it was done.

Pure: the same prompt always takes the same route. A clause is taken where it names an edit of the list plainly; what
only hints at one ("like somebody whose bus is leaving") is left to the model itself or refused, as the card says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

_EMOTIONS = """happy angry sad humour confusion disgusted empathy embarrass fear surprised excited depressed coldness
    admiration remove"""
_STYLES = """serious arrogant child older girl pure sister sweet ethereal whisper gentle recite generous act_coy warm
    shy comfort authority chat radio soulful story vivid program news advertising roar murmur shout deeply loudly remove
    exaggerated"""

CLOSED: Mapping[str, Tuple[str, ...]] = {
    "emotion": tuple(_EMOTIONS.split()),
    "style": tuple(_STYLES.split()),
    "speed": ("faster", "slower", "more faster", "more slower"),
    "denoise": (),
    "vad": (),
    "paralinguistic": (),
}
"""What the released `get_supported_edit_types` names; a test holds it to the recorded one."""

CLONE, FREE = "clone", "free"
"""Steps that are no edit of the list: words spoken anew by the reference voice, and the prompt given to the model as it
is."""


@dataclass(frozen=True)
class Step:
    """One call of the model. kind: an edit type of the list, `clone` or `free`. info: which of its values. text: the
    words to speak, the words with tags in them, or the instruction."""

    kind: str
    info: Optional[str] = None
    text: Optional[str] = None


@dataclass(frozen=True)
class Route:
    """Steps in the order they are taken, and the clauses that no step serves."""

    steps: Tuple[Step, ...]
    unserved: Tuple[str, ...]


_QUOTED = re.compile(r"\"[^\"]*\"|\u201c[^\u201d]*\u201d")
_CLAUSE = re.compile(r"[.;:!?,\n]+|\b(?:and then|but|then|while|and)\b")
_KEEP = re.compile(
    r"\b(?:keep|keeps|leave|leaves|stay|stays|unchanged|otherwise the same|as (?:it|they|he|she) (?:is|are|was|were)"
    r"|as before|do not|don't|never|without changing)\b"
)
_REMOVE = re.compile(r"\b(?:remove|without|drop|lose|strip|clean|get rid of|take out|no longer|no more|stop|cut)\b")
_VOICE = re.compile(
    r"\b(?:voice|speak\w*|spoke\w*|says?|said|saying|talk\w*|tells?|call\w*|reads?|reading|line|words?|sentence|delivery"
    r"|deliver\w*|tone|sounds?|he|she|they|him|her|them|it|speech|speaker|reply|answers?)\b"
)

# (pattern, edit type, value). The first that fits in a clause is taken, so narrower ones stand first.
_RULES: Tuple[Tuple[str, str, str], ...] = (
    (r"(?:much|far|a lot|twice as|very|really) (?:fast|quick)\w*|as fast as|breakneck", "speed", "more faster"),
    (
        r"(?:much|far|a lot|twice as|very|really) slow\w*|half (?:the|her|his|their) speed|as slow",
        "speed",
        "more slower",
    ),
    (
        r"faster|quick(?:er|ly)|speed(?:s|ed)? (?:it |\w+ )?up|hurried\w*|in a (?:hurry|rush)|more rapid\w*",
        "speed",
        "faster",
    ),
    (r"slower|slow(?:ly|s)?\b|slow(?:s|ed)? (?:it |\w+ )?down|drawl\w*|unhurried\w*", "speed", "slower"),
    (r"ang(?:ry|rily|er)\b|furious\w*|irate|enraged|rage\b", "emotion", "angry"),
    (r"sad(?:ly|der|ness)?\b|sorrow\w*|tearful\w*|in tears|grie(?:f|ving)", "emotion", "sad"),
    (r"happ(?:y|ily|ier|iness)\b|cheer(?:ful\w*|ily)|joy(?:ful\w*|ous\w*)?\b|delighted\w*", "emotion", "happy"),
    (r"humou?r\w*|jok(?:e|ing\w*)|amused\w*|funny", "emotion", "humour"),
    (r"confus\w+|puzzled|bewildered", "emotion", "confusion"),
    (r"disgust\w*|revolted", "emotion", "disgusted"),
    (r"empath\w+|compassion\w*|sympath\w+", "emotion", "empathy"),
    (r"embarrass\w*|ashamed", "emotion", "embarrass"),
    (r"afraid|scared|fear(?:ful\w*)?\b|frightened|terrified|anxious\w*", "emotion", "fear"),
    (r"surprised?\b|astonish\w*|amazed", "emotion", "surprised"),
    (r"excite(?:d|dly|ment)\b|thrilled|enthusias\w+", "emotion", "excited"),
    (r"depress\w*|dejected\w*|hopeless\w*", "emotion", "depressed"),
    (r"coldly|cold(?:er)? (?:voice|tone)|aloof|indifferen\w+", "emotion", "coldness"),
    (r"admir\w+|in awe", "emotion", "admiration"),
    (r"emotion(?:s|al\w*|less\w*)?\b|monotone|flat(?:ly)?\b (?:voice|tone)", "emotion", "remove"),
    (r"whisper\w*|under (?:his|her|their) breath", "style", "whisper"),
    (r"shout\w*|yell\w*|scream\w*|bellow\w*", "style", "shout"),
    (r"roar(?:s|ing|ed)?\b", "style", "roar"),
    (r"murmur\w*|mutter\w*|mumbl\w+", "style", "murmur"),
    (r"(?:like|as) a (?:little |small |young )?girl|girlish\w*", "style", "girl"),
    (r"(?:like|as) a (?:little |small |young )?(?:child|kid|boy)|child(?:like|ish)\w*", "style", "child"),
    (r"(?:like|as) (?:an? )?(?:old|elderly|older)\b|older\b|elderly", "style", "older"),
    (r"(?:like|as) an? (?:big |older )?sister", "style", "sister"),
    (r"serious\w*|solemn\w*|grave(?:ly)?\b", "style", "serious"),
    (r"arrogan\w+|haught\w+", "style", "arrogant"),
    (r"ethereal\w*|otherworldly", "style", "ethereal"),
    (r"innocent\w*|pure(?:ly)? (?:voice|tone)|pure\b", "style", "pure"),
    (r"sweet(?:ly|er)?\b", "style", "sweet"),
    (r"gent(?:le|ly|ler)\b|tender\w*|soft(?:ly|er|-spoken)?\b", "style", "gentle"),
    (r"recit\w+|declaim\w*", "style", "recite"),
    (r"generous\w*|magnanimous\w*", "style", "generous"),
    (r"\bcoy(?:ly)?\b|coquettish\w*", "style", "act_coy"),
    (r"warm(?:ly|er)?\b", "style", "warm"),
    (r"\bshy(?:ly)?\b|bashful\w*|timid\w*", "style", "shy"),
    (r"comfort\w*|sooth\w+|reassur\w+|consol\w+", "style", "comfort"),
    (r"authorit\w+|commanding\w*", "style", "authority"),
    (r"chatt(?:y|ily|ing)|casual\w*|conversational\w*", "style", "chat"),
    (r"news ?(?:reader|caster|cast|anchor|presenter)\w*|the news\b", "style", "news"),
    (r"(?:show|programme?|tv|television) (?:host|presenter)", "style", "program"),
    (r"radio\b|disc jockey", "style", "radio"),
    (r"advert\w*|commercial\b|sales pitch", "style", "advertising"),
    (r"stor(?:yteller|ytelling|y)\b|fairy ?tale", "style", "story"),
    (r"soulful\w*", "style", "soulful"),
    (r"vivid\w*|lively\b", "style", "vivid"),
    (r"deep(?:er|ly)? (?:voice|tone)|in a (?:very )?deep\w*|deeply\b|lower voice", "style", "deeply"),
    (r"loud(?:er|ly)\b", "style", "loudly"),
    (r"exaggerat\w+|theatrical\w*|melodramatic\w*|over the top", "style", "exaggerated"),
    (r"(?:speaking )?style(?:s)?\b", "style", "remove"),
)
_COMPILED = tuple((re.compile(r"\b(?:" + pattern + ")"), kind, info) for pattern, kind, info in _RULES)

_NOISE = re.compile(r"\b(?:noise|hiss|hum|background|static|crackl\w*|denois\w*)\b")
_SILENCE = re.compile(r"\b(?:silen\w+|pauses?|gaps?)\b")
_SOUNDS: Tuple[Tuple[str, str], ...] = (
    (r"laugh\w*|chuckl\w*|giggl\w*", "[Laughter]"),
    (r"sigh\w*", "[Sigh]"),
    (r"(?:audibl\w+ )?breath(?:e|es|ing|s)?\b|out of breath|breathless\w*|pant(?:s|ing)\b", "[Breathing]"),
    (r"\bu(?:h|m|hm)\b|hesitat\w*", "[Uhm]"),
)
_SOUNDS_COMPILED = tuple((re.compile(r"\b(?:" + pattern + ")"), tag) for pattern, tag in _SOUNDS)
_FIRST = re.compile(r"\b(?:before|at the (?:start|beginning)|first|begins?|opens?|starts?)\b")
_ORDER = ("denoise", "vad", "emotion", "style", "speed", "paralinguistic")
"""What works on the recording comes before what works on the voice; sounds are put in last, into the final delivery."""


def route(prompt: str, words: str) -> Route:
    """The steps for a prompt. words: those to be heard in the result; where the prompt quotes any, they are new and
    spoken anew. No step at all: nothing of the list is named."""
    quoted = _QUOTED.search(prompt) is not None
    plain = _QUOTED.sub(" ", prompt.lower())
    found: Dict[str, str] = {}
    tags: List[Tuple[bool, str]] = []
    unserved: List[str] = []
    for clause in (part.strip() for part in _CLAUSE.split(plain)):
        if not re.search(r"\w", clause) or _KEEP.search(clause):
            continue
        # "whisper it, and much faster": a few words more are about what the clause before was about.
        about_voice = bool(found and len(clause.split()) <= 3) or _VOICE.search(clause) is not None
        served = _edit_of(clause, about_voice)
        sound = _sound_of(clause)
        if served is not None:
            found.setdefault(*served)
        elif sound is not None:
            tags.append(sound)
        else:
            unserved.append(clause)
    steps = [Step(CLONE, text=words)] if quoted else []
    for kind in _ORDER:
        if kind in found:
            steps.append(Step(kind, found[kind] or None))
    if tags:
        before = " ".join(tag for first, tag in tags if first)
        after = " ".join(tag for first, tag in tags if not first)
        steps.append(Step("paralinguistic", text=" ".join(part for part in (before, words, after) if part)))
    return Route(tuple(steps), tuple(unserved))


def _edit_of(clause: str, about_voice: bool) -> Optional[Tuple[str, str]]:
    """(edit type, value) that a clause names; the value is "" for types that have none."""
    removes = _REMOVE.search(clause)
    if _NOISE.search(clause) and (removes or "denois" in clause):
        return "denoise", ""
    if _SILENCE.search(clause) and removes:
        return "vad", ""
    if not about_voice:
        return None
    for pattern, kind, info in _COMPILED:
        if pattern.search(clause):
            if info == "remove" and kind == "style" and not removes:
                continue
            if removes and kind in ("emotion", "style"):
                return kind, "remove"
            return (kind, info) if not removes else None
    return None


def _sound_of(clause: str) -> Optional[Tuple[bool, str]]:
    """(whether it comes first, tag) of a sound that a clause adds."""
    if _REMOVE.search(clause):
        return None
    for pattern, tag in _SOUNDS_COMPILED:
        if pattern.search(clause):
            return _FIRST.search(clause) is not None, tag
    return None
