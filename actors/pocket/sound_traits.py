"""What a phrase says about a sound beside its source: material, size, force, speed, number, spacing, trend.

Words are looked up in tables; a word that stands in no table says nothing. Sizes and speeds are factors (1 = as usual),
force is 0 (gentlest) to 1 (hardest).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from . import english

MOST = 24
"""More occurrences than this are not counted out."""

MATERIALS: Mapping[str, tuple[str, ...]] = {
    "wood": (
        "wood",
        "wooden",
        "oak",
        "pine",
        "timber",
        "plank",
        "planks",
        "parquet",
        "hardwood",
        "floorboards",
        "floorboard",
        "boardwalk",
        "bamboo",
        "log",
    ),
    "metal": (
        "metal",
        "metallic",
        "steel",
        "iron",
        "tin",
        "copper",
        "brass",
        "aluminium",
        "aluminum",
        "anvil",
        "pipe",
        "pan",
        "pot",
        "sheet-metal",
        "corrugated",
        "grate",
        "rail",
        "silver",
        "can",
    ),
    "glass": (
        "glass",
        "crystal",
        "window",
        "pane",
        "bottle",
        "jar",
        "windowpane",
        "mirror",
        "windscreen",
        "windshield",
    ),
    "ceramic": (
        "ceramic",
        "porcelain",
        "china",
        "plate",
        "mug",
        "bowl",
        "dish",
        "vase",
        "teacup",
        "cup",
        "saucer",
        "clay",
        "tile",
        "tiles",
        "tiled",
    ),
    "stone": (
        "stone",
        "concrete",
        "marble",
        "rock",
        "brick",
        "pavement",
        "cobblestone",
        "cobblestones",
        "cobbles",
        "asphalt",
        "granite",
        "sidewalk",
        "cement",
        "road",
        "street",
    ),
    "gravel": ("gravel", "pebbles", "shingle", "gritty", "grit"),
    "snow": ("snow", "snowy", "ice", "icy", "frost"),
    "leaves": ("leaves", "leaf", "grass", "grassy", "hay", "straw", "forest", "undergrowth", "twigs"),
    "mud": ("mud", "muddy", "puddle", "puddles", "swamp", "marsh", "slush", "slushy", "wet", "soggy"),
    "water": ("water", "pool", "lake", "river", "sea"),
    "sand": ("sand", "sandy", "beach", "dirt", "earth", "soil", "dust"),
    "carpet": (
        "carpet",
        "carpeted",
        "rug",
        "cloth",
        "fabric",
        "canvas",
        "tent",
        "umbrella",
        "curtain",
        "felt",
        "blanket",
        "pillow",
    ),
    "paper": ("paper", "cardboard", "book", "newspaper", "page", "envelope"),
    "plastic": ("plastic", "vinyl", "lino", "linoleum", "bucket", "tarp", "tarpaulin"),
    "rubber": ("rubber", "basketball", "football", "tire", "tyre"),
    "leather": ("leather", "skin"),
}
SIZES: Mapping[str, float] = {
    "tiny": 0.45,
    "small": 0.65,
    "little": 0.65,
    "miniature": 0.45,
    "mini": 0.5,
    "short": 0.8,
    "light": 0.8,
    "thin": 0.75,
    "puppy": 0.6,
    "kitten": 0.6,
    "chihuahua": 0.5,
    "toy": 0.55,
    "young": 0.75,
    "baby": 0.7,
    "lamb": 0.75,
    "calf": 0.8,
    "large": 1.6,
    "big": 1.5,
    "huge": 2.2,
    "giant": 2.4,
    "enormous": 2.4,
    "massive": 2.2,
    "heavy": 1.5,
    "heavily": 1.5,
    "thick": 1.4,
    "tall": 1.3,
    "great": 1.5,
    "mastiff": 1.7,
    "hound": 1.4,
    "terrier": 0.75,
    "desk": 0.7,
    "grandfather": 1.6,
    "church": 1.6,
    "cathedral": 2.0,
    "tower": 1.9,
    "deep": 1.5,
    "low": 1.35,
    "low-pitched": 1.5,
    "deep-pitched": 1.5,
    "high-pitched": 0.65,
    "high": 0.75,
    "shrill": 0.6,
    "squeaky": 0.6,
    "low-pitch": 1.5,
}
FORCES: Mapping[str, float] = {
    "gentle": 0.2,
    "gently": 0.2,
    "soft": 0.2,
    "softly": 0.2,
    "light": 0.3,
    "lightly": 0.25,
    "quiet": 0.2,
    "quietly": 0.2,
    "faint": 0.12,
    "faintly": 0.12,
    "delicate": 0.2,
    "delicately": 0.2,
    "slight": 0.25,
    "slightly": 0.3,
    "mild": 0.3,
    "timid": 0.2,
    "careful": 0.25,
    "carefully": 0.25,
    "barely": 0.12,
    "hushed": 0.15,
    "muted": 0.2,
    "weak": 0.2,
    "drizzle": 0.2,
    "drizzling": 0.2,
    "breeze": 0.25,
    "hard": 0.8,
    "heavy": 0.8,
    "heavily": 0.8,
    "loud": 0.85,
    "loudly": 0.85,
    "strong": 0.8,
    "strongly": 0.8,
    "forceful": 0.85,
    "forcefully": 0.85,
    "violent": 0.95,
    "violently": 0.95,
    "powerful": 0.9,
    "slam": 0.85,
    "slams": 0.85,
    "slamming": 0.85,
    "slammed": 0.85,
    "pounding": 0.85,
    "banging": 0.85,
    "booming": 0.85,
    "fierce": 0.9,
    "fiercely": 0.9,
    "furious": 0.95,
    "furiously": 0.95,
    "aggressive": 0.9,
    "aggressively": 0.9,
    "intense": 0.85,
    "torrential": 0.95,
    "downpour": 0.95,
    "pouring": 0.85,
    "storm": 0.9,
    "stormy": 0.9,
    "gale": 0.9,
    "howling": 0.85,
    "roaring": 0.9,
    "huge": 0.8,
    "massive": 0.85,
    "deafening": 1.0,
    "stomping": 0.9,
    "enthusiastic": 0.8,
    "thunderous": 0.95,
}
SPEEDS: Mapping[str, float] = {
    "slow": 0.6,
    "slowly": 0.6,
    "leisurely": 0.65,
    "unhurried": 0.65,
    "lazy": 0.65,
    "lazily": 0.65,
    "strolling": 0.8,
    "creeping": 0.5,
    "fast": 1.6,
    "quick": 1.5,
    "quickly": 1.5,
    "rapid": 1.8,
    "rapidly": 1.8,
    "brisk": 1.35,
    "briskly": 1.35,
    "hurried": 1.5,
    "hurriedly": 1.5,
    "frantic": 2.0,
    "frantically": 2.0,
    "running": 1.6,
    "runs": 1.6,
    "run": 1.6,
    "sprinting": 2.0,
    "jogging": 1.45,
    "racing": 1.7,
    "urgent": 1.6,
    "urgently": 1.6,
    "galloping": 1.9,
    "gallop": 1.9,
    "trotting": 1.3,
    "trot": 1.3,
    "hasty": 1.6,
    "furious": 1.7,
    "furiously": 1.7,
    "sluggish": 0.5,
    "panicked": 1.8,
    "swift": 1.5,
    "swiftly": 1.5,
    "speedy": 1.6,
}
EXTRA_COUNTS: Mapping[str, int] = {"double": 2, "both": 2, "triple": 3}
RISING = re.compile(
    r"\b(?:rising|rises?|growing|grows|builds?|building|crescendo|louder and louder|gets? louder|getting louder|"
    r"becom\w+ louder|swell\w*|intensif\w+|"
    r"(?:starts?|starting|begins?|beginning) to (?:whistle|boil|howl|blow|rain))\b"
)
FALLING = re.compile(
    r"\b(?:fading|fades?|dying (?:away|down|out)|dies (?:away|down|out)|quieter and quieter|gets? quieter|"
    r"getting quieter|subsid\w+|diminish\w+|trail\w* off)\b"
)
HASTENING = re.compile(
    r"\b(?:accelerat\w+|speed(?:s|ing)? up|faster and faster|gets? faster|getting faster|becom\w+ faster|quicken\w*|"
    r"gathering speed|revv?\w*)\b"
)
SLACKENING = re.compile(
    r"\b(?:decelerat\w+|slow(?:s|ing)? down|slower and slower|gets? slower|getting slower|becom\w+ slower)\b"
)


@dataclass(frozen=True)
class Traits:
    """What a phrase says of a sound.

    material: a key of MATERIALS, or None; surface: the material after on/onto/against/through/into.
    size, speed: factors, 1 as usual. force: 0 to 1, 0.5 as usual. wet: whether water is named. count: how many
    times, or None.
    gap_s: seconds from one onset to the next, or None. level_trend, tempo_trend: -1 falling, 0, +1 rising. words:
    all words.
    """

    material: str | None = None
    surface: str | None = None
    size: float = 1.0
    force: float = 0.5
    speed: float = 1.0
    wet: bool = False
    count: int | None = None
    gap_s: float | None = None
    level_trend: int = 0
    tempo_trend: int = 0
    words: frozenset[str] = frozenset()

    def solid(self, otherwise: str) -> str:
        """The material struck: the surface named, else the material named, else `otherwise`."""
        return self.surface or self.material or otherwise

    def has(self, *words: str) -> bool:
        """Whether any of the words stands in the phrase."""
        return not self.words.isdisjoint(words)


def traits_of(phrase: str) -> Traits:
    """Read the traits in an English phrase."""
    text = " ".join(phrase.lower().replace("’", "'").split())
    words = re.findall(r"[a-z][a-z'\-]*", text)
    after = re.split(r"\b(?:on|onto|against|through|over|across|into|hitting|striking|upon|in)\b", text, maxsplit=1)
    surface = _material(re.findall(r"[a-z][a-z'\-]*", after[1])) if len(after) > 1 else None
    speed = _product(words, SPEEDS)
    return Traits(
        material=_material(words),
        surface=surface,
        size=min(3.0, max(0.35, _product(words, SIZES))),
        force=_force(words),
        speed=min(3.0, max(0.3, speed)),
        wet=bool({"wet", "rainy", "soaked", "puddle", "puddles", "water", "slushy"} & set(words)),
        count=_count(text, words),
        gap_s=_gap(text),
        level_trend=1 if RISING.search(text) else -1 if FALLING.search(text) else 0,
        tempo_trend=1 if HASTENING.search(text) else -1 if SLACKENING.search(text) else 0,
        words=frozenset(words),
    )


def _material(words: list[str]) -> str | None:
    for word in words:
        for name, named in MATERIALS.items():
            if word in named:
                return name
    return None


def _product(words: list[str], table: Mapping[str, float]) -> float:
    out = 1.0
    for word in dict.fromkeys(words):
        out *= table.get(word, 1.0)
    return out


def _force(words: list[str]) -> float:
    found = [FORCES[word] for word in words if word in FORCES]
    shift = 0.12 if {"very", "extremely"} & set(words) else 0.0
    if not found:
        return 0.5
    mean = sum(found) / len(found)
    return min(1.0, max(0.05, mean + (shift if mean > 0.5 else -shift)))


def _count(text: str, words: list[str]) -> int | None:
    named = english.count(text) or next((EXTRA_COUNTS[word] for word in words if word in EXTRA_COUNTS), None)
    return None if named is None else min(named, MOST)


def _gap(text: str) -> float | None:
    tempo = english.tempo(text)
    if tempo is not None and tempo.exact:
        return 60.0 / tempo.bpm
    return english.interval_s(text)
