"""Keys, seeds and words: what a head is asked, and when two askings are one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import host, system
from torus_ray.audio import encode, silence
from torus_ray.bank import schema
from torus_ray.bank.load import Bank
from torus_ray.bank.schema import STAGES
from torus_ray.heads import AnswerRequest, EditRequest, GenerateRequest
from torus_ray.protocol.graph import Arm, Node, build_graph
from torus_ray.protocol.requests import SILENCE, Plan, Protocol, Verdict
from torus_ray.systems import System

CLIP = encode(silence(0.5))
NATIVE = Arm("native")
OK = {"status": "ok", "reason": None, "clip": CLIP.id, "text": 'A voice says "good day".'}


@pytest.fixture
def toy(tmp_path: Path) -> System:
    return system(tmp_path)


def plans(made: System, bank: Bank, arm: Arm = NATIVE, tests: int | None = None, **rows: Any) -> dict[str, Plan]:
    """The plan of every node by its first unit, each parent having left an `ok` row."""
    protocol = Protocol(made, bank)
    found = {}
    for node in build_graph(system=made.name, bank=bank, tests=bank.tests[:tests], arms=[arm]):
        plan = protocol.resolve(node, [{**OK, **rows} for _ in node.parents])
        assert isinstance(plan, Plan), plan
        found[node.units[0].id.removeprefix(f"{made.name}/")] = plan
    return found


def keys(*args: Any, **kwargs: Any) -> dict[str, list[str]]:
    return {unit: [ask.key for ask in plan.asks] for unit, plan in plans(*args, **kwargs).items()}


def edited(bank: Bank, change: Callable[[dict[str, Any]], None]) -> Bank:
    """The bank with its first test changed."""
    content = bank.tests[0].model_dump(mode="json")
    change(content)
    first = schema.Test.model_validate_json(json.dumps(content))
    return replace(bank, tests=(first, *bank.tests[1:]))


def changed(old: dict[str, list[str]], new: dict[str, list[str]]) -> list[tuple[str, int]]:
    """Units (first unit of a node, place in it) whose keys differ."""
    assert old.keys() == new.keys()
    return [(unit, i) for unit in old for i, (a, b) in enumerate(zip(old[unit], new[unit], strict=True)) if a != b]


# --- keys -------------------------------------------------------------------------------------------------------------


def test_keys_of_a_run_are_all_different_where_content_is(toy: System, bank: Bank) -> None:
    found = [key for unit in keys(toy, bank).values() for key in unit]
    assert len(found) == 6 * 12
    assert len(set(found)) == len(found)


def test_what_is_sealed_is_in_no_key(toy: System, bank: Bank) -> None:
    def seal(test: dict[str, Any]) -> None:
        test["title"] = "another title"
        test["seed"]["scene"] = "another scene"
        for stage in test["stages"].values():
            stage["spec"]["summary"] = "another summary"
            stage["transcript"] = "other words" if stage["transcript"] else None
            for question in stage["questions"]:
                question["key"]["value"] = "another value"
                question["family"] = "expression"
                question["answer"] = question["options"][0]

    assert changed(keys(toy, bank), keys(toy, edited(bank, seal))) == []


def test_a_prompt_changes_its_own_render_alone(toy: System, bank: Bank) -> None:
    def prompt(test: dict[str, Any]) -> None:
        test["stages"]["edit"]["prompt"] += " Now."

    assert changed(keys(toy, bank), keys(toy, edited(bank, prompt))) == [("native/canary-000/edit/edit", 0)]


@pytest.mark.parametrize("field", ["text", "option"])
def test_a_question_changes_its_own_answer_alone(toy: System, bank: Bank, field: str) -> None:
    def question(test: dict[str, Any]) -> None:
        asked = test["stages"]["generation"]["questions"][1]
        if field == "text":
            asked["text"] += " Listen well."
        else:
            wrong = next(i for i, option in enumerate(asked["options"]) if option != asked["answer"])
            asked["options"][wrong] += ", quite"

    unit = "native/canary-000/generation/answer/q1/0/0"
    assert changed(keys(toy, bank), keys(toy, edited(bank, question))) == [(unit, 1)]


def test_equal_content_in_another_test_of_another_bank_has_an_equal_key(toy: System, bank: Bank) -> None:
    tests = tuple(test.model_copy(update={"id": f"other-{i}"}) for i, test in enumerate(bank.tests))
    renamed = replace(bank, tests=tests)
    assert renamed.tests[0].id == "other-0"
    old = {unit.split("/", 2)[2]: key for unit, key in keys(toy, bank, tests=1).items()}
    new = {unit.split("/", 2)[2]: key for unit, key in keys(toy, renamed, tests=1).items()}
    renders = [unit for unit in old if "answer" not in unit]
    assert {unit: new[unit] for unit in renders} == {unit: old[unit] for unit in renders}
    # Options are ordered by the question's name, so questions of a renamed test are shown otherwise.
    assert new != old


def test_both_arms_share_stage_one_and_nothing_that_follows(toy: System, bank: Bank) -> None:
    native, caption = keys(toy, bank, Arm("native")), keys(toy, bank, Arm("self-caption"))
    for test in bank.tests:
        assert native[f"native/{test.id}/generation/generate"] == caption[f"self-caption/{test.id}/generation/generate"]
        for stage in STAGES[1:]:
            assert native[f"native/{test.id}/{stage}/edit"] != caption[f"self-caption/{test.id}/{stage}/generate"]


def test_the_clip_heard_is_part_of_a_key(toy: System, bank: Bank) -> None:
    other = keys(toy, bank, clip=encode(silence(0.4)).id)
    same = keys(toy, bank)
    for unit in same:
        assert (same[unit] == other[unit]) == unit.endswith("/generate"), unit


def test_another_caption_is_another_render(toy: System, bank: Bank) -> None:
    arm = Arm("self-caption")
    differing = changed(keys(toy, bank, arm, tests=1), keys(toy, bank, arm, tests=1, text="A dog."))
    assert [unit for unit, _ in differing] == [
        "self-caption/canary-000/edit/generate",
        "self-caption/canary-000/counterfactual/generate",
    ]


def test_settings_of_a_head_are_in_its_keys_and_resources_are_not(bank: Bank, tmp_path: Path) -> None:
    def made(name: str, **fields: Any) -> dict[str, list[str]]:
        return keys(system(tmp_path / name, {"toy": host(**fields)}), bank)

    plain = made("a")
    assert made("b", num_cpus=2, memory_gb=3, replicas=4) == plain
    warmer = made("c", heads={"answer": {"settings": {"temperature": 1}}})
    assert {unit.split("/")[3] for unit, _ in changed(plain, warmer)} == {"answer"}
    assert len(changed(plain, made("d", settings={"accent": "x"}))) == sum(map(len, plain.values()))


def test_texts_and_bits_of_a_card_are_in_the_keys_that_they_touch(bank: Bank, tmp_path: Path) -> None:
    plain = keys(system(tmp_path / "a"), bank)
    other = keys(system(tmp_path / "b", texts={"question": "{question} {a} {b} {c} {d} {e} {f}"}), bank)
    assert {unit.split("/")[3] for unit, _ in changed(plain, other)} == {"answer"}
    finer = keys(system(tmp_path / "c", bits=24), bank)
    assert {unit.split("/")[3] for unit, _ in changed(plain, finer)} == {"generate", "edit"}


# --- seeds ------------------------------------------------------------------------------------------------------------


def seeds(made: System, bank: Bank, arm: Arm) -> dict[str, set[int]]:
    return {unit: {ask.content["seed"] for ask in plan.asks} for unit, plan in plans(made, bank, arm).items()}


def test_fixed_seeds_are_the_runs_own(bank: Bank, tmp_path: Path) -> None:
    made = system(tmp_path, seeds="fixed")
    assert set(map(frozenset, seeds(made, bank, Arm("native")).values())) == {frozenset({0})}
    assert set(map(frozenset, seeds(made, bank, Arm("native", 3)).values())) == {frozenset({3})}


def test_derived_seeds_follow_the_request_and_the_runs_seed(bank: Bank, tmp_path: Path) -> None:
    made = system(tmp_path, seeds="derived")
    first, again, other = (seeds(made, bank, Arm("native", seed)) for seed in (0, 0, 1))
    assert first == again
    renders = {unit: min(found) for unit, found in first.items() if "answer" not in unit}
    assert len(set(renders.values())) == len(renders)
    assert all(0 <= seed < 2**31 for seed in renders.values())
    for unit, found in first.items():
        assert len(found) == 1, "the questions of a clip share one call"
        assert found != other[unit.replace("native/", "native.seed1/", 1)]


def test_derived_seeds_do_not_hang_on_the_name_of_a_test(bank: Bank, tmp_path: Path) -> None:
    made = system(tmp_path, seeds="derived")
    renamed = replace(bank, tests=(bank.tests[0].model_copy(update={"id": "other"}),))
    old, new = (seeds(made, b, Arm("native")) for b in (bank, renamed))
    for stage, operation in zip(STAGES, ("generate", "edit", "edit"), strict=True):
        assert new[f"native/other/{stage}/{operation}"] == old[f"native/canary-000/{stage}/{operation}"]


# --- requests ---------------------------------------------------------------------------------------------------------


def test_the_request_is_what_the_key_says(toy: System, bank: Bank) -> None:
    protocol = Protocol(toy, bank)
    test = bank.tests[0]
    found = plans(toy, bank, tests=1)
    render = found[f"native/{test.id}/generation/generate"]
    made = protocol.request(render, render.asks, None, "7")
    assert isinstance(made, GenerateRequest)
    assert (made.id, made.prompt, made.audio_type, made.words) == (
        "7",
        test.stages.generation.prompt,
        test.audio_type,
        None,
    )
    edit = found[f"native/{test.id}/edit/edit"]
    made_edit = protocol.request(edit, edit.asks, CLIP.data, "8")
    assert isinstance(made_edit, EditRequest)
    assert (made_edit.prompt, made_edit.clip_bytes, edit.clip) == (test.stages.edit.prompt, CLIP.data, CLIP.id)
    answer = found[f"native/{test.id}/edit/answer/q1/0/0"]
    asked = protocol.request(answer, answer.asks[1:], CLIP.data, "9")
    assert isinstance(asked, AnswerRequest)
    assert [question.text for question in asked.questions] == [q.text for q in test.stages.edit.questions[1:]]
    for shown, question in zip(asked.questions, test.stages.edit.questions[1:], strict=True):
        assert sorted(shown.options) == sorted(question.options)
        assert shown.prompt == protocol.texts.ask(shown.text, shown.options)


def test_the_muted_control_plays_a_second_of_silence(toy: System, bank: Bank) -> None:
    found = plans(toy, bank, Arm("native", control="muted"))
    assert {plan.clip for plan in found.values()} == {SILENCE.id}
    assert (SILENCE.duration_s, SILENCE.peak) == (1.0, 0.0)


# --- words to speak ---------------------------------------------------------------------------------------------------


def spoken(made: System, bank: Bank, arm: Arm, prompts: tuple[str, str, str], caption: str = "") -> list[Any]:
    """The words, or the reason why none, of a speech test with these prompts."""
    content = bank.tests[0].model_dump(mode="json")
    for stage, prompt in zip(STAGES, prompts, strict=True):
        content["stages"][stage]["prompt"] = prompt
    test = schema.Test.model_validate_json(json.dumps(content))
    changed_bank = replace(bank, tests=(test,))
    protocol = Protocol(made, changed_bank)
    nodes: list[Node] = build_graph(system="s", bank=changed_bank, tests=[test], arms=[arm])
    found: list[Any] = []
    for node in nodes:
        if node.kind == "render":
            plan = protocol.resolve(node, [{**OK, "text": caption} for _ in node.parents])
            found.append(
                f"{plan.status}: {plan.reason}" if isinstance(plan, Verdict) else plan.asks[0].content["words"]
            )
    return found


@pytest.fixture
def speaker(tmp_path: Path) -> System:
    heads = {"generate": {"words": True}, "edit": {"words": True}}
    return system(tmp_path, {"toy": host(heads=heads)})


def test_a_native_arm_goes_on_speaking_the_words_of_the_stage_before(speaker: System, bank: Bank) -> None:
    prompts = ('Say "one".', "Slower.", "Louder.")
    assert spoken(speaker, bank, Arm("native"), prompts) == ["one", "one", "one"]
    prompts = ('Say "one".', 'Say "two" instead.', "Louder.")
    assert spoken(speaker, bank, Arm("native"), prompts) == ["one", "two", "two"]


def test_a_self_caption_arm_speaks_what_it_has_heard(speaker: System, bank: Bank) -> None:
    prompts = ('Say "one".', "Slower.", 'Say "three".')
    assert spoken(speaker, bank, Arm("self-caption"), prompts, 'A man says "won".') == ["one", "won", "three"]


def test_without_words_the_unit_is_refused_and_the_transcript_is_not_used(speaker: System, bank: Bank) -> None:
    assert bank.tests[0].stages.generation.transcript
    refused = "refused: no_words"
    assert spoken(speaker, bank, Arm("native"), ("A man talks.", "Slower.", "Louder.")) == [refused] * 3
    assert spoken(speaker, bank, Arm("self-caption"), ('Say "one".', "Slower.", "Louder."), "A man talks.") == [
        "one",
        refused,
        refused,
    ]


def test_a_head_that_takes_no_words_gets_none(toy: System, bank: Bank) -> None:
    assert spoken(toy, bank, Arm("native"), ('Say "one".', "Slower.", "Louder.")) == [None] * 3


# --- verdicts ---------------------------------------------------------------------------------------------------------


def verdicts(made: System, bank: Bank, arm: Arm, **row: Any) -> dict[str, str]:
    protocol = Protocol(made, bank)
    found = {}
    for node in build_graph(system="s", bank=bank, tests=bank.tests[:1], arms=[arm]):
        plan = protocol.resolve(node, [{**OK, **row} for _ in node.parents])
        found[f"{node.stage}/{node.operation}"] = f"{plan.status}: {plan.reason}" if isinstance(plan, Verdict) else "ok"
    return found


def test_what_a_system_cannot_do_is_refused_and_the_rest_asked(bank: Bank, tmp_path: Path) -> None:
    deaf = system(tmp_path / "a", {"toy": host("generate", "answer")})
    assert verdicts(deaf, bank, Arm("native")) == {
        "generation/generate": "ok",
        "generation/answer": "ok",
        "edit/edit": "refused: no_capability",
        "edit/answer": "ok",
        "counterfactual/edit": "refused: no_capability",
        "counterfactual/answer": "ok",
    }
    musical = system(tmp_path / "b", {"toy": host(heads={"generate": {"audio_types": ["music"]}})})
    assert verdicts(musical, bank, Arm("native"))["generation/generate"] == "refused: no_capability"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"status": "failed", "reason": "not_finite"}, "failed: not_finite"),
        ({"status": "refused", "reason": "no_capability"}, "refused: no_capability"),
        ({"status": "no_clip", "reason": "timeout: deadline"}, "timeout: deadline"),
    ],
)
def test_where_there_is_no_clip_the_first_cause_is_carried_along(
    toy: System, bank: Bank, row: dict[str, str], reason: str
) -> None:
    found = verdicts(toy, bank, Arm("native"), **row)
    assert found.pop("generation/generate") == "ok"
    assert set(found.values()) == {f"no_clip: {reason}"}
