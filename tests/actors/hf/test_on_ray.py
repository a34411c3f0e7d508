"""The whole protocol on Ray through three models of random weights, each in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.actors.hf import on_ray
from tests.engine.systems import canary_bank
from torus_ray.cli.run import choose_systems
from torus_ray.engine.opening import Opening
from torus_ray.engine.session import RunOptions, RunResult, run_system
from torus_ray.protocol.graph import Arm
from torus_ray.store.manifest import read_manifest
from torus_ray.store.reader import current_rows
from torus_ray.systems import System

ARMS = (Arm("native"), Arm("self-caption"), Arm("native", control="muted"))
TYPES = ("speech", "sound", "music")


def tiny(system: System) -> System:
    """The system as composed, on CPUs, each kind in its environment, every head for every type and quick."""
    environments = on_ray.environments()
    hosts = {}
    for name, host in system.hosts.items():
        heads = {
            operation: head.model_copy(update={"audio_types": TYPES}) for operation, head in host.card.heads.items()
        }
        path = Path(host.card.weights["model"].path)
        hosts[name] = on_ray.tiny(host, environments[host.card.settings["kind"]], heads, path)
    return System(system.card.model_copy(update={"hosts": {n: h.card for n, h in hosts.items()}}), hosts)


@pytest.mark.ray
@pytest.mark.timeout(1200)
def test_three_models_in_three_environments_are_one_system(
    ray_address: str,
    tmp_path: Path,
) -> None:
    weights = on_ray.weights(tmp_path / "weights")
    generator, editor, listener = (f"hf:{weights / kind}" for kind in on_ray.KINDS)
    (composed,) = choose_systems([], model=None, generator=generator, editor=editor, listener=listener)
    assert composed.name == "stableaudiopipeline+acesteppipeline+musicflamingo"
    assert composed.edit_modes == ("native", "self-caption")
    bank = canary_bank(tmp_path / "bank", tests=3)
    told: list[str] = []
    options = RunOptions(tmp_path / "results", tests=bank.tests, arms=ARMS, opening=Opening(address=ray_address))
    system = tiny(composed)
    result = run_system(system, bank, options, tell=told.append)
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
    again = run_system(system, bank, options)
    assert again.computed == 0, "every unit has its row"


def _three_environments(result: RunResult, hosts: Iterable[str]) -> None:
    manifest = read_manifest(result.runs["native"])
    assert manifest is not None
    assert len({head.environment for head in manifest.heads.values()}) == 3
    generator, editor, listener = (set(manifest.versions[host]) for host in hosts)
    assert {"torch", "diffusers", "transformers"} <= generator & editor
    assert {"torch", "transformers"} <= listener
    assert "diffusers" not in listener
