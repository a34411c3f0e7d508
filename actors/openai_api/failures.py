"""What a failed call means: try it again, give this one up, refuse it for good, or ask nothing more at all.

The envelope is OpenAI's; Gemini's layer puts its own details into it. Statuses and codes are those that servers send.
"""

from __future__ import annotations

import email.utils
import math
import random
import time
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Optional

LONGEST_WAIT_S = 120.0
"""A server that asks to be left alone for longer is not waited for."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0

AGAIN, GIVE_UP, REFUSE, STOP = "again", "give_up", "refuse", "stop"

_STOPS = {401: "wrong_key", 402: "no_credit", 403: "forbidden", 404: "no_such_model"}
_RETRIED = {408: "timeout", 409: "conflict", 425: "too_early", 429: "rate_limited"}
_REFUSED_CODES = {
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "context_length_exceeded": "prompt_too_long",
}


@dataclass(frozen=True)
class Verdict:
    """action: one of the four above. reason: snake_case. wait_s: what the server asked for. too_many: it said that
    there are too many calls."""

    action: str
    reason: str
    message: str
    wait_s: Optional[float] = None
    too_many: bool = False


def judge(error: BaseException, ours: Mapping[str, Any], now: Optional[float] = None) -> Verdict:
    """What an exception of the client, or of the deadline, means.

    ours: the fields of the request that the card sets; where one of those is refused, every request would be.
    now: epoch seconds, for a Retry-After that is a date.
    """
    message = " ".join(str(getattr(error, "message", None) or error or type(error).__name__).split())[:400]
    status = getattr(error, "status_code", None)
    if status is None:
        late = isinstance(error, TimeoutError) or "Timeout" in type(error).__name__
        bad = isinstance(error, ValueError)
        return Verdict(AGAIN, "timeout" if late else "bad_response" if bad else "connection", message)
    code = getattr(error, "code", None)
    if status in (401, 403):
        # What the server writes here may repeat a part of the key.
        return Verdict(STOP, _STOPS[status], f"the server answered {status}")
    if code in _REFUSED_CODES or status == 413:
        return Verdict(REFUSE, _REFUSED_CODES.get(str(code), "clip_too_large"), message)
    if status in _STOPS or code == "insufficient_quota":
        return Verdict(STOP, _STOPS.get(status, "no_credit"), message)
    if status < 400:
        return Verdict(AGAIN, "bad_response", message)
    headers = error.response.headers if hasattr(error, "response") else {}
    told = headers.get("x-should-retry")
    if told == "false" or (status < 500 and status not in _RETRIED and told != "true"):
        return _client_error(error, message, ours)
    wait_s = asked_to_wait(headers, getattr(error, "body", None), time.time() if now is None else now)
    if wait_s is not None and wait_s > LONGEST_WAIT_S:
        return Verdict(STOP, "asked_to_wait", f"the server asks to wait {wait_s:.0f} s: {message}")
    return Verdict(AGAIN, _RETRIED.get(status, "server_error"), message, wait_s, status == 429)


def _client_error(error: BaseException, message: str, ours: Mapping[str, Any]) -> Verdict:
    if "api key" in message.lower():  # Gemini answers 400 to a wrong key
        return Verdict(STOP, "wrong_key", "the server does not take the key")
    if getattr(error, "param", None) in (*ours, "model"):
        return Verdict(STOP, "refused_setting", message)
    return Verdict(GIVE_UP, "bad_request", message)


def asked_to_wait(headers: Mapping[str, str], body: Any, now: float) -> Optional[float]:
    """Seconds that a reply asks to be left alone: retry-after-ms, Retry-After (seconds or a date), Gemini's RetryInfo;
    None where it says nothing that can be read."""
    told = headers.get("retry-after")
    for text, unit in ((headers.get("retry-after-ms"), 1e-3), (told, 1.0)):
        seconds = _number(text)
        if seconds is not None:
            return max(0.0, seconds * unit)
    if told is not None and email.utils.parsedate_tz(told) is not None:
        return max(0.0, email.utils.parsedate_to_datetime(told).timestamp() - now)
    for delay in _values(body, "retryDelay"):
        seconds = _number(str(delay).rstrip("s"))
        if seconds is not None:
            return max(0.0, seconds)
    return None


def pause_s(attempt: int, chance: random.Random) -> float:
    """Seconds before the next try after the failed one number `attempt` (from 1): doubled each time, half by chance."""
    most = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt - 1, 10))
    return float(most * (0.5 + 0.5 * chance.random()))


def _number(text: Optional[str]) -> Optional[float]:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _values(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == name:
                yield inner
            yield from _values(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner, name)
