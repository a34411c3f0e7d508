"""What an author's reply must be, and what is wrong with one that is not: in words that it can be asked again with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from torus_ray.bank.check import QUESTION_RULES, STAGE_RULES, TEST_RULES
from torus_ray.bank.digest import canonical_json
from torus_ray.bank.load import BankError, read_test
from torus_ray.bank.schema import (
    QUESTIONS_PER_STAGE,
    STAGES,
    Family,
    Key,
    Spec,
    StageName,
    Test,
    Text,
)
from torus_ray.curation.chat import Caller, CallFailed, ChatReply, ChatRequest
from torus_ray.curation.endpoints import Endpoint
from torus_ray.curation.wording import Prompt, prompt

FAULTS_TOLD = 12

Shape = TypeVar("Shape", bound=BaseModel)
Made = TypeVar("Made")


class BadReply(Exception):
    """A reply that cannot be used. reason: snake_case. message: what is wrong, for whoever wrote it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


class StepFailed(Exception):
    """A step that was asked as often as it may be and has nothing usable. step: its prompt. asks: how often."""

    def __init__(self, step: str, reason: str, message: str, asks: int) -> None:
        super().__init__(message)
        self.step, self.reason, self.message, self.asks = step, reason, message, asks


# --- the shapes -------------------------------------------------------------------------------------------------------


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class DraftStage(_Shape):
    """What the Test Architect writes of a stage."""

    prompt: Text
    spec: Spec
    transcript: Text | None = None


class DraftStages(_Shape):
    generation: DraftStage
    edit: DraftStage
    counterfactual: DraftStage


class Architecture(_Shape):
    """The Test Architect's reply."""

    title: Text
    stages: DraftStages


class DraftQuestion(_Shape):
    """One question as the Question Author writes it; its id is its place."""

    family: Family
    text: Text
    options: tuple[Text, ...]
    answer: Text
    key: Key


_Three = Annotated[tuple[DraftQuestion, ...], Field(min_length=QUESTIONS_PER_STAGE, max_length=QUESTIONS_PER_STAGE)]


class Questions(_Shape):
    """The Question Author's reply: three questions a stage."""

    generation: _Three
    edit: _Three
    counterfactual: _Three


class OptionsRepair(_Shape):
    """Repair round 1 (Appendix D): the options alone."""

    options: tuple[Text, ...]
    answer: Text


class QuestionRepair(OptionsRepair):
    """Repair round 2: question and options, diagnosed and revised."""

    diagnosis: Text
    text: Text


# --- reading ----------------------------------------------------------------------------------------------------------

_REFUSAL = re.compile(
    r"\b(?:I(?:['\u2019]m| am)? (?:sorry|unable|not able)|I (?:can(?:no|['\u2019])t|won['\u2019]t)|as an AI)", re.I
)


def read_shape(shape: type[Shape], reply: ChatReply) -> Shape:
    """The reply as `shape`. Raises BadReply."""
    found = _object(reply)
    try:
        return shape.model_validate_json(json.dumps(found))
    except ValidationError as error:
        told = [_fault(detail) for detail in error.errors(include_url=False)]
        raise BadReply("schema", _listed(told)) from error


def _object(reply: ChatReply) -> dict[str, Any]:
    """The JSON object in a reply, fences and thinking around it left out."""
    if reply.refusal or reply.finish_reason in ("content_filter", "no_choice"):
        raise BadReply("refusal", f"it is a refusal ({(reply.refusal or reply.finish_reason or '')[:200]})")
    text = reply.text.rpartition("</think>")[2]
    decoder = json.JSONDecoder()
    fault = "there is no object in it"
    at = text.find("{")
    if at >= 0:
        try:
            found, _ = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError) as error:
            fault = str(error)
        else:
            if isinstance(found, dict):
                return found
    if reply.finish_reason == "length":
        raise BadReply("cut_off", "it was cut off at the largest length a reply may have: be briefer")
    if at < 0 and _REFUSAL.search(text[:200]):
        raise BadReply("refusal", f"it is a refusal ({text[:200]!r})")
    raise BadReply("not_json", f"it is not one JSON object: {fault}")


