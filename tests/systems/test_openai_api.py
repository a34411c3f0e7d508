"""The API listener against a server that speaks the real protocol: what is sent, what faults do, what it costs."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import soundfile

from tests.engine.systems import canary_bank, run, table
from tests.standin.openai_server import (
    Reply,
    StandIn,
    cut,
    failure,
    rate_limited,
    refusal,
    server_error,
)
from tests.systems.api import ANSWER, KEY, KEY_ENV, PRICES, files_with, heard_by, ledger, quick, wav_of
from torus_ray.audio import decode
from torus_ray.bank.load import Bank
from torus_ray.engine.session import RunResult
from torus_ray.protocol.executor import EngineStop
from torus_ray.protocol.graph import Arm
from torus_ray.store.layout import clip_path, run_folder
from torus_ray.store.reader import current_rows

__all__ = ["quick"]
pytestmark = pytest.mark.usefixtures("quick")

NATIVE = (Arm("native"),)
CALLS = 9
"""Of one test in the native arm: three stages, three questions each."""


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary_bank(tmp_path_factory.mktemp("bank") / "bank", tests=3)


def listen(server: StandIn, bank: Bank, folder: Path, tests: int = 1, **options: Any) -> RunResult:
    settings, arms = options.pop("settings", None), options.pop("arms", NATIVE)
    made = heard_by(server.base_url, folder, settings, **options)
    return run(made, bank, folder / "results", arms, tests=bank.tests[:tests])


def stopped(server: StandIn, bank: Bank, folder: Path, **options: Any) -> EngineStop:
    """What a run says that its listener ended."""
    with pytest.raises(EngineStop) as caught:
        listen(server, bank, folder, **options)
    assert caught.value.exit_code == 3
    assert caught.value.where
    assert caught.value.mend
    return caught.value


def answers(result: RunResult) -> pl.DataFrame:
    return table(result, "answers").sort("unit_id")


def kept(bank: Bank, folder: Path) -> pl.DataFrame:
    """The answers that a run which was stopped has left."""
    return current_rows(run_folder(folder / "results", bank.card.name, bank.hash, "heard", "native"), "answers")


# --- what is sent -----------------------------------------------------------------------------------------------------


def test_each_question_is_a_conversation_of_its_own_with_the_clip_as_it_is_stored(bank: Bank, tmp_path: Path) -> None:
    with StandIn(["B"], key=KEY) as server:
        result = listen(server, bank, tmp_path)
    rows = answers(result)
    assert rows["status"].to_list() == ["ok"] * CALLS
    assert set(rows["letter"]) == {"B"}
    assert len(server.requests) == CALLS
    prompts = set(rows["prompt"])
    stored = {decode(clip_path(result.runs["native"], clip).read_bytes()).wave.tobytes() for clip in set(rows["clip"])}
    for body in server.requests:
        (message,) = body["messages"]
        assert message["role"] == "user"
        assert message["content"][0]["text"] in prompts
        assert {name: body[name] for name in ANSWER} == ANSWER
        assert decode(wav_of(body)).wave.tobytes() in stored
    assert "seed" not in server.requests[0]


def test_both_arms_and_the_muted_control_are_heard(bank: Bank, tmp_path: Path) -> None:
    def said(body: dict[str, Any]) -> str:
        return 'A voice says "again".' if "A." not in body["messages"][0]["content"][0]["text"] else "A"

    arms = (Arm("native"), Arm("self-caption"), Arm("native", control="muted"))
    with StandIn(said, key=KEY) as server:
        result = listen(server, bank, tmp_path, arms=arms, settings={"send_seed": True})
    assert set(table(result, "captions")["status"]) == {"ok"}
    assert set(answers(result)["status"]) == {"ok"}
    assert all(isinstance(body["seed"], int) for body in server.requests)
    silent = [body for body in server.requests if not decode(wav_of(body)).wave.any()]
    assert silent


def test_a_clip_is_changed_only_as_the_card_says(bank: Bank, tmp_path: Path) -> None:
    with StandIn(["B"], key=KEY) as server:
        listen(server, bank, tmp_path, settings={"clip": {"rate_hz": 8000, "mono": True}})
    info = soundfile.info(io.BytesIO(wav_of(server.requests[0])))
    assert (info.samplerate, info.channels, info.subtype) == (8000, 1, "PCM_16")


def test_a_clip_that_is_too_large_is_refused_and_not_sent(bank: Bank, tmp_path: Path) -> None:
    with StandIn(["B"], key=KEY) as server:
        result = listen(server, bank, tmp_path, settings={"clip": {"max_mb": 0.001}})
    assert set(answers(result)["reason"]) == {"clip_too_large"}
    assert server.requests == []


# --- what comes back --------------------------------------------------------------------------------------------------


SAID: list[tuple[Reply, str, str | None]] = [
    (Reply("The answer is C."), "ok", None),
    (Reply("Hard to say."), "unparsed", "no_letter"),
    (refusal(), "unparsed", "refusal"),
    (Reply(""), "unparsed", "empty"),
    (Reply(None, finish_reason="content_filter"), "refused", "content_filter"),
    (Reply(no_choice=True), "refused", "content_filter"),
    (failure(400, "blocked", "content_filter"), "refused", "content_filter"),
    (failure(400, "too long", "context_length_exceeded"), "refused", "prompt_too_long"),
    (failure(413, "too large"), "refused", "clip_too_large"),
]


def test_what_a_model_says_or_will_not_say_is_a_final_row(bank: Bank, tmp_path: Path) -> None:
    given: dict[str, int] = {}

    def said(body: dict[str, Any]) -> Reply:
        return SAID[given.setdefault(body["messages"][0]["content"][0]["text"], len(given))][0]

    with StandIn(said, key=KEY) as server:
        rows = answers(listen(server, bank, tmp_path))
        assert len(given) == len(SAID) == CALLS
        for row in rows.iter_rows(named=True):
            assert (row["status"], row["reason"]) == SAID[given[row["prompt"]]][1:], row["message"]
        # What was refused beside other questions is neither asked again with them nor alone, nor by the next command.
        assert listen(server, bank, tmp_path).computed == 0
        assert len(server.requests) == CALLS


def test_an_empty_caption_is_a_failure_that_is_tried_again(bank: Bank, tmp_path: Path) -> None:
    arms = (Arm("self-caption"),)
    with StandIn([Reply("")], key=KEY) as server:
        result = listen(server, bank, tmp_path, arms=arms)
    (row,) = table(result, "captions").filter(pl.col("status") == "failed").to_dicts()
    assert "empty" in row["message"]
    with StandIn(["A tone."], key=KEY) as server:
        assert set(table(listen(server, bank, tmp_path, arms=arms), "captions")["status"]) == {"ok"}


# --- faults -----------------------------------------------------------------------------------------------------------


def test_passing_faults_leave_no_trace_but_in_the_ledger(bank: Bank, tmp_path: Path) -> None:
    faults = [
        rate_limited(retry_after_ms="20"),
        rate_limited(retry_after="0.02"),
        rate_limited(),
        server_error(),
        server_error(503),
        cut("body"),
        cut("headers"),
        Reply(raw=b"<html>busy</html>", content_type="text/html"),
        Reply(raw=b"{", content_type="application/json"),
    ]
    script = [said for fault in faults for said in (fault, Reply("B"))]
    with StandIn(script, key=KEY) as server:
        result = listen(server, bank, tmp_path, attempts=12)
    assert set(answers(result)["status"]) == {"ok"}
    assert result.exit_code == 0
    lines = ledger(tmp_path)
    assert len(lines) == len(server.requests) == CALLS + len(faults)
    failed = [line["reason"] for line in lines if line["status"] == "failed"]
    assert Counter(failed) == {"rate_limited": 3, "server_error": 2, "connection": 2, "bad_response": 2}


def test_a_retry_after_is_waited_for_by_all_calls(bank: Bank, tmp_path: Path) -> None:
    with StandIn([rate_limited(retry_after_ms="300"), "B"], key=KEY) as server:
        listen(server, bank, tmp_path)
    # The calls that were under way with the first come at once; whatever comes after them comes later.
    together = sum(at - server.arrived_at[0] < 0.25 for at in server.arrived_at)
    assert together <= 4
    assert min(at - server.arrived_at[0] for at in server.arrived_at[together:]) >= 0.29


def test_no_more_calls_are_under_way_than_the_card_allows(bank: Bank, tmp_path: Path) -> None:
    def others(server: StandIn) -> bool:
        return server.under_way >= 2 or len(server.requests) % 3 == 0

    with StandIn([Reply("B", after=others)], key=KEY) as server:
        listen(server, bank, tmp_path, in_flight=2)
    assert server.most_at_once == 2


def test_a_reply_that_never_comes_is_a_failure_within_its_deadline(bank: Bank, tmp_path: Path) -> None:
    """And one question without a reply is no dead server, however often it is tried."""
    asked: list[str] = []

    def said(body: dict[str, Any]) -> Reply:
        asked.append(body["messages"][0]["content"][0]["text"])
        return Reply("B", after=lambda server: False) if asked[-1] == asked[0] else Reply("B")

    with StandIn(said, key=KEY) as server:
        result = listen(server, bank, tmp_path, deadline_s=0.2, attempts=1, in_flight=1)
    (late,) = answers(result).filter(pl.col("status") != "ok").to_dicts()
    assert (late["status"], late["prompt"]) == ("failed", asked[0])
    assert "timeout" in late["message"]
    assert asked.count(asked[0]) > 3


def test_what_is_answered_is_not_paid_again_when_another_question_of_the_clip_fails(bank: Bank, tmp_path: Path) -> None:
    seen: list[str] = []

    def said(body: dict[str, Any]) -> Reply:
        prompt = body["messages"][0]["content"][0]["text"]
        seen.append(prompt)
        return failure(400, "odd") if prompt == seen[0] else Reply("B")

    with StandIn(said, key=KEY) as server:
        result = listen(server, bank, tmp_path)
    counts = answers(result)["status"].value_counts()
    assert dict(counts.iter_rows()) == {"ok": CALLS - 1, "failed": 1}
    assert all(seen.count(prompt) == 1 for prompt in seen if prompt != seen[0])


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (failure(404, "The model does not exist", "model_not_found"), "no_such_model"),
        (failure(400, "Unsupported value", "invalid_value", param="temperature"), "refused_setting"),
        (rate_limited(retry_after="3600"), "asked_to_wait"),
    ],
)
def test_what_no_call_can_survive_is_asked_once_and_ends_the_run(
    bank: Bank, tmp_path: Path, fault: Reply, told: str
) -> None:
    with StandIn([fault], key=KEY) as server:
        stop = stopped(server, bank, tmp_path, in_flight=1)
    assert told in stop.message
    assert stop.where == server.base_url
    assert "same command" in stop.mend
    assert len(server.requests) == 1
    assert kept(bank, tmp_path).is_empty()


@pytest.mark.parametrize(
    ("fault", "told"), [(server_error(), "server_error"), (Reply("B", after=lambda server: False), "timeout")]
)
def test_a_dead_server_is_given_up_soon(bank: Bank, tmp_path: Path, fault: Reply, told: str) -> None:
    with StandIn([fault], key=KEY) as server:
        assert told in stopped(server, bank, tmp_path, attempts=2, in_flight=1, deadline_s=0.2).message
    assert len(server.requests) == 3 * 2


# --- the key ----------------------------------------------------------------------------------------------------------


def test_a_wrong_key_is_told_and_stands_nowhere(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong = "sk-wrong-Zz9Yy8Xx7"
    monkeypatch.setenv(KEY_ENV, wrong)
    with StandIn(["B"], key=KEY) as server:  # it repeats the key that it was shown
        stop = stopped(server, bank, tmp_path, in_flight=1)
    assert KEY_ENV in stop.mend
    assert wrong not in str(stop) + "".join(getattr(stop, "__notes__", ()))
    assert files_with(wrong, tmp_path) == []
    monkeypatch.setenv(KEY_ENV, KEY)
    with StandIn([failure(500, f"lost {KEY} here")], key=KEY) as server:
        stop = stopped(server, bank, tmp_path, attempts=1)
    assert "lost [key] here" in stop.message
    with StandIn(["B"], key=KEY) as server:
        assert set(answers(listen(server, bank, tmp_path))["status"]) == {"ok"}
        assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert files_with(KEY, tmp_path) == []
    written = capfd.readouterr()
    assert KEY not in written.out + written.err
    assert wrong not in written.out + written.err


def test_a_missing_key_stops_before_the_first_clip(bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_ENV)
    with StandIn(["B"]) as server, pytest.raises(EngineStop, match=f"{KEY_ENV} is not set"):
        listen(server, bank, tmp_path)
    assert server.requests == []


def test_a_server_without_keys_gets_none_of_ours(bank: Bank, tmp_path: Path) -> None:
    with StandIn(["B"]) as server:
        listen(server, bank, tmp_path, key_env="")
        assert {headers["Authorization"] for headers in server.headers} == {"Bearer none"}


# --- budgets and costs ------------------------------------------------------------------------------------------------


def test_a_budget_in_calls_is_kept_over_commands(bank: Bank, tmp_path: Path) -> None:
    with StandIn(["B"], key=KEY) as server:
        stop = stopped(server, bank, tmp_path, budget={"calls": 5})
        assert "budget does not allow another call: 5 calls" in stop.message
        assert "operating.budget" in stop.mend
        assert len(server.requests) == 5
        # One clip's three; the next clip's third was one too many.
        durable = kept(bank, tmp_path)
        assert durable["status"].to_list() == ["ok"] * 3
        stopped(server, bank, tmp_path, budget={"calls": 5})
        assert len(server.requests) == 5
        # A budget is no part of what a head is: what was answered stays.
        last = listen(server, bank, tmp_path, budget={"calls": 50})
        assert set(answers(last)["status"]) == {"ok"}
        assert last.exit_code == 0
    asked = [body["messages"][0]["content"][0]["text"] for body in server.requests]
    assert all(asked.count(prompt) == 1 for prompt in durable["prompt"])
    assert len(server.requests) == len(ledger(tmp_path)) == CALLS + 2


def test_a_budget_in_money_is_never_overrun(bank: Bank, tmp_path: Path) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"audio_tokens": 40}}
    usage["total_tokens"] = 105
    cost = (40 * 32 + 60 * 2.5 + 5 * 10) / 1e6
    with StandIn([Reply("B", usage=usage)], key=KEY) as server:
        stopped(server, bank, tmp_path, prices=PRICES, budget={"money": 0.035})
    spent = [line["cost"] for line in ledger(tmp_path)]
    assert spent == pytest.approx([cost] * len(spent))
    assert 0 < len(spent) < CALLS
    assert sum(spent) <= 0.035
    assert ledger(tmp_path)[0] | {"read_tokens": 100, "audio_tokens": 40, "written_tokens": 5} == ledger(tmp_path)[0]


def test_a_budget_in_money_wants_prices_and_counts(bank: Bank, tmp_path: Path) -> None:
    with StandIn([Reply("B", usage=None)], key=KEY) as server:
        assert "without prices" in stopped(server, bank, tmp_path, budget={"money": 1.0}).message
        stop = stopped(server, bank, tmp_path, prices=PRICES, budget={"money": 1.0}, in_flight=1)
    assert len(server.requests) == 1
    assert "how many tokens" in stop.message
    assert "usage" in stop.expected


def test_a_line_of_the_ledger_says_what_was_asked_of_whom_but_not_what(bank: Bank, tmp_path: Path) -> None:
    with StandIn(["B"], key=KEY) as server:
        result = listen(server, bank, tmp_path, prices=PRICES)
    line = ledger(tmp_path)[0]
    assert line["operation"] == "answer"
    assert line["endpoint"] == server.base_url
    assert line["version"] == "gpt-audio-2026-01-01"
    assert line["response_id"].startswith("chatcmpl-")
    assert line["request_id"].startswith("req-")
    assert line["cost"] > 0
    assert len(line["ask"]) == 64
    notes = dict(word.split("=") for word in answers(result)["notes"][0].split())
    assert (notes["model"], notes["replies"]) == ("gpt-audio-2026-01-01", "3")
    assert float(notes["cost"]) == pytest.approx(3 * line["cost"], rel=0.2)
    assert "cut" not in notes
    asked = (tmp_path / "ledger.jsonl").read_text()
    assert not any(text in asked for text in answers(result)["question_text"])
