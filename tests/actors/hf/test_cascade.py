"""The Cascaded Baseline on a Ray of its own: the card's routes, tiny models in the places of the four specialists, and
gpt-audio's own adapter in its own environment before a server that speaks the real protocol."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.actors.hf import on_ray
from tests.engine.systems import canary_bank, computed, table
from tests.standin.openai_server import Reply, StandIn
from tests.systems.api import KEY, KEY_ENV, files_with, ledger, wav_of
from torus_ray.audio import decode
from torus_ray.engine.session import RunOptions, RunResult, run_system
from torus_ray.protocol.graph import Arm
from torus_ray.store.layout import clip_path
from torus_ray.store.manifest import read_manifest
from torus_ray.store.reader import current_rows
from torus_ray.systems import HeadCard, HostSpec, System, load_system

ARMS = (Arm("native"), Arm("self-caption"))
PLACES = {
    "tangoflux": "stable-audio-open",
    "ace-step": "ace-step-diffusers",
    "step-audio-editx": "ace-step-diffusers",
    "mmedit": "stable-audio-open",
}
"""Host of the cascade -> the card whose adapter, with tiny weights, takes its place."""
LISTENER = "audio-flamingo-next"
SAID = 'A woman says "the late train has gone" over rain.'
HEARD_BY = {"speech": "gpt-audio", "sound": "listener", "music": "listener"}
"""Audio type -> who describes clips in the self-caption arm, which the paper's cascade has not: by type as well."""


def in_the_place_of(host: HostSpec, card: str, weights: Path, **heads: HeadCard) -> HostSpec:
    """A tiny model under the host's name, serving the heads that the cascade's card gives it."""
    (model,) = load_system(card).hosts.values()
    kind = model.card.settings["kind"]
    made = on_ray.tiny(model, on_ray.environments()[kind], heads or host.card.heads, weights / kind)
    return replace(made, name=host.name)


def cascade(base_url: str, weights: Path, folder: Path) -> System:
    """The cascade as its card routes it, and with a self-caption arm."""
    system = load_system("cascade")
    hosts = {name: in_the_place_of(system.hosts[name], card, weights) for name, card in PLACES.items()}
    judge = system.hosts["gpt-audio"]
    # What it describes clips with is said by its own card: the paper's cascade only answers.
    caption = load_system("gpt-audio").hosts["gpt-audio"].card.heads["caption"]
    of_types = {name: tuple(kind for kind, who in HEARD_BY.items() if who == name) for name in HEARD_BY.values()}
    told = {"base_url": base_url, "key_env": KEY_ENV, "ledger": str(folder / "ledger.jsonl")}
    update = {
        "heads": {**judge.card.heads, "caption": caption.model_copy(update={"audio_types": of_types["gpt-audio"]})},
        "operating": {**judge.card.operating, **told},
    }
    hosts["gpt-audio"] = replace(judge, card=judge.card.model_copy(update=update))
    listener = replace(judge, name="listener")
    describes = HeadCard(audio_types=of_types["listener"])
    hosts["listener"] = in_the_place_of(listener, LISTENER, weights, caption=describes)
    cards = {name: host.card for name, host in hosts.items()}
    return System(system.card.model_copy(update={"hosts": cards, "arms": ("native", "self-caption")}), hosts)


def says(body: dict[str, Any]) -> Reply:
    """A letter where options are shown, else a description."""
    text = body["messages"][0]["content"][0]["text"]
    return Reply("B" if "\nB" in text else SAID)


@pytest.mark.ray
@pytest.mark.timeout(1200)
def test_the_cascade_runs_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
    weights = on_ray.weights(tmp_path / "weights")
    bank = canary_bank(tmp_path / "bank", tests=3)
    options = RunOptions(tmp_path / "results", tests=bank.tests, arms=ARMS)
    told: list[str] = []
    with StandIn(says, key=KEY) as server:
        system = cascade(server.base_url, weights, tmp_path)
        result = run_system(system, bank, options, tell=told.append)
        assert result.exit_code == 0, (told, result.by_status)
        asked = len(server.requests)
        assert run_system(system, bank, options).computed == 0, "every unit has its row"
        assert len(server.requests) == asked
    _each_route_is_the_cards(result)
    _captions_go_on_as_prompts(result)
    _the_judge_is_asked_as_the_paper_says(result, server)
    _what_it_cost_stands_in_the_rows(result, tmp_path)
    _everybody_ran_in_an_environment_of_its_own(result)
    assert files_with(KEY, tmp_path) == []


