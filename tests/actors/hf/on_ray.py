"""Models of random weights for runs on Ray: each kind in the environment that it has in these tests."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.actors.hf.environments import MODERN, smaller
from tests.actors.measures.environments import REPOSITORY, make, variables
from torus_ray.engine.environments import EnvironmentSpec
from torus_ray.systems import HeadCard, HostSpec
from torus_ray.systems.weights import WeightCard

STEPS = {"num_inference_steps": 2, "guidance_scale": 1.0}
KINDS = ("StableAudioPipeline", "AceStepPipeline", "musicflamingo")
QUICK: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("StableAudioPipeline", "generate"): {**STEPS, "audio_end_in_s": 0.2},
    ("StableAudioPipeline", "edit"): STEPS,
    ("AceStepPipeline", "generate"): {**STEPS, "audio_duration": 0.4},
    ("AceStepPipeline", "edit"): {**STEPS, "task_type": "cover"},
    ("musicflamingo", "caption"): {"max_new_tokens": 6, "min_new_tokens": 3},
    ("musicflamingo", "answer"): {"max_new_tokens": 4},
}
"""(kind, operation) -> settings that a tiny model is quick with."""
SMALL = {"num_gpus": 0.0, "gpu_memory_gb": 0.0, "num_cpus": 0.25, "memory_gb": 0.5, "replicas": 1}
MAKE = """
import sys
from pathlib import Path
from tests.actors.hf.tiny_generators import GENERATORS
from tests.actors.hf.tiny_listeners import LISTENERS
for kind in sys.argv[2:]:
    {**GENERATORS, **LISTENERS}[kind](Path(sys.argv[1]) / kind)
"""


def environments() -> dict[str, EnvironmentSpec]:
    """Kind -> where it runs."""
    return {
        "StableAudioPipeline": make(MODERN)[0],
        "AceStepPipeline": smaller("hf-editor"),
        "musicflamingo": smaller("hf-listener"),
    }


def weights(folder: Path) -> Path:
    """The folder with a checkpoint of each kind, which bears the kind's name."""
    spec, python = make(MODERN)
    command = [str(python), "-c", MAKE, str(folder), *KINDS]
    subprocess.run(command, check=True, cwd=REPOSITORY, env=variables(spec))
    return folder


def tiny(host: HostSpec, spec: EnvironmentSpec, heads: Mapping[str, HeadCard], checkpoint: Path) -> HostSpec:
    """A host of the project's cards with other weights, on a CPU; heads: what is said of those that it serves."""
    settings = host.card.settings
    kind = settings["kind"]
    quick = {
        operation: head.model_copy(update={"settings": QUICK[kind, operation]}) for operation, head in heads.items()
    }
    cut = {"long_prompt": "cut"} if "long_prompt" in settings else {}
    update = {
        **SMALL,
        "environment": str(spec.file),
        "settings": {**settings, "dtype": "float32", **cut},
        "weights": {"model": WeightCard(path=str(checkpoint))},
        "heads": quick,
    }
    return replace(host, card=host.card.model_copy(update=update))
