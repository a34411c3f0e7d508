"""Audio-Omni's adapter against the signatures of the released package."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.systems.clips import answer, caption, edit, heard, render, stored
from tests.systems.released import Released, Served, Tensor, default_of, fake_torch, install, serve

CONFIG = {
    "model": {"conditioning": {"configs": [{"config": {"vocab_file": "./vocab.txt"}}, {"config": {"seq_len": 1}}]}}
}
WEIGHTS = {"model": {"Audio-Omni.json": json.dumps(CONFIG), "model.ckpt": ""}, "qwen_omni": ["config.json"]}
API, DIFFUSE = "audio_omni.api:AudioOmni", "audio_omni.inference.generation:generate_diffusion_cond"
FRAMES = 236 * 2048


class Given(dict[str, Any]):
    """What a processor returns."""

    def to(self, _: Any) -> Given:
        return self


class Processor:
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def tokenizer(self, text: str) -> Any:
        return SimpleNamespace(input_ids=text.split())

    def apply_chat_template(self, conversation: Any, add_generation_prompt: bool, tokenize: bool) -> str:
        system, user = conversation
        return (
            f"{system['content'][0]['text']}|{[part['type'] for part in user['content']]}|{user['content'][-1]['text']}"
        )

    def __call__(self, **asked: Any) -> Given:
        self.asked.append(asked)
        return Given(input_ids=Tensor(np.zeros((1, 5))))

    def batch_decode(self, ids: Tensor, skip_special_tokens: bool, clean_up_tokenization_spaces: bool) -> list[str]:
        return [f" {ids.shape[1]} new tokens "]


def load(
    tmp_path: Path, patch: pytest.MonkeyPatch, level: float = 0.5, **changed: Any
) -> tuple[Served, Released, Processor, dict[str, Any]]:
    fake_torch(patch)
    patch.delenv("QWEN_OMNI_MODEL_PATH", raising=False)
    processor, seen = Processor(), {}

    def say(**asked: Any) -> Tensor:
        seen["generate"] = asked
        return Tensor(np.zeros((1, 8)))

    def build(self: Any, config_path: str, ckpt_path: str, device: str) -> None:
        seen["config"] = json.loads(Path(config_path).read_text())
        seen["thinker"] = os.environ["QWEN_OMNI_MODEL_PATH"]
        self.sample_rate, self.sample_size, self.device, self.model = 44_100, 485_100, device, "net"

    def ears(self: Any) -> Any:
        found = made.modules["audio_omni.models.conditioners"].OmniConditioner(768)
        found.processor, found.pad_length = processor, 2048
        found.model = SimpleNamespace(dtype="bfloat16", thinker=SimpleNamespace(generate=say))
        return found

    made = install(
        "audio-omni",
        patch,
        {
            API: build,
            f"{API}._get_omni_conditioner": ears,
            f"{API}._build_conditioning": lambda self, **told: [told],
            f"{API}._postprocess": lambda self, output: Tensor(np.full((2, FRAMES), 32_767)),
            DIFFUSE: lambda **_: Tensor(np.full((1, 2, FRAMES), level)),
            "audio_omni.prompts:build_prompt": lambda task, text, **_: f"{task}: {text}",
            "audio_omni.prompts:_wrap": lambda system, user: f"{system}: {user}",
        },
    )
    patch.setattr(made.modules["audio_omni.api"], "__file__", "/clone/audio_omni/api.py")
    import audio_omni  # the stand-in

    audio_omni.__file__ = "/clone/audio_omni/__init__.py"
    return serve("audio-omni", WEIGHTS, tmp_path, **changed), made, processor, seen


@pytest.mark.parametrize(("audio_type", "task"), [("speech", "T2A"), ("sound", "T2A"), ("music", "T2M")])
def test_a_render_is_the_released_call_with_the_papers_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audio_type: str, task: str
) -> None:
    served, made, _, _ = load(tmp_path, monkeypatch)
    clip = heard(served.ask(render("a dog barks", audio_type, seed=0)))
    assert (clip.rate_hz, clip.channels, clip.frames) == (44_100, 2, FRAMES)
    assert clip.wave.max() == pytest.approx(32_767 / 32_768)  # the released scaling, sample for sample
    asked = made.one(DIFFUSE)
    (conditioning,) = asked.pop("conditioning")
    assert (conditioning["task"], conditioning["qwen_prompt"]) == (task, f"{task}: a dog barks")
    assert conditioning["seconds_total"] == default_of(
        "audio-omni", "audio_omni.api", "AudioOmni.generate", "seconds_total"
    )
    assert asked == {
        "model": "net",
        "steps": 100,
        "cfg_scale": 7.0,
        "sample_size": 485_100,
        "sample_rate": 44_100,
        "seed": 0,
        "device": "cuda",
    }


def test_the_papers_settings_are_the_released_defaults() -> None:
    for function in ("AudioOmni.generate", "AudioOmni.edit"):
        assert default_of("audio-omni", "audio_omni.api", function, "steps") == 100
        assert default_of("audio-omni", "audio_omni.api", function, "cfg_scale") == 7.0


@pytest.mark.parametrize(
    ("seconds", "notes"),
    [(0.5, "padded with silence to 10 s, from 0.50 s"), (10.0, ""), (10.96, "heard the first 10 of 10.96 s")],
)
def test_a_free_prompt_edits_exactly_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, notes: str
) -> None:
    served, made, _, _ = load(tmp_path, monkeypatch)
    result = served.ask(edit("Make the dog growl.", stored(seconds), seed=3))
    heard(result)
    assert result["reply"]["notes"] == notes
    ((conditioning,), seed) = made.one(DIFFUSE)["conditioning"], made.one(DIFFUSE)["seed"]
    assert seed == 3
    assert conditioning["omni_prompt"] == {
        "text_prompt": "<SYSTEM_EDITING>: Make the dog growl.",
        "video_prompt": None,
        "audio_prompt": None,
    }
    source = conditioning["audio_input_prompt"]["audio_input_wav"].array
    assert (source.shape, source.dtype) == ((441_000,), np.float32)
    assert np.abs(source[22_050:]).max() == 0 or seconds >= 10
    assert (conditioning["sync_feature"].shape, conditioning["speech_prompt"]) == ((1, 240, 768), None)
    # The four templates of `edit` are never used.
    assert not made.of(f"{API}.edit")


def test_the_reply_is_what_came_after_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _, processor, seen = load(tmp_path, monkeypatch)
    result = served.ask(answer(stored(2.0), "first?", "second?"))
    assert result["reply"]["texts"] == ["3 new tokens"] * 2
    asked = processor.asked[0]
    assert asked["text"] == "<SYSTEM_UNDERSTANDING>|['audio', 'text']|first?"
    assert asked["audio"][0].shape == (32_000,)
    told = {name: value for name, value in seen["generate"].items() if name != "input_ids"}
    assert told == {"use_audio_in_video": False, "max_new_tokens": 512, "do_sample": False}
    assert served.ask(caption("Describe.", stored()))["reply"]["text"] == "3 new tokens"
    served.ask(answer(None, "first?"))
    assert processor.asked[-1]["audio"] is None
    assert "['text']" in processor.asked[-1]["text"]


@pytest.mark.parametrize(("level", "status", "reason"), [(np.nan, "failed", "not_finite"), (0.0, "ok", None)])
def test_what_the_released_scaling_would_hide_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: float, status: str, reason: str | None
) -> None:
    served, _, _, _ = load(tmp_path, monkeypatch, level=level)
    result = served.ask(render())
    assert (result["status"], result.get("reason")) == (status, reason)
    if status == "ok":
        assert result["reply"]["clip"]["peak"] == 0.0


def test_paths_that_hang_on_the_working_directory_are_made_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _, _, seen = load(tmp_path, monkeypatch)
    first = seen["config"]["model"]["conditioning"]["configs"][0]["config"]
    assert first["vocab_file"] == "/clone/audio_omni/data/vocab.txt"
    assert seen["thinker"] == str(served.weights["qwen_omni"])
    assert "QWEN_OMNI_MODEL_PATH" not in os.environ


def test_what_it_cannot_take_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _, _, _ = load(tmp_path, monkeypatch, long_edits="refuse", tasks={"speech": "TTS"})
    assert served.ask(render("word " * 2_049))["reason"] == "prompt_too_long"
    assert served.ask(edit("Growl.", stored(10.96)))["reason"] == "clip_too_long"
    assert served.ask(render("a scene", "speech"))["reason"] == "no_words"
    with pytest.raises(ValueError, match="T2A"):
        load(tmp_path, monkeypatch, tasks={"speech": "V2A"})
