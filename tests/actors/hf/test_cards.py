"""The cards of Hugging Face models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.actors.serving import ACTORS
from torus_ray.engine.environments import find_environment
from torus_ray.systems import load_system
from torus_ray.systems.weights import restricts, weights_of

RUN_HERE = (
    "ace-step-diffusers",
    "audio-flamingo-3",
    "audio-flamingo-next",
    "audioldm2",
    "bark",
    "musicgen",
    "qwen2-audio",
    "qwen2.5-omni",
    "qwen3-omni",
    "stable-audio-open",
)
"""What the tests beside this one run with random weights."""
NOT_FREE = ("audio-flamingo-3", "audio-flamingo-next", "audioldm2", "musicgen", "stable-audio-open")


@pytest.mark.parametrize("name", RUN_HERE)
def test_a_card_says_where_its_weights_come_from_and_how_far_it_is_proven(name: str) -> None:
    system = load_system(name)
    assert system.card.proven == "real code, tiny weights"
    for host in system.hosts.values():
        assert host.card.environment == "modern"
        assert host.card.num_gpus
    for weight in weights_of(system):
        assert weight.card.repo
        assert weight.path == Path.home() / ".cache" / "torus-ray" / "weights" / weight.card.repo.partition("/")[2]
        assert restricts(weight.card.licence) == restricts(system.card.licence) == (name in NOT_FREE)


def test_their_environment_is_locked() -> None:
    assert "transformers==5.24.0" in find_environment("modern").lock_text


def test_every_card_of_the_folders_is_held_to_that() -> None:
    cards = {
        path.name for folder in ("hf_listeners", "hf_generators") for path in (ACTORS / folder).glob("*.system.toml")
    }
    assert cards == {f"{name}.system.toml" for name in RUN_HERE}
