"""Listeners: the adapter over tiny random checkpoints, transformers underneath."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.actors.hf.served import answer, caption, generate, noise, serve, silence
from tests.actors.hf.tiny_listeners import LISTENERS, VOCABULARY
from tests.actors.hf.tiny_omni import OMNI
from tests.actors.serving import ACTORS, reason, reply
from torus_ray.engine.hosting import HeadServer
from torus_ray.systems import read_card

MADE = {**LISTENERS, **OMNI}
KINDS = tuple(MADE)
VOICES = {"qwen2_5_omni": "Chelsie", "qwen3_omni_moe": "Ethan"}
CARDS = {
    "qwen2-audio": "qwen2_audio",
    "audio-flamingo-3": "audioflamingo3",
    "audio-flamingo-next": "musicflamingo",
    "qwen2.5-omni": "qwen2_5_omni",
    "qwen3-omni": "qwen3_omni_moe",
}
WORDS_ONLY = {"suppress_tokens": [*range(12), *range(25, VOCABULARY)]}
HEADS = {
    "answer": {"max_new_tokens": 4, "min_new_tokens": 2},
    "caption": {"max_new_tokens": 6, "min_new_tokens": 3, **WORDS_ONLY},
}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: make(tmp_path_factory.mktemp(kind)) for kind, make in MADE.items()}


@pytest.fixture(scope="module")
def servers(checkpoints: dict[str, Path]) -> dict[str, HeadServer]:
    return {kind: serve("hf_listeners", "Listener", checkpoints[kind], HEADS, kind=kind) for kind in KINDS}


def inputs(server: HeadServer, clip: bytes | None, *prompts: str) -> Any:
    """What the model is given."""
    model = server.model
    wave, _ = model._hear(clip)
    return model._inputs([model._conversation(model._system, prompt, wave is not None) for prompt in prompts], wave)


@pytest.mark.parametrize("kind", KINDS)
def test_three_questions_are_three_conversations_about_one_clip(kind: str, servers: dict[str, HeadServer]) -> None:
    prompts = ("Say A", "Say the audio : A B C ?", "Say the audio says")
    texts = reply(servers[kind], answer(noise(), *prompts))["texts"]
    assert len(texts) == 3
    given = inputs(servers[kind], noise(), *prompts)
    assert len(given["input_ids"]) == 3
    features = given["input_features"]
    assert bool((features == features[:1]).all()), "each hears the same clip"
    # What is padded stands before the conversation, where generation does not see it.
    assert given["attention_mask"][0, 0] == 0
    assert bool((given["attention_mask"][:, -1] == 1).all())


@pytest.mark.parametrize("kind", KINDS)
def test_one_question_alone_is_answered_as_beside_others(kind: str, servers: dict[str, HeadServer]) -> None:
    prompts = ("Say A", "Say the audio : A B C ?", "Say the audio says")
    together = reply(servers[kind], answer(noise(), *prompts))["texts"]
    assert [reply(servers[kind], answer(noise(), prompt))["texts"][0] for prompt in prompts] == list(together)


@pytest.mark.parametrize("kind", KINDS)
def test_a_longer_clip_is_more_to_hear(kind: str, servers: dict[str, HeadServer]) -> None:
    lengths = [inputs(servers[kind], noise(seconds), "Say A")["input_ids"].shape[1] for seconds in (1.0, 3.0)]
    a_second = 13 if kind == "qwen3_omni_moe" else 25
    assert lengths[1] - lengths[0] == 2 * a_second


@pytest.mark.parametrize("kind", KINDS)
def test_the_clip_counts(kind: str, servers: dict[str, HeadServer]) -> None:
    model = servers[kind].model
    with torch.inference_mode():
        heard = [model._ears(**inputs(servers[kind], clip, "Say A")).logits[0, -1] for clip in (noise(), silence())]
    assert not torch.allclose(heard[0], heard[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "clip", [noise(0.1), noise(1.0, 48_000, 2), silence()], ids=["0.1 s", "48 kHz stereo", "silence"]
)
def test_clips_of_every_kind_are_heard(kind: str, clip: bytes, servers: dict[str, HeadServer]) -> None:
    assert len(reply(servers[kind], answer(clip, "Say A"))["texts"]) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_clip_only_the_text_is_asked(kind: str, servers: dict[str, HeadServer]) -> None:
    """The caption control: the caption stands in the prompt."""
    assert len(reply(servers[kind], answer(None, "Say A", "Say B"))["texts"]) == 2
    assert "input_features" not in inputs(servers[kind], None, "Say A")


@pytest.mark.parametrize("kind", KINDS)
def test_a_caption_is_text_and_greedy(kind: str, servers: dict[str, HeadServer]) -> None:
    first = reply(servers[kind], caption(noise(), seed=0))["text"]
    assert first
    assert reply(servers[kind], caption(noise(), seed=1))["text"] == first


def test_a_draw_is_seeded_by_the_request(checkpoints: dict[str, Path]) -> None:
    heads = {"caption": {"do_sample": True, "max_new_tokens": 8, "min_new_tokens": 8}}
    server = serve("hf_listeners", "Listener", checkpoints["qwen2_audio"], heads, kind="qwen2_audio")
    texts = [reply(server, caption(noise(), seed=seed))["text"] for seed in (0, 1, 0)]
    assert texts[0] == texts[2] != texts[1]


def test_a_captions_thinking_is_taken_away_and_an_answers_is_kept(
    servers: dict[str, HeadServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = servers["musicflamingo"].model
    for said, kept in {
        "<think>hm</think> A dog.": "A dog.",
        "so it is</think>A dog.": "A dog.",
        "<think>and on": "",
        "A dog.": "A dog.",
    }.items():
        monkeypatch.setattr(model, "_ask", lambda *_, said=said: [said])
        assert reply(servers["musicflamingo"], caption(noise()))["text"] == kept
        assert reply(servers["musicflamingo"], answer(noise(), "Say A"))["texts"] == [said]


def test_clips_beyond_what_is_heard(checkpoints: dict[str, Path], servers: dict[str, HeadServer]) -> None:
    assert reason(servers["qwen2_audio"], answer(noise(31.0), "Say A")) == "clip_too_long"
    cropping = serve(
        "hf_listeners", "Listener", checkpoints["qwen2_audio"], HEADS, kind="qwen2_audio", longer="crop", longest_s=2.0
    )
    heard, notes = cropping.model._hear(noise(3.0))
    np.testing.assert_array_equal(heard, servers["qwen2_audio"].model._hear(noise(3.0))[0][:32_000])
    assert notes == "the first 2 s heard of 3.0 s"
    assert reply(cropping, answer(noise(3.0), "Say A"))["notes"] == notes
    assert reply(cropping, answer(noise(2.0), "Say A"))["notes"] == ""


def test_a_minute_is_heard_in_windows(servers: dict[str, HeadServer]) -> None:
    assert inputs(servers["musicflamingo"], noise(61.0), "Say A")["input_features"].shape[0] == 3


def test_the_system_turn_is_the_cards(checkpoints: dict[str, Path]) -> None:
    server = serve("hf_listeners", "Listener", checkpoints["qwen2_audio"], HEADS, kind="qwen2_audio", system="Say F")
    model = server.model
    text = model._processor.apply_chat_template(model._conversation(model._system, "Say A", True), tokenize=False)
    assert text.index("Say F") < text.index("<|AUDIO|>") < text.index("Say A")


def test_what_generation_takes_of_the_checkpoint_is_observed(servers: dict[str, HeadServer]) -> None:
    assert servers["qwen2_audio"].describe()["observed"]["generation_config"]["max_new_tokens"] == 8


def test_a_checkpoint_without_a_chat_template(tmp_path: Path) -> None:
    folder = LISTENERS["audioflamingo3"](tmp_path)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(RuntimeError, match="no chat template"):
        serve("hf_listeners", "Listener", folder, HEADS, kind="audioflamingo3")


def test_what_is_wrong_in_a_card(checkpoints: dict[str, Path]) -> None:
    with pytest.raises(RuntimeError, match="of the kind 'qwen2_audio'"):
        serve("hf_listeners", "Listener", checkpoints["qwen2_audio"], HEADS, kind="musicflamingo")
    with pytest.raises(ValueError, match="kind is one of qwen2_audio"):
        serve("hf_listeners", "Listener", checkpoints["qwen2_audio"], HEADS, kind="qwen")
    with pytest.raises(ValueError, match="longer is one of refuse, crop"):
        serve("hf_listeners", "Listener", checkpoints["qwen2_audio"], HEADS, kind="qwen2_audio", longer="cut")
    with pytest.raises(ValueError, match="has no voice"):
        serve(
            "hf_listeners",
            "SpeakingListener",
            checkpoints["qwen2_audio"],
            HEADS,
            kind="qwen2_audio",
            persona="",
            say="{words}",
        )


# --- the voice of Qwen-Omni -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def speakers(checkpoints: dict[str, Path]) -> dict[str, HeadServer]:
    return {
        kind: serve(
            "hf_listeners",
            "SpeakingListener",
            checkpoints[kind],
            {**HEADS, "generate": {"speaker": voice, "thinker_max_new_tokens": 6, "talker_max_new_tokens": 12}},
            kind=kind,
            persona="system",
            say="Say : {words}",
        )
        for kind, voice in VOICES.items()
    }


@pytest.mark.parametrize("kind", OMNI)
def test_words_are_spoken_and_the_seed_decides_how(kind: str, speakers: dict[str, HeadServer]) -> None:
    clips = [reply(speakers[kind], generate(seed=seed, words="the audio says A")) for seed in (0, 1, 0)]
    first = clips[0]["clip"]
    assert (first["rate_hz"], first["channels"]) == (24_000, 1)
    assert first["peak"] > 0.001
    assert first["id"] == clips[2]["clip"]["id"] != clips[1]["clip"]["id"]
    assert clips[0]["hit_limit"] is True, "six tokens end nothing"


@pytest.mark.parametrize("kind", OMNI)
def test_it_is_asked_to_say_the_words_under_its_persona(
    kind: str, speakers: dict[str, HeadServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = speakers[kind].model
    asked: list[Any] = []
    real = model._inputs
    monkeypatch.setattr(model, "_inputs", lambda turns, wave: asked.extend(turns) or real(turns, wave))
    reply(speakers[kind], generate("a scene", words="the audio"))
    ((system, user),) = asked
    assert (system["role"], system["content"][0]["text"]) == ("system", "system")
    assert user["content"] == [{"type": "text", "text": "Say : the audio"}]


@pytest.mark.parametrize("kind", OMNI)
def test_one_host_listens_as_the_listener_alone(
    kind: str, speakers: dict[str, HeadServer], servers: dict[str, HeadServer]
) -> None:
    asked = answer(noise(), "Say A", "Say the audio")
    assert reply(speakers[kind], asked)["texts"] == reply(servers[kind], asked)["texts"]


def test_without_words_nothing_is_spoken(speakers: dict[str, HeadServer]) -> None:
    assert reason(speakers["qwen2_5_omni"], generate("a scene")) == "no_words"


# --- cards ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("card", "kind"), CARDS.items())
def test_the_cards_are_greedy_and_of_their_kind(card: str, kind: str) -> None:
    (host,) = read_card(ACTORS / "hf_listeners" / f"{card}.system.toml").hosts.values()
    assert host.card.settings["kind"] == kind
    assert kind in MADE, "what a card claims is run here"
    for operation in ("answer", "caption"):
        assert host.card.heads[operation].settings["do_sample"] is False
