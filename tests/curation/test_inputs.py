"""Seeds, endpoints, prompts and replies: what is read, and what is said about what cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from string import Template

import pytest
from pydantic import BaseModel

from tests.curation.authors import questions, seed
from tests.curation.test_judging import a_test
from torus_ray.bank import schema
from torus_ray.bank.schema import FAMILIES, Key, Music, Source, Spec, Voice
from torus_ray.curation.chat import ChatReply
from torus_ray.curation.endpoints import DEFAULTS, read_endpoints
from torus_ray.curation.replies import (
    Architecture,
    BadReply,
    DraftQuestion,
    DraftStage,
    OptionsRepair,
    QuestionRepair,
    Questions,
    read_shape,
    read_whole_test,
)
from torus_ray.curation.seeds import read_seeds
from torus_ray.curation.wording import VERSIONS, prompt
from torus_ray.errors import InputError

# --- seeds ---


def test_a_list_and_lines_are_the_same_seeds(tmp_path: Path) -> None:
    listed, lines = tmp_path / "seeds.json", tmp_path / "seeds.jsonl"
    listed.write_text(json.dumps([seed(0), seed(1)]))
    lines.write_text("\n".join(json.dumps(seed(take)) for take in (0, 1)) + "\n\n")
    assert read_seeds(listed) == read_seeds(lines)
    assert read_seeds(listed)[0].seed.scene == seed(0)["scene"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no seed"),
        ("[]", "holds no seed"),
        (json.dumps([seed(0), seed(0)]), "seed 2: the id 'take-0' is that of seed 1 too"),
        (json.dumps([{**seed(0), "audio_type": "noise"}]), "audio_type"),
        (json.dumps([{**seed(0), "mood": "glad"}]), "mood"),
        (json.dumps([{**seed(0), "scene": 3}]), "scene"),
        (json.dumps([{k: v for k, v in seed(0).items() if k != "scene"}]), "scene: Field required"),
        (json.dumps([{**seed(0), "id": "Not Plain"}]), "id"),
        (json.dumps(seed(0)) + "\n{\n", ":2"),
        ('[{"id": }]', "not JSON"),
        ('"seed"', "line 1"),
    ],
)
def test_every_problem_of_seeds_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "seeds"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_seeds(path)
    assert told in caught.value.render()


# --- endpoints ---


def test_a_file_replaces_a_role_whole_and_changes_come_after(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text('[author]\nmodel = "local"\nbase_url = "http://127.0.0.1:8000/v1"\n[muted]\nmodel = "ears"\n')
    found = read_endpoints(path, ["muted.hears=nothing", "ideal.temperature=none", "author.max_tokens=9000"])
    assert found["author"].key_env is None
    assert found["author"].max_tokens == 9000
    assert found["muted"].hears == "nothing"
    assert found["ideal"] == DEFAULTS["ideal"].model_copy(update={"temperature": None})


def test_a_key_never_follows_to_another_server() -> None:
    moved = read_endpoints(None, ["author.base_url=http://127.0.0.1:8000/v1"])["author"]
    assert moved.key_env is None
    named = read_endpoints(None, ["author.base_url=http://127.0.0.1:8000/v1", "author.key_env=MY_KEY"])["author"]
    assert named.key_env == "MY_KEY"


@pytest.mark.parametrize(
    "change",
    [
        "author.base_url=ftp://x",
        "author.base_url=https://user:secret@host/v1",
        "author.temperature=9",
        "author.in_flight=0",
    ],
)
def test_a_wrong_endpoint_is_told_without_its_value(change: str) -> None:
    with pytest.raises(InputError) as caught:
        read_endpoints(None, [change])
    assert "secret" not in caught.value.render()


def test_an_unknown_field_is_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(InputError, match="unknown field 'modle'") as caught:
        read_endpoints(None, ["author.modle=x"])
    assert "near: model" in caught.value.expected
    assert "author.model=" in caught.value.mend
    with pytest.raises(InputError, match="is no change of an endpoint"):
        read_endpoints(None, ["author.model"])


# --- prompts ---


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("architect", [Architecture, DraftStage, Spec, Source, Voice, Music]),
        ("author", [Questions, DraftQuestion, Key]),
        ("repair_options", [OptionsRepair]),
        ("repair_question", [QuestionRepair]),
    ],
)
def test_a_prompt_names_every_field_that_its_reply_must_have(name: str, models: list[type[BaseModel]]) -> None:
    text = prompt(name).user
    for model in models:
        for field in model.model_fields:
            assert f'"{field}"' in text, field


def test_the_author_knows_the_families() -> None:
    assert all(family in prompt("author").user for family in FAMILIES)


@pytest.mark.parametrize("name", list(VERSIONS))
def test_prompts_hold_no_name_that_is_not_filled_in(name: str) -> None:
    assert Template(prompt(name).user).is_valid()
    assert "$" not in prompt(name).system


def test_a_dollar_in_a_seed_stays_one() -> None:
    values = dict.fromkeys(Template(prompt("ideal").user).get_identifiers(), "costs $5 and ${spec}")
    assert "costs $5 and ${spec}" in prompt("ideal").filled(**values)


# --- replies ---


def reply(text: str, finish_reason: str = "stop", refusal: str | None = None) -> ChatReply:
    return ChatReply("key", text, refusal, finish_reason, "m", "r", 9, 0.0)


@pytest.mark.parametrize(
    "around",
    ["{}", "```json\n{}\n```", "Here it is:\n{}\nI hope it serves.", "<think>maybe {{1}}</think>{}"],
)
def test_an_object_is_found_in_what_stands_around_it(around: str) -> None:
    text = around.replace("{}", json.dumps(questions(0))).replace("{{1}}", "{1}")
    assert read_shape(Questions, reply(text)).edit[0].text == questions(0)["edit"][0]["text"]


@pytest.mark.parametrize(
    ("said", "reason", "told"),
    [
        (reply("Sure! I will."), "not_json", "no object"),
        (reply(""), "not_json", "no object"),
        (reply("[1, 2]"), "not_json", "no object"),
        (reply('{"title": '), "not_json", "Expecting value"),
        (reply('{"title": ', "length"), "cut_off", "briefer"),
        (reply("I'm sorry, I can't write that."), "refusal", "I'm sorry"),
        (reply("", refusal="I can't."), "refusal", "I can't"),
        (reply("", "content_filter"), "refusal", "content_filter"),
        (reply("", "no_choice"), "refusal", "no_choice"),
        (reply("{}"), "schema", "generation: Field required"),
        (reply(json.dumps({**questions(0), "edit": questions(0)["edit"][:2]})), "schema", "edit"),
    ],
)
def test_what_is_wrong_with_a_reply_is_told(said: ChatReply, reason: str, told: str) -> None:
    with pytest.raises(BadReply) as caught:
        read_shape(Questions, said)
    assert caught.value.reason == reason
    assert told in caught.value.message


def test_a_whole_test_is_held_to_the_rules_of_a_bank() -> None:
    document = a_test().model_dump(mode="json")
    assert read_whole_test(document).id == "take-0"
    options = document["stages"]["edit"]["questions"][0]["options"]
    options[1] = options[0].upper()
    with pytest.raises(BadReply, match="equal options"):
        read_whole_test(document)
    options.pop()
    with pytest.raises(BadReply, match="5 options"):
        read_whole_test(document)
    document = a_test().model_dump(mode="json")
    document["stages"]["edit"]["questions"][0]["answer"] = "Eight"
    with pytest.raises(BadReply, match="none of the options"):
        read_whole_test(document)
    document = a_test().model_dump(mode="json")
    document["stages"]["edit"]["questions"][2]["text"] = "Where is it?"
    with pytest.raises(BadReply, match="comes again"):
        read_whole_test(document)


def test_a_fault_that_was_there_before_is_not_the_repair_s() -> None:
    test = a_test()
    document = test.model_dump(mode="json")
    document["stages"]["edit"]["questions"][2]["text"] = "Where is it?"
    old = schema.Test.model_validate_json(json.dumps(document))
    changed = old.model_dump(mode="json")
    changed["stages"]["generation"]["questions"][0]["text"] = "How many strokes come?"
    assert read_whole_test(changed, before=old).stages.generation.questions[0].text == "How many strokes come?"