def _each_route_is_the_cards(result: RunResult) -> None:
    routes = {route: host.name for route, host in load_system("cascade").routes.items()}
    for arm, later in {"native": "edit", "self-caption": "generate"}.items():
        renders = current_rows(result.runs[arm], "renders")
        assert len(renders) == 9
        assert set(renders["status"]) == {"ok"}
        for row in renders.iter_rows(named=True):
            operation = "generate" if row["stage"] == "generation" else later
            assert (row["operation"], row["head"]) == (operation, routes[operation, row["audio_type"]]), row["unit_id"]
            # Step-Audio-EditX speaks words and nothing else does.
            assert (row["words"] is not None) == (row["audio_type"] == "speech")


def _captions_go_on_as_prompts(result: RunResult) -> None:
    captions = current_rows(result.runs["self-caption"], "captions")
    assert len(captions) == 6
    assert set(captions["status"]) == {"ok"}
    assert {(row["audio_type"], row["head"]) for row in captions.iter_rows(named=True)} == set(HEARD_BY.items())
    said = {(row["test"], row["stage"]): row["text"] for row in captions.iter_rows(named=True)}
    assert {text for (test, _), text in said.items() if test.startswith("speech")} <= {SAID}
    stages = ("generation", "edit", "counterfactual")
    for row in current_rows(result.runs["self-caption"], "renders").iter_rows(named=True):
        before = stages.index(row["stage"]) - 1
        assert row["caption"] == (said[row["test"], stages[before]] if before >= 0 else None)
        assert before < 0 or row["caption"] in row["prompt"]


def _the_judge_is_asked_as_the_paper_says(result: RunResult, server: StandIn) -> None:
    answers = table(result, "answers")
    assert len(answers) == 2 * 27
    assert set(answers["status"]) == {"ok"}
    assert set(answers["listener"]) == {"gpt-audio"}
    assert set(answers["letter"]) == {"B"}
    renders = table(result, "renders")
    stored = {clip: _heard(result, clip) for clip in set(renders["clip"])}
    for body in server.requests:
        assert (body["model"], body["temperature"], body["max_completion_tokens"]) == ("gpt-audio-2025-08-28", 0, 3000)
        assert (body["seed"], body["modalities"]) == (0, ["text"])
        assert decode(wav_of(body)).wave.tobytes() in stored.values()
    # The arms share stage 1: its clips are rendered once, and asked about once.
    shared = answers.filter(pl.col("reused_from").is_not_null())
    assert set(shared["stage"]) == {"generation"}
    assert len(shared) == 9
    assert len(server.requests) == len(answers) - 9 + len(_described(result))


def _described(result: RunResult) -> pl.DataFrame:
    """The captions that gpt-audio was asked for."""
    return computed(result, "captions").filter(pl.col("head") == "gpt-audio")


def _heard(result: RunResult, clip: str) -> bytes:
    paths = [path for run in result.runs.values() if (path := clip_path(run, clip)).is_file()]
    return decode(paths[0].read_bytes()).wave.tobytes()


def _what_it_cost_stands_in_the_rows(result: RunResult, folder: Path) -> None:
    lines = ledger(folder)
    described, answered = _described(result), computed(result, "answers")
    assert Counter(line["operation"] for line in lines) == {"answer": len(answered), "caption": len(described)}
    paid = 0.0
    for rows, replies in ((answered, 3), (described, 1)):
        for note in rows.unique(["arm", "test", "stage"])["notes"]:
            told = dict(word.split("=", 1) for word in note.split())
            assert int(told["replies"]) == replies
            assert told["model"].startswith("gpt-audio-2025-08-28")
            paid += float(told["cost"])
    assert paid == pytest.approx(sum(line["cost"] for line in lines), abs=1e-4)


def _everybody_ran_in_an_environment_of_its_own(result: RunResult) -> None:
    manifest = read_manifest(result.runs["self-caption"])
    assert manifest is not None
    used = {Path(head.environment).stem.removesuffix("-cpu") for head in manifest.heads.values()}
    assert used == {"modern", "hf-editor", "hf-listener", "api"}
    assert "torch" not in manifest.versions["gpt-audio"]
    assert {"torch", "diffusers"} <= set(manifest.versions["tangoflux"])
    assert "diffusers" not in manifest.versions["listener"]
