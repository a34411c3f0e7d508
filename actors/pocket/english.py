"""Shallow English: what a prompt says, read with tables and regular expressions, as small frozen facts.

Nothing here knows of audio; the modules that render, edit and listen ask it for numbers, times, order, negation,
change, places,
manners and musical terms. All functions are pure, take plain text of any case, and return None or an empty tuple where
the text says
nothing. The parts live in modules of one idea; this one gathers them.

Order of use for a whole prompt::

    masked = mask(prompt)                # quotes become one private character each, so nothing inside them is read
    for element in split(masked.text):   # clauses in order of time, with how each relates to the one before
        said, absent = without(element.text)
        words = masked.quotes_in(element.text)
"""

from __future__ import annotations

from .english_change import Amount, Comparative, amount, amounts, comparatives, degree, is_negated, ratio, without
from .english_clauses import (
    FIRST_MASK,
    Element,
    Masked,
    Quote,
    coordinated,
    is_masked_quote,
    mask,
    quotes,
    sentences,
    split,
)
from .english_music import (
    MODES,
    Dynamics,
    Key,
    Meter,
    Tempo,
    articulation,
    dynamics,
    key,
    keys,
    meter,
    mode,
    register,
    tempo,
    tempo_change,
)
from .english_numbers import NUMBER, Moment, count, duration_s, interval_s, moment, number, ordinal, ordinals
from .english_place import Distance, Pan, Room, Speaker, distance, manners, pan, room, speaker
from .english_timing import Curve, Repetition, level_curve, pause_each, pause_s, repetition

__all__ = [
    "FIRST_MASK",
    "MODES",
    "NUMBER",
    "Amount",
    "Comparative",
    "Curve",
    "Distance",
    "Dynamics",
    "Element",
    "Key",
    "Masked",
    "Meter",
    "Moment",
    "Pan",
    "Quote",
    "Repetition",
    "Room",
    "Speaker",
    "Tempo",
    "amount",
    "amounts",
    "articulation",
    "comparatives",
    "coordinated",
    "count",
    "degree",
    "distance",
    "duration_s",
    "dynamics",
    "interval_s",
    "is_masked_quote",
    "is_negated",
    "key",
    "keys",
    "level_curve",
    "manners",
    "mask",
    "meter",
    "mode",
    "moment",
    "number",
    "ordinal",
    "ordinals",
    "pan",
    "pause_each",
    "pause_s",
    "quotes",
    "ratio",
    "register",
    "repetition",
    "room",
    "sentences",
    "speaker",
    "split",
    "tempo",
    "tempo_change",
    "without",
]
