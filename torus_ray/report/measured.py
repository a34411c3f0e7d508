"""What was measured of the clips of a run (or of a reference pack), ready to be counted.

A clip's place is (test, stage, seed). At a place there may be no clip because its render failed: that counts against
the system. Or there is a clip and no measure, because a measuring head failed: that counts against nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from torus_ray.bank.schema import STAGES
from torus_ray.report.runs import Run
from torus_ray.store.manifest import MeasureInfo

Place = tuple[str, str, int]
"""Test, stage, seed."""
Row = Mapping[str, Any]

NO_CLIP_REASONS = ("clip_damaged",)
"""Of failed measures: what was to be measured could not be read, so it is as missing (METRICS 11)."""
_COLUMNS = ["test", "stage", "seed", "measure", "key", "fingerprint", "status", "reason", "text", "values", "width"]


@dataclass(frozen=True)
class ClipFacts:
    """A clip that there should be. clip: its id; None where its render failed. rendered: whether that is settled."""

    audio_type: str
    clip: str | None
    duration_s: float | None
    rendered: bool


@dataclass(frozen=True)
class Measured:
    """name: `system/arm`, or `pack:<sha256>`. clips: by place, those that there should be. rows: by measure and place,
    only rows of the head that `measures` names."""

    name: str
    bank_hash: str
    measures: Mapping[str, MeasureInfo]
    clips: Mapping[Place, ClipFacts]
    rows: Mapping[str, Mapping[Place, Row]]

    def row(self, measure: str, place: Place) -> Row | None:
        return self.rows.get(measure, {}).get(place)

    def no_clip(self, measure: str, place: Place) -> bool:
        """Whether there is nothing to measure: the render failed, or its file cannot be read."""
        facts, row = self.clips.get(place), self.row(measure, place)
        if row is not None and row["status"] != "ok" and row["reason"] in NO_CLIP_REASONS:
            return True
        return facts is not None and facts.rendered and facts.clip is None

    def text(self, measure: str, place: Place) -> str | None:
        row = self.row(measure, place)
        return str(row["text"]) if row is not None and row["status"] == "ok" and row["text"] is not None else None

    def frames(self, measure: str, place: Place) -> NDArray[np.float32] | None:
        """(frames, width), or None where there is no such measure."""
        row = self.row(measure, place)
        if row is None or row["status"] != "ok" or row["values"] is None:
            return None
        values: NDArray[np.float32] = np.asarray(row["values"], dtype=np.float32).reshape(-1, row["width"])
        return values

    def only(self, tests: Collection[str], stages: Collection[str] = STAGES) -> Measured:
        """The part of some tests and stages."""
        return replace(self, clips={p: f for p, f in self.clips.items() if p[0] in tests and p[1] in stages})


def measured_of(run: Run) -> Measured:
    """What a run's rows say. Rows of a head other than run.json names are left out: they count as not measured."""
    manifest = run.manifest
    facts = {
        (row["test"], row["stage"], row["seed"]): ClipFacts(
            row["audio_type"], row["clip"], row["duration_s"], rendered=True
        )
        for row in run.rows(
            "renders", ["test", "stage", "seed", "audio_type", "status", "clip", "duration_s"]
        ).iter_rows(named=True)
    }
    types = {place[0]: each.audio_type for place, each in facts.items()}
    clips: dict[Place, ClipFacts] = {
        (test, stage, manifest.seed): facts.get(
            (test, stage, manifest.seed), ClipFacts(types.get(test, ""), None, None, False)
        )
        for test in run.tests
        for stage in STAGES
    }
    return Measured(
        f"{manifest.system}/{manifest.arm}",
        manifest.bank_hash,
        manifest.measures,
        clips,
        rows_by_measure(run.rows("measures", _COLUMNS), manifest.measures),
    )


def rows_by_measure(rows: pl.DataFrame, measures: Mapping[str, MeasureInfo]) -> dict[str, dict[Place, Row]]:
    """Rows of each measure by their place."""
    found: dict[str, dict[Place, Row]] = {name: {} for name in measures}
    for name, info in measures.items():
        mine = rows.filter((pl.col("measure") == name) & (pl.col("fingerprint") == info.fingerprint))
        values = mine["values"]
        for at, row in enumerate(mine.drop("values").iter_rows(named=True)):
            row["values"] = values[at].to_numpy() if values[at] is not None else None
            found[name][row["test"], row["stage"], row["seed"]] = row
    return found


def together(arms: Sequence[Measured]) -> Measured:
    """Several seeds of one arm as one: their clips are pooled, a test brings those of all seeds. A measure that two of
    them took with different heads is left out."""
    if len(arms) == 1:
        return arms[0]
    common = {
        name: info for name, info in arms[0].measures.items() if all(arm.measures.get(name) == info for arm in arms)
    }
    return Measured(
        arms[0].name,
        arms[0].bank_hash,
        common,
        _joined(arm.clips for arm in arms),
        {name: _joined(arm.rows.get(name, {}) for arm in arms) for name in common},
    )


def _joined(parts: Iterable[Mapping[Place, Any]]) -> dict[Place, Any]:
    return {place: value for part in parts for place, value in part.items()}
