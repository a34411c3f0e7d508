"""--deadline: what is understood, and what is said about the rest."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from torus_ray.cli.until import deadline_of
from torus_ray.errors import InputError

NOW = datetime(2026, 11, 30, 10, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "left_s"),
    [
        ("3h", 10_800),
        ("90m", 5_400),
        ("1h30m", 5_400),
        ("1d12h", 129_600),
        ("45s", 45),
        ("2026-11-30T10:31+00:00", 60),
        ("2026-11-30T12:30:00+02:00", 0.0),
    ],
)
def test_spans_and_moments(text: str, left_s: float) -> None:
    if left_s:
        assert deadline_of(text, NOW) - NOW == left_s
    else:
        with pytest.raises(InputError, match="past"):
            deadline_of(text, NOW)


def test_a_moment_without_a_zone_is_this_machine_s() -> None:
    moment = datetime.fromtimestamp(NOW + 3_600)
    assert deadline_of(moment.isoformat(), NOW) == NOW + 3_600


@pytest.mark.parametrize("text", ["", "soon", "3", "3 h", "-3h", "h", "0s", "2020-01-01", "99999999999999d", "25:00"])
def test_what_is_no_deadline_is_said_with_the_form(text: str) -> None:
    with pytest.raises(InputError) as caught:
        deadline_of(text, NOW)
    assert caught.value.where == "--deadline"
    assert "3h" in caught.value.expected
    assert caught.value.mend
