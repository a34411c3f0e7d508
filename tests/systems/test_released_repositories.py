"""What holds for all adapters of released repositories: their environments, weights, shim."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.released.cases import CASES
from tests.systems.released import facts, fake_torch, install, serve
from torus_ray.engine.env_spec import find_environment
from torus_ray.engine.hosting import load_class
from torus_ray.systems import load_system

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "audio-omni": "audio_omni",
    "uniaudio2": "uniaudio2",
    "unified-io-2": "unified_io2",
    "tangoflux": "tangoflux",
    "ace-step": "ace_step",
    "step-audio-editx": "step_audio_editx",
    "mmedit": "mmedit",
}


@pytest.mark.parametrize("name", FOLDERS)
def test_an_environment_holds_the_commit_that_was_recorded(name: str) -> None:
    told, spec = facts(name), find_environment(name)
    (source,) = spec.sources
    assert (source.git, source.commit) == (f"https://github.com/{told['repository']}.git", told["commit"])
    assert spec.env_vars["HF_HUB_OFFLINE"] == "1"
    system = load_system(name)
    assert {host.card.environment for host in system.hosts.values()} == {name}
    # No card claims more than was shown: the calls alone, or the networks with tiny weights (tests/released).
    assert system.card.proven == ("real code, tiny weights" if name in CASES else "contract")
    assert told["commit"][:8] in system.card.about


@pytest.mark.parametrize("name", FOLDERS)
def test_missing_weights_are_named_before_any_code_of_the_model_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No stand-in is installed: an import of the model would be another error.
    weights: dict[str, list[str]] = {key: [] for key in next(iter(load_system(name).hosts.values())).card.weights}
    with pytest.raises(RuntimeError, match=r"there is no .*\n  where: .*\n  expected: .*\n  mend: "):
        serve(name, weights, tmp_path)


def test_a_call_that_the_released_code_would_not_take_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_torch(monkeypatch)
    made = install("tangoflux", monkeypatch, {})
    net = made.modules["tangoflux.model"].TangoFlux({})
    with pytest.raises(TypeError, match=r"declare-lab/TangoFlux.*steps"):
        net.inference_flow("a dog", steps=50)
    with pytest.raises(TypeError, match="prompt"):
        net.inference_flow()
    with pytest.raises(AttributeError):
        net.generate("a dog")
    with pytest.raises(AssertionError, match="no attribute"):
        net.seed = 1


def test_the_shim_lets_instances_be_defaults_and_goes_away() -> None:
    shim = load_class(str(ROOT / "actors" / "uniaudio2"), "dataclass_shim", "hashable_dataclasses")
    released = "import dataclasses\n@dataclasses.dataclass\nclass Part:\n    size: int = 1\n"
    released += "@dataclasses.dataclass(eq=True)\nclass Whole:\n    part: Part = Part()\n"
    released += "@dataclasses.dataclass\nclass Own:\n    size: int = 1\n    def __hash__(self): return 5\n"
    # Not as this file is compiled: its annotations are texts.
    code = compile(released, "released", "exec", dont_inherit=True)
    before = dataclasses.dataclass
    with pytest.raises(ValueError, match="mutable default"):
        exec(code, {"__name__": "before"})
    space: dict[str, Any] = {"__name__": "inside"}
    with shim():
        exec(code, space)
    assert space["Whole"]().part.size == 1
    assert hash(space["Own"]()) == 5
    assert dataclasses.dataclass is before
    with pytest.raises(KeyError), shim():
        raise KeyError
    assert dataclasses.dataclass is before
