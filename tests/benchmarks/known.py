"""Scenes whose truth is known, as the checks hear them, and the edits that start from them."""

from __future__ import annotations

from typing import Any

import soxr

from benchmarks.obedience import checks, run, scenes

EDITS = {item["id"]: item for item in run.read_items("edits.json")}


def heard(scene: dict[str, Any]) -> Any:
    """A mono wave at the rate of the checks."""
    wave, rate = scenes.build(scene)
    return soxr.resample(wave.astype(float), rate, checks.RATE)
