"""torus-ray: the engine that runs TORUS, the test of rendering-understanding self-coherence, on Ray.

The public API (docs/python.md) is what `__all__` names, each loaded when it is first used. Importing this package pulls
in nothing: a host imports it inside the environment of the model that it serves, where only numpy, soundfile and soxr
can be counted on.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import polars

__version__ = "0.1.0"

# Where each public name lives. __init__.pyi says the same to type checkers; a test holds the two together.
_MODULES = {
    "answers.letters": ("Reading", "read_letter"),
    "bank.order": ("letter_of", "option_order", "shown_options"),
    "errors": ("InputError",),
    "metrics.convention": ("Convention", "Measure"),
    "metrics.frechet": ("frechet_distance", "frechet_moments"),
    "metrics.kernel": ("kernel_distance",),
    "metrics.kl": ("Kl", "clip_probabilities", "kl", "kl_divergence", "kl_from_logits"),
    "metrics.modality": ("Modality", "class_labels", "modality_check", "nearest_labels"),
    "metrics.sets": (
        *("ClipSet", "Floor", "SetDistance", "clip_set", "distance_floor", "frechet", "mmd"),
        *("swapped_difference", "without_each_test"),
    ),
    "metrics.table": ("CONVENTIONS", "convention_of"),
    "metrics.wer": ("Wer", "WordErrors", "loops", "normalise", "normaliser", "wer", "word_errors"),
    "stats.clips": ("estimate_clips",),
    "stats.coherence": ("coherence",),
    "stats.intervals": ("Estimate", "Interval", "estimate", "estimates", "wilson_interval"),
    "stats.jackknife": ("Jackknife", "jackknife"),
    "stats.paired": ("PairedDifference", "paired_difference"),
    "stats.swap": ("SwapTest", "sign_flip", "swap_test"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", "load", *sorted(_HOMES)]


def load(run: str | Path) -> dict[str, polars.DataFrame]:
    """The current rows of a run folder, ``results/<bank>@<hash8>/<system>/<arm>/``, or of its s3:// URI: a Polars
    frame for each table.

    Also while the run is being made, and from one that was stopped; a table without rows has its typed columns.
    Unknown values are null. Raises errors.InputError where the folder is no run, with the runs below it.
    """
    from torus_ray.errors import InputError
    from torus_ray.store.layout import find_runs
    from torus_ray.store.manifest import read_manifest
    from torus_ray.store.mirror import local_folder, look_into, named
    from torus_ray.store.reader import current_rows
    from torus_ray.store.tables import TABLES

    folder = local_folder(run)
    look_into(folder)
    if read_manifest(folder) is None:
        below = find_runs(folder)
        near = ", ".join(map(named, below[:5])) + (f" and {len(below) - 5} more" if len(below) > 5 else "")
        raise InputError(
            f"{named(folder)} is no run, but {len(below)} lie below it" if below else f"no run at {named(folder)}",
            where=named(folder.absolute()),
            expected=f"one run folder: {near}" if below else "a run folder: it holds run.json",
            mend="load them one by one" if below else "check the path; `torus run` prints it",
        )
    return {table: current_rows(folder, table) for table in TABLES}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
