"""The parts of the API adapter alone: what failures mean, the throttle, prices, the ledger, what a card may say."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.systems.api import PRICES, heard_by, part_of
from torus_ray.errors import InputError
from torus_ray.systems import load_system

judge, asked_to_wait, pause_s = (part_of("failures", name) for name in ("judge", "asked_to_wait", "pause_s"))
Throttle = part_of("throttle", "Throttle")
Budget, Ledger, Prices, Stopped, Usage = (
    part_of("spending", name) for name in ("Budget", "Ledger", "Prices", "Stopped", "Usage")
)
OURS = {"temperature": 0}


def error(status: int | None, **fields: Any) -> Exception:
    made = ValueError("told") if status is None else RuntimeError("told")
    headers = fields.pop("headers", {})
    for name, value in {"status_code": status, "response": SimpleNamespace(headers=headers), **fields}.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("raised", "action", "reason"),
    [
        (error(401, message="key sk-123"), "stop", "wrong_key"),
        (error(400, message="API key not valid"), "stop", "wrong_key"),
        (error(429, code="rate_limit_exceeded"), "again", "rate_limited"),
        (error(429, code="insufficient_quota"), "stop", "no_credit"),
        (error(429, headers={"retry-after": "121"}), "stop", "asked_to_wait"),
        (error(500), "again", "server_error"),
        (error(500, headers={"x-should-retry": "false"}), "give_up", "bad_request"),
        (error(422), "give_up", "bad_request"),
        (error(422, headers={"x-should-retry": "true"}), "again", "server_error"),
        (error(400, param="temperature"), "stop", "refused_setting"),
        (error(400, param="model"), "stop", "refused_setting"),
        (error(404, code="model_not_found"), "stop", "no_such_model"),
        (error(400, param="messages[0].content"), "give_up", "bad_request"),
        (error(200), "again", "bad_response"),
        (error(None), "again", "bad_response"),
        (TimeoutError(), "again", "timeout"),
        (ConnectionResetError("reset"), "again", "connection"),
    ],
)
def test_what_a_failure_means(raised: Exception, action: str, reason: str) -> None:
    verdict = judge(raised, OURS)
    assert (verdict.action, verdict.reason) == (action, reason)
    assert "sk-123" not in verdict.message


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, None, 1.5),
        ({"retry-after": "7"}, None, 7.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, None, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, None, 0.0),
        ({"retry-after": "-3"}, None, 0.0),
        ({"retry-after": "nan"}, None, None),
        ({"retry-after": "soon"}, None, None),
        ({}, {"error": {"details": [{"@type": "RetryInfo", "retryDelay": "12.5s"}]}}, 12.5),
        ({}, [{"retryDelay": "x"}], None),
        ({}, None, None),
    ],
)
def test_how_long_a_server_asks_to_be_left_alone(headers: dict[str, str], body: Any, seconds: float | None) -> None:
    assert asked_to_wait(headers, body, 10.0) == seconds


def test_pauses_grow_and_are_bounded() -> None:
    chance = random.Random(1)
    pauses = [pause_s(attempt, chance) for attempt in range(1, 30)]
    assert all(0.25 <= pause <= 30.0 for pause in pauses)
    assert pauses[0] <= 0.5
    assert pauses[-1] >= 15.0


def test_one_burst_of_too_many_is_one_step_down_and_rounds_of_success_lead_back() -> None:
    now = [0.0]

    async def scene() -> None:
        throttle = Throttle(8, lambda: now[0])
        began = [await throttle.enter() for _ in range(8)]
        now[0] = 1.0
        for at in began:
            throttle.leave(at, ok=False, too_many=True)
        assert throttle.limit == 4
        now[0] = 2.0
        throttle.leave(await throttle.enter(), ok=False, too_many=True)
        assert throttle.limit == 2
        for _ in range(2 + 3 + 4 + 5 + 6 + 7 + 8 * 2):
            throttle.leave(await throttle.enter(), ok=True)
        assert throttle.limit == 8
        assert throttle.in_flight == 0

    asyncio.run(scene())


def test_a_price_is_of_audio_and_text_apart_and_never_too_low() -> None:
    prices = Prices(**PRICES)
    assert prices.cost(Usage(100, 40, None, 5)) == pytest.approx((40 * 32 + 60 * 2.5 + 50) / 1e6)
    assert prices.cost(Usage(100, None, None, 5)) == pytest.approx((100 * 32 + 50) / 1e6)
    assert prices.cost(Usage(None, None, None, 5)) is None
    assert prices.most("word " * 40, 10.0, 3000) > prices.cost(Usage(50 + 100, 100, None, 3000))


def test_a_ledger_goes_on_where_a_killed_process_left_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger.jsonl"
    first = Ledger(path)
    first.add({"at": 1.0, "cost": 0.5, "reason": None})
    first.add({"at": 2.0, "cost": None})
    with path.open("a") as file:
        file.write('{"at": 3.0, "cost": 0.')
    second = Ledger(path)
    assert (second.calls, second.money) == (2, 0.5)
    second.add({"at": 4.0, "cost": 0.25})
    assert (Ledger(path).calls, Ledger(path).money) == (3, 0.75)


def test_a_budget_waits_for_what_is_under_way_before_it_says_no() -> None:
    async def scene() -> None:
        ledger = Ledger(None)
        budget = Budget(ledger, money=1.0)
        await budget.hold(0.8)
        second = asyncio.create_task(budget.hold(0.8))
        await asyncio.sleep(0)
        assert not second.done()
        ledger.add({"cost": 0.1})
        budget.settle(0.8)
        await second
        ledger.add({"cost": 0.3})
        budget.settle(0.8)
        with pytest.raises(Stopped, match=r"2 calls and 0\.4000 in money are spent"):
            await budget.hold(0.8)

    asyncio.run(scene())


# --- cards ------------------------------------------------------------------------------------------------------------


def test_the_judges_are_asked_as_the_paper_asked_them() -> None:
    for name in ("gpt-audio", "gemini-judge"):
        host = load_system(name).hosts[name].card
        answer = host.heads["answer"].settings
        assert answer["temperature"] == 0
        assert 3000 in (answer.get("max_completion_tokens"), answer.get("max_tokens"))
        assert host.replicas == 1
    assert load_system("gpt-audio").hosts["gpt-audio"].card.settings["clip"] == {"needed": True}


def test_where_and_for_how_much_is_no_part_of_what_a_head_is(tmp_path: Path) -> None:
    def print_of(url: str, name: str, settings: dict[str, Any] | None = None, **operating: Any) -> str:
        made = heard_by(url, tmp_path, settings, name=name, **operating)
        return made.hosts["listener"].head_fingerprint("answer")

    first = print_of("http://one/v1", "one")
    assert first == print_of("http://two/v1", "two", budget={"calls": 3}, in_flight=2, prices=PRICES)
    assert first != print_of("http://one/v1", "three", {"model": "other"})


@pytest.mark.parametrize(
    "operating",
    [
        {"key_env": "sk-live-abc"},
        {"base_url": "https://user:sk-live-abc@host/v1"},
        {"base_url": "https://host/v1?key=sk-live-abc"},
    ],
)
def test_a_key_in_the_wrong_place_of_a_card_is_refused_and_not_shown(tmp_path: Path, operating: dict[str, str]) -> None:
    url = operating.pop("base_url", "http://host/v1")
    with pytest.raises(InputError) as caught:
        heard_by(url, tmp_path, **operating)
    assert "operating" in str(caught.value)
    assert "sk-live" not in str(caught.value)


def test_a_keyword_stands_in_settings_or_in_operating(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="in_flight stands in settings and in operating"):
        heard_by("http://host/v1", tmp_path, {"in_flight": 3})
