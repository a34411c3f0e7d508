"""The whole protocol on Ray through three models of random weights, each in an environment of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.actors.hf.environments import MODERN, smaller
from tests.actors.measures.environments import REPOSITORY, make, variables
from tests.engine.conftest import ray_address, ray_cluster  # noqa: F401
from tests.engine.systems import canary_bank
from torus_ray.cli.run import choose_systems
from torus_ray.engine.environments import EnvironmentSpec
from torus_ray.engine.opening import Opening
from torus_ray.engine.session import RunOptions, RunResult, run_system
from torus_ray.protocol.graph import Arm
from torus_ray.store.manifest import read_manifest
from torus_ray.store.reader import current_rows
from torus_ray.systems import System

ARMS = (Arm("native"), Arm("self-caption"), Arm("native", control="muted"))
TYPES = ("speech", "sound", "music")
STEPS = {"num_inference_steps": 2, "guidance_scale": 1.0}
HEADS: dict[str, dict[str, Any]] = {
    "generate": {**STEPS, "audio_end_in_s": 0.2},
    "edit": {**STEPS, "task_type": "cover"},
    "caption": {"max_new_tokens": 6, "min_new_tokens": 3},
    "answer": {"max_new_tokens": 4},
}
"""Operation -> settings that a tiny model is quick with."""
MAKE = """
import sys
from pathlib import Path
from tests.actors.hf.tiny_generators import GENERATORS
from tests.actors.hf.tiny_listeners import LISTENERS
for kind in ("StableAudioPipeline", "AceStepPipeline", "musicflamingo"):
    {**GENERATORS, **LISTENERS}[kind](Path(sys.argv[1]) / kind)
"""


@pytest.fixture(scope="module")
def environments() -> dict[str, EnvironmentSpec]:
    """Kind -> where it runs."""
    return {
        "StableAudioPipeline": make(MODERN)[0],
        "AceStepPipeline": smaller("hf-editor"),
        "musicflamingo": smaller("hf-listener"),
    }


@pytest.fixture(scope="module")
def weights(environments: dict[str, EnvironmentSpec], tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec, python = make(MODERN)
    folder = tmp_path_factory.mktemp("weights")
    subprocess.run([str(python), "-c", MAKE, str(folder)], check=True, cwd=REPOSITORY, env=variables(spec))
    return folder


def tiny(system: System, environments: dict[str, EnvironmentSpec]) -> System:
    """The system as composed, on CPUs, each kind in its environment, every head for every type and quick."""
    hosts = {}
    for name, host in system.hosts.items():
        heads = {
            operation: head.model_copy(update={"audio_types": TYPES, "settings": HEADS[operation]})
            for operation, head in host.card.heads.items()
        }
        kind = host.card.settings["kind"]
        cut = {"long_prompt": "cut"} if "long_prompt" in host.card.settings else {}
        update = {
            "environment": str(environments[kind].file),
            "settings": {**host.card.settings, "dtype": "float32", **cut},
            "heads": heads,
            "num_gpus": 0.0,
            "num_cpus": 0.5,
            "memory_gb": 0.5,
            "replicas": 1,
        }
        hosts[name] = replace(host, card=host.card.model_copy(update=update))
    return System(system.card.model_copy(update={"hosts": {n: h.card for n, h in hosts.items()}}), hosts)


@pytest.mark.ray
@pytest.mark.timeout(1200)
def test_three_models_in_three_environments_are_one_system(
    environments: dict[str, EnvironmentSpec],
    weights: Path,
    ray_address: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    generator, editor, listener = (f"hf:{weights / kind}" for kind in environments)
    (composed,) = choose_systems([], model=None, generator=generator, editor=editor, listener=listener)
    assert composed.name == "stableaudiopipeline+acesteppipeline+musicflamingo"
    assert composed.edit_modes == ("native", "self-caption")
    bank = canary_bank(tmp_path / "bank", tests=3)
    told: list[str] = []
    options = RunOptions(tmp_path / "results", tests=bank.tests, arms=ARMS, opening=Opening(address=ray_address))
    result = run_system(tiny(composed, environments), bank, options, tell=told.append)
    for arm, operations in {"native": {"generate", "edit"}, "self-caption": {"generate"}}.items():
        renders = current_rows(result.runs[arm], "renders")
        assert len(renders) == 9
        assert set(renders["status"]) == {"ok"}, (told, renders["reason"].to_list())
        assert set(renders["operation"]) == operations
        answers = current_rows(result.runs[arm], "answers")
        assert len(answers) == 27
        assert set(answers["status"]) <= {"ok", "unparsed"}
    assert set(current_rows(result.runs["self-caption"], "captions")["status"]) == {"ok"}
    _three_environments(result, composed.hosts)
    again = run_system(tiny(composed, environments), bank, options)
    assert again.computed == 0, "every unit has its row"


def _three_environments(result: RunResult, hosts: Iterable[str]) -> None:
    manifest = read_manifest(result.runs["native"])
    assert manifest is not None
    assert len({head.environment for head in manifest.heads.values()}) == 3
    generator, editor, listener = (set(manifest.versions[host]) for host in hosts)
    assert {"torch", "diffusers", "transformers"} <= generator & editor
    assert {"torch", "transformers"} <= listener
    assert "diffusers" not in listener
