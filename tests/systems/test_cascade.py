"""The Cascaded Baseline: who does what, each as its own card has it, and all of it with stand-ins for its parts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.engine.systems import SIMULATED, canary_bank, run, table
from tests.standin.openai_server import StandIn
from tests.systems.api import KEY, ledger, quick
from torus_ray.protocol.graph import Arm
from torus_ray.systems import HostSpec, System, load_system, read_card

__all__ = ["quick"]

NAME = "cascade"
PARTS = ("tangoflux", "ace-step", "step-audio-editx", "mmedit", "gpt-audio")
"""Its hosts, each named after the card of its own."""


def test_the_papers_routes() -> None:
    routes = {route: host.name for route, host in load_system(NAME).routes.items()}
    assert routes == {
        ("generate", "speech"): "step-audio-editx",
        ("generate", "sound"): "tangoflux",
        ("generate", "music"): "ace-step",
        ("edit", "speech"): "step-audio-editx",
        ("edit", "sound"): "mmedit",
        ("edit", "music"): "mmedit",
        **{("answer", audio_type): "gpt-audio" for audio_type in ("speech", "sound", "music")},
    }


@pytest.mark.parametrize("host", PARTS)
def test_a_part_is_what_it_is_alone(host: str) -> None:
    here = load_system(NAME).hosts[host]
    (alone,) = load_system(host).hosts.values()
    for operation in here.card.heads:
        assert here.head_fingerprint(operation) == alone.head_fingerprint(operation)
    for name in ("environment", "weights", "gpu_memory_gb", "memory_gb", "style", "operating"):
        assert getattr(here.card, name) == getattr(alone.card, name)


def test_its_four_models_fit_on_one_gpu() -> None:
    hosts = load_system(NAME).hosts.values()
    assert sum(host.card.num_gpus for host in hosts) <= 1
    assert sum(host.card.gpu_memory_gb for host in hosts) <= 80


def with_stand_ins(base_url: str, folder: Path) -> System:
    """The cascade as its card routes it, simulated models in the places of the four, gpt-audio at `base_url`."""

    def simulated(host: HostSpec) -> HostSpec:
        card = host.card.model_copy(
            update={"settings": {}, "weights": {}, "environment": "inherit", "num_gpus": 0.0, "gpu_memory_gb": 0.0}
        )
        return replace(host, card=card, folder=SIMULATED.parent, module="adapter", class_name="Simulated")

    system = load_system(NAME)
    judge = system.hosts["gpt-audio"]
    operating = {
        **judge.card.operating,
        "base_url": base_url,
        "key_env": "TORUS_TEST_KEY",
        "ledger": str(folder / "ledger.jsonl"),
    }
    hosts = {name: simulated(host) for name, host in system.hosts.items() if name != "gpt-audio"}
    card = judge.card.model_copy(update={"environment": "inherit", "operating": operating})
    return System(system.card, {**hosts, "gpt-audio": replace(judge, card=card)})


@pytest.mark.usefixtures("quick")
def test_the_whole_cascade_with_a_stand_in_for_each_part(tmp_path: Path) -> None:
    bank = canary_bank(tmp_path / "bank", tests=3)
    with StandIn(["C"], key=KEY) as server:
        made = with_stand_ins(server.base_url, tmp_path)
        result = run(made, bank, tmp_path / "results", (Arm("native"),))
    assert result.exit_code == 0
    heads = table(result, "renders").select("audio_type", "stage", "head").sort("audio_type", "stage")
    routes = load_system(NAME).routes
    for audio_type, stage, head in heads.iter_rows():
        operation = "generate" if stage == "generation" else "edit"
        assert head == routes[operation, audio_type].name
    assert set(heads["audio_type"]) == {"speech", "sound", "music"}
    answers = table(result, "answers").filter(pl.col("status") == "ok")
    assert set(answers["listener"]) == {"gpt-audio"}
    body: dict[str, Any] = server.requests[0]
    assert (body["model"], body["temperature"], body["max_completion_tokens"]) == ("gpt-audio-2025-08-28", 0, 3000)
    assert (body["seed"], body["modalities"]) == (0, ["text"])
    assert sum(line["cost"] for line in ledger(tmp_path)) > 0
    assert json.dumps(body)


def test_the_card_is_read_from_its_path_as_by_its_name() -> None:
    path = Path(__file__).parents[2] / "actors" / "cascade" / f"{NAME}.system.toml"
    assert read_card(path).name == load_system(NAME).name == NAME
