"""What a failed call means: the error envelopes of OpenAI and Gemini, over the real client's exceptions."""

from __future__ import annotations

import random
from typing import Any

import httpx2
import openai
import pytest

from torus_ray.curation.failures import LONGEST_PAUSE_S, asked_to_wait, judge, pause_s

NOW = 1_700_000_000.0


def status_error(
    status: int, *, headers: dict[str, str] | None = None, message: str = "no", code: str | None = None, **body: Any
) -> openai.APIStatusError:
    """As the client makes it of a reply."""
    request = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
    response = httpx2.Response(status, headers=headers or {}, request=request)
    return openai.APIStatusError(message, response=response, body={"message": message, "code": code, **body})


@pytest.mark.parametrize(
    ("error", "action", "reason"),
    [
        (status_error(401, code="invalid_api_key"), "stop", "wrong_key"),
        (status_error(400, message="API key not valid. Please pass a valid API key."), "stop", "wrong_key"),
        (status_error(403), "stop", "forbidden"),
        (status_error(404, code="model_not_found"), "stop", "no_such_model"),
        (status_error(429, code="insufficient_quota"), "stop", "no_credit"),
        (status_error(429, code="rate_limit_exceeded"), "again", "rate_limited"),
        (status_error(429, headers={"retry-after": "3600"}), "stop", "asked_to_wait"),
        (status_error(400, param="temperature", code="unsupported_value"), "stop", "refused_setting"),
        (status_error(400, param="messages", code="context_length_exceeded"), "give_up", "bad_request"),
        (status_error(400, headers={"x-should-retry": "true"}), "again", "server_error"),
        (status_error(503, headers={"x-should-retry": "false"}), "give_up", "bad_request"),
        (status_error(408), "again", "timeout"),
        (status_error(409), "again", "conflict"),
        (status_error(500), "again", "server_error"),
        (status_error(503), "again", "server_error"),
        (openai.APIConnectionError(request=httpx2.Request("POST", "http://127.0.0.1")), "again", "connection"),
        (openai.APITimeoutError(request=httpx2.Request("POST", "http://127.0.0.1")), "again", "timeout"),
        (TimeoutError(), "again", "timeout"),
    ],
)
def test_each_failure_has_its_consequence(error: Exception, action: str, reason: str) -> None:
    judged = judge(error, now=NOW)
    assert (judged.action, judged.reason) == (action, reason)
    assert judged.too_many == (reason == "rate_limited")


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, {}, 1.5),
        ({"retry-after": "2"}, {}, 2.0),
        ({"retry-after": "-5"}, {}, 0.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, {}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, {}, 0.0),
        ({"retry-after": "soon"}, {}, None),
        ({"retry-after": "nan"}, {}, None),
        ({}, {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}]}, 37.0),
        ({}, {"details": [{"retryDelay": "a while"}]}, None),
        ({}, "<html>", None),
        ({}, None, None),
    ],
)
def test_what_a_server_asks_to_be_waited(headers: dict[str, str], body: object, seconds: float | None) -> None:
    assert asked_to_wait(headers, body, NOW) == seconds


def test_pauses_grow_with_jitter_up_to_a_bound() -> None:
    chance = random.Random(0)
    for attempt, most in ((1, 0.5), (2, 1.0), (3, 2.0), (20, LONGEST_PAUSE_S)):
        pauses = [pause_s(attempt, chance) for _ in range(50)]
        assert most / 2 <= min(pauses) < max(pauses) <= most
