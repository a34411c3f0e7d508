"""Calls against a server that speaks the real protocol: rows, retries, rates, keys, budgets."""

from __future__ import annotations

import asyncio
import base64
import io
import random
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import soundfile

from tests.standin.openai_server import (
    Reply,
    StandIn,
    cut,
    failure,
    no_quota,
    rate_limited,
    refusal,
    server_error,
)
from torus_ray.curation.chat import (
    Caller,
    CallFailed,
    ChatReply,
    ChatRequest,
    in_parallel,
    silent_part,
    spent,
)
from torus_ray.curation.endpoints import Endpoint
from torus_ray.curation.ledger import Ledger
from torus_ray.curation.limits import CurationStop, Spend

KEY = "sk-0123456789abcdef"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("THE_KEY", KEY)
    with Ledger(tmp_path / "rows") as opened:
        yield opened


def no_pause(attempt: int, chance: random.Random) -> float:
    return 0.0


def endpoint(server: StandIn, **more: Any) -> Endpoint:
    return Endpoint(model="m", base_url=server.base_url, key_env="THE_KEY", **more)


def request(end: Endpoint, text: str = "Say A.", *, json: bool = False) -> ChatRequest:
    return ChatRequest(end, ({"role": "user", "content": text},), json)


def ask(
    ledger: Ledger, *requests: ChatRequest, most: Spend | None = None, width: int = 1
) -> tuple[list[ChatReply | Exception], Caller]:
    """What became of each request."""
    found: dict[int, ChatReply | Exception] = {}
    caller = Caller(ledger, spent(ledger, most or Spend()), pause=no_pause)

    async def one(at: int) -> None:
        try:
            found[at] = await caller.ask(requests[at], role="r", unit=f"u{at}", prompt_version="p.v1")
        except (CallFailed, CurationStop) as error:
            found[at] = error

    run(lambda: in_parallel(width, range(len(requests)), one), caller)
    return [found[at] for at in range(len(requests))], caller


def run(work: Callable[[], Coroutine[Any, Any, None]], caller: Caller) -> None:
    async def all_of_it() -> None:
        try:
            await work()
        finally:
            await caller.close()

    asyncio.run(all_of_it())


def test_a_call_leaves_a_whole_row(ledger: Ledger) -> None:
    told = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 150}
    with StandIn(
        [Reply("A", usage={**told, "completion_tokens_details": {"reasoning_tokens": 30}})], key=KEY
    ) as server:
        end = endpoint(server, input_price=1.0, output_price=10.0, temperature=0.5, reasoning_effort="low")
        (reply,), _ = ask(ledger, request(end, json=True))
        (body,) = server.requests
    assert isinstance(reply, ChatReply)
    assert (reply.text, reply.model_version) == ("A", "m-2026-01-01")
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Say A."}],
        "max_completion_tokens": 16_384,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "response_format": {"type": "json_object"},
    }
    row = ledger.rows("calls").row(0, named=True)
    assert (row["status"], row["finish_reason"], row["attempt"]) == ("ok", "stop", 1)
    assert (row["response_id"], row["request_id"]) == ("chatcmpl-0", "req-0")
    assert (row["prompt_tokens"], row["completion_tokens"], row["reasoning_tokens"]) == (100, 20, 30)
    assert row["cost"] == pytest.approx((100 * 1 + 50 * 10) / 1e6)  # thinking is paid like output
    assert row["latency_s"] > 0
    assert KEY not in str(row)


def test_what_is_not_configured_is_not_sent(ledger: Ledger) -> None:
    with StandIn(["A"]) as server:
        ask(ledger, request(endpoint(server, tokens_field="max_tokens", json_mode=False), json=True))
        assert set(server.requests[0]) == {"model", "messages", "max_tokens"}


def test_a_standing_reply_is_not_paid_again(ledger: Ledger) -> None:
    with StandIn(["A", "B"]) as server:
        end = endpoint(server)
        ask(ledger, request(end))
        (again, other), caller = ask(ledger, request(end), request(end, "Say B."))
        assert isinstance(again, ChatReply)
        assert isinstance(other, ChatReply)
        assert (again.text, other.text, len(server.requests)) == ("A", "B", 2)
        assert (caller.tally.reused, caller.tally.asked) == (1, 1)
        # Another price, deadline, cap or address is the same request; another temperature is not.
        moved = {"deadline_s": 5.0, "input_price": 1.0, "max_tokens": 9, "base_url": "http://127.0.0.1:1/v1"}
        ask(ledger, request(end.model_copy(update=moved)))
        assert len(server.requests) == 2
        ask(ledger, request(end.model_copy(update={"temperature": 0.5})))
        assert len(server.requests) == 3


