"""One objective number of an arm, with all that it rests on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torus_ray.metrics.table import convention_of

ALL_STAGES, LATER_STAGES = "S1-S3", "S2+S3"
IS_REFERENCE = "is_reference"
"""Why the reference has no distance: to itself it is 0, which the paper prints as a dash."""


@dataclass(frozen=True)
class Number:
    """One number. convention: its whole name. metric: the heading it stands under (CM, WER, KL, FAD, FD, MMD2).

    n: clips behind it, of `expected`; failed: clips without a measure, `details["why"]` says of what. half_width: of
    the paper's interval (percentile over tests; jackknife for set distances); lo, hi, method: the recommended one.
    reference: what it is a distance to, reference_n its clips; floor: what sampling alone makes at this size.
    """

    convention: str
    metric: str
    measure: str
    stages: str
    value: float | None
    n: int
    expected: int
    failed: int
    reason: str | None = None
    lo: float | None = None
    hi: float | None = None
    half_width: float | None = None
    method: str | None = None
    reference: str | None = None
    reference_n: int | None = None
    floor: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""

    @property
    def headline(self) -> bool:
        """Whether it stands in the paper's row."""
        return self.stages == ALL_STAGES and convention_of(self.convention).headline

    def as_row(self, system: str, arm: str, seed: int) -> dict[str, Any]:
        """Its row in the table `distances`."""
        row = {name: getattr(self, name) for name in _STORED}
        unit = f"{system}/{arm}/{self.convention}/{self.stages}" + (f"/{self.reference}" if self.reference else "")
        details = json.dumps(self.details, sort_keys=True) if self.details else None
        return {"unit_id": unit, "system": system, "arm": arm, "seed": seed, **row, "details_json": details}


HEADINGS = ("CM", "WER", "KL", "FAD", "FD")
"""Objective columns in the paper's order."""
METHODS: Mapping[str, tuple[str, str]] = {
    "bootstrap_t": ("t", "bootstrap_t over tests"),
    "wilson": ("w", "wilson where tests do not vary"),
    "percentile": ("p", "percentile over tests"),
    "jackknife": ("j", "delete-one-test jackknife"),
}
"""How an interval of stats.intervals.Method is marked behind its limits, and what a note says of it."""
_STORED = (
    *("key", "convention", "measure", "metric", "stages", "value", "lo", "hi", "half_width", "method", "reason"),
    *("n", "expected", "failed", "reference", "reference_n", "floor"),
)


def from_row(row: Mapping[str, Any]) -> Number:
    """The number in a row of `distances`."""
    details = json.loads(row["details_json"]) if row["details_json"] else {}
    return Number(**{name: row[name] for name in _STORED}, details=details)
