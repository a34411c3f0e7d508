"""Generators and editors: the adapter over tiny random checkpoints, diffusers and transformers underneath."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
import transformers

from tests.actors.hf.served import edit, generate, noise, serve
from tests.actors.hf.tiny_generators import GENERATORS, RATE_HZ
from tests.actors.serving import ACTORS, reason, reply, results
from torus_ray.audio import decode
from torus_ray.engine.hosting import HeadServer
from torus_ray.systems import read_card

STEPS = {"num_inference_steps": 2}


@dataclass(frozen=True)
class Case:
    """What one kind is asked with, and the clip that it then makes."""

    kind: str
    card: str
    heads: dict[str, dict[str, Any]]
    rate_hz: int
    channels: int
    frames: int
    longest: int | None = field(default=None)


CASES = (
    Case(
        "StableAudioPipeline",
        "stable-audio-open",
        {"generate": {**STEPS, "audio_end_in_s": 0.15}, "edit": {**STEPS, "sigma_max": 1.0}},
        RATE_HZ,
        2,
        2_400,
        longest=128,
    ),
    Case(
        "AceStepPipeline",
        "ace-step-diffusers",
        {
            "generate": {**STEPS, "audio_duration": 0.4, "guidance_scale": 1.0},
            "edit": {**STEPS, "task_type": "cover", "guidance_scale": 1.0},
        },
        RATE_HZ,
        2,
        6_400,
        longest=256,
    ),
    Case(
        "AudioLDM2Pipeline",
        "audioldm2",
        {"generate": {**STEPS, "audio_length_in_s": 0.0256, "max_new_tokens": 8}},
        RATE_HZ,
        1,
        408,
        longest=60,
    ),
    Case("musicgen", "musicgen", {"generate": {"max_new_tokens": 20, "do_sample": True}}, 32_000, 1, 10_880),
    Case(
        "bark", "bark", {"generate": {"semantic_max_new_tokens": 20, "do_sample": True}}, 24_000, 1, 9_600, longest=256
    ),
)
EDITORS = ("StableAudioPipeline", "AceStepPipeline")
BY_KIND = {case.kind: case for case in CASES}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: make(tmp_path_factory.mktemp(kind)) for kind, make in GENERATORS.items()}


@pytest.fixture(scope="module")
def servers(checkpoints: dict[str, Path]) -> dict[str, HeadServer]:
    return {
        case.kind: serve("hf_generators", "Generator", checkpoints[case.kind], case.heads, kind=case.kind)
        for case in CASES
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_a_clip_as_the_model_makes_it(case: Case, servers: dict[str, HeadServer]) -> None:
    clip = reply(servers[case.kind], generate())["clip"]
    assert (clip["rate_hz"], clip["channels"], clip["frames"]) == (case.rate_hz, case.channels, case.frames)
    assert clip["peak"] > 0.01


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_the_seed_decides_whatever_was_asked_before(case: Case, servers: dict[str, HeadServer]) -> None:
    server = servers[case.kind]
    first = reply(server, generate(seed=3))["clip"]["id"]
    other = reply(server, generate(seed=4))["clip"]["id"]
    together = [result["reply"]["clip"]["id"] for result in results(server, generate(seed=4), generate(seed=3))]
    assert first != other
    assert together == [other, first]


@pytest.mark.parametrize("kind", ["StableAudioPipeline", "AceStepPipeline", "AudioLDM2Pipeline", "musicgen"])
def test_the_prompt_counts(kind: str, servers: dict[str, HeadServer]) -> None:
    ids = {reply(servers[kind], generate(prompt))["clip"]["id"] for prompt in ("a dog barks", "rain piano")}
    assert len(ids) == 2


@pytest.mark.parametrize("case", [case for case in CASES if case.longest], ids=lambda case: case.kind)
def test_a_prompt_that_would_be_cut_is_refused(case: Case, servers: dict[str, HeadServer]) -> None:
    assert case.longest is not None
    assert reason(servers[case.kind], generate("dog " * (case.longest + 40))) == "prompt_too_long"


def test_a_prompt_is_cut_where_the_card_says_so(checkpoints: dict[str, Path]) -> None:
    case = BY_KIND["StableAudioPipeline"]
    server = serve("hf_generators", "Generator", checkpoints[case.kind], case.heads, kind=case.kind, long_prompt="cut")
    cut = [reply(server, generate("dog " * words)) for words in (200, 300)]
    assert cut[0]["clip"]["id"] == cut[1]["clip"]["id"]
    assert [given["notes"] for given in cut] == [f"prompt of {n} tokens cut to 128" for n in (200, 300)]
    assert reply(server, generate("a dog barks"))["notes"] == ""


@pytest.mark.parametrize("kind", EDITORS)
def test_an_edit_hangs_on_clip_prompt_and_seed(kind: str, servers: dict[str, HeadServer]) -> None:
    server = servers[kind]
    asked = [
        edit(noise(0.2)),
        edit(noise(0.2)),
        edit(noise(0.2, seed=1)),
        edit(noise(0.2), "rain piano"),
        edit(noise(0.2), seed=1),
    ]
    ids = [reply(server, request)["clip"]["id"] for request in asked]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 4


@pytest.mark.parametrize("kind", EDITORS)
@pytest.mark.parametrize(("rate", "channels"), [(16_000, 2), (24_000, 1), (44_100, 2)])
def test_an_edit_is_as_long_as_its_clip_at_the_models_own_rate(
    kind: str, rate: int, channels: int, servers: dict[str, HeadServer]
) -> None:
    given = reply(servers[kind], edit(noise(0.2, rate, channels)))
    assert given["notes"] == ("" if rate == RATE_HZ else f"clip resampled from {rate} to {RATE_HZ} Hz")
    clip = given["clip"]
    assert (clip["rate_hz"], clip["channels"]) == (RATE_HZ, 2)
    latent = 640 / RATE_HZ if kind == "AceStepPipeline" else 0.001
    assert clip["frames"] / RATE_HZ == pytest.approx(0.2, abs=latent)


def test_a_clip_beyond_what_the_model_makes_is_cut_and_noted(servers: dict[str, HeadServer]) -> None:
    given = reply(servers["StableAudioPipeline"], edit(noise(0.4)))
    assert given["clip"]["frames"] == 3_200
    assert given["notes"] == "clip of 0.40 s taken as 0.20 s"


def test_little_noise_leaves_the_clip_and_much_does_not(checkpoints: dict[str, Path]) -> None:
    """Stable Audio: what sigma_max does, and that the published scheduler's leaves nothing."""
    far = {}
    for sigma in (0.4, 500.0):
        heads = {"edit": {**STEPS, "sigma_max": sigma}}
        server = serve(
            "hf_generators", "Generator", checkpoints["StableAudioPipeline"], heads, kind="StableAudioPipeline"
        )
        waves = [decode(reply(server, edit(noise(0.2, seed=seed)))["clip"]["data"]).wave for seed in (0, 1)]
        far[sigma] = float(np.abs(waves[0] - waves[1]).mean())
    assert far[0.4] > 3 * far[500.0]


