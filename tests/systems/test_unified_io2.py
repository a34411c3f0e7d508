"""Unified-IO 2's adapter against the signatures of the released repository."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.systems.clips import answer, caption, heard, render, stored
from tests.systems.released import Released, Served, default_of, fake_torch, install, library, serve

WEIGHTS = {"model": ["config.json"], "preprocessor": ["preprocessor_config.json"], "tokenizer": "sentencepiece"}
RUNNER, READER, MODEL = (
    "uio2.runner:TaskRunner",
    "uio2.preprocessing:UnifiedIOPreprocessor",
    "uio2.model:UnifiedIOModel",
)
SPECTROGRAMS = "uio2.audio_utils:extract_spectrograms_from_audio"


def load(tmp_path: Path, patch: pytest.MonkeyPatch, **changed: Any) -> tuple[Served, Released, list[int], list[Any]]:
    seeds = fake_torch(patch)
    hidden: list[Any] = []
    library(patch, "transformers")
    library(
        patch,
        "tensorflow",
        config=SimpleNamespace(set_visible_devices=lambda devices, kind: hidden.append((devices, kind))),
    )

    def run(self: Any, model: Any, uio2_preprocessor: Any, **_: Any) -> None:
        self.model, self.uio2_preprocessor = model, uio2_preprocessor
        self.prompt = made.modules["uio2.prompt"].Prompt()

    made = install(
        "unified-io-2",
        patch,
        {
            RUNNER: run,
            READER: lambda self, tokenizer, **_: setattr(self, "tokenizer", SimpleNamespace(encode=str.split)),
            f"{READER}.__call__": lambda self, **arguments: arguments,
            "uio2.prompt:Prompt.random_prompt": lambda self, task_name: (
                f"What is the sound of {{}} {np.random.randint(9)}"
            ),
            f"{RUNNER}.audio_generation": lambda self, **_: np.full(65_280, 0.1, dtype=np.float32),
            f"{RUNNER}.predict_text": lambda self, example, max_tokens: f" B. {max_tokens} ",
            SPECTROGRAMS: lambda waveform, **_: np.zeros((-(-len(waveform) // 65_280), 128, 256)),
        },
    )
    # By the hub's mixin and by transformers; neither is the repository's own.
    made.modules["uio2.model"].UnifiedIOModel.from_pretrained = classmethod(lambda cls, path: cls(path))
    patch.setattr(
        made.modules["uio2.preprocessing"].UnifiedIOPreprocessor, "PREFIXES", {"text": "[T] ", "audio": "[A] "}
    )
    made.modules["uio2.preprocessing"].UnifiedIOPreprocessor.from_pretrained = classmethod(
        lambda cls, path, tokenizer: cls({}, {}, {}, tokenizer)
    )
    return serve("unified-io-2", WEIGHTS, tmp_path, **changed), made, seeds, hidden


def test_a_render_is_the_released_call_at_library_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made, seeds, hidden = load(tmp_path, monkeypatch)
    assert hidden == [([], "GPU")]  # TensorFlow only prepares inputs
    result = served.ask(render("a dog", seed=4))
    clip = heard(result)
    assert (clip.rate_hz, clip.channels, clip.duration_s) == (16_000, 1, 4.08)
    asked = made.one(f"{RUNNER}.audio_generation")
    told = asked.pop("text")
    assert told.startswith("What is the sound of a dog")
    assert result["reply"]["notes"] == f"told: {told}"
    assert asked == {"use_prompt": False, "guidance_scale": 0.0, "num_out": None, "top_p": 0.9}
    for name in ("guidance_scale", "num_out", "top_p"):
        assert asked[name] == default_of("unified-io-2", "uio2.runner", "TaskRunner.audio_generation", name)
    assert seeds == [4]
    # The wording hangs on the seed alone.
    heard(served.ask(render("a dog", seed=4)))
    assert made.of(f"{RUNNER}.audio_generation")[1]["text"] == told
    assert made.one(RUNNER)["use_hifigan_for_audio"] is True


def test_the_clip_is_heard_once_for_all_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made, _, _ = load(tmp_path, monkeypatch)
    result = served.ask(answer(stored(4.08, 16_000, 1), "first?", "second?"))
    assert result["reply"]["texts"] == ["B. 32", "B. 32"]
    spectrograms = made.one(SPECTROGRAMS)
    assert spectrograms["audio_length"] == pytest.approx(4.08)
    assert spectrograms["audio_segment_length"] == spectrograms["spectrogram_length"] == 4.08
    asked = made.of(f"{READER}.__call__")
    assert [(a["text_inputs"], a["target_modality"]) for a in asked] == [("first?", "text"), ("second?", "text")]
    assert asked[0]["audio_inputs"].shape == (1, 128, 256)


def test_a_prompt_given_as_it_is_leaves_no_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made, _, _ = load(tmp_path, monkeypatch, templates=False)
    assert served.ask(render("a dog"))["reply"]["notes"] == ""
    assert made.one(f"{RUNNER}.audio_generation")["text"] == "a dog"


def test_a_caption_has_the_released_length_and_no_clip_is_no_audio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, made, _, _ = load(tmp_path, monkeypatch)
    assert served.ask(caption("Describe.", stored(1.0)))["reply"]["text"] == "B. 64"
    served.ask(answer(None, "first?"))
    assert made.of(f"{READER}.__call__")[1]["audio_inputs"] is None


def test_five_segments_of_a_long_clip_are_heard_as_the_card_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, made, _, _ = load(tmp_path, monkeypatch)
    clip, notes = stored(30.0, 16_000, 1), "heard the first 20.4 of 30.00 s"
    assert served.ask(answer(clip, "first?"))["reply"]["notes"] == notes
    assert len(made.one(SPECTROGRAMS)["waveform"]) == round(20.4 * 16_000)
    assert served.ask(caption("Describe.", clip))["reply"]["notes"] == notes
    assert served.ask(answer(stored(20.4, 16_000, 1), "first?"))["reply"]["notes"] == ""
    assert served.ask(answer(None, "first?"))["reply"]["notes"] == ""
    served, _, _, _ = load(tmp_path, monkeypatch, long_clips="refuse")
    assert served.ask(answer(clip, "first?"))["reason"] == "clip_too_long"


def test_a_text_that_the_encoder_would_cut_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _, _, _ = load(tmp_path, monkeypatch)
    assert served.ask(render("word " * 512))["reason"] == "prompt_too_long"