def test_a_reply_that_was_cut_off_is_asked_for_again_once_more_is_allowed(ledger: Ledger) -> None:
    with StandIn([Reply("half", finish_reason="length"), "whole"]) as server:
        end = endpoint(server, max_tokens=100)
        texts = []
        for cap in (100, 100, 50, 200, 100):
            (reply,), _ = ask(ledger, request(end.model_copy(update={"max_tokens": cap})))
            assert isinstance(reply, ChatReply)
            texts.append(reply.text)
        assert texts == ["half", "half", "half", "whole", "whole"]
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (rate_limited(), "rate_limited"),
        (rate_limited(retry_after_ms="1"), "rate_limited"),
        (server_error(), "server_error"),
        (server_error(503), "server_error"),
        (cut("headers"), "connection"),
        (cut("body"), "connection"),
        (Reply(raw=b"<html>busy</html>", content_type="text/html"), "bad_response"),
        (Reply(raw=b'{"half": '), "bad_response"),
    ],
)
def test_a_passing_fault_is_a_row_and_then_the_reply(ledger: Ledger, fault: Reply, reason: str) -> None:
    with StandIn([fault, "A"]) as server:
        (reply,), _ = ask(ledger, request(endpoint(server)))
    assert isinstance(reply, ChatReply)
    rows = ledger.rows("calls").select("attempt", "status", "reason").rows()
    assert rows == [(1, "failed", reason), (2, "ok", None)]


def test_tries_are_bounded_and_the_row_says_why(ledger: Ledger) -> None:
    with StandIn([server_error()]) as server:
        (failed,), _ = ask(ledger, request(endpoint(server, attempts=3)))
        assert len(server.requests) == 3
    assert isinstance(failed, CallFailed)
    assert failed.reason == "server_error"
    assert ledger.rows("calls")["status"].to_list() == ["failed"] * 3


def test_a_reply_that_does_not_come_is_a_timeout(ledger: Ledger) -> None:
    with StandIn([Reply("A", after=lambda server: False)]) as server:
        (failed,), _ = ask(ledger, request(endpoint(server, attempts=2, deadline_s=0.05)))
    assert isinstance(failed, CallFailed)
    assert ledger.rows("calls").select("status", "reason").rows() == [("timeout", "timeout")] * 2


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (no_quota(), "no_credit"),
        (failure(404, "The model `m` does not exist", "model_not_found"), "no_such_model"),
        (failure(400, "Unsupported value", "unsupported_value", param="temperature"), "refused_setting"),
        (rate_limited(retry_after="7200"), "asked_to_wait"),
    ],
)
def test_what_would_fail_for_every_call_stops_them_all(ledger: Ledger, fault: Reply, reason: str) -> None:
    with StandIn([fault]) as server:
        end = endpoint(server)
        ended, _ = ask(ledger, *(request(end, f"{i}") for i in range(5)))
        assert len(server.requests) == 1
    assert all(isinstance(end, CurationStop) and reason in end.message for end in ended)


def test_a_wrong_key_stops_at_once_and_is_in_no_row(ledger: Ledger) -> None:
    with StandIn(["A"], key="another") as server:
        ended, _ = ask(ledger, request(endpoint(server)), request(endpoint(server), "again"))
    assert all(isinstance(end, CurationStop) for end in ended)
    (message,) = ledger.rows("calls")["message"]
    assert "[key]" in message  # the server had echoed it
    assert KEY not in message + str(ended[0])


def test_a_bad_request_costs_that_call_alone(ledger: Ledger) -> None:
    with StandIn([failure(400, "too long", "context_length_exceeded", param="messages"), "B"]) as server:
        (bad, good), _ = ask(ledger, request(endpoint(server), "1"), request(endpoint(server), "2"))
    assert isinstance(bad, CallFailed)
    assert isinstance(good, ChatReply)


def test_a_dead_server_ends_the_work_soon(ledger: Ledger) -> None:
    with StandIn(["A"]) as server:
        end = endpoint(server, attempts=2)
    ended, _ = ask(ledger, *(request(end, f"{i}") for i in range(10)))
    assert [type(each) for each in ended] == [CallFailed] * 2 + [CurationStop] * 8
    assert ledger.rows("calls").height == 6


