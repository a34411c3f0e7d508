"""The wire: every request and reply survives it as plain data."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from torus_ray.audio import BadClip, Clip, encode, silence
from torus_ray.heads import (
    OPERATIONS,
    REQUEST_TYPES,
    AnswerRequest,
    CaptionRequest,
    EditRequest,
    GenerateRequest,
    MeasureRequest,
    Model,
    Question,
    Refused,
    Request,
    clip_from_wire,
    clip_to_wire,
    operations_of,
    reply_to_wire,
    request_from_wire,
    request_to_wire,
)

STORED = encode(silence(0.1))
QUESTION = Question("What is heard?", ("a", "b", "c", "d", "e", "f"), "What is heard? A. a")
REQUESTS: list[Request] = [
    GenerateRequest("1", "a dog", "sound", 7),
    GenerateRequest("1", "a man", "speech", 7, words="good day"),
    EditRequest("2", "louder", STORED.data, "music", 8),
    CaptionRequest("3", "Describe.", STORED.data, 9),
    AnswerRequest("4", (QUESTION, QUESTION), STORED.data, 10),
    AnswerRequest("5", (QUESTION,), None, 10),
    MeasureRequest("6", "words", STORED.data, 11),
]


def plain(value: Any) -> bool:
    """Whether a value is what two environments can exchange."""
    if isinstance(value, dict):
        return all(type(key) is str and plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(plain, value))
    return value is None or type(value) in (str, bytes, int, float, bool)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.operation)
def test_a_request_comes_back_equal_and_travels_as_plain_data(request_: Request) -> None:
    wire = request_to_wire(request_)
    assert plain(wire)
    assert request_from_wire(pickle.loads(pickle.dumps(wire))) == request_
    assert request_to_wire(request_) == wire, "reading it changed it"


def test_there_is_a_request_for_every_operation() -> None:
    assert set(REQUEST_TYPES) == set(OPERATIONS) == {request.operation for request in REQUESTS}


def test_a_clip_is_decoded_where_it_is_used() -> None:
    edit = request_from_wire(request_to_wire(REQUESTS[2]))
    assert isinstance(edit, EditRequest)
    assert edit.clip.frames == STORED.frames
    deaf = REQUESTS[5]
    assert isinstance(deaf, AnswerRequest)
    assert deaf.clip is None


def test_requests_do_not_print_their_audio() -> None:
    assert "fLaC" not in repr(REQUESTS[2]) + repr(REQUESTS[3]) + repr(REQUESTS[4]) + repr(REQUESTS[6])


def test_a_stored_clip_survives_the_wire() -> None:
    wire = clip_to_wire(STORED)
    assert plain(wire)
    assert clip_from_wire(wire) == STORED


def test_a_render_reply_carries_its_encoded_clip() -> None:
    request = GenerateRequest("1", "a dog", "sound", 7)
    clip = Clip(np.linspace(-0.5, 0.5, 200), 24_000)
    wire = reply_to_wire(request.reply(clip, hit_limit=np.bool_(True)), 24)
    assert plain(wire)
    assert (wire["id"], wire["hit_limit"]) == ("1", True)
    assert clip_from_wire(wire["clip"]) == encode(clip, 24)


def test_replies_of_words_become_plain_text() -> None:
    caption = CaptionRequest("3", "Describe.", b"", 9).reply("a dog", notes="cut to 30 s")
    assert reply_to_wire(caption) == {"id": "3", "text": "a dog", "notes": "cut to 30 s"}
    texts = AnswerRequest("4", (QUESTION, QUESTION), None, 1).reply(["A", np.str_("B")])
    assert reply_to_wire(texts) == {"id": "4", "texts": ["A", "B"], "notes": ""}
    assert plain(reply_to_wire(texts))
    values = MeasureRequest("6", "words", b"", 1).reply({"text": "good day", "energy": 0.5})
    assert reply_to_wire(values) == {"id": "6", "values": {"text": "good day", "energy": 0.5}}


@pytest.mark.parametrize(("wave", "reason"), [(np.zeros(0), "empty"), (np.array([np.nan]), "not_finite")])
def test_a_clip_that_cannot_be_stored_says_why(wave: np.ndarray, reason: str) -> None:
    with pytest.raises(BadClip) as caught:
        reply_to_wire(GenerateRequest("1", "a dog", "sound", 7).reply(Clip(wave, 8_000)))
    assert caught.value.reason == reason


@pytest.mark.parametrize("reply", ["A", None, {"id": "1"}])
def test_what_no_request_made_is_no_reply(reply: Any) -> None:
    with pytest.raises(TypeError, match=r"request\.reply"):
        reply_to_wire(reply)


def test_operations_of_a_class_are_the_methods_that_it_has() -> None:
    class Ears(Model):
        def answer(self, requests: Any) -> Any: ...

        def caption(self, requests: Any) -> Any: ...

    assert operations_of(Ears) == operations_of(Ears()) == ["caption", "answer"]
    assert operations_of(Model) == []


def test_a_refusal_has_a_reason_and_a_message() -> None:
    assert (Refused("too_long").reason, str(Refused("too_long"))) == ("too_long", "too_long")
    assert str(Refused("too_long", "2,000 words")) == "2,000 words"


def test_a_bare_text_is_no_list_of_answers() -> None:
    request = AnswerRequest("1", (Question("Which?", tuple("abcdef"), "Which?"),) * 3, None, 0)
    with pytest.raises(TypeError, match="one text a question"):
        request.reply("ABC")
