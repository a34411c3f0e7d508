"""Musical terms in English text: tempo, key, meter, register, dynamics, articulation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .english_numbers import NUMBER, number


@dataclass(frozen=True)
class Tempo:
    """Quarter-note (or felt-beat) tempo in beats a minute. exact: the text gave a number rather than a word."""

    bpm: float
    exact: bool


_TEMPO_WORDS: tuple[tuple[str, float], ...] = (
    (r"very slow\w*|extremely slow\w*|glacial|larghissimo|grave", 48),
    (r"largo|lento|funereal|dirge", 54),
    (r"slow(?:ly)?|adagio|languid|lullaby|drowsy|sleepy|ballad", 66),
    (r"relaxed|laid[- ]?back|larghetto|leisurely|unhurried|calm", 76),
    (r"andante|walking (?:pace|tempo)|andantino", 88),
    (r"moderato|moderate(?:ly)?|medium(?:[- ]?tempo)?|mid[- ]?tempo|steady", 104),
    (r"allegretto", 114),
    (r"march(?:ing)?", 116),
    (r"up[- ]?beat|up[- ]?tempo|lively|brisk(?:ly)?|allegro|energetic|peppy|bouncy|driving", 136),
    (r"very (?:fast|quick)\w*|presto|prestissimo|frantic|frenetic|breakneck|furious", 184),
    (r"fast|quick(?:ly)?|rapid(?:ly)?|vivace|racing|speedy", 160),
)


def tempo(text: str) -> Tempo | None:
    """The tempo of "at 120 bpm", "tempo of 90", "slow waltz", "allegro"; numbers win over words."""
    text = text.lower()
    for pattern in (
        rf"\b({NUMBER})\s*-?(?:bpm\b|beats?[- ](?:per|a)[- ]minute)",
        rf"\b(?:tempo|bpm|speed)\s+(?:of|is|to|at|=|:)?\s*(?:about |around |exactly )?({NUMBER})\b",
        r"(?:♩|quarter note)\s*=\s*(\d+)",
    ):
        match = re.search(pattern, text)
        if match:
            value = number(match.group(1))
            if value is not None and 20 <= value <= 400:
                return Tempo(value, True)
    quiet = re.sub(
        r"slow(?:s|ing|ed)?(?:ly)? (?:down|to)|slow(?:ly)? (?:fad|ris|fall|build|grow|swell|get|becom|increas|"
        r"decreas|reced|approach)\w*|quick(?:ly)? (?:fad|succ)\w*|(?:getting|becoming|gradually|grows?|gets) "
        r"(?:slower|faster)",
        " ",
        text,
    )
    best: tuple[int, float] | None = None
    for pattern, bpm in _TEMPO_WORDS:
        match = re.search(rf"\b(?:{pattern})\b", quiet)
        if match and (best is None or match.start() < best[0]):
            best = (match.start(), bpm)
    return None if best is None else Tempo(best[1], False)


def tempo_change(text: str) -> float | None:
    """How the tempo moves over the piece: the ratio of its last tempo to its first (accelerando 1.5, ritardando
    0.6)."""
    text = text.lower()
    if re.search(
        r"\b(?:accelerando|accelerat\w+|speed(?:s|ing)? up|(?:gets?|getting|grows?|becom\w+|steadily|gradually) "
        r"(?:\w+ )?(?:faster|quicker))\b",
        text,
    ):
        return 1.55
    if re.search(
        r"\b(?:ritardando|rallentando|rit\.?|decelerat\w+|slow(?:s|ing)? (?:down|to)|(?:gets?|getting|grows?|"
        r"becom\w+|steadily|gradually) (?:\w+ )?slower)(?:\b|$)",
        text,
    ):
        return 0.6
    return None


@dataclass(frozen=True)
class Key:
    """tonic: pitch class, C = 0. mode: a name in :data:`MODES`. name: as people write it, e.g. "F sharp minor"."""

    tonic: int
    mode: str
    name: str


MODES: dict[str, tuple[int, ...]] = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "minor": (0, 2, 3, 5, 7, 8, 10),
    "dorian": (0, 2, 3, 5, 7, 9, 10),
    "phrygian": (0, 1, 3, 5, 7, 8, 10),
    "lydian": (0, 2, 4, 6, 7, 9, 11),
    "mixolydian": (0, 2, 4, 5, 7, 9, 10),
    "harmonic minor": (0, 2, 3, 5, 7, 8, 11),
    "pentatonic": (0, 2, 4, 7, 9),
    "minor pentatonic": (0, 3, 5, 7, 10),
    "blues": (0, 3, 5, 6, 7, 10),
    "whole tone": (0, 2, 4, 6, 8, 10),
    "chromatic": tuple(range(12)),
}
"""Scale steps in semitones above the tonic."""
_TONICS = {"c": 0, "d": 2, "e": 4, "f": 5, "g": 7, "a": 9, "b": 11}
_ALTER = {"": 0, "#": 1, "♯": 1, "b": -1, "♭": -1, "sharp": 1, "flat": -1}
_MODE_WORDS = (
    r"harmonic minor|natural minor|melodic minor|minor pentatonic|major pentatonic|pentatonic minor|pentatonic major|"
    r"dorian|phrygian|lydian|mixolydian|aeolian|ionian|major|minor|pentatonic"
)
_MODE_ALIASES = {
    "natural minor": "minor",
    "melodic minor": "minor",
    "aeolian": "minor",
    "ionian": "major",
    "major pentatonic": "pentatonic",
    "pentatonic major": "pentatonic",
    "pentatonic minor": "minor pentatonic",
}
_MINOR_MOODS = (
    r"sad|melanchol\w*|mournful|sorrowful|somber|sombre|dark|ominous|tense|eerie|tragic|gloomy|brooding|wistful|"
    r"haunting|sinister|menacing|lament"
)
_MAJOR_MOODS = (
    r"happy|cheerful|joyful|bright|uplifting|triumphant|playful|sunny|merry|jolly|optimistic|festive|carefree|hopeful"
)


def keys(text: str) -> tuple[Key, ...]:
    """Every named key in order: "in D minor", "from C major to E-flat major", "F# dorian", "key of G" (major)."""
    found = []
    pattern = (
        rf"(?<![\w'])([A-Ga-g])(?:[ -]?(sharp|flat)|([#♯♭]|b(?=[\s-])))?[ -]+(?:the[ -]+)?({_MODE_WORDS})\b|"
        r"\bkey of ([A-Ga-g])(?:[ -]?(sharp|flat)\b|([#♯♭b])(?!\w))?(?!\w)"
    )
    for match in re.finditer(pattern, text):
        letter = (match.group(1) or match.group(5)).lower()
        article = match.group(1) == "a" and not (match.group(2) or match.group(3))
        if article and (
            not re.search(r"\b(?:in|to|of|key|from)\s*$", text[: match.start()])
            or re.match(r"\s+(?:key|mode|mood|scale|tonality|way|chord|feel)", text[match.end() :])
        ):
            continue  # "a minor change", "in a major key": the article, not the note
        alter = (match.group(2) or match.group(3) or match.group(6) or match.group(7) or "").lower()
        mode = (match.group(4) or "major").lower()
        mode = _MODE_ALIASES.get(mode, mode)
        word = {1: " sharp", -1: " flat", 0: ""}[_ALTER[alter]]
        found.append(Key((_TONICS[letter] + _ALTER[alter]) % 12, mode, f"{letter.upper()}{word} {mode}"))
    return tuple(found)


def key(text: str) -> Key | None:
    """The first named key, or None."""
    return next(iter(keys(text)), None)


def mode(text: str) -> str | None:
    """A mode named without a tonic ("minor key", "a pentatonic melody") or meant by the mood ("mournful"); else
    None."""
    lowered = text.lower()
    match = re.search(
        rf"\b({_MODE_WORDS})\b(?! (?:third|second|seventh|sixth|changes?))|\b(whole[- ]tone|chromatic|blues)(?: "
        rf"scale)?\b",
        lowered,
    )
    if match:
        name = (match.group(1) or match.group(2)).replace("-", " ")
        return _MODE_ALIASES.get(name, name)
    if re.search(rf"\b(?:{_MINOR_MOODS})\b", lowered):
        return "minor"
    if re.search(rf"\b(?:{_MAJOR_MOODS})\b", lowered):
        return "major"
    return None


@dataclass(frozen=True)
class Meter:
    """beats in a bar, each a 1/unit note (6/8: beats 6, unit 8)."""

    beats: int
    unit: int


_METER_WORDS: tuple[tuple[str, tuple[int, int]], ...] = (
    (
        r"\bwaltz\w*\b|\btriple (?:meter|metre|time)\b|\bin three\b(?![- ](?:parts?|voices?|sections?|seconds?))|"
        r"\bminuet\b|\bmazurka\b|\bthree[- ](?:beat|four)\b|\bland?ler\b",
        (3, 4),
    ),
    (
        r"\bsix[- ]eight\b|\bjig\b|\btarantella\b|\bbarcarolle\b|\bsiciliana\b|\bin six\b|\bcompound (?:duple|meter|"
        r"time)\b",
        (6, 8),
    ),
    (r"\bfive[- ](?:four|beat)\b|\bin five\b", (5, 4)),
    (r"\bseven[- ]eight\b|\bin seven\b", (7, 8)),
    (r"\bmarch\b|\bpolka\b|\bin two\b(?![- ])|\bcut time\b|\bduple\b|\btwo[- ](?:four|beat)\b", (2, 4)),
    (r"\bfour[- ](?:four|on|beat)\b|\bin four\b|\bcommon time\b", (4, 4)),
    (r"\btwelve[- ]eight\b", (12, 8)),
)


def meter(text: str) -> Meter | None:
    """The meter of "in 3/4", "6/8 time", "a waltz", "in five", "triple meter"; None when nothing is said (4/4 is the
    usual reading)."""
    lowered = text.lower()
    match = re.search(r"(?<![\d/])(\d{1,2})/(2|4|8|16)(?![\d/])", lowered)
    if match and 1 < int(match.group(1)) <= 15:
        return Meter(int(match.group(1)), int(match.group(2)))
    return next((Meter(*value) for pattern, value in _METER_WORDS if re.search(pattern, lowered)), None)


def register(text: str) -> str | None:
    """very_low, low, mid, high or very_high, when a pitch register is named."""
    lowered = text.lower()
    table = (
        (r"\bvery low\b|\bsub[- ]?bass\b|\blowest\b|\brumbling\b", "very_low"),
        (r"\bvery high\b|\bhighest\b|\bpiercing\b|\bstratospheric\b", "very_high"),
        (
            r"\blow(?:er)?(?:[- ](?:pitched|register|notes?|octave|range|end|tones?|hum|drone|melody|strings?|brass|"
            r"voice))|\bdeep\b|\bbass register\b|\blow\b(?! (?:volume|level|passed|pass|tempo))|\bchest voice\b",
            "low",
        ),
        (r"\bmid(?:dle)?(?:[- ](?:register|range|octave))\b|\btenor (?:register|range)\b", "mid"),
        (
            r"\bhigh(?:er)?(?:[- ](?:pitched|register|notes?|octave|range|tones?|melody|voice|strings?))|"
            r"\bhigh\b(?! (?:volume|level|passed|pass|tempo|energy|speed))|\btreble\b|\bupper\b|\bshrill\b",
            "high",
        ),
    )
    return next((name for pattern, name in table if re.search(pattern, lowered)), None)


@dataclass(frozen=True)
class Dynamics:
    """level_db: against a normal level (soft -9, loud +5). slope: +1 growing, -1 fading, 0 steady. shape names it:
    crescendo, diminuendo, fade_in, fade_out, swell (up then down), or None."""

    level_db: float
    slope: int
    shape: str | None


_SHAPES: tuple[tuple[str, tuple[int, str]], ...] = (
    (r"\bfad(?:es?|ing|ed)[ -]?in\b", (1, "fade_in")),
    (
        r"\bfad(?:es?|ing|ed)(?:[ -]?(?:out|away|off)| to (?:silence|nothing))|\bfades\b|\bdies? away\b|\bdying away\b",
        (-1, "fade_out"),
    ),
    (r"\bswell(?:s|ing)? (?:and|then) (?:\w+ )?(?:fad|reced|sub|dies)\w*|\brises and falls\b", (0, "swell")),
    (
        r"\bcrescendo\b|\b(?:gradual(?:ly)?|grow\w*|gets?|getting|builds?|building|slowly|steadily|becom\w+) (?:\w+ "
        r")?(?:loud\w*|in (?:volume|intensity)|up)\b|\bswell(?:s|ing)?\b|\brising in volume\b",
        (1, "crescendo"),
    ),
    (
        r"\b(?:decrescendo|diminuendo)\b|\b(?:gradual(?:ly)?|grow\w*|gets?|getting|slowly|steadily|becom\w+) (?:\w+ "
        r")?(?:quiet\w*|soft\w*|faint\w*)\b",
        (-1, "diminuendo"),
    ),
)
_LEVELS: tuple[tuple[str, float], ...] = (
    (r"\bpianissimo\b|\bvery (?:soft|quiet)\w*\b|\bbarely audible\b|\bfaint(?:ly)?\b|\balmost inaudible\b", -14.0),
    (r"\bfortissimo\b|\bvery loud\w*\b|\bdeafening\b|\bblaring\b|\bthunderous\b|\broaring\b", 7.0),
    (r"\bmezzo[- ]piano\b", -4.0),
    (r"\bsoft(?:ly)?\b|\bquiet(?:ly)?\b|\bgentl[ey]\b|\bhushed\b|\bmuted\b|\bsubtle\b|\bdelicate\b", -7.0),
    (r"\bloud(?:ly)?\b|\bforte\b|\bstrong(?:ly)?\b|\bpowerful\b|\bbooming\b", 4.5),
)


def dynamics(text: str) -> Dynamics:
    """How loud, and how the level moves; Dynamics(0, 0, None) when nothing is said."""
    lowered = text.lower()
    slope, shape = next((value for pattern, value in _SHAPES if re.search(pattern, lowered)), (0, None))
    level = next((db for pattern, db in _LEVELS if re.search(pattern, lowered)), 0.0)
    return Dynamics(level, slope, shape)


def articulation(text: str) -> str | None:
    """staccato, legato or pizzicato, when named or meant ("short detached notes", "smooth flowing")."""
    lowered = text.lower()
    table = (
        (r"\bpizzicato\b|\bplucked\b", "pizzicato"),
        (
            r"\bstaccato\b|\bdetached\b|\bshort(?:,)? (?:crisp |separate |sharp )?notes\b|\bchoppy\b|\bclipped\b|"
            r"\bbouncy\b",
            "staccato",
        ),
        (r"\blegato\b|\bsmooth(?:ly)?\b|\bflowing\b|\bsustained\b|\blong notes\b|\blyrical\b|\bconnected\b", "legato"),
    )
    return next((name for pattern, name in table if re.search(pattern, lowered)), None)
