"""What type checkers see of the public API; see __init__.py, which loads it lazily."""

from pathlib import Path

import polars

from torus_ray.answers.letters import Reading, read_letter
from torus_ray.bank.order import letter_of, option_order, shown_options
from torus_ray.errors import InputError
from torus_ray.metrics.convention import Convention, Measure
from torus_ray.metrics.frechet import frechet_distance, frechet_moments
from torus_ray.metrics.kernel import kernel_distance
from torus_ray.metrics.kl import Kl, clip_probabilities, kl, kl_divergence, kl_from_logits
from torus_ray.metrics.modality import Modality, class_labels, modality_check, nearest_labels
from torus_ray.metrics.sets import (
    ClipSet,
    Floor,
    SetDistance,
    clip_set,
    distance_floor,
    frechet,
    mmd,
    swapped_difference,
    without_each_test,
)
from torus_ray.metrics.table import CONVENTIONS, convention_of
from torus_ray.metrics.wer import Wer, WordErrors, loops, normalise, normaliser, wer, word_errors
from torus_ray.stats.clips import estimate_clips
from torus_ray.stats.coherence import coherence
from torus_ray.stats.intervals import Estimate, Interval, estimate, estimates, wilson_interval
from torus_ray.stats.jackknife import Jackknife, jackknife
from torus_ray.stats.paired import PairedDifference, paired_difference
from torus_ray.stats.swap import SwapTest, sign_flip, swap_test

__all__ = [
    "CONVENTIONS",
    "ClipSet",
    "Convention",
    "Estimate",
    "Floor",
    "InputError",
    "Interval",
    "Jackknife",
    "Kl",
    "Measure",
    "Modality",
    "PairedDifference",
    "Reading",
    "SetDistance",
    "SwapTest",
    "Wer",
    "WordErrors",
    "__version__",
    "class_labels",
    "clip_probabilities",
    "clip_set",
    "coherence",
    "convention_of",
    "distance_floor",
    "estimate",
    "estimate_clips",
    "estimates",
    "frechet",
    "frechet_distance",
    "frechet_moments",
    "jackknife",
    "kernel_distance",
    "kl",
    "kl_divergence",
    "kl_from_logits",
    "letter_of",
    "load",
    "loops",
    "mmd",
    "modality_check",
    "nearest_labels",
    "normalise",
    "normaliser",
    "option_order",
    "paired_difference",
    "read_letter",
    "shown_options",
    "sign_flip",
    "swap_test",
    "swapped_difference",
    "wer",
    "wilson_interval",
    "without_each_test",
    "word_errors",
]

__version__: str

def load(run: str | Path) -> dict[str, polars.DataFrame]: ...
