"""What is offered for a name that is not there."""

from __future__ import annotations

import pytest

from torus_ray.bank.near import near_names

IDS = [f"speech-{number:02d}" for number in range(1, 17)]


@pytest.mark.parametrize(
    ("word", "names", "first"),
    [
        ("speech-1", IDS, ["speech-01", "speech-10", "speech-11"]),
        ("speech-001", IDS, ["speech-01", "speech-10", "speech-11"]),
        ("Speech-07", IDS, ["speech-07"]),
        ("simulatd", ["pocket", "simulated", "cascade"], ["simulated"]),
        ("nothing of the kind", IDS, []),
        ("", IDS, []),
    ],
)
def test_the_nearest_come_first(word: str, names: list[str], first: list[str]) -> None:
    assert near_names(word, names)[: max(1, len(first))] == first
