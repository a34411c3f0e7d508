"""WER, CM, KL, FAD and FD of an arm from its measures: what is missing is counted, nothing is silently shorter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from torus_ray.bank.schema import STAGES
from torus_ray.metrics.frechet import frechet_distance
from torus_ray.report.measured import ClipFacts, Measured, Place, together
from torus_ray.report.number import Number, from_row
from torus_ray.report.objective import numbers, tasks
from torus_ray.store.manifest import MeasureInfo

METRICS: Mapping[str, tuple[str, ...]] = {
    "asr": ("wer",),
    "tags": ("kl", "fad"),
    "vector": ("fd",),
    "four": ("cm.class_argmax4",),
}
TESTS = 8
TYPES = ("speech", "sound", "music")
SAID = {(f"t{n}", stage): "seven red boats leave" for n in range(TESTS) for stage in STAGES if n % 3 == 0}


def arm(name: str, seed: int = 0, tests: int = TESTS, shared: str = "", fingerprint: str = "f") -> Measured:
    """An arm with every clip and measure. shared: takes the stage-1 clips of the arm of this name."""
    clips: dict[Place, ClipFacts] = {}
    rows: dict[str, dict[Place, dict[str, Any]]] = {measure: {} for measure in METRICS}
    for n in range(tests):
        for at, stage in enumerate(STAGES):
            maker = shared if shared and not at else name
            rng = np.random.default_rng([n, at, *maker.encode()])
            place = (f"t{n}", stage, seed)
            clips[place] = ClipFacts(TYPES[n % 3], f"{maker}/{n}/{stage}", 2.0, True)
            shift = 0.4 * len(maker)
            values = {
                "asr": None,
                "tags": rng.standard_normal((4, 6)) + shift,
                "vector": rng.standard_normal((1, 5)) + shift,
                "four": np.eye(4)[[TYPES.index(TYPES[n % 3])], :][:, [0, 2, 1, 3]],
            }
            for measure in METRICS:
                if measure == "asr" and (f"t{n}", stage) not in SAID:
                    continue
                found = values[measure]
                rows[measure][place] = {
                    "key": f"{measure}:{maker}/{n}/{stage}",
                    "status": "ok",
                    "reason": None,
                    "text": "seven red boats sleep" if measure == "asr" else None,
                    "values": None if found is None else found.astype(np.float32).ravel(),
                    "width": None if found is None else found.shape[1],
                }
    infos = {m: MeasureInfo(head="h", fingerprint=fingerprint, metrics=of) for m, of in METRICS.items()}
    return Measured(name, "bank", infos, clips, rows)


def changed(side: Measured, measure: str, place: Place, **fields: Any) -> Measured:
    rows = {name: dict(found) for name, found in side.rows.items()}
    rows[measure][place] = {**rows[measure][place], "values": None, "text": None, **fields}
    return replace(side, rows=rows)


def without_clip(side: Measured, place: Place) -> Measured:
    """Its render failed: no clip, and measures that say so."""
    clips = {**side.clips, place: replace(side.clips[place], clip=None, duration_s=None)}
    side = replace(side, clips=clips)
    for measure in METRICS:
        if place in side.rows[measure]:
            side = changed(side, measure, place, status="no_clip", reason="failed: empty", key=None)
    return side


def by_name(found: list[Number], stages: str = "S1-S3") -> dict[str, Number]:
    return {number.convention: number for number in found if number.stages == stages}


A, B = arm("aa"), arm("bbb")
GONE: Place = ("t0", "edit", 0)


def test_each_number_carries_its_convention_counts_interval_and_reference() -> None:
    found = by_name(numbers(A, B, SAID))
    assert list(found) == [
        *("cm.class_argmax4.four", "wer.pooled.asr", "kl.clip_mean.ref_gen.tags", "fad.tags", "fd.vector"),
        *("wer.clip_mean.asr", "mmd2.rbf_median.tags", "mmd2.rbf_median.vector"),
    ]
    assert found["cm.class_argmax4.four"].value == 100.0
    assert (found["wer.pooled.asr"].value, found["wer.pooled.asr"].n, found["wer.pooled.asr"].expected) == (0.25, 9, 9)
    for name in ("kl.clip_mean.ref_gen.tags", "fad.tags", "fd.vector"):
        number = found[name]
        assert (number.n, number.expected, number.failed, number.reference) == (24, 24, 0, "bbb"), name
        assert number.value is not None
        assert number.lo is not None
        assert number.hi is not None
        assert number.lo <= number.value <= number.hi
    assert found["fad.tags"].floor is not None
    assert {n.method for n in (found["fad.tags"], found["fd.vector"])} == {"jackknife"}
    assert found["kl.clip_mean.ref_gen.tags"].details["others"].keys() >= {"kl.clip_mean.gen_ref.tags"}


def test_a_removed_clip_counts_as_metrics_say() -> None:
    """METRICS 11: WER hears nothing (1.0), CM misses, KL, FAD and FD leave it out; each says so."""
    found = by_name(numbers(without_clip(A, GONE), B, SAID))
    assert found["wer.pooled.asr"].value == pytest.approx((8 * 1 + 4) / 36)
    assert (found["wer.pooled.asr"].n, found["wer.pooled.asr"].failed) == (9, 1)
    assert found["cm.class_argmax4.four"].value == pytest.approx(100 * 23 / 24)
    for name in ("kl.clip_mean.ref_gen.tags", "fad.tags", "fd.vector"):
        assert (found[name].n, found[name].expected, found[name].failed) == (23, 24, 1)
        assert found[name].details["why"] == {"no_clip": 1}


def test_a_corrupt_clip_first_in_the_set_takes_no_other_with_it() -> None:
    first = min(A.clips)
    side = A
    for measure in METRICS:
        side = changed(side, measure, first, status="failed", reason="clip_damaged")
    found = by_name(numbers(side, B, SAID))
    assert found["fad.tags"].n == found["fd.vector"].n == 23
    assert found["wer.pooled.asr"].value == pytest.approx((8 * 1 + 4) / 36)
    kept = [np.concatenate([side.frames("vector", p) for p in sorted(side.clips) if p != first])]  # type: ignore[misc]
    theirs = np.concatenate([B.frames("vector", p) for p in sorted(B.clips)])  # type: ignore[misc]
    assert found["fd.vector"].value == pytest.approx(frechet_distance(kept[0], theirs))


def test_a_measure_that_failed_counts_against_nobody() -> None:
    side = changed(A, "asr", GONE, status="failed", reason="host_down")
    side = changed(side, "four", GONE, status="timeout", reason="deadline")
    found = by_name(numbers(side, B, SAID))
    assert (found["wer.pooled.asr"].value, found["wer.pooled.asr"].n, found["wer.pooled.asr"].failed) == (0.25, 8, 1)
    assert (found["cm.class_argmax4.four"].value, found["cm.class_argmax4.four"].n) == (100.0, 23)
    assert found["cm.class_argmax4.four"].details["why"] == {"deadline": 1}


def test_nothing_measured_is_null_with_its_reason() -> None:
    side = replace(A, rows={measure: {} for measure in METRICS})
    found = by_name(numbers(side, B, SAID))
    assert {number.value for number in found.values()} == {None}
    assert all(number.reason for number in found.values())
    assert found["cm.class_argmax4.four"].reason == "not_measured"
    assert found["fad.tags"].failed == 24


def test_all_clips_missing_is_all_wrong_or_null() -> None:
    side = A
    for place in A.clips:
        side = without_clip(side, place)
    found = by_name(numbers(side, B, SAID))
    assert found["wer.pooled.asr"].value == 1.0
    assert found["cm.class_argmax4.four"].value == 0.0
    assert {found[name].value for name in ("kl.clip_mean.ref_gen.tags", "fad.tags", "fd.vector")} == {None}


def test_the_order_of_a_set_means_nothing() -> None:
    def backwards(side: Measured) -> Measured:
        return replace(
            side,
            clips=dict(reversed(side.clips.items())),
            rows={name: dict(reversed(rows.items())) for name, rows in side.rows.items()},
        )

    assert numbers(backwards(A), backwards(B), SAID) == numbers(A, B, SAID)


def test_swapped_sides_are_one_distance_and_another_divergence() -> None:
    there, back = by_name(numbers(A, B, SAID)), by_name(numbers(B, A, SAID))
    for name in ("fad.tags", "fd.vector"):
        assert there[name].value == pytest.approx(back[name].value, rel=1e-9)
    one, other = there["kl.clip_mean.ref_gen.tags"], back["kl.clip_mean.ref_gen.tags"]
    assert one.value != pytest.approx(other.value)
    # The divergence the other way is a reading of its own name (eps stands on the other side there)
    assert one.details["others"]["kl.clip_mean.gen_ref.tags"] == pytest.approx(other.value, abs=1e-4)


def test_an_arm_against_itself_under_another_name_is_zero_and_under_its_own_a_dash() -> None:
    twin = replace(A, name="twin")
    found = by_name(numbers(A, twin, SAID))
    assert found["fad.tags"].value == pytest.approx(0, abs=1e-9)
    assert found["fd.vector"].value == pytest.approx(0, abs=1e-9)
    assert found["kl.clip_mean.ref_gen.tags"].value == pytest.approx(-6e-6, abs=1e-6)
    own = by_name(numbers(A, A, SAID))
    assert {own[n].reason for n in ("fad.tags", "fd.vector", "kl.clip_mean.ref_gen.tags")} == {"is_reference"}


def test_another_run_of_the_same_arm_is_a_reference_like_any_other() -> None:
    earlier = replace(B, name=A.name)
    found, same = by_name(numbers(A, earlier, SAID)), by_name(numbers(A, B, SAID))
    assert found["fd.vector"].value == pytest.approx(same["fd.vector"].value)
    assert found["fd.vector"].value > 0


def test_where_stage_one_is_shared_the_later_stages_stand_beside() -> None:
    chained = arm("cc", shared="bbb")
    found = numbers(chained, B, SAID)
    later = by_name(found, "S2+S3")
    assert later.keys() == {
        *("kl.clip_mean.ref_gen.tags", "fad.tags", "fd.vector", "mmd2.rbf_median.tags", "mmd2.rbf_median.vector")
    }
    assert {number.n for number in later.values()} == {16}
    whole = by_name(found)["kl.clip_mean.ref_gen.tags"].value
    assert whole is not None
    assert later["kl.clip_mean.ref_gen.tags"].value == pytest.approx(whole * 3 / 2, rel=1e-3)
    assert by_name(numbers(A, B, SAID), "S2+S3") == {}


def test_no_window_no_kl_but_a_distance() -> None:
    short = {**A.clips, GONE: replace(A.clips[GONE], duration_s=0.015)}
    found = by_name(numbers(replace(A, clips=short), B, SAID))
    assert (found["kl.clip_mean.ref_gen.tags"].n, found["fad.tags"].n) == (23, 24)


def test_a_loop_is_flagged_and_shown_with_and_without() -> None:
    side = changed(A, "asr", GONE, text="boats leave " * 40)
    details = by_name(numbers(side, B, SAID))["wer.pooled.asr"].details
    assert details["looped"] == 1
    assert details["pooled_unlooped"] == 0.25
    assert by_name(numbers(side, B, SAID))["wer.pooled.asr"].value > 1  # type: ignore[operator]


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (None, "no_reference"),
        (replace(B, measures={}, rows={}), "reference_not_measured"),
        (arm("bbb", fingerprint="other"), "reference_by_another_head"),
    ],
)
def test_without_a_fit_reference_there_is_no_distance(reference: Measured | None, reason: str) -> None:
    found = by_name(numbers(A, reference, SAID))
    assert {found[n].reason for n in ("fad.tags", "fd.vector", "kl.clip_mean.ref_gen.tags")} == {reason}
    assert found["cm.class_argmax4.four"].value == 100.0


def test_a_reference_of_more_tests_is_taken_over_those_of_the_run() -> None:
    few = arm("aa", tests=4)
    number = by_name(numbers(few, B, SAID))["fd.vector"]
    assert (number.n, number.expected, number.reference_n) == (12, 12, 12)


def test_seeds_are_pooled() -> None:
    pooled = together([A, arm("aa", seed=1)])
    found = by_name(numbers(pooled, B, SAID))
    assert (found["fd.vector"].n, found["wer.pooled.asr"].n, found["kl.clip_mean.ref_gen.tags"].n) == (48, 18, 48)


def test_without_the_bank_there_is_no_wer_and_the_rest_stands() -> None:
    found = by_name(numbers(A, B, None))
    assert (found["wer.pooled.asr"].value, found["wer.pooled.asr"].reason) == (None, "no_transcripts")
    assert found["fd.vector"].value is not None


def test_stored_numbers_stand_until_something_that_they_are_made_of_changes() -> None:
    made = numbers(A, B, SAID)
    stored: dict[str, list[Number]] = {}
    for number in made:
        stored.setdefault(number.key, []).append(from_row(number.as_row("s", "aa", 0)))
    assert numbers(A, B, SAID, stored) == made

    def keys(side: Measured, other: Measured | None = B, said: Mapping[tuple[str, str], str] = SAID) -> set[str]:
        return {task.key for task in tasks(side, other, said)}

    edits: list[Callable[[], set[str]]] = [
        lambda: keys(without_clip(A, GONE)),
        lambda: keys(A, without_clip(B, GONE)),
        lambda: keys(A, said={**SAID, ("t0", "edit"): "other words"}),
        lambda: keys(A, arm("other")),
    ]
    for edit in edits:
        assert edit() != keys(A)