def test_refusals_and_empty_choices_are_replies(ledger: Ledger) -> None:
    with StandIn([refusal("No."), Reply(no_choice=True), Reply(None)]) as server:
        replies, _ = ask(ledger, *(request(endpoint(server), f"{i}") for i in range(3)))
    told = [(r.text, r.refusal, r.finish_reason) for r in replies if isinstance(r, ChatReply)]
    assert told == [("", "No.", "stop"), ("", None, "no_choice"), ("", None, "stop")]


def test_thirty_two_calls_are_in_flight_on_one_loop(ledger: Ledger) -> None:
    with StandIn([Reply("A", after=lambda server: server.most_at_once == 32)]) as server:
        end = endpoint(server)
        replies, _ = ask(ledger, *(request(end, f"{i}") for i in range(40)), width=end.in_flight)
        assert server.most_at_once == 32
    assert all(isinstance(reply, ChatReply) for reply in replies)


def test_too_many_calls_are_made_fewer_and_all_come_through(ledger: Ledger) -> None:
    def at_most_four(body: dict[str, Any]) -> Reply | str:
        return rate_limited(retry_after_ms="5") if server.under_way > 4 else "A"

    with StandIn(at_most_four) as server:
        end = endpoint(server, attempts=20)
        replies, caller = ask(ledger, *(request(end, f"{i}") for i in range(40)), width=end.in_flight)
    assert all(isinstance(reply, ChatReply) for reply in replies)
    assert caller.tally.tries["ok"] == 40
    # Far fewer refusals than 32 at once would bring for each of the 40.
    assert 0 < caller.tally.tries["rate_limited"] < 150


def test_a_retry_after_is_honoured(ledger: Ledger) -> None:
    with StandIn([rate_limited(retry_after="0.2"), "A"]) as server:
        ask(ledger, request(endpoint(server)))
        first, second = server.arrived_at
    assert second - first >= 0.2


def test_a_budget_in_money_is_not_overspent(ledger: Ledger) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    with StandIn([Reply("A", usage=usage)]) as server:
        end = endpoint(server, input_price=0.0, output_price=1e6, max_tokens=10)  # a token costs 1
        ended, _ = ask(ledger, *(request(end, f"{i}") for i in range(9)), most=Spend(money=35.0), width=4)
    assert sum(isinstance(each, ChatReply) for each in ended) == 3
    assert ledger.rows("calls")["cost"].sum() == 30.0
    # What is spent counts for the next command too.
    assert spent(ledger, Spend()).cost == 30.0


def test_a_server_that_hides_its_usage_ends_a_budget_in_tokens(ledger: Ledger) -> None:
    with StandIn([Reply("A", usage=None)]) as server:
        priced = endpoint(server, input_price=1.0, output_price=1.0)
        ended, _ = ask(ledger, *(request(priced, f"{i}") for i in range(3)), most=Spend(tokens=10**9))
    assert spent(ledger, Spend()).cost is None
    assert isinstance(ended[0], ChatReply)
    assert all(isinstance(each, CurationStop) and "--max-calls" in each.mend for each in ended[1:])


def test_one_second_of_silence_is_sent_as_a_wav_and_kept_by_its_identity(ledger: Ledger) -> None:
    with StandIn(["A"]) as server:
        content = [{"type": "text", "text": "What?"}, silent_part()]
        ask(ledger, ChatRequest(endpoint(server), ({"role": "user", "content": content},)))
        audio = server.requests[0]["messages"][0]["content"][1]["input_audio"]
    assert audio["format"] == "wav"
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(audio["data"])))
    assert len(samples) == rate
    assert not samples.any()
    (kept,) = ledger.rows("calls")["request"]
    assert len(kept) < 500
    assert '"clip"' in kept


def test_a_cancellation_that_a_library_takes_for_its_own_still_ends_all() -> None:
    swallowed: list[int] = []

    async def work(item: int) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if item:
                raise
            swallowed.append(item)
        await asyncio.Event().wait()

    async def stopped() -> None:
        all_of_them = asyncio.ensure_future(in_parallel(3, range(3), work))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        all_of_them.cancel()
        with pytest.raises(asyncio.CancelledError):
            await all_of_them

    asyncio.run(asyncio.wait_for(stopped(), 30))
    assert swallowed == [0]
