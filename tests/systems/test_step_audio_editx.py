"""Step-Audio-EditX's adapter against the signatures of the released repository, and its router."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.systems.clips import edit, heard, render, stored
from tests.systems.released import Released, Served, Tensor, facts, fake_torch, install, serve
from torus_ray.bank.load import load_bank
from torus_ray.engine.hosting import load_class
from torus_ray.protocol.words import quoted_words

ROOT = Path(__file__).parents[2]
PARAFORMER = "dengcunqin/speech_paraformer-large_asr_nat-zh-cantonese-en-16k-vocab8501-online"
WEIGHTS = {
    "model": ["config.json", "CosyVoice-300M-25Hz/"],
    "tokenizer": ["speech_tokenizer_v1.onnx", "linguistic_tokenizer.npy", f"{PARAFORMER}/"],
}
TTS = "tts:StepAudioTTS"
SPEECH = (Tensor(np.full((1, 24_000), 0.1)), 24_000)
route = load_class(str(ROOT / "actors" / "step_audio_editx"), "router", "route")
CLOSED = load_class(str(ROOT / "actors" / "step_audio_editx"), "router", "CLOSED")


def load(
    tmp_path: Path,
    patch: pytest.MonkeyPatch,
    device: str = "cuda",
    tokens: int = 100,
    voice: bool = True,
    **changed: Any,
) -> tuple[Served, Released, list[int], list[str]]:
    seeds = fake_torch(patch)
    told: list[str] = []

    def build(self: Any, **_: Any) -> None:
        self.llm = SimpleNamespace(generate=lambda: Tensor(np.zeros((1, tokens))))

    def speak(self: Any, **arguments: Any) -> Any:
        self.llm.generate()
        if "edit_type" in arguments:
            assert Path(arguments["input_audio_path"]).is_file()
            order = ("audio_text", "edit_type", "edit_info", "text")
            told.append(self._build_audio_edit_instruction(*(arguments.get(name) for name in order)))
        return SPEECH

    def instruct(self: Any, edit_type: str, edit_info: Any = None, **_: Any) -> str:
        return f"released {edit_type} {edit_info}"

    behaviours = {TTS: build, f"{TTS}.clone": speak, f"{TTS}.edit": speak}
    behaviours[f"{TTS}._build_audio_edit_instruction"] = instruct
    (tmp_path / "clone" / "examples").mkdir(parents=True, exist_ok=True)
    if voice:
        (tmp_path / "clone" / "examples" / "zero_shot_en_prompt.wav").touch()
    made = install("step-audio-editx", patch, behaviours, {"tts": str(tmp_path / "clone" / "tts.py")})
    return serve("step-audio-editx", WEIGHTS, tmp_path, device, **changed), made, seeds, told


def test_speech_is_the_words_in_the_reference_voice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made, seeds, _ = load(tmp_path, monkeypatch)
    result = served.ask(render('A man says "good day".', "speech", seed=5, words="good day"))
    assert (heard(result).rate_hz, result["reply"]["hit_limit"], result["reply"]["notes"]) == (24_000, False, "")
    asked = made.one(f"{TTS}.clone")
    assert asked["prompt_wav_path"] == str(tmp_path / "clone" / "examples" / "zero_shot_en_prompt.wav")
    assert asked["target_text"] == "good day"
    assert asked["prompt_text"].startswith("His political stance")
    assert seeds == [5]
    assert made.one(TTS)["model_source"] == made.one("tokenizer:StepAudioTokenizer")["model_source"] == "local"


def test_an_edit_of_the_list_is_the_released_call_on_the_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made, _, told = load(tmp_path, monkeypatch)
    prompt = "Let him whisper it, and much faster. Put a huge bell behind."
    result = served.ask(edit(prompt, stored(), "speech", words="good day"))
    heard(result)
    asked = [(a["audio_text"], a["edit_type"], a["edit_info"]) for a in made.of(f"{TTS}.edit")]
    assert asked == [("good day", "style", "whisper"), ("good day", "speed", "more faster")]
    assert told == ["released style whisper", "released speed more faster"]
    assert json.loads(result["reply"]["notes"]) == {
        "steps": [["style", "whisper", None], ["speed", "more faster", None]],
        "unserved": ["put a huge bell behind"],
    }


def test_new_words_are_spoken_anew_by_the_reference_voice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made, _, _ = load(tmp_path, monkeypatch)
    prompt = 'Have him say "good night" instead, angrily said.'
    result = served.ask(edit(prompt, stored(40.0, 16_000, 1), "speech", words="good night"))
    heard(result)
    steps = json.loads(result["reply"]["notes"])["steps"]
    assert steps == [["clone", None, "good night"], ["emotion", "angry", None]]
    assert [call.name for call in made.calls][-3:-1] == [f"{TTS}.clone", f"{TTS}.edit"]
    assert made.one(f"{TTS}.edit")["edit_info"] == "angry"


def test_a_prompt_that_names_no_edit_goes_to_the_model_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = "Move it to a huge empty cathedral."
    served, _, _, told = load(tmp_path, monkeypatch)
    result = served.ask(edit(prompt, stored(), "speech", words="good day"))
    heard(result)
    assert json.loads(result["reply"]["notes"])["steps"] == [["free", None, prompt]]
    assert told == [f"{prompt}\nThe text corresponding to the audio is: good day\n"]
    served, _, _, _ = load(tmp_path, monkeypatch, unrouted="refuse")
    assert served.ask(edit(prompt, stored(), "speech", words="good day"))["reason"] == "no_such_edit"


def test_a_generation_at_its_limit_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _, _, _ = load(tmp_path, monkeypatch, tokens=8192)
    assert served.ask(render("", "speech", words="good day"))["reply"]["hit_limit"] is True


def test_what_it_cannot_take_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _, _, _ = load(tmp_path, monkeypatch)
    assert served.ask(render("a scene", "speech"))["reason"] == "no_words"
    long = edit("Let him whisper.", stored(31.0, 16_000, 1), "speech", words="good day")
    assert served.ask(long)["reason"] == "clip_too_long"
    with pytest.raises(RuntimeError, match="on a GPU only"):
        load(tmp_path, monkeypatch, device="cpu")


def test_a_missing_reference_voice_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="no reference voice"):
        load(tmp_path, monkeypatch, voice=False)


# --- the router -------------------------------------------------------------------------------------------------------


def test_the_closed_list_is_the_released_one() -> None:
    released = facts("step-audio-editx")["modules"]["config.edit_config"]["get_supported_edit_types"]["returns"]
    assert {kind: set(values) for kind, values in released.items() if kind != "clone"} == {
        kind: set(values) for kind, values in CLOSED.items()
    }


NAMED = {
    "emotion": {
        "happy": "Make her sound happy.",
        "angry": "He says it angrily.",
        "sad": "Her voice is sad now.",
        "humour": "He tells it as a joke.",
        "confusion": "She sounds confused.",
        "disgusted": "He says it with disgust.",
        "empathy": "Let her speak with sympathy.",
        "embarrass": "He sounds embarrassed.",
        "fear": "She is terrified.",
        "surprised": "He sounds surprised.",
        "excited": "She talks excitedly.",
        "depressed": "He sounds hopeless.",
        "coldness": "She answers coldly.",
        "admiration": "He says it with admiration.",
        "remove": "Take out the anger in his voice.",
    },
    "style": {
        "serious": "She speaks solemnly.",
        "arrogant": "He sounds arrogant.",
        "child": "Let it be said like a child.",
        "older": "She sounds older.",
        "girl": "Have it spoken like a little girl.",
        "pure": "Her voice is pure and clear.",
        "sister": "She talks to him like a sister.",
        "sweet": "She says it sweetly.",
        "ethereal": "An ethereal voice.",
        "whisper": "Let him whisper.",
        "gentle": "She says it gently.",
        "recite": "He recites the line.",
        "generous": "He sounds generous.",
        "act_coy": "She answers coyly.",
        "warm": "Give him a warm voice.",
        "shy": "She says it shyly.",
        "comfort": "He speaks soothingly.",
        "authority": "She speaks with authority.",
        "chat": "He talks casually.",
        "radio": "Her voice on the radio.",
        "soulful": "A soulful delivery.",
        "story": "He reads like a storyteller.",
        "vivid": "She tells it more vividly.",
        "program": "He talks like a show host.",
        "news": "She reads it like a newsreader.",
        "advertising": "He says it like a commercial.",
        "roar": "He roars the words.",
        "murmur": "She mumbles it.",
        "shout": "Have him shout it.",
        "deeply": "He speaks in a deep voice.",
        "loudly": "She speaks louder.",
        "remove": "Remove the speaking style.",
        "exaggerated": "She says it with exaggeration.",
    },
    "speed": {
        "faster": "He speaks faster.",
        "slower": "She reads it slowly.",
        "more faster": "He talks much faster.",
        "more slower": "She speaks very slowly.",
    },
}


@pytest.mark.parametrize(
    ("kind", "info", "prompt"), [(k, i, prompt) for k, named in NAMED.items() for i, prompt in named.items()]
)
def test_every_value_of_the_list_is_reached_by_plain_words(kind: str, info: str, prompt: str) -> None:
    assert [(step.kind, step.info) for step in route(prompt, "good day").steps] == [(kind, info)]


def test_the_list_has_a_prompt_for_every_value() -> None:
    assert {kind: set(named) for kind, named in NAMED.items()} == {k: set(v) for k, v in CLOSED.items() if v}


@pytest.mark.parametrize(
    ("prompt", "steps"),
    [
        ("Remove the background noise.", [("denoise", None, None)]),
        ("Cut the long pauses.", [("vad", None, None)]),
        ("Let her laugh at the end.", [("paralinguistic", None, "good day [Laughter]")]),
        ("He sighs before he speaks.", [("paralinguistic", None, "[Sigh] good day")]),
        ("Leave his whisper as it was.", []),
        ("Do not let him shout.", []),
        ("Make the rain louder.", []),
        ("", []),
        ("«»;;;", []),
    ],
)
def test_other_routes(prompt: str, steps: list[tuple[str, str | None, str | None]]) -> None:
    assert [(s.kind, s.info, s.text) for s in route(prompt, "good day").steps] == steps


def test_words_in_quotes_are_spoken_and_never_read_as_instructions() -> None:
    steps = route('She says: "Whisper it faster, I am so sad."', "Whisper it faster, I am so sad.").steps
    assert [(step.kind, step.text) for step in steps] == [("clone", "Whisper it faster, I am so sad.")]


def test_every_speech_prompt_of_the_bank_has_a_route_within_the_list() -> None:
    for test in load_bank(ROOT / "bank" / "torus_open_48").tests:
        if test.audio_type != "speech":
            continue
        for stage in ("edit", "counterfactual"):
            prompt = test.stage(stage).prompt
            for step in route(prompt, quoted_words(prompt) or "good day").steps:
                assert step.kind == "clone" or step.kind in CLOSED
                assert step.info is None or step.info in CLOSED[step.kind]
