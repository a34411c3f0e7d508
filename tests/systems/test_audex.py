"""Audex's adapters against the signatures, token space and files of stages of vllm-omni 0.30.0."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from tests.systems.clips import answer, caption, heard, render, stored
from tests.systems.released import Released, Served, Tensor, facts, install, library, serve
from torus_ray.audio import silence
from torus_ray.engine.hosting import HeadServer
from torus_ray.engine.hosts import HostPlan
from torus_ray.systems import load_system

AUDEX = "vllm_omni.model_executor.models.audex"
OMNI = "vllm_omni.entrypoints.omni:Omni"
FILES = {
    "audex": {"checkpoint_folder_audiogen/": "", "checkpoint_folder_full/": ""},
    "xcodec": {"config.json": "{}"},
}


@dataclass
class Engine:
    """What the stand-in of vllm-omni gives: outputs for prompts, and the files of stages that it was started with."""

    made: Released
    deployed: list[dict[str, Any]] = field(default_factory=list)
    sound: Any = None
    error: str | None = None
    raises: int = 0

    def outputs(self, prompts: list[Any], params: list[Any]) -> Iterator[Any]:
        if self.raises:
            self.raises -= 1
            raise RuntimeError("the engine is dead")
        for number in reversed(range(len(prompts))):  # as they are done, not as they were sent
            prompt = prompts[number]
            text = prompt["prompt"] if isinstance(prompt, dict) else prompt
            said = SimpleNamespace(text=f"said to {text.partition('<so_embedding>')[2][:12].strip()}")
            yield SimpleNamespace(
                request_id=f"{number}_f00",
                outputs=[said],
                multimodal_output={"model_outputs": self.sound},
                error=self.error,
            )


class Tokenizer:
    """One token a word."""

    def encode(self, text: str) -> list[str]:
        return text.split()


def start(
    card: str, host: str, tmp_path: Path, patch: pytest.MonkeyPatch, device: str = "cuda"
) -> tuple[Served, Engine]:
    """One host of a card, as an executor starts it, on the stand-in."""
    folder = tmp_path / "vllm_omni" / "deploy"
    folder.mkdir(parents=True)
    for name, content in facts("audex")["deploy"].items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
    engine = Engine(Released("audex"), sound=Tensor(np.full(16_000, 0.25, dtype=np.float32)))

    def build(self: Any, model: str, kwargs: Mapping[str, Any]) -> None:
        assert kwargs["trust_remote_code"] is True
        engine.deployed.append(yaml.safe_load(Path(kwargs["deploy_config"]).read_text()))

    def resolve(self: Any, sampling_params_list: Any, **_: Any) -> list[Any]:
        return [SimpleNamespace(extra_args=None, **s["default_sampling_params"]) for s in engine.deployed[-1]["stages"]]

    engine.made = install(
        "audex",
        patch,
        {
            OMNI: build,
            f"{OMNI}.generate": lambda self, prompts, sampling_params_list, **_: list(
                engine.outputs(prompts, sampling_params_list)
            ),
            f"{OMNI}.resolve_sampling_params_list": resolve,
            f"{AUDEX}.prompt:build_tta_cond_prompt": lambda caption: f"audio: {caption}",
            f"{AUDEX}.prompt:build_cond_prompt": lambda text: f"speech: {text}",
            f"{AUDEX}.prompt:build_tta_null_prompt": lambda cond_prompt, tokenizer: "null audio",
            f"{AUDEX}.prompt:build_null_prompt": lambda cond_prompt, tokenizer: "null speech",
            f"{AUDEX}.tta:build_tta_phase_token_ids": lambda tokenizer: ([[1], [2], [3], [4]], 131073, 131074),
        },
    )
    library(patch, "vllm_omni", __file__=str(tmp_path / "vllm_omni" / "__init__.py"))
    library(patch, "transformers", AutoTokenizer=SimpleNamespace(from_pretrained=lambda path: Tokenizer()))
    weights = {name: FILES[name] for name in load_system(card).hosts[host].card.weights}
    return serve(card, weights, tmp_path, device, host), engine


def asked(engine: Engine) -> tuple[list[Any], list[Any]]:
    """The prompts and the parameters of the one call of the engine."""
    call = engine.made.one(f"{OMNI}.generate")
    assert call["use_tqdm"] is False
    return call["prompts"], call["sampling_params_list"]


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda card, host, **options: start(card, host, tmp_path, monkeypatch, **options)


# --- text to audio ----------------------------------------------------------------------------------------------------


def test_a_render_goes_in_step_with_its_companion_under_the_mask_of_the_codec(tried: Any) -> None:
    served, engine = tried("audex-2b", "audio")
    result = served.ask(render("a dog barks", seed=3))
    clip = heard(result)
    assert (clip.rate_hz, clip.channels, clip.frames) == (16_000, 1, 16_000)
    assert result["reply"]["hit_limit"] is False
    (prompt,), (first, second) = asked(engine)
    assert prompt == "audio: a dog barks"
    told = {name: getattr(first, name) for name in ("temperature", "top_p", "top_k", "max_tokens", "seed")}
    assert told == {"temperature": 1.0, "top_p": 1.0, "top_k": 80, "max_tokens": 2048, "seed": 3}
    assert first.extra_args == {
        "tta_rvq": {
            "phase_token_ids": [[1], [2], [3], [4]],
            "start_tid": 131073,
            "end_tid": 131074,
            "codec_cap": 2000,
            "start_in_prompt": True,
        },
        "cfg_scale": 3.0,
        "cfg_role": "cond",
        "cfg_pair_id": "torus-unit",
        "cfg_null_prompt": "null audio",
    }
    assert second.extra_args is None  # the stage of the codec is as its file has it
    assert second.temperature == 0.0


@pytest.mark.parametrize(
    ("card", "host", "shares", "codec"),
    [
        ("audex-2b", "audio", [0.35, 0.1], True),
        ("audex-2b", "listener", [0.45], False),
        ("audex-30b", "audio", [0.85, 0.08], True),
        ("audex-30b", "listener", [0.93], False),
        ("audex-2b-tts", "speech", [0.2, 0.1], False),
    ],
)
def test_the_engine_gets_its_own_file_of_stages_and_the_share_of_the_gpu(
    tried: Any, tmp_path: Path, card: str, host: str, shares: list[float], codec: bool
) -> None:
    served, engine = tried(card, host)
    (deployed,) = engine.deployed
    stages = deployed["stages"]
    assert [stage["gpu_memory_utilization"] for stage in stages] == shares
    if codec:
        assert stages[1]["model"] == str(tmp_path / "xcodec")
    built = engine.made.one(OMNI)
    assert built["model"] == str(tmp_path / "audex")
    name = Path(built["kwargs"]["deploy_config"]).stem
    assert name.endswith("_30b") == card.startswith("audex-30b")
    assert deployed["pipeline"] == facts("audex")["deploy"][name]["pipeline"]
    served.server.close()
    assert engine.made.of(f"{OMNI}.close") == [{}]
    assert not Path(built["kwargs"]["deploy_config"]).exists()


def test_both_hosts_of_the_2b_fit_on_one_gpu_and_those_of_the_30b_do_not() -> None:
    shares = {name: [h.card.num_gpus for h in load_system(name).hosts.values()] for name in ("audex-2b", "audex-30b")}
    assert sum(shares["audex-2b"]) <= 0.93
    assert shares["audex-30b"] == [1, 1]


def test_ten_seconds_are_the_limit_and_no_codes_are_no_clip(tried: Any) -> None:
    served, engine = tried("audex-2b", "audio")
    engine.sound = [Tensor(np.full(160_000, 0.1, dtype=np.float32))]
    assert served.ask(render())["reply"]["hit_limit"] is True
    engine.sound = Tensor(np.zeros(0, dtype=np.float32))
    assert served.ask(render())["reason"] == "empty"
    engine.sound = Tensor(np.full(9, np.nan, dtype=np.float32))
    assert served.ask(render())["reason"] == "not_finite"
    engine.sound = None
    assert "no audio" in served.raised(render())["message"]


def test_a_prompt_beyond_the_model_is_refused_and_not_cut(tried: Any) -> None:
    served, engine = tried("audex-2b", "audio")
    longest = 8192 - 2048 - 1  # the template's word
    assert served.ask(render("word " * longest))["status"] == "ok"
    assert served.ask(render("word " * (longest + 1)))["reason"] == "prompt_too_long"
    assert served.ask(render("  "))["reason"] == "no_prompt"
    assert len(engine.made.of(f"{OMNI}.generate")) == 1


def test_an_engine_that_died_is_started_again(tried: Any) -> None:
    served, engine = tried("audex-2b", "audio")
    engine.raises = 1
    assert "the engine is dead" in served.raised(render())["message"]
    assert served.ask(render())["status"] == "ok"
    assert len(engine.made.of(OMNI)) == 2
    engine.error = "out of memory"
    assert "out of memory" in served.raised(render())["message"]


# --- speech -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("card", "temperature"), [("audex-2b-tts", 0.05), ("audex-30b-tts", 0.1)])
def test_words_are_spoken_at_the_settings_of_text_to_speech(tried: Any, card: str, temperature: float) -> None:
    served, engine = tried(card, "speech")
    served.ask(render("She says hello.", "speech", words="hello"))
    (prompt,), (first, _) = asked(engine)
    assert prompt == "speech: hello"
    assert (first.temperature, first.top_k, first.max_tokens) == (temperature, 80, 2048)
    assert first.extra_args["cfg_scale"] == 1.5
    assert first.extra_args["cfg_null_prompt"] == "null speech"
    assert "tta_rvq" not in first.extra_args
    engine.sound = Tensor(np.full(2048 * 320, 0.1, dtype=np.float32))
    assert served.ask(render("", "speech", words="a b"))["reply"]["hit_limit"] is True


# --- listening --------------------------------------------------------------------------------------------------------


def test_questions_are_conversations_of_their_own_and_come_back_in_order(tried: Any) -> None:
    served, engine = tried("audex-2b", "listener")
    result = served.ask(answer(stored(2.0, 44_100, 2), "first?", "second?", "third?", seed=5))
    assert result["reply"]["texts"] == ["said to first?<|im_", "said to second?<|im", "said to third?<|im_"]
    prompts, (params,) = asked(engine)
    assert prompts[0]["prompt"] == (
        "<|im_start|>user\n<so_embedding>\nfirst?<|im_end|>\n<|im_start|>assistant\n<think></think>"
    )
    wave, rate = prompts[0]["multi_modal_data"]["audio"]
    assert (wave.dtype, wave.shape, rate) == (np.float32, (88_200,), 44_100)
    told = {name: getattr(params, name) for name in ("temperature", "top_p", "top_k", "max_tokens", "seed")}
    assert told == {"temperature": 0.7, "top_p": 0.9, "top_k": 0, "max_tokens": 64, "seed": 5}


def test_requests_of_different_seeds_go_apart(tried: Any) -> None:
    served, engine = tried("audex-2b", "listener")
    from torus_ray.heads import request_to_wire

    requests = [caption("Describe.", stored(), seed=seed) for seed in (1, 2, 1)]
    results = served.server.handle("caption", [request_to_wire(request) for request in requests])["results"]
    assert [result["status"] for result in results] == ["ok"] * 3
    calls = engine.made.of(f"{OMNI}.generate")
    assert [(len(c["prompts"]), c["sampling_params_list"][0].seed) for c in calls] == [(2, 1), (1, 2)]


def test_what_cannot_be_heard_is_refused(tried: Any) -> None:
    served, engine = tried("audex-2b", "listener")
    assert served.ask(answer(stored(), "is it <so_embedding>?"))["reason"] == "special_token"
    assert served.ask(caption("Describe.", stored(901.0, 1_000, 1)))["reason"] == "clip_too_long"
    assert engine.made.of(f"{OMNI}.generate") == []
    served.ask(answer(None, "with no clip?"))
    ((prompt,), _) = asked(engine)
    assert np.array_equal(prompt["multi_modal_data"]["audio"][0], silence(1.0).wave[0])


# --- what is missing --------------------------------------------------------------------------------------------------


def test_no_gpu_and_no_weights_are_told(tried: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="Audex runs on a GPU"):
        tried("audex-2b", "listener", device="cpu")
    audio = load_system("audex-2b").hosts["audio"]
    payload = HostPlan(audio, str(audio.folder), 16).payload()
    payload["host"]["weights"] = {}
    with pytest.raises(
        RuntimeError, match=r"no folder of weights audex\n  where: weights\.audex of the card\n[\s\S]*mend: "
    ):
        HeadServer(payload)


def test_the_adapter_knows_the_released_numbers() -> None:
    recorded = facts("audex")["modules"]
    assert recorded[f"{AUDEX}.audex_omni_processing"]["SOUND_TOKEN"]["value"] == "<so_embedding>"
    assert recorded[f"{AUDEX}.audex_omni_processing"]["MAX_AUDIO_SECONDS"]["value"] == 900
    assert json.dumps(recorded)  # facts alone, no objects
