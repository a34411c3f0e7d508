"""KL against the oracle, in each of its named readings, and what has no value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torus_ray.errors import InputError
from torus_ray.metrics import kl as module
from torus_ray.metrics.kl import (
    BOTH,
    CONVENTIONS,
    EPS,
    GEN_REF,
    MEAN_LOGITS,
    PAIRS,
    REF_GEN,
    SIGMOID,
    clip_probabilities,
    kl,
    kl_divergence,
    kl_from_logits,
)

ORACLES = Path(__file__).parents[1] / "oracles"
ORACLE: dict[str, Any] = json.loads((ORACLES / "kl.json").read_text())
TOLERANCE = ORACLE["tolerance_abs"]
CASES = ORACLE["cases"]


def logits_of(case: dict[str, Any]) -> dict[str, list[np.ndarray]]:
    with np.load(ORACLES / "kl.npz") as arrays:
        return {
            "generated": [arrays[f"{case['name']}.gen.{i}"] for i in range(case["n_clips"])],
            "reference": [arrays[f"{case['name']}.ref.{i}"] for i in range(case["n_clips"])],
        }


each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))


@each_case
def test_both_directions_of_the_oracle(case: dict[str, Any]) -> None:
    for convention, name in ((REF_GEN, "headline_kl_ref_given_gen"), (GEN_REF, "reverse_kl_gen_given_ref")):
        found = kl_from_logits(**logits_of(case), convention=convention)
        assert found.value == pytest.approx(case[name]["mean"], abs=TOLERANCE)
        assert found.per_clip == pytest.approx(case[name]["per_clip"], abs=TOLERANCE)
        assert (found.n, found.expected, found.reason) == (case["n_clips"], case["n_clips"], None)
    both = kl_from_logits(**logits_of(case), convention=BOTH)
    assert both.value == pytest.approx(case["kld_both"], abs=TOLERANCE)


@each_case
def test_other_readings_of_the_oracle_have_their_own_columns(case: dict[str, Any]) -> None:
    readings = (
        (PAIRS, case["audiocraft_window_pairs"]["kld_pq"]),
        (MEAN_LOGITS, case["wrong_mean_of_logits_gen_given_ref"]["mean"]),
        (SIGMOID, case["wrong_sigmoid"]["mean"]),
    )
    for convention, value in readings:
        found = kl_from_logits(**logits_of(case), convention=convention, backbone="passt527")
        assert found.value == pytest.approx(value, abs=TOLERANCE)
        assert found.column == f"{convention.name}.passt527"
    assert len({each.name for each in CONVENTIONS}) == len(CONVENTIONS)


@each_case
def test_without_eps_as_in_the_oracle(case: dict[str, Any]) -> None:
    sides = logits_of(case)
    values = [
        kl_divergence(clip_probabilities(ref), clip_probabilities(gen), eps=0)
        for ref, gen in zip(sides["reference"], sides["generated"], strict=True)
    ]
    assert values == pytest.approx(case["headline_kl_ref_given_gen"]["per_clip_without_eps"], abs=TOLERANCE)


def test_laws_give_what_logits_give() -> None:
    sides = logits_of(CASES[2])
    laws = {name: [clip_probabilities(clip) for clip in clips] for name, clips in sides.items()}
    for convention in (REF_GEN, GEN_REF, BOTH):
        assert kl(**laws, convention=convention).value == kl_from_logits(**sides, convention=convention).value
    with pytest.raises(InputError, match="needs the logits of windows"):
        kl(**laws, convention=PAIRS)


def test_equal_laws_lie_just_below_zero_and_the_most_is_known() -> None:
    law = np.full(527, 1 / 527)
    assert kl(reference=[law], generated=[law]).value == pytest.approx(-np.log1p(527 * EPS))
    one, other = np.eye(527)[[0, 1]]
    assert kl(reference=[one], generated=[other]).value == pytest.approx(13.8155, abs=1e-4)
    assert REF_GEN.bounds[1] == pytest.approx(13.8155, abs=1e-4)


def test_swapped_sides_differ() -> None:
    sides = logits_of(CASES[1])
    back = {"reference": sides["generated"], "generated": sides["reference"]}
    assert kl_from_logits(**back).value == kl_from_logits(**sides, convention=GEN_REF).value
    assert kl_from_logits(**back).value != pytest.approx(kl_from_logits(**sides).value, abs=0.1)


def test_clips_of_unequal_length_have_a_clip_mean_and_no_window_pairs() -> None:
    rng = np.random.default_rng(0)
    sides = {"reference": [rng.normal(size=(2, 9))], "generated": [rng.normal(size=(1, 9))]}
    assert kl_from_logits(**sides).value is not None
    found = kl_from_logits(**sides, convention=PAIRS)
    assert (found.value, found.reason, found.per_clip) == (None, "windows_differ", (None,))


def test_a_missing_clip_is_left_out_and_counted() -> None:
    law = np.full(4, 0.25)
    found = kl(reference=[law, law, None, law], generated=[law, None, law, law])
    assert (found.n, found.expected, found.per_clip[1], found.per_clip[2]) == (2, 4, None, None)
    none = kl_from_logits(reference=[None, np.empty((0, 4))], generated=[np.ones((1, 4)), np.ones((1, 4))])
    assert (none.value, none.n, none.expected, none.reason) == (None, 0, 2, "no_clips")
    assert kl(reference=[], generated=[]).reason == "no_clips"


@pytest.mark.parametrize(
    ("reference", "generated", "message"),
    [
        ([[0.5, 0.5]], [], "lengths differ"),
        ([[0.5, 0.6]], [[0.5, 0.5]], "clip 0, reference, is no law"),
        ([[0.5, 0.5]], [[1.5, -0.5]], "clip 0, generated, is no law"),
        ([[0.5, 0.5]], [[float("nan"), 0.5]], "clip 0, generated, holds 1 of 2"),
        ([[0.5, 0.5]], [[0.25] * 4], "clip 0 has 2 classes in the reference, 4 generated"),
        ([[[0.5, 0.5]]], [[0.5, 0.5]], "clip 0, reference, has the shape"),
    ],
)
def test_what_is_no_law_is_refused(reference: Any, generated: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        kl(reference=reference, generated=generated)


def test_no_limit_without_eps_is_an_error_and_no_infinity() -> None:
    with pytest.raises(InputError, match="without eps"):
        kl_divergence([1.0, 0.0], [0.0, 1.0], eps=0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_order_of_pairs_and_classes_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    clips, classes = rng.permutation(5), rng.permutation(7)
    sides = {name: [rng.normal(scale=4, size=(2, 7)) for _ in range(5)] for name in ("reference", "generated")}
    moved = {name: [side[clip][:, classes] for clip in clips] for name, side in sides.items()}
    for convention in CONVENTIONS:
        found = kl_from_logits(**sides, convention=convention).value
        assert found is not None
        assert np.isfinite(found)
        assert kl_from_logits(**moved, convention=convention).value == pytest.approx(found)
    assert module.softmax(sides["reference"][0] + 1e6) == pytest.approx(module.softmax(sides["reference"][0]))
