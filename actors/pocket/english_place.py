"""Where and how something sounds, in English text: rooms, distance, side, and the manner of a voice."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """A place by its reverberation. rt60_s: decay time in seconds. wet: share of reverberant sound, 0 to 1."""

    name: str
    rt60_s: float
    wet: float


_ROOMS: tuple[tuple[str, Room], ...] = (
    (r"cathedrals?|church(?:es)?|abbey|basilica|chapel|mosque|temple", Room("cathedral", 4.5, 0.45)),
    (r"caves?|cavern(?:ous|s)?|grotto|mine ?shaft", Room("cave", 3.5, 0.5)),
    (r"tunnels?|subway|underpass|sewer|pipe", Room("tunnel", 2.6, 0.5)),
    (
        r"stadium|arena|hangar|warehouse|gym(?:nasium)?|swimming pool|factory|train station|terminal|atrium",
        Room("large hall", 2.8, 0.4),
    ),
    (
        r"concert hall|auditorium|theat(?:er|re)|opera house|ballroom|large (?:hall|room)|(?:big |empty |echoey |"
        r"echoing |great |large )+(?:hall|room)|halls?",
        Room("hall", 2.0, 0.35),
    ),
    (
        r"stairwell|stairway|hallway|corridors?|parking (?:garage|lot)|garage|basement|cellar",
        Room("stairwell", 1.8, 0.4),
    ),
    (r"bathroom|shower|tiled room|restroom", Room("bathroom", 0.9, 0.4)),
    (r"canyon|valley|mountains?", Room("canyon", 2.2, 0.3)),
    (
        r"kitchen|classroom|office|living room|bedroom|small room|room|studio apartment|cafe|café|restaurant|"
        r"library|shop|store|bar|pub",
        Room("room", 0.45, 0.18),
    ),
    (
        r"(?:lots of |heavy |long |strong |very )?(?:reverb\w*|echo(?:y|es|ing)?|resonant|spacious)",
        Room("reverberant", 2.2, 0.4),
    ),
    (
        r"closet|recording (?:booth|studio)|studio|anechoic|dry(?:ly)?|dead room|padded|no (?:reverb|echo)",
        Room("dry", 0.08, 0.0),
    ),
    (
        r"outdoors?|outside|open air|field|street|forest|park|garden|beach|meadow|backyard|woods",
        Room("outdoors", 0.15, 0.04),
    ),
)


def room(text: str) -> Room | None:
    """The place a text names, with typical reverberation; the most reverberant reading of it first. None when none is
    named."""
    lowered = text.lower()
    if re.search(r"\b(?:no|without(?: any)?|free of) (?:reverb\w*|echo\w*)", lowered):
        return Room("dry", 0.08, 0.0)
    for pattern, place in _ROOMS:
        if re.search(rf"\b(?:{pattern})\b", lowered) and not re.search(rf"\bdoor ?bell (?:{pattern})\b", lowered):
            return place
    return None


@dataclass(frozen=True)
class Distance:
    """meters: 0.3 close to the ear, 1 near, 6 across a room, 20 far, 60 very far. end_meters: where a moving source
    ends."""

    meters: float
    end_meters: float

    @property
    def moving(self) -> str | None:
        """approaching, receding, or None."""
        if self.end_meters == self.meters:
            return None
        return "approaching" if self.end_meters < self.meters else "receding"


def distance(text: str) -> Distance | None:
    """How far away, and whether it comes or goes; None when nothing is said."""
    lowered = text.lower()
    if re.search(
        r"\b(?:pass(?:es|ing)?|driv(?:es|ing)|fl(?:ies|ying)|zoom\w*|rush\w*|speed\w*) (?:by|past)\b", lowered
    ):
        return None  # comes and goes: the sound's own affair
    if re.search(
        r"\b(?:approach\w*|com(?:es|ing) (?:closer|nearer|toward\w*)|(?:gets?|getting|draw\w*|mov\w+) (?:\w+ "
        r")?(?:closer|nearer)|toward\w*)\b",
        lowered,
    ):
        return Distance(30.0, 1.5)
    if re.search(
        r"\b(?:reced\w*|(?:driv|walk|mov|go|fad|fly|run|rid|pull)\w* (?:\w+ )?(?:away|off)|into the distance|"
        r"(?:gets?|getting|grow\w*) (?:\w+ )?(?:farther|further|more distant))\b",
        lowered,
    ):
        return Distance(1.5, 30.0)
    table = (
        (r"very far|far(?:,)? far away|miles away|faint and distant|on the horizon", 60.0),
        (
            r"distant(?:ly)?|in the (?:far )?distance|far(?:[- ]?away|[- ]?off)?|afar|remote(?!ly)|(?:down|up) the "
            r"(?:street|road)",
            25.0,
        ),
        (
            r"another room|next room|next door|behind a (?:wall|door)|through (?:a|the) (?:wall|door)|upstairs|"
            r"downstairs|across the (?:room|street|hall)|other side",
            8.0,
        ),
        (
            r"very close|right (?:next to|beside)|close[- ]?up|up close|close to the (?:mic\w*|ear|listener)|"
            r"intimate|in (?:your|the|my) ear|close[- ]?mic\w*",
            0.3,
        ),
        (r"near ?by|near|close(?:r|by)?|in the foreground|in front", 1.0),
    )
    return next((Distance(m, m) for pattern, m in table if re.search(rf"\b(?:{pattern})\b", lowered)), None)


@dataclass(frozen=True)
class Pan:
    """Side: start and end, -1 left, 0 centre, +1 right."""

    start: float
    end: float


def pan(text: str) -> Pan | None:
    """The side of "on the left", "from left to right", "in the right ear", "left channel"; None when none is named."""
    lowered = text.lower()
    side = r"(?:the )?(?:far |hard )?"
    match = re.search(
        rf"\b(?:from )?{side}(left|right)(?: \w+)? (?:to|across to|over to|towards?) {side}(left|right)\b", lowered
    )
    if match and match.group(1) != match.group(2):
        return Pan(-0.9, 0.9) if match.group(1) == "left" else Pan(0.9, -0.9)
    match = re.search(
        r"\b(?:(?:on|to|from|in|at|toward\w*) (?:the |your |my )?(?:far |hard )?(left|right)\b(?! (?:after|before|"
        r"away|now))|hard[- ](left|right)|(left|right)[- ](?:channel|speaker|ear|side|hand side))",
        lowered,
    )
    if match:
        value = -0.85 if (match.group(1) or match.group(2) or match.group(3)) == "left" else 0.85
        return Pan(value, value)
    return Pan(0.0, 0.0) if re.search(r"\b(?:cent(?:er|re)d?|in the middle of the stereo)\b", lowered) else None


_MANNERS: tuple[tuple[str, str], ...] = (
    ("whisper", r"whisper\w*|under (?:his|her|their) breath|hushed voice"),
    (
        "shout",
        r"shout\w*|yell\w*|scream\w*|bellow\w*|holler\w*|at the top of (?:his|her|their) (?:lungs|voice)|calls? out|"
        r"calling out",
    ),
    ("loud", r"loud(?:ly)?|booming|projecting|forceful\w*"),
    ("soft", r"soft(?:ly)?|quiet(?:ly)?|gentl[ey]|murmur\w*|mutter\w*|mumbl\w*|tender\w*|hushed|low voice|soothing\w*"),
    (
        "cheerful",
        r"cheer(?:ful|fully|y|ily)|happ(?:y|ily)|bright(?:ly)?|joyful\w*|merr(?:y|ily)|friendly|warm(?:ly)?|upbeat|"
        r"smiling|laughing",
    ),
    ("excited", r"excit\w*|enthusias\w*|thrilled|eager\w*|energetic\w*|ecstatic\w*|animated|breathless\w*"),
    (
        "tired",
        r"tired(?:ly)?|weary|wearily|exhausted|sleepy|sleepily|drowsy|drowsily|yawn\w*|groggy|fatigued|bored|listless",
    ),
    (
        "sad",
        r"sad(?:ly)?|mournful\w*|melanchol\w*|sorrow\w*|gloom\w*|tearful\w*|dejected|disappoint\w*|crying|"
        r"heartbroken|somber",
    ),
    (
        "angry",
        r"angr(?:y|ily)|furious\w*|irritat\w*|annoyed|annoyance|stern(?:ly)?|frustrat\w*|impatient\w*|harsh(?:ly)?|"
        r"snapp\w*",
    ),
    ("afraid", r"afraid|fear\w*|scared|terrified|nervous\w*|anxious\w*|trembl\w*|panick\w*|shaky|worried|frightened"),
    ("hesitant", r"hesita\w*|halting\w*|stammer\w*|stutter\w*|uncertain\w*|unsure|shy(?:ly)?|tentative\w*|falter\w*"),
    ("calm", r"calm(?:ly)?|relaxed|serene\w*|peaceful\w*|composed|even(?:ly)?[- ]toned|measured|patient(?:ly)?"),
    ("surprised", r"surpris\w*|astonish\w*|amazed|shocked|startled|incredul\w*"),
    ("urgent", r"urgent\w*|hurried(?:ly)?|in a (?:hurry|rush)|frantic\w*|rush\w*|alarmed"),
    (
        "monotone",
        r"monoton\w*|flat(?:ly)?(?! major| minor)|deadpan|emotionless|expressionless|matter[- ]of[- ]fact\w*|"
        r"neutral(?:ly)?|robotic(?:ally)?",
    ),
    ("fast", r"fast|quick(?:ly)?|rapid(?:ly)?|brisk(?:ly)?|speedy|hastily|at (?:a )?(?:high|double) speed"),
    ("slow", r"slow(?:ly)?|drawn[- ]out|drawling|unhurried\w*|deliberate(?:ly)?|leisurely|ponderous\w*"),
    ("robot", r"robot(?:ic|s)?(?:ally)?|android|computer(?:ized)? voice|synthetic voice|mechanical voice"),
    (
        "telephone",
        r"(?:over|on|through|via|down) (?:a|the) (?:(?:bad|old|crackly|crackling|poor|cell|mobile) "
        r")?(?:tele)?phone\w*|phone call|telephone(?: line| voice| quality)?|intercom|walkie[- ]talkie|voicemail",
    ),
    (
        "radio",
        r"(?:over|on|through|from) (?:a|an|the) (?:\w+ )?radio|radio (?:announcer|broadcast|voice)|megaphone|"
        r"loudspeaker|tannoy|public address|p\.?a\.? system",
    ),
    ("question", r"ask\w*|question\w*|inquir\w*|wonder\w*"),
    ("sarcastic", r"sarcas\w*|ironic\w*|mocking\w*"),
    ("singing", r"sing(?:s|ing)?\b|sung|chant\w*|croon\w*"),
)


def manners(text: str) -> tuple[str, ...]:
    """How a voice speaks, as names in a fixed order: whisper, shout, loud, soft, cheerful, excited, tired, sad, angry,
    afraid, hesitant, calm, surprised, urgent, monotone, fast, slow, robot, telephone, radio, question, sarcastic,
    singing."""
    lowered = text.lower()
    return tuple(name for name, pattern in _MANNERS if re.search(rf"\b(?:{pattern})\b", lowered))


@dataclass(frozen=True)
class Speaker:
    """A voice. age: child, young, adult or old. sex: female, male or None when the text leaves it open. register: low,
    high or None. label: the noun the text uses ("woman"); "" when none."""

    age: str
    sex: str | None
    register: str | None
    label: str


_FEMALE = (
    r"wom[ae]n|lad(?:y|ies)|girls?|female|mothers?|mom|mum|grandmothers?|grandma|granny|sisters?|daughter|queen|"
    r"aunt|wife|actress|waitress|she|her|herself|niece|stewardess|hostess|princess|witch|soprano|alto"
)
_MALE = (
    r"m[ae]n|guys?|boys?|males?|fathers?|dad|grandfathers?|grandpa|brothers?|son|king|uncle|husband|gentlem[ae]n|he|"
    r"him|his|himself|nephew|prince|wizard|baritone|tenor|pirate|monk"
)
_CHILD = (
    r"child(?:ren|ish|'s|’s)?|kids?|boys?|girls?|toddlers?|little (?:one|boy|girl)|schoolchild\w*|young(?:ster|sters)"
)
_OLD = (
    r"old(?!er (?:brother|sister))(?:er)?|elderly|aged|grand(?:mother|father|ma|pa|parent)s?|granny|senior|ancient|"
    r"wizened"
)
_ANY = (
    r"person|speaker|voice|someone|somebody|narrator|announcer|teacher|doctor|reporter|newsreader|host|pilot|"
    r"captain|coach|driver|clerk|student|neighbou?r|friend|guide|librarian|waiter|customer|robot|presenter|"
    r"commentator|storyteller|chef|nurse|adult|teenager|passenger|assistant|stranger|conductor"
)


def speaker(text: str) -> Speaker | None:
    """The speaker that a phrase describes, or None when it describes none. "The same X" and "another X" are the
    caller's."""
    lowered = text.lower()
    matches = {
        name: re.search(rf"(?<![\w-])(?:{pattern})\b(?!['’]s (?:phone|door|car|house))", lowered)
        for name, pattern in (("female", _FEMALE), ("male", _MALE), ("child", _CHILD), ("any", _ANY))
    }
    firsts = [m for m in matches.values() if m]
    if not firsts:
        return None
    female, male, child = matches["female"], matches["male"], matches["child"]
    sex = None
    if female and (not male or female.start() <= male.start()):
        sex = "female"
    elif male:
        sex = "male"
    age = "child" if child and not re.search(r"\byoung (?:wom|m)[ae]n\b", lowered) else "adult"
    if age == "adult" and re.search(rf"\b(?:{_OLD})\b", lowered):
        age = "old"
    elif age == "adult" and re.search(r"\byoung(?:er)?\b|\bteen\w*\b", lowered):
        age = "young"
    pitch = None
    if re.search(r"\b(?:deep|low(?:[- ]pitched)?|bass|gravelly|gruff|baritone|husky|rumbling)\b", lowered):
        pitch = "low"
    elif re.search(r"\b(?:high(?:[- ]pitched)?|squeaky|shrill|piping|falsetto|soprano)\b", lowered):
        pitch = "high"
    first = min(firsts, key=lambda m: m.start())
    return Speaker(age, sex, pitch, first.group())
