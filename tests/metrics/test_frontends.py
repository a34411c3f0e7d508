"""Front ends and windows against the oracle, without weights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torus_ray.audio import Clip, mono
from torus_ray.metrics.frontends import (
    clap_log_mel,
    clap_ten_seconds,
    int16_round_trip,
    passt_windows,
    vggish_examples,
    vggish_padded,
)

ORACLES = Path(__file__).parents[1] / "oracles"
ORACLE: dict[str, Any] = json.loads((ORACLES / "frontends.json").read_text())


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    with np.load(ORACLES / "frontends.npz") as loaded:
        return dict(loaded)


def noise(samples: int) -> np.ndarray:
    return np.random.default_rng(samples).normal(scale=0.1, size=samples).astype(np.float32)


def test_vggish_examples_of_the_oracle(arrays: dict[str, np.ndarray]) -> None:
    found = vggish_examples(arrays["vggish.chirp.wave16k"])
    assert found.shape == arrays["vggish.chirp.examples"].shape
    assert np.abs(found - arrays["vggish.chirp.examples"]).max() < ORACLE["vggish"]["tolerance_abs"]


@pytest.mark.parametrize(
    "case", ORACLE["vggish"]["examples_by_length"], ids=lambda case: f"{case['samples16k']} samples"
)
def test_how_many_examples_a_length_gives(case: dict[str, Any]) -> None:
    assert len(vggish_examples(noise(case["samples16k"]))) == case["examples"]


def test_a_short_clip_is_padded_to_one_second_and_flagged() -> None:
    for samples in (1, 240, 15_599):
        padded, flagged = vggish_padded(noise(samples))
        assert (len(padded), flagged, len(vggish_examples(padded))) == (16_000, True, 1)
    for samples in (0, 15_600, 16_000):
        padded, flagged = vggish_padded(noise(samples))
        assert (len(padded), flagged) == (samples, False)


def test_silence_has_its_known_values() -> None:
    assert vggish_examples(np.zeros(16_000)) == pytest.approx(ORACLE["vggish"]["silence_value"])
    assert clap_log_mel(np.zeros(48_000)) == pytest.approx(ORACLE["clap"]["silence_value_db"])


@pytest.mark.parametrize(
    "case", ORACLE["passt_audiocraft_segments"]["cases"], ids=lambda case: f"{case['samples32k']} samples"
)
def test_passt_windows_of_the_oracle(case: dict[str, Any]) -> None:
    wave = noise(case["samples32k"])
    windows = passt_windows(wave)
    assert [len(window) for window in windows] == case["segments"]
    assert case["samples32k"] - sum(case["segments"]) == sum(case["dropped"])
    if windows:
        assert np.array_equal(np.concatenate(windows), wave[: sum(case["segments"])])


@pytest.mark.parametrize("case", ORACLE["clap"]["length_cases"], ids=lambda case: f"{case['samples48k']} samples")
def test_clap_lengths_of_the_oracle(case: dict[str, Any]) -> None:
    wave = noise(case["samples48k"])
    heard, cropped = clap_ten_seconds(wave)
    assert (len(heard), cropped) == (480_000, case["cropped"])
    whole = min(len(wave), 480_000)
    assert np.array_equal(heard[: whole * case["copies"]], np.tile(wave[:whole], case["copies"]))
    assert len(heard) - whole * case["copies"] == case["zero_tail_samples"]
    assert not heard[whole * case["copies"] :].any()


def test_clap_log_mel_of_the_oracle(arrays: dict[str, np.ndarray]) -> None:
    found, expected = clap_log_mel(arrays["clap.short.wave48k"]), ORACLE["clap"]
    assert list(found.shape) == expected["short"]["shape"][1:]
    for name, part in (("0_80", found[:80]), ("970_1001", found[970:])):
        assert np.abs(part - arrays[f"clap.short.features_frames_{name}"]).max() < expected["tolerance_abs"]
    assert [found.mean(), found.std()] == pytest.approx([expected["short"][name] for name in ("mean", "std")], abs=1e-3)


def test_a_long_clip_gives_the_same_twice() -> None:
    wave = noise(960_000)
    assert np.array_equal(clap_log_mel(wave), clap_log_mel(wave[:480_000]))


def test_the_16_bit_step_of_the_oracle() -> None:
    rule = ORACLE["int16_quantisation"]
    found = int16_round_trip(np.array(rule["x"], dtype=np.float32))
    assert found == pytest.approx(rule["back"], abs=1e-9)
    assert np.rint(found.astype(np.float64) * 32767).astype(int).tolist() == rule["int16"]


@pytest.mark.parametrize("wave", [np.zeros((2, 9)), np.zeros(9, dtype=np.int16), np.array([0.0, np.nan])])
def test_what_is_no_mono_wave_is_refused(wave: np.ndarray) -> None:
    for front_end in (vggish_examples, passt_windows, clap_log_mel):
        with pytest.raises(ValueError, match=r"mono wave|NaN"):
            front_end(wave)
    with pytest.raises(ValueError, match="without samples"):
        clap_log_mel(np.zeros(0))


def test_the_front_ends_need_numpy_alone() -> None:
    code = (
        "import sys, torus_ray.metrics.frontends;"
        "print(*sorted(name for name in sys.modules if name.split('.')[0] in"
        " {'polars', 'scipy', 'pyarrow', 'pydantic', 'ray', 'torch', 'soundfile', 'jiwer'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("rate", [16_000, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("bits", [16, 32])
def test_one_clip_at_any_rate_width_and_channel_count_is_heard_alike(rate: int, channels: int, bits: int) -> None:
    """Tones and noise up to 6 kHz, resampled by audio.mono: what docs/metrics.md promises."""
    rng = np.random.default_rng(0)
    pitches, phases = rng.uniform(60, 6_000, 100), rng.uniform(0, 2 * np.pi, 100)

    def heard(at: int) -> np.ndarray:
        wave = np.zeros(2 * at)
        for pitch, phase in zip(pitches, phases, strict=True):
            wave += np.sin(2 * np.pi * pitch * np.arange(2 * at) / at + phase)
        return 0.015 * wave

    wave = np.tile(heard(rate), (channels, 1))
    if bits == 16:
        wave = np.rint(wave * 2**15).clip(-(2**15), 2**15 - 1) / 2**15
    mine = vggish_examples(mono(Clip(wave, rate), 16_000))
    theirs = vggish_examples(heard(16_000))
    apart = np.abs(mine - theirs)
    # 16 bits leave rounding in cells that hold nothing; filters ring at both ends of a clip.
    assert apart.max() < (0.2 if bits == 16 else 0.05)
    assert apart[:, 2:-2].max() < (0.2 if bits == 16 else 1e-3)
    assert np.median(apart) < 1e-4
