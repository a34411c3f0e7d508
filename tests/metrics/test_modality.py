"""The modality check against the oracle; misses without a label stay in the denominator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torus_ray.errors import InputError
from torus_ray.metrics.modality import CLASSES, LABELS, PROMPTS, class_labels, modality_check, nearest_labels

ORACLES = Path(__file__).parents[1] / "oracles"
ORACLE: dict[str, Any] = json.loads((ORACLES / "modality.json").read_text())


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    with np.load(ORACLES / "modality.npz") as loaded:
        return dict(loaded)


def test_labels_and_value_of_the_oracle(arrays: dict[str, np.ndarray]) -> None:
    assert list(LABELS) == ORACLE["labels"]
    labels = nearest_labels(audio=arrays["audio"], text=arrays["text"])
    assert list(labels) == ORACLE["predicted"]
    found = modality_check(labels=labels, expected=ORACLE["expected_modality"], backbone="clap512")
    assert found.value == pytest.approx(ORACLE["cm_pct"])
    assert (found.hits, found.n, found.expected, found.unlabelled) == (ORACLE["hits"], 24, 24, 0)
    assert found.column == "cm.argmax4.clap512"
    assert sum(cell.clips for cell in found.confusion) == 24
    assert sum(cell.clips for cell in found.confusion if cell.label == "noise") == ORACLE["predicted"].count("noise")
    assert sum(cell.clips for cell in found.confusion if cell.label == cell.expected) == found.hits


def test_scale_does_not_matter(arrays: dict[str, np.ndarray]) -> None:
    scaled = nearest_labels(audio=arrays["audio"] * 17, text=arrays["text"] * [[1], [2], [3], [0.5]])
    assert scaled == nearest_labels(audio=arrays["audio"], text=arrays["text"])


def test_a_broken_or_missing_clip_is_a_miss_in_the_denominator(arrays: dict[str, np.ndarray]) -> None:
    audio = arrays["audio"].copy()
    audio[2, 0], audio[3] = np.nan, 0
    labels = nearest_labels(audio=audio, text=arrays["text"])
    assert labels[2:4] == (None, None)
    found = modality_check(labels=labels, expected=ORACLE["expected_modality"])
    assert (found.hits, found.n, found.expected, found.unlabelled) == (ORACLE["hits"] - 1, 22, 24, 2)
    assert found.value == pytest.approx(100 * 4 / 24)
    lost = modality_check(labels=[None] * 144, expected=["music"] * 144)
    assert (lost.value, lost.n, lost.expected, lost.reason) == (0, 0, 144, None)


def test_noise_is_a_miss_and_nothing_gives_no_number() -> None:
    assert modality_check(labels=["noise"], expected=["sound"]).value == 0
    empty = modality_check(labels=[], expected=[])
    assert (empty.value, empty.reason, empty.expected) == (None, "no_clips", 0)


def test_a_tie_goes_to_the_first_label() -> None:
    assert nearest_labels(audio=[[1.0, 1.0]], text=[[0, 1], [1, 0], [1, 0], [0, 1]]) == ("speech",)


def test_order_of_clips_does_not_matter(arrays: dict[str, np.ndarray]) -> None:
    order = np.random.default_rng(0).permutation(24)
    labels = nearest_labels(audio=arrays["audio"][order], text=arrays["text"])
    moved = modality_check(labels=labels, expected=[ORACLE["expected_modality"][i] for i in order])
    still = modality_check(labels=ORACLE["predicted"], expected=ORACLE["expected_modality"])
    assert moved == still


def test_classes_of_a_tagger_are_mapped() -> None:
    groups = ("speech", None, "music", "sound", "speech")
    scores = [[0.1, 0.9, 0.2, 0.3, 0.0], [0, 9, 0, 0, 0.4], [np.nan] * 5]
    assert class_labels(scores=scores, groups=groups) == ("sound", "speech", None)
    found = modality_check(
        labels=("sound", "speech"), expected=("sound", "sound"), convention=CLASSES, backbone="yamnet521"
    )
    assert (found.value, found.column) == (50, "cm.class_argmax4.yamnet521")


def test_prompts_are_data() -> None:
    assert PROMPTS["template"][0] == "This is a sound of speech."
    assert PROMPTS["words"] == LABELS


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nearest_labels(audio=[[1.0, 0.0]], text=[[1.0, 0.0]]), "audio has the shape"),
        (lambda: nearest_labels(audio=[[1.0, 0.0]], text=[[np.nan, 0.0]] * 4), "text holds"),
        (lambda: nearest_labels(audio=[[1.0, 0.0]], text=[[1.0, 0.0]] * 3 + [[0, 0]]), "all zeros"),
        (lambda: modality_check(labels=["music"], expected=["music", "sound"]), "lengths differ"),
        (lambda: modality_check(labels=["hum"], expected=["music"]), "unknown label"),
        (lambda: modality_check(labels=["music"], expected=["noise"]), "unknown audio type"),
        (lambda: class_labels(scores=[[1.0]], groups=["hum"]), "unknown groups"),
        (lambda: class_labels(scores=[[1.0]], groups=[None]), "no class has one"),
        (lambda: class_labels(scores=[[1.0, 2.0]], groups=["music"]), "scores have the shape"),
    ],
)
def test_what_cannot_be_labelled_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
