"""`--deadline`: when a run is to have ended."""

from __future__ import annotations

import re
import time
from datetime import datetime

from torus_ray.errors import InputError

UNITS_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
FARTHEST_S = 366 * 86_400.0
EXPECTED = "a time from now like 3h, 90m or 1h30m, or a moment like 2026-12-01T08:00"
_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def deadline_of(text: str, now: float | None = None) -> float:
    """Seconds since the epoch: `3h`, `90m`, `1d12h` from now, or `2026-12-01T08:00` (this machine's time where no zone
    is said). Raises InputError for what is neither, and for what is past."""
    now = time.time() if now is None else now
    span = _SPAN.fullmatch(text) if text else None
    left_s: float
    try:
        if span is not None:
            left_s = sum(int(n or 0) * UNITS_S[unit] for unit, n in zip("dhms", span.groups(), strict=True))
        else:
            left_s = datetime.fromisoformat(text).timestamp() - now
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(
            f"{text!r} is no deadline", where="--deadline", expected=EXPECTED, mend="write it so"
        ) from error
    if not 0 < left_s < FARTHEST_S:
        clock = datetime.fromtimestamp(now).isoformat(timespec="minutes")
        raise InputError(
            f"{text} is {'past' if left_s <= 0 else 'more than a year away'}",
            where="--deadline",
            expected=EXPECTED,
            mend=f"on this machine it is {clock}",
        )
    return now + left_s
