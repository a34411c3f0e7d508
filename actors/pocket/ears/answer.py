"""From evidence and a question to a letter.

Every scorer looks at the question and either keeps silent or gives an opinion: a log-score an option and a weight.
The rule:

1. a scorer whose subject the stem names ("asked") counts in full; another counts a third where some asked scorer
speaks;
2. each opinion is centred over the options it speaks of; options it does not speak of get its mean less one;
3. the weighted sum decides, plus 0.8 times the standardised MiniLM similarity of the option (read with its stem) to
the nearest
   sentence of the clip's description where no scorer speaks, 0.12 times where one does;
4. the largest sum wins; the first letter wins a tie.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from torus_ray.heads import Question

from . import after, traits_level, traits_music, traits_place, traits_voice, words
from .compare import compare
from .describe import sentences
from .layers import layers
from .moments import moment
from .order import identity, pattern, sequence, turn_pattern
from .quantities import quantity
from .reading import Asked, read
from .signal import Array
from .traits import Opinion
from .which import which

if TYPE_CHECKING:
    from .listen import Evidence

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TRAITS = (*traits_level.TRAITS, *traits_voice.TRAITS, *traits_music.TRAITS, *traits_place.TRAITS)
SCORERS: tuple[Callable[[Asked, "Evidence"], Opinion | None], ...] = (
    quantity,
    *words.SCORERS,
    *traits_voice.SCORERS,
    turn_pattern,
    pattern,
    sequence,
    compare,
    which,
    *after.SCORERS,
    layers,
    moment,
    identity,
)
OVERRIDES: dict[str, tuple[str, ...]] = {
    "layers": ("distance", "source", "loudness", "sequence", "place pattern", "level pattern", "which"),
    "follows": ("source", "sequence", "material", "tonality", "times", "which"),
    "background": ("source", "speaker", "voices", "medium", "material", "tonality", "texture", "percussion"),
    "which": (
        "loudness course",
        "pitch course",
        "pace course",
        "loudness",
        "length",
        "register",
        "brightness",
        "distance",
        "source",
        "moment",
        "times",
        "voices",
        "texture",
        "comparison",
        "medium",
        "regularity",
        "ending",
        "opening",
        "level pattern",
        "length pattern",
        "pitch pattern",
        "place pattern",
    ),
    "comparison": (
        "loudness course",
        "pitch course",
        "pace course",
        "loudness",
        "length",
        "register",
        "brightness",
        "distance",
    ),
    "words": ("times", "source", "speaker", "material", "manner", "mood", "age"),
    "stress": ("source", "speaker", "material", "mood", "age"),
    "turns": ("source", "voices", "speaker"),
    "voices": ("source", "speaker"),
    "speaker": ("source",),
    "age": ("source",),
    "sequence": ("source", "material", "tonality"),
    "moment": ("ending", "opening", "source", "loudness course", "pitch course"),
    "manner": ("tempo", "source"),
    "beats a bar": ("meter", "times"),
    "room": ("source", "material"),
    "distance": ("source", "medium"),
    "loudness course": ("loudness",),
    "pitch course": ("register",),
    "material": ("source",),
    "medium": ("source",),
    "brightness": ("source",),
    "register": ("source",),
    "meter": ("tempo", "source"),
    "articulation": ("length", "continuity"),
    "percussion": ("source",),
}
"""What a special opinion leaves no say to when the stem asks for it."""
PATTERNS = ("pitch pattern", "level pattern", "length pattern", "place pattern", "side pattern", "pace pattern")
_COURSES = (
    "loudness course",
    "pitch course",
    "pace course",
    "loudness",
    "length",
    "register",
    "side",
    "distance",
    "tempo",
    "manner",
    "brightness",
    "source",
    "sequence",
)


def opinions(asked: Asked, evidence: Evidence) -> list[Opinion]:
    """Everything the scorers say, without what a more special one overrides."""
    said = [s(asked, evidence) for s in SCORERS] + [t.opinion(asked, evidence) for t in TRAITS]
    found = [o for o in said if o is not None and _differs(o)]
    muted = {name for o in found if o.asked for name in OVERRIDES.get(o.name, ())}
    if any(o.name in PATTERNS for o in found):
        muted |= set(_COURSES)
    return [o for o in found if o.name not in muted]


def _differs(opinion: Opinion) -> bool:
    known = [s for s in opinion.scores if s is not None]
    return len(known) >= 2 and max(known) - min(known) > 1e-9


def total(asked: Asked, evidence: Evidence) -> Array:
    """Score of each option by the module's rule."""
    found = opinions(asked, evidence)
    named = any(o.asked for o in found)
    scores = np.zeros(len(asked.options))
    for opinion in found:
        known = [s for s in opinion.scores if s is not None]
        centre = float(np.mean(known))
        row = [-1.0 if s is None else s - centre for s in opinion.scores]
        scores += np.asarray(row) * opinion.weight * (1.0 if opinion.asked or not named else 0.33)
    return scores + (0.12 if found else 0.8) * similarity(asked, evidence)


def similarity(asked: Asked, evidence: Evidence) -> Array:
    """Standardised nearness of each option, read with its stem, to the nearest sentence of the description."""
    facts = evidence.models.embedder(sentences(evidence))
    texts = evidence.models.embedder([f"{asked.stem} {o}" for o in asked.options])
    near = (texts @ facts.T).max(axis=1)
    return (near - near.mean()) / max(float(near.std()), 1e-6)


def choose(evidence: Evidence, question: Question) -> str:
    """The letter of the best option."""
    asked = read(question)
    return LETTERS[int(np.argmax(np.round(total(asked, evidence), 9)))]
