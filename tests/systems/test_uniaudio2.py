"""UniAudio 2's adapter against the signatures of the released repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.systems.clips import answer, caption, heard, render, stored
from tests.systems.released import Released, Served, Tensor, fake_torch, install, library, serve
from torus_ray.systems import load_system

TRAINED = """
local_model: local
llm_pretrained_model: none
llm_name: llama
audio_semantic_card: 8192
audio_reason_card: 4096
parallel_number: 9
audio_embeddings_path: none
audio_understanding_expert_path: none
"""
PARTS = {
    **dict.fromkeys(
        ("llm_ep3.checkpoint", "ReasoningCodec.checkpoint", "model_config.json", "sqcodec_config.yaml"), ""
    ),
    **dict.fromkeys(("sqcodec.pth", "prompt.json", "music_ssl.pt", "whisper-medium/", "wavlm/"), ""),
    "llm_config.yaml": TRAINED,
}
CODEC = "tools.tokenizer.ReasoningCodec_film.reason_tokenizer:ReasoningTokenizer"
RENDER = "evaluation.audiogen_task:Generator"
ASK, CAPTION = "evaluation.audio_understanding:Generator", "evaluation.audio_music_caption_task:Generator"
REASON, SEMANTIC = Tensor(np.zeros((8, 5))), Tensor(np.zeros((8, 12)))


class Texts:
    def tokenize(self, text: str) -> list[int]:
        return [1, *range(len(text.split())), 2]


def load(
    tmp_path: Path, patch: pytest.MonkeyPatch, frames: tuple[int, int] = (5, 12), empty: bool = False, **changed: Any
) -> tuple[Served, Released, dict[str, Any]]:
    fake_torch(patch)
    library(patch, "transformers")
    repository, seen = tmp_path / "repository", {}
    film = repository / "tools" / "tokenizer" / "ReasoningCodec_film"
    film.mkdir(parents=True, exist_ok=True)
    (film / "infer_config.yaml").write_text("sq_config: uniaudio2_ckpt/sqcodec_config.yaml\nnum_channels: 32\n")

    def build(self: Any, train_config: str, **_: Any) -> None:
        seen["codec"] = yaml.safe_load(Path(train_config).read_text())

    def answered(self: Any, **_: Any) -> str:
        if empty:
            raise RuntimeError("stack expects a non-empty TensorList")
        return " C "

    def rendered(self: Any, **_: Any) -> Any:
        answered(self)
        return Tensor(np.zeros((8, frames[0]))), Tensor(np.zeros((8, frames[1])))

    def tokenized(self: Any, wav: str, **_: Any) -> Any:
        assert Path(wav).is_file()
        return REASON, SEMANTIC

    def generator(self: Any, **_: Any) -> None:
        self._text_tokenizer = Texts()

    behaviours: dict[str, Any] = {
        CODEC: build,
        f"{CODEC}.tokenize": tokenized,
        f"{CODEC}.detokenize_no_reason": lambda self, **_: Tensor(np.full((1, 24_000), 0.1)),
        f"{RENDER}.generate_audio": rendered,
        "evaluation.tts_task:Generator.generate_tts": rendered,
        f"{ASK}.generate_answer": answered,
        f"{CAPTION}.generate_audio_caption": answered,
    }
    behaviours.update(dict.fromkeys((RENDER, ASK, CAPTION, "evaluation.tts_task:Generator"), generator))
    places = {"llm_models.model_new": str(repository / "llm_models" / "model_new.py")}
    made = install("uniaudio2", patch, behaviours, places)
    return serve("uniaudio2", {"model": PARTS}, tmp_path, **changed), made, seen


def test_a_render_is_the_released_task_with_the_papers_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, made, seen = load(tmp_path, monkeypatch)
    for audio_type in ("speech", "sound", "music"):
        clip = heard(served.ask(render("a dog barks", audio_type)))
        assert (clip.rate_hz, clip.channels, clip.duration_s) == (16_000, 1, 1.0)
    asked = made.of(f"{RENDER}.generate_audio")[0]
    assert {k: asked[k] for k in ("task_name", "temperature", "topk", "cfg_scale")} == {
        "task_name": "tta",
        "temperature": 0.9,
        "topk": 1,
        "cfg_scale": 1.0,
    }
    assert made.of(f"{CODEC}.detokenize_no_reason")[0]["steps"] == 10
    assert seen["codec"]["sq_config"] == str(tmp_path / "model" / "sqcodec_config.yaml")
    assert made.one("llm_models.model_new:ModelArgs")["audio_num_codebooks"] == 8


def test_a_card_may_speak_the_words_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made, _ = load(tmp_path, monkeypatch, task="TTS")
    heard(served.ask(render('He says "good day".', "speech", words="good day")))
    assert len(made.one("evaluation.tts_task:Generator.generate_tts")["text_token"]) == 4
    assert served.ask(render("a scene", "speech"))["reason"] == "no_words"


def test_the_card_that_speaks_differs_in_nothing_else() -> None:
    plain, spoken = (load_system(name).hosts for name in ("uniaudio2", "uniaudio2.tts"))
    assert spoken["uniaudio2"].card.settings == plain["uniaudio2"].card.settings
    listening = {"answer_instruction": plain["uniaudio2"].card.settings["answer_instruction"]}
    assert {**spoken["speaker"].card.settings, **listening, "task": "TTA"} == plain["uniaudio2"].card.settings


def test_frames_come_second_in_questions_and_first_in_captions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made, _ = load(tmp_path, monkeypatch)
    assert served.ask(answer(stored(), "first?", "second?"))["reply"]["texts"] == ["C", "C"]
    assert len(made.of(f"{CODEC}.tokenize")) == 1  # one encoding, two questions
    asked = made.of(f"{ASK}.generate_answer")[0]
    assert (asked["d"]["reason_seq"].shape, asked["d"]["semantic_seq"].shape) == ((8, 5), (8, 12))
    assert asked["keys"] == list(asked["d"])
    assert served.ask(caption("audio caption task", stored()))["reply"]["text"] == "C"
    told = made.one(f"{CAPTION}.generate_audio_caption")
    assert (told["reason_token"].shape, told["semantic_token"].shape) == ((5, 8), (12, 8))


def test_without_a_clip_a_second_of_silence_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _, _ = load(tmp_path, monkeypatch)
    assert served.ask(answer(None, "first?"))["reply"]["notes"] == "no clip: heard a second of silence"
    assert served.ask(answer(stored(), "first?"))["reply"]["notes"] == ""


@pytest.mark.parametrize(("frames", "limit"), [((150, 347), True), ((150, 346), False)])
def test_a_generation_that_never_ended_is_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frames: tuple[int, int], limit: bool
) -> None:
    served, _, _ = load(tmp_path, monkeypatch, frames=frames)
    assert served.ask(render())["reply"]["hit_limit"] is limit


def test_one_that_ends_at_once_is_empty_and_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _, _ = load(tmp_path, monkeypatch, empty=True)
    result = served.ask(render())
    assert (result["status"], result["reason"]) == ("failed", "empty")
    assert served.ask(answer(stored(), "first?"))["reply"]["texts"] == [""]


def test_a_prompt_beyond_the_caches_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _, _ = load(tmp_path, monkeypatch)
    assert served.ask(render("word " * 1_550))["reason"] == "prompt_too_long"
    assert served.ask(answer(stored(), "word " * 1_550))["reason"] == "prompt_too_long"


def test_guidance_that_the_code_ignores_cannot_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="guidance"):
        load(tmp_path, monkeypatch, cfg_scale=3.0)
