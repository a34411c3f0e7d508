"""Inside a host: what an adapter does wrong comes out as plain data that names it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import TOY
from torus_ray.audio import encode, silence
from torus_ray.engine.hosting import HeadServer, load_class
from torus_ray.heads import AnswerRequest, CaptionRequest, GenerateRequest, Question, request_to_wire

CLIP = encode(silence(0.2))


def payload(folder: Path = TOY.parent, module: str = "toy", name: str = "Toy", **changes: Any) -> dict[str, Any]:
    told = {
        "folder": str(folder),
        "module": module,
        "class_name": name,
        "settings": {},
        "heads": {"generate": {}, "edit": {}, "caption": {}, "answer": {}},
        "style": "batch",
        "bits": 16,
        "host": {"device": "cpu", "threads": 1, "gpu_share": 0.0, "weights": {}},
    }
    return {**told, **changes}


def toy(faults: dict[str, str] | None = None, **settings: Any) -> HeadServer:
    return HeadServer(payload(settings={"faults": faults or {}, **settings}))


def written(folder: Path, body: str, **changes: Any) -> HeadServer:
    """A server of a class `Net` that is written for one test."""
    (folder / "net.py").write_text(
        "from torus_ray.heads import Model\nclass Net(Model):\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
    )
    return HeadServer(payload(folder, "net", "Net", **{"heads": {"caption": {}}, **changes}))


def prompts(*texts: str) -> list[dict[str, Any]]:
    return [request_to_wire(GenerateRequest(str(i), text, "sound", 0)) for i, text in enumerate(texts)]


def captions(count: int = 1) -> list[dict[str, Any]]:
    return [request_to_wire(CaptionRequest(str(i), "Describe.", CLIP.data, 0)) for i in range(count)]


def error_of(answer: dict[str, Any]) -> dict[str, Any]:
    assert "results" not in answer
    assert {"started_at", "ended_at", "cpu_s", "pid"} <= answer.keys()
    error: dict[str, Any] = answer["error"]
    assert all(type(value) is str for value in error.values())
    return error


# --- requests ---------------------------------------------------------------------------------------------------------


def test_replies_come_back_in_order_as_plain_data() -> None:
    answer = toy().handle("generate", prompts("a", "b", "c"))
    assert [(result["status"], result["reply"]["id"]) for result in answer["results"]] == [
        ("ok", "0"),
        ("ok", "1"),
        ("ok", "2"),
    ]
    assert {type(value) for value in answer["results"][0]["reply"]["clip"].values()} == {bytes, str, int, float}


@pytest.mark.parametrize(
    ("kind", "named"),
    [("few", "2 replies to 3 requests"), ("order", "out of order"), ("text", "got str for a reply")],
)
def test_a_broken_contract_is_a_bad_reply_that_says_what(kind: str, named: str) -> None:
    error = error_of(toy({"b": kind}).handle("generate", prompts("a", "b", "c")))
    assert error["kind"] == "BadReply"
    assert named in error["message"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("def caption(self, requests): return None", "returned NoneType"),
        ("def caption(self, requests): return (r.reply('x') for r in requests)", "returned generator"),
        ("def caption(self, requests): return 'a dog'", "returned str"),
        ("async def caption(self, requests): return []", "style = 'async'"),
        ("def caption(self, requests): return [None]", "got NoneType for a reply"),
    ],
)
def test_what_is_no_list_of_replies(tmp_path: Path, body: str, named: str) -> None:
    error = error_of(written(tmp_path, body).handle("caption", captions()))
    assert error["kind"] == "BadReply"
    assert named in error["message"]


def test_a_reply_of_another_operation_is_a_bad_reply(tmp_path: Path) -> None:
    body = (
        "def caption(self, requests):\n"
        "    from torus_ray.heads import AnswerReply\n"
        "    return [AnswerReply(r.id, ('A',)) for r in requests]"
    )
    error = error_of(written(tmp_path, body).handle("caption", captions()))
    assert error["kind"] == "BadReply"
    assert "AnswerReply" in error["message"]


def test_too_few_answers_to_the_questions_of_a_clip(tmp_path: Path) -> None:
    question = Question("?", ("a", "b", "c", "d", "e", "f"), "? A. a")
    wire = request_to_wire(AnswerRequest("1", (question, question, question), CLIP.data, 0))
    server = written(
        tmp_path, "def answer(self, requests): return [r.reply(['A', 'B']) for r in requests]", heads={"answer": {}}
    )
    error = error_of(server.handle("answer", [wire]))
    assert (error["kind"], "2 answers to 3 questions" in error["message"]) == ("BadReply", True)


@pytest.mark.parametrize(("kind", "reason"), [("nan", "not_finite"), ("empty", "empty")])
def test_a_clip_that_cannot_be_stored_fails_its_request_alone(kind: str, reason: str) -> None:
    results = toy({"b": kind}).handle("generate", prompts("a", "b", "c"))["results"]
    assert [result["status"] for result in results] == ["ok", "failed", "ok"]
    assert results[1]["reason"] == reason
    assert "reply" not in results[1]


def test_an_exception_comes_with_its_traceback() -> None:
    error = error_of(toy({"b": "raise"}).handle("generate", prompts("a", "b")))
    assert (error["kind"], error["message"]) == ("RuntimeError", "a toy fault")
    assert "toy.py" in error["traceback"]


def test_a_library_that_wants_to_leave_is_an_error_too() -> None:
    assert error_of(toy({"b": "exit"}).handle("generate", prompts("b")))["kind"] == "SystemExit"


def test_a_refusal_alone_is_refused_and_in_a_batch_is_an_error_so_that_it_is_split() -> None:
    server = toy({"b": "refuse"})
    assert server.handle("generate", prompts("b"))["results"] == [
        {"status": "refused", "reason": "too_hard", "message": "the toy does not do this"}
    ]
    assert error_of(server.handle("generate", prompts("a", "b")))["kind"] == "Refused"


def test_what_cannot_be_decoded_is_an_error_of_the_request(tmp_path: Path) -> None:
    wire = {**captions()[0], "clip_bytes": b"no audio"}
    error = error_of(
        written(tmp_path, "def caption(self, requests): return [r.reply(str(r.clip.frames)) for r in requests]").handle(
            "caption", [wire]
        )
    )
    assert error["kind"] == "BadClip"


# --- coroutines -------------------------------------------------------------------------------------------------------


def test_an_async_model_answers_one_request_a_call() -> None:
    server = HeadServer(payload(name="ToyAsync", style="async"))
    answer = asyncio.run(server.handle_async("generate", prompts("a")))
    assert [result["status"] for result in answer["results"]] == ["ok"]
    assert answer["results"] == toy().handle("generate", prompts("a"))["results"]


@pytest.mark.parametrize(
    ("kind", "expected"), [("raise", "RuntimeError"), ("exit", "SystemExit"), ("text", "BadReply")]
)
def test_errors_of_an_async_model(kind: str, expected: str) -> None:
    server = HeadServer(payload(name="ToyAsync", style="async", settings={"faults": {"b": kind}}))
    assert error_of(asyncio.run(server.handle_async("generate", prompts("b"))))["kind"] == expected
    refusing = HeadServer(payload(name="ToyAsync", style="async", settings={"faults": {"b": "refuse"}}))
    assert asyncio.run(refusing.handle_async("generate", prompts("b")))["results"][0]["reason"] == "too_hard"


# --- loading ----------------------------------------------------------------------------------------------------------


def test_card_and_class_must_agree(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="says style"):
        HeadServer(payload(name="ToyAsync"))
    with pytest.raises(TypeError, match="edit"):
        written(tmp_path, "def caption(self, requests): ...", heads={"caption": {}, "edit": {}})


def test_what_load_raises_comes_through() -> None:
    with pytest.raises(OSError, match="no weights"):
        toy(load_fault="raise")
    with pytest.raises(SystemExit):
        toy(load_fault="exit")


def test_settings_of_a_head_are_one_keyword_of_the_class(tmp_path: Path) -> None:
    body = "def __init__(self, size, caption=None): self.told = (size, caption)\ndef caption(self, requests): ..."
    server = written(tmp_path, body, settings={"size": 3}, heads={"caption": {"beams": 2}})
    assert server.model.told == (3, {"beams": 2})


def test_a_host_is_told_where_it_runs(tmp_path: Path) -> None:
    told = {"device": "cuda", "threads": 3, "gpu_share": 0.5, "weights": {"net": "/w/net.bin"}}
    server = written(tmp_path, "def load(self, host): self.host = host\ndef caption(self, requests): ...", host=told)
    assert vars(server.model.host) == told


def test_modules_of_an_adapter_import_each_other_and_two_adapters_do_not_meet(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "adapter.py").write_text("from .parts import NAME\nclass Net: name = NAME\n")
        (folder / "parts.py").write_text(f"NAME = {name!r}\n")
    assert [load_class(str(tmp_path / name), "adapter", "Net").name for name in ("one", "two")] == ["one", "two"]


def test_no_such_class_or_module(tmp_path: Path) -> None:
    (tmp_path / "adapter.py").write_text("")
    with pytest.raises(ImportError, match="has no class Net"):
        load_class(str(tmp_path), "adapter", "Net")
    with pytest.raises(ImportError):
        load_class(str(tmp_path), "missing", "Net")
    assert not [name for name in sys.modules if name.endswith(".missing")]