def _fault(detail: Mapping[str, Any]) -> str:
    where = ".".join(str(step) for step in detail["loc"]) or "the object"
    value = json.dumps(detail["input"], ensure_ascii=False, default=str)
    shown = f" (it is {value})" if detail["type"] != "missing" and len(value) <= 80 else ""
    return f"{where}: {detail['msg']}{shown}"


def _listed(faults: list[str]) -> str:
    more = [f"and {len(faults) - FAULTS_TOLD} more"] if len(faults) > FAULTS_TOLD else []
    return "; ".join([*faults[:FAULTS_TOLD], *more])


# --- a whole test -----------------------------------------------------------------------------------------------------


def read_whole_test(document: Mapping[str, Any], *, before: Test | None = None) -> Test:
    """The test in `document`, by the rules of a bank's files; and no error of `torus bank check` that `before`, the
    test as it was, does not have too. Raises BadReply."""
    try:
        test = read_test("the reply", canonical_json(document))
    except BankError as error:
        told = [f"{p.at}: {p.message}" + (f", expected {p.expected}" if p.expected else "") for p in error.problems]
        raise BadReply("schema", _listed(told)) from error
    new = _errors(test) - (_errors(before) if before else set())
    if new:
        raise BadReply("rules", _listed(sorted(new)))
    return test


def _errors(test: Test) -> set[str]:
    """What the rules on single tests, stages and questions call an error; the rest needs a whole bank."""
    found = [finding for rule in TEST_RULES for finding in rule(test)]
    for name in STAGES:
        stage = test.stage(name)
        found += [finding for rule in STAGE_RULES for finding in rule(test, name, stage)]
        for question in stage.questions:
            found += [finding for rule in QUESTION_RULES for finding in rule(test, name, stage, question)]
    return {
        f"{'.'.join(part for part in (f.stage, f.question) if part) or 'the test'}: {f.message}; {f.mend}"
        for f in found
        if f.severity == "error"
    }


def with_question(test: Test, stage: StageName, question: Mapping[str, Any]) -> dict[str, Any]:
    """`test` as a document in which `question` stands in the place of the one with its id."""
    document = test.model_dump(mode="json")
    questions = document["stages"][stage]["questions"]
    at = next(i for i, q in enumerate(questions) if q["id"] == question["id"])
    questions[at] = dict(question)
    return document


def spec_text(test: Test, stage: StageName) -> str:
    """The specification of a stage's ideal clip, transcript included, as an author or an ideal solver sees it."""
    shown = test.stage(stage)
    return sealed_text(shown.spec, shown.transcript)


def sealed_text(spec: Spec, transcript: str | None) -> str:
    document = {**spec.model_dump(mode="json"), "transcript": transcript}
    return json.dumps(document, indent=1, ensure_ascii=False)


def stages_text(stages: DraftStages) -> str:
    """All that the Question Author is shown of a test."""
    told = []
    for name in STAGES:
        stage: DraftStage = getattr(stages, name)
        told.append(f"{name}\nprompt: {stage.prompt}\nspecification: {sealed_text(stage.spec, stage.transcript)}")
    return "\n\n".join(told)


# --- asking until it can be used --------------------------------------------------------------------------------------


async def ask_until_good(
    caller: Caller,
    endpoint: Endpoint,
    wording: Prompt,
    values: Mapping[str, str],
    read: Callable[[ChatReply], Made],
    *,
    unit: str,
    asks: int,
) -> tuple[Made, ChatReply, int]:
    """What `read` makes of the first reply that it does not call bad, the reply, and how often was asked (at most
    `asks`). Each ask after the first names the fault of the last reply. Raises StepFailed."""
    messages = wording.messages(**values)
    fault = BadReply("error", "")
    role = wording.version.partition(".")[0]
    for number in range(1, asks + 1):
        request = ChatRequest(endpoint, messages, json=True)
        try:
            reply = await caller.ask(request, role=role, unit=unit, prompt_version=wording.version)
        except CallFailed as error:
            raise StepFailed(role, error.reason, error.message, number) from error
        try:
            return read(reply), reply, number
        except BadReply as error:
            fault = error
        said = ({"role": "assistant", "content": reply.text},) if reply.text.strip() else ()
        again = prompt("reask").filled(fault=fault.message)
        messages = (*messages, *said, {"role": "user", "content": again})
    raise StepFailed(role, fault.reason, fault.message, asks)
