"""The comparison with other tools: each runs in another interpreter, and one that fails is a line, not an end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.metrics_parity import compare

ROOT = Path(__file__).resolve().parents[2]


def test_a_tool_is_run_and_one_that_is_not_there_is_told() -> None:
    command = [sys.executable, "-m", "benchmarks.metrics_parity", "--python", sys.executable]
    done = subprocess.run(
        [*command, "--only", "jiwer", "torchvggish"], capture_output=True, text=True, check=True, timeout=110, cwd=ROOT
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("| quantity")
    assert lines[2].startswith("| wer pooled | jiwer | 0.616162 | 0.616162 |")
    assert lines[3].startswith("| | torchvggish | | ModuleNotFoundError")


def test_differences_are_told_in_words() -> None:
    assert compare("normalised texts", ["a", "b "], ["a", "b"])[2] == "0 differ"
    assert compare("passt windows", [1, 2], [1, 3])[2] == "differ"
    assert compare("wer pooled", 0.5, 0.75) == ("0.5", "0.75", "2.5e-01")
