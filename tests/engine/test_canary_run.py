"""Nothing sealed reaches a head (DESIGN 3): the canary bank, run through every arm and control, by a model that writes
down every request as it came."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from tests.canary import Canary, make_canary_bank
from tests.engine.systems import host, measured, run, system
from torus_ray.bank.load import load_bank
from torus_ray.bank.schema import STAGES
from torus_ray.protocol.graph import CONTROLS, Arm
from torus_ray.systems import EDIT_MODES

ARMS = tuple(Arm(mode, control=control) for mode in EDIT_MODES for control in (None, *CONTROLS))


class Heard(NamedTuple):
    canary: Canary
    requests: list[Mapping[str, Any]]

    def texts(self, *operations: str) -> list[str]:
        return [repr(request) for request in self.requests if request["operation"] in operations]


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    folder = tmp_path_factory.mktemp("canary")
    canary = make_canary_bank(folder / "bank")
    (folder / "record").mkdir()
    record = {"record": str(folder / "record")}
    made = system(folder / "card", {"toy": host(settings=record)})
    made = measured(made, folder / "gauge", settings=record)
    result = run(made, load_bank(canary.path), folder / "results", ARMS)
    assert set(result.by_status) == {"ok"}
    lines = [line for file in (folder / "record").iterdir() for line in file.read_text().splitlines()]
    return Heard(canary, [ast.literal_eval(line) for line in lines])


def test_every_operation_was_asked_for(heard: Heard) -> None:
    asked = Counter(request["operation"] for request in heard.requests)
    # Stage 1 once for both arms; two captions a test; a clip and its questions once, whoever asks
    # A clip is measured once by each measure, whichever arm made it; words are asked of the two speech tests alone
    clips = 6 + 12 + 12
    assert asked == {
        **{"generate": 6 + 12, "edit": 12, "caption": 12, "answer": asked["answer"]},
        "measure": 3 * clips + clips // 3,
    }
    assert asked["answer"] >= 18 + 12 + 18 + 12 + 18


def test_no_sealed_token_is_in_any_request(heard: Heard) -> None:
    everything = "\n".join(heard.texts("generate", "edit", "caption", "answer", "measure"))
    assert heard.canary.sealed
    assert [token for token in heard.canary.sealed if token in everything] == []


def test_no_prompt_is_shown_when_a_clip_is_heard(heard: Heard) -> None:
    heard_only = "\n".join(heard.texts("caption", "answer", "measure"))
    assert [token for token in heard.canary.prompt_tokens() if token in heard_only] == []


def test_no_question_is_shown_when_a_clip_is_made_or_described(heard: Heard) -> None:
    made = "\n".join(heard.texts("generate", "edit", "caption", "measure"))
    assert [token for token in heard.canary.question_tokens() if token in made] == []


def test_a_render_is_told_its_own_stage_alone(heard: Heard) -> None:
    owners = {token: at for at, tokens in heard.canary.prompts.items() for token in tokens}
    for text in heard.texts("generate", "edit"):
        assert len({at for token, at in owners.items() if token in text}) == 1


def test_an_answer_is_shown_exactly_its_questions_with_their_options(heard: Heard) -> None:
    bank = load_bank(heard.canary.path)
    known = {
        question.text: frozenset(question.options)
        for test in bank.tests
        for stage in STAGES
        for question in test.stage(stage).questions
    }
    asked = [question for request in heard.requests for question in request.get("questions", ())]
    assert {question["text"] for question in asked} == set(known)
    for question in asked:
        assert question.keys() == {"text", "options", "prompt"}
        assert len(question["options"]) == 6
        assert frozenset(question["options"]) == known[question["text"]]
        places = [question["prompt"].index(text) for text in (question["text"], *question["options"])]
        assert places == sorted(places)


def test_a_request_has_no_more_than_its_type_says(heard: Heard) -> None:
    fields = {
        "generate": {"prompt", "audio_type", "seed", "words"},
        "edit": {"prompt", "audio_type", "seed", "words", "clip_bytes"},
        "caption": {"instruction", "clip_bytes", "seed"},
        "answer": {"questions", "clip_bytes", "seed"},
        "measure": {"measure", "clip_bytes", "seed"},
    }
    for request in heard.requests:
        assert request.keys() == fields[request["operation"]] | {"operation", "id"}
        assert str(request["id"]).isdigit(), "an id that tells nothing"
