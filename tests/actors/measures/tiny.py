"""The cards that measure, random weights in the places of their own, each in the environment that it has in tests."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.actors.measures.environments import REPOSITORY, make, variables
from torus_ray.systems import System, load_system


@dataclass(frozen=True)
class Tiny:
    """A card of the project with random weights in the place of its own.

    made_by: what its own tests make them with. weights: by the card's names, where they lie in what that returns.
    """

    card: str
    environment: str
    made_by: str
    weights: Mapping[str, str] = field(default_factory=lambda: {"model": "."})
    settings: Mapping[str, Any] = field(default_factory=dict)


PASST = {"embed_dim": 24, "depth": 1, "num_heads": 2}
HEADS = (
    Tiny("whisper-large-v3", "metrics-asr-clap", "test_whisper:checkpoint"),
    Tiny("clap", "metrics-asr-clap", "test_clap:checkpoint"),
    Tiny("passt", "metrics-passt", "test_passt:weights", settings={"network": PASST}),
    Tiny("vggish", "metrics-vggish", "test_vggish:weights"),
    Tiny("fad.gudgud96", "metrics-parity", "test_parity:hub_folder", {"hub": "."}),
)
LAION = Tiny("clap.laion", "metrics-parity", "test_parity:laion_files", {"model": "laion.pt", "texts": "."})
"""As large as the published one: laion_clap builds no other."""
MAKE = """
import importlib, pathlib, sys, types
sys.modules["tests"] = types.ModuleType("tests")  # laion-clap installs a package of this name
sys.modules["tests"].__path__ = ["tests"]
module, _, function = sys.argv[1].partition(":")
print(getattr(importlib.import_module("tests.actors.measures." + module), function)(pathlib.Path(sys.argv[2])))
"""


def with_tiny_weights(tiny: Tiny, folder: Path) -> System:
    """The card's system on a CPU; its weights are made in `folder`, by its own environment."""
    spec, python = make(tiny.environment)
    command = [str(python), "-c", MAKE, tiny.made_by, str(folder)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=variables(spec))
    made = Path(told.stdout.split()[-1])
    card = load_system(tiny.card)
    ((name, spec_of),) = card.hosts.items()
    update = {
        "environment": str(spec.file),
        "settings": dict(tiny.settings),
        "weights": {
            weight: spec_of.card.weights[weight].model_copy(update={"path": str(made / inside), "sha256": None})
            for weight, inside in tiny.weights.items()
        },
        "num_gpus": 0.0,
        "memory_gb": 0.5,
    }
    return System(card.card, {name: replace(spec_of, card=spec_of.card.model_copy(update=update))})
