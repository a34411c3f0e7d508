"""The paper's Table 2 as this project's intervals see it: its counts, its printed widths, and what they imply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torus_ray.stats.intervals import dependence, estimates

ORACLES = Path(__file__).parents[1] / "oracles"
COUNTS: dict[str, Any] = json.loads((ORACLES / "table2_counts.json").read_text())["rows"]
WIDTHS: dict[str, Any] = json.loads((ORACLES / "table2_ci.json").read_text())
TESTS = 48
SIMULATED = [case for case in WIDTHS["simulation"] if case["icc"] in (0, 0.1, 0.3)]


@pytest.mark.parametrize("system", COUNTS)
def test_every_printed_percentage_is_one_count(system: str) -> None:
    row = COUNTS[system]
    assert row["S1"] + row["S2"] + row["S3"] == row["total"]
    for printed, count, n in (
        *((name, row[name], 144) for name in ("S1", "S2", "S3", "CM")),
        ("Total", row["total"], 432),
    ):
        fits = [k for k in range(n + 1) if round(100 * k / n + 1e-9, 1) == row["printed"][printed]]
        assert fits == [count]


@pytest.mark.parametrize("system", COUNTS)
def test_the_correlation_that_a_printed_width_implies_gives_that_width(system: str) -> None:
    """Counts with the implied correlation are laid out over tests; `dependence` finds it, and the width follows."""
    for name, cell in WIDTHS["rows"][system].items():
        n, p = cell["n"], cell["count"] / cell["n"]
        size = n // TESTS
        alone = 196 * np.sqrt(p * (1 - p) / n)
        assert alone == pytest.approx(cell["half_width_if_independent"], abs=0.006)
        effect = (cell["half_width_paper"] / alone) ** 2
        assert effect == pytest.approx(cell["design_effect"], abs=0.006)
        assert (effect - 1) / (size - 1) == pytest.approx(cell["icc_implied"], abs=0.002), name
        whole = np.array([size] * (cell["count"] // size) + [cell["count"] % size], float)
        same = dependence(np.pad(whole, (0, TESTS - len(whole))), [size] * TESTS)
        assert same.design_effect
        # tests that are all right or all wrong: the most that any width can be
        assert alone * np.sqrt(same.design_effect) == pytest.approx(cell["half_width_if_icc_1"], rel=0.03)
        assert cell["half_width_paper"] <= cell["half_width_if_icc_1"]


@pytest.mark.parametrize("case", SIMULATED, ids=lambda case: f"{case['case']} icc {case['icc']}")
def test_simulated_tests_give_the_widths_of_the_oracle(case: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    sets, size, icc = 200, case["per_test"], case["icc"]
    spread = 1 / icc - 1 if icc else None
    share = rng.beta(case["p"] * spread, (1 - case["p"]) * spread, (TESTS, sets)) if spread else case["p"]
    right = rng.binomial(size, share, (TESTS, sets))
    found = estimates(right, np.full((TESTS, sets), float(size)), bounds=(0, 1), resamples=1000)
    widths = [100 * each.percentile.half_width for each in found if each.percentile]
    step = 100 / (TESTS * size)
    assert np.mean(widths) == pytest.approx(case["half_width_mean"], abs=0.2)
    assert np.percentile(widths, [5, 95]) == pytest.approx([case["p05"], case["p95"]], abs=2 * step)
