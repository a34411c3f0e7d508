"""MMEdit's adapter against the signatures of the released repository."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.systems.clips import edit, heard, stored
from tests.systems.released import Released, Served, Tensor, fake_torch, install, library, serve

WEIGHTS = {"model": ["model.safetensors", "vae/epoch=13-step=1000000.ckpt"], "qwen2_audio": ["config.json"]}
NET = "models.diffusion:SingleTaskCrossAttentionAudioDiffusion"
TEMPLATE_TOKENS = 20


class Processor:
    def apply_chat_template(self, turns: Any, add_generation_prompt: bool, tokenize: bool) -> str:
        (turn,) = turns
        return "x " * (TEMPLATE_TOKENS + 1) + turn["content"][1]["text"]

    def tokenizer(self, text: str) -> Any:
        return SimpleNamespace(input_ids=text.split())


def load(
    tmp_path: Path, patch: pytest.MonkeyPatch, device: str = "cuda", **changed: Any
) -> tuple[Served, Released, Any]:
    fake_torch(patch)
    repository = tmp_path / "repository"
    config: dict[str, Any] = {"model": {"autoencoder": {}, "content_encoder": {"text_encoder": {}}}}
    places = {"utils.config": str(repository / "utils" / "config.py")}
    made = install("mmedit", patch, {f"{NET}.inference": made_sound}, places)
    seen: dict[str, Any] = {}

    def instantiate(given: Any) -> Any:
        seen["config"] = given
        encoder = made.modules["models.content_encoder.llm_encoder"].Qwen2AudioEmbedder("path")
        encoder.max_length, encoder.processor = 320, Processor()
        content = made.modules["models.content_encoder.content_encoder"].ContentEncoder(1024, text_encoder=encoder)
        content.text_encoder = encoder
        net = made.modules["models.diffusion"].SingleTaskCrossAttentionAudioDiffusion(None, content, None, 1024)
        object.__setattr__(net, "content_encoder", content)  # by its base ContentEncoderAdapterMixin
        net.load_pretrained = made.modules["models.common"].LoadPretrainedBase().load_pretrained
        return net

    class Scheduler:
        @staticmethod
        def from_pretrained(path: str, subfolder: str) -> str:
            return f"{path}/{subfolder}"

    library(patch, "diffusers", schedulers=SimpleNamespace(DDIMScheduler=Scheduler))
    library(patch, "hydra.utils", instantiate=instantiate)
    library(patch, "omegaconf", OmegaConf=SimpleNamespace(load=lambda path: seen.setdefault("read", path) and config))
    library(patch, "safetensors.torch", load_file=lambda path: path)
    return serve("mmedit", WEIGHTS, tmp_path, device, **changed), made, seen


def made_sound(self: Any, content: Any, **_: Any) -> Tensor:
    return Tensor(np.full((1, 1, len(content[0]["audio"])), 0.2))


def test_an_edit_is_the_released_call_with_the_cards_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made, seen = load(tmp_path, monkeypatch)
    result = served.ask(edit("Add a dog.", stored(3.0, 44_100, 2)))
    clip = heard(result)
    assert result["reply"]["notes"] == ""
    assert (clip.rate_hz, clip.channels, clip.duration_s) == (24_000, 1, 3.0)
    asked = made.one(f"{NET}.inference")
    (content,) = asked.pop("content")
    assert content["caption"] == "Add a dog."
    assert content["audio"].array.dtype == np.float32
    assert asked == {
        "task": ["audio_editing"],
        "scheduler": str(tmp_path / "repository/stabilityai/stable-diffusion-2-1/scheduler"),
        "num_steps": 50,
        "guidance_scale": 5.0,
        "guidance_rescale": 0.5,
        "mask_time_aligned_content": False,
    }
    # No path of the working directory is left, and none of a hub.
    config = seen["config"]
    assert config["autoencoder"]["pretrained_ckpt"] == str(tmp_path / "model/vae/epoch=13-step=1000000.ckpt")
    assert config["content_encoder"]["text_encoder"]["model_path"] == str(tmp_path / "qwen2_audio")
    assert config["noise_scheduler_name"] == str(tmp_path / "repository/stabilityai/stable-diffusion-2-1")


def test_ten_seconds_of_a_longer_clip_are_heard_and_that_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _, _ = load(tmp_path, monkeypatch)
    result = served.ask(edit("Add a dog.", stored(12.0, 24_000, 1)))
    assert heard(result).duration_s == 10.0
    assert result["reply"]["notes"] == "heard the first 10 of 12.00 s"
    both = served.ask(edit("word " * 51, stored(12.0, 24_000, 1)))["reply"]["notes"]
    assert both.startswith("heard the first 10 of 12.00 s; 321 tokens")


def test_a_clip_without_one_latent_frame_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _, _ = load(tmp_path, monkeypatch)
    assert served.ask(edit("Add a dog.", stored(0.015, 24_000, 1)))["reason"] == "clip_too_short"


@pytest.mark.parametrize(("words", "cut"), [(50, False), (51, True)])
def test_an_instruction_is_cut_beyond_320_tokens_as_the_card_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: int, cut: bool
) -> None:
    # Ten seconds are 250 tokens, the template 20.
    prompt, clip = "word " * words, stored(10.0, 24_000, 1)
    served, _, _ = load(tmp_path, monkeypatch)
    told = "321 tokens of clip and instruction, MMEdit's encoder keeps 320: the end is cut"
    assert served.ask(edit(prompt, clip))["reply"]["notes"] == (told if cut else "")
    served, _, _ = load(tmp_path, monkeypatch, long_prompts="refuse")
    assert served.ask(edit(prompt, clip)).get("reason") == ("prompt_too_long" if cut else None)


def test_a_host_without_a_gpu_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="on a GPU only"):
        load(tmp_path, monkeypatch, device="cpu")
