"""What to do about a call that failed (subjects' error envelopes; FIELD_REPORTS E): again, give it up, or stop all."""

from __future__ import annotations

import email.utils
import math
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

LONGEST_WAIT_S = 120.0
"""A server that asks for more is not waited for: the command stops, and goes on when it is given again."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0

Action = Literal["again", "give_up", "stop"]

_STOPS: Mapping[int, str] = {401: "wrong_key", 402: "no_credit", 403: "forbidden", 404: "no_such_model"}
_AGAIN: Mapping[int, str] = {408: "timeout", 409: "conflict", 425: "too_early", 429: "rate_limited"}
_OURS = frozenset(
    ("model", "temperature", "max_tokens", "max_completion_tokens", "reasoning_effort", "response_format")
)
"""Parameters that come from the configuration: when one is refused, every call would be."""


@dataclass(frozen=True)
class Judged:
    """reason: snake_case. wait_s: what the server asked for. too_many: it said that there are too many calls."""

    action: Action
    reason: str
    message: str
    wait_s: float | None = None
    too_many: bool = False


def judge(error: BaseException, *, now: float | None = None) -> Judged:
    """What an exception of the client (or the deadline) means. now: epoch seconds, for a Retry-After that is a date."""
    message = " ".join(str(getattr(error, "message", error) or type(error).__name__).split())[:500]
    status = getattr(error, "status_code", None)
    if status is None:
        late = isinstance(error, TimeoutError) or type(error).__name__ == "APITimeoutError"
        reason = "timeout" if late else "bad_response" if isinstance(error, ValueError) else "connection"
        return Judged("again", reason, message)
    headers = error.response.headers if hasattr(error, "response") else {}
    body, code = getattr(error, "body", None), getattr(error, "code", None)
    wait_s = asked_to_wait(headers, body, time.time() if now is None else now)
    if status in _STOPS:
        return Judged("stop", _STOPS[status], message)
    if code == "insufficient_quota":
        return Judged("stop", "no_credit", message)
    if status < 400:
        return Judged("again", "bad_response", message)
    retry = headers.get("x-should-retry")
    if retry == "false" or (status < 500 and status not in _AGAIN and retry != "true"):
        if "api key" in message.lower():  # Gemini answers 400 to a wrong key
            return Judged("stop", "wrong_key", message)
        ours = getattr(error, "param", None) in _OURS
        return Judged("stop" if ours else "give_up", "refused_setting" if ours else "bad_request", message)
    reason = _AGAIN.get(status, "server_error")
    if wait_s is not None and wait_s > LONGEST_WAIT_S:
        return Judged("stop", "asked_to_wait", f"the server asks to wait {wait_s:.0f} s: {message}")
    return Judged("again", reason, message, wait_s, too_many=status == 429)


def asked_to_wait(headers: Mapping[str, str], body: object, now: float) -> float | None:
    """Seconds that a reply asks to be left alone: retry-after-ms, Retry-After (seconds or a date), Gemini's RetryInfo.
    None where it says nothing that can be read."""
    for text, unit in ((headers.get("retry-after-ms"), 1e-3), (headers.get("retry-after"), 1.0)):
        seconds = _number(text)
        if seconds is not None:
            return max(0.0, seconds * unit)
    date = email.utils.parsedate_to_datetime(headers["retry-after"]) if _is_date(headers.get("retry-after")) else None
    if date is not None:
        return max(0.0, date.timestamp() - now)
    delays = (_number(delay.removesuffix("s")) for delay in _values(body, "retryDelay") if isinstance(delay, str))
    return next((delay for delay in delays if delay is not None), None)


def pause_s(attempt: int, chance: random.Random) -> float:
    """How long to wait after the failed try number `attempt` (from 1): exponential, up to half of it off by chance."""
    most = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 10))
    return most * (0.5 + 0.5 * chance.random())


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _is_date(text: str | None) -> bool:
    return text is not None and email.utils.parsedate_tz(text) is not None


def _values(value: object, name: str) -> Iterator[Any]:
    """Every value under the key `name`, however deep."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == name:
                yield inner
            yield from _values(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner, name)