def test_the_scheduler_of_generation_stays_as_it_was(servers: dict[str, HeadServer]) -> None:
    server = servers["StableAudioPipeline"]
    before = reply(server, generate())["clip"]["id"]
    reply(server, edit(noise(0.2)))
    assert reply(server, generate())["clip"]["id"] == before


def test_a_repaint_is_as_long_as_its_clip(checkpoints: dict[str, Path]) -> None:
    heads = {"edit": {**STEPS, "task_type": "repaint", "repainting_start": 0.2, "guidance_scale": 1.0}}
    server = serve("hf_generators", "Generator", checkpoints["AceStepPipeline"], heads, kind="AceStepPipeline")
    assert reply(server, edit(noise(0.4)))["clip"]["frames"] == 6_400


def test_bark_says_the_words_and_tells_when_they_were_cut_off(servers: dict[str, HeadServer]) -> None:
    given = reply(servers["bark"], generate("a scene", words="a dog barks"))
    assert given["clip"]["id"] == reply(servers["bark"], generate("a dog barks"))["clip"]["id"]
    assert given["hit_limit"] is True, "random weights never end by themselves"


def test_a_voice_that_is_not_there(checkpoints: dict[str, Path]) -> None:
    with pytest.raises(RuntimeError, match="no voice 'v2/en_speaker_6'") as stopped:
        serve(
            "hf_generators", "Generator", checkpoints["bark"], {"generate": {"voice": "v2/en_speaker_6"}}, kind="bark"
        )
    assert "mend:" in str(stopped.value)


def test_a_setting_that_the_pipeline_does_not_have(checkpoints: dict[str, Path]) -> None:
    heads = {"generate": {"steps": 3}}
    with pytest.raises(ValueError, match="does not take: steps; it takes prompt"):
        serve("hf_generators", "Generator", checkpoints["AceStepPipeline"], heads, kind="AceStepPipeline")


def test_a_checkpoint_of_another_kind_and_none(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="of the kind 'musicgen'") as stopped:
        serve("hf_generators", "Generator", checkpoints["musicgen"], {"generate": {}}, kind="bark")
    assert "'bark', as the card says" in str(stopped.value)
    with pytest.raises(RuntimeError, match="nothing is fetched here"):
        serve("hf_generators", "Generator", tmp_path / "gone", {"generate": {}}, kind="bark")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(RuntimeError, match="not JSON"):
        serve("hf_generators", "Generator", tmp_path, {"generate": {}}, kind="bark")


def test_a_kind_that_takes_no_clip_says_so(checkpoints: dict[str, Path]) -> None:
    server = serve("hf_generators", "Generator", checkpoints["bark"], {"generate": {}, "edit": {}}, kind="bark")
    answer = server.handle(
        "edit",
        [
            {
                "operation": "edit",
                "id": "1",
                "prompt": "a",
                "clip_bytes": noise(),
                "audio_type": "speech",
                "seed": 0,
                "words": None,
            }
        ],
    )
    assert "takes no clip" in answer["error"]["message"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_the_card_asks_what_the_model_takes(case: Case) -> None:
    """Every setting of the card is a keyword of the real call, or one that the adapter adds."""
    system = read_card(ACTORS / "hf_generators" / f"{case.card}.system.toml")
    (host,) = system.hosts.values()
    assert host.card.settings["kind"] == case.kind
    assert set(host.card.heads) == set(case.heads)
    ours = {"sigma_max", "voice"}
    pipeline = getattr(diffusers, case.kind, None)
    for head in host.card.heads.values():
        if pipeline is not None:
            assert set(head.settings) - ours <= set(inspect.signature(pipeline.__call__).parameters)
        else:
            bare = {name.split("_", 1)[1] if name.startswith(("coarse_", "fine_")) else name for name in head.settings}
            assert bare - ours <= set(transformers.GenerationConfig().to_dict()), case.card
