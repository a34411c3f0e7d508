"""VGGish: the adapter over tiny random weights, its front end against the project's own formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from actors.vggish import network
from tests.actors.measures.served import FORMATS, Served, apart, clip, opposite, silent, stored, wave
from torus_ray.metrics import frontends

MEASURE = "vggish128.preact"
SHAPES = {
    **{f"features.{at}": (4, 1 if at == 0 else 4, 3, 3) for at in (0, 3, 6, 8, 11, 13)},
    "embeddings.0": (16, 96),
    "embeddings.2": (16, 16),
    "embeddings.4": (128, 16),
}


def random_state(seed: int) -> dict[str, Any]:
    """Random weights: the published layers, four channels each."""
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in SHAPES.items():
        state[f"{name}.weight"] = torch.randn(shape, generator=generator) * (1.5 / np.prod(shape[1:]) ** 0.5)
        state[f"{name}.bias"] = torch.randn(shape[0], generator=generator) * 0.1
    return state


def weights(folder: Path, seed: int = 0) -> Path:
    path = folder / "vggish.pth"
    torch.save(random_state(seed), path)
    return path


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served("vggish", "VggishHead", {"model": weights(tmp_path_factory.mktemp("vggish"))})


def test_ten_seconds_are_ten_embeddings(head: Served) -> None:
    values = head.values(MEASURE, clip(10.0))
    assert np.shape(values["values"]) == (10, 128)
    assert "flags" not in values


def test_the_front_end_is_the_one_of_the_formulas() -> None:
    sound = wave(3.2)
    np.testing.assert_allclose(network.examples_of(sound), frontends.vggish_examples(sound), atol=1e-5)


def test_the_layers_are_those_of_the_published_network() -> None:
    """Against the network written out by functions."""
    state = random_state(1)
    examples = torch.from_numpy(network.examples_of(wave(2.0)))
    found = examples[:, None]
    for at, pooled in ((0, True), (3, True), (6, False), (8, True), (11, False), (13, True)):
        found = torch.relu(
            torch.nn.functional.conv2d(found, state[f"features.{at}.weight"], state[f"features.{at}.bias"], padding=1)
        )
        found = torch.nn.functional.max_pool2d(found, 2) if pooled else found
    found = found.transpose(1, 3).transpose(1, 2).flatten(1)
    for at in (0, 2, 4):
        found = found @ state[f"embeddings.{at}.weight"].T + state[f"embeddings.{at}.bias"]
        found = torch.relu(found) if at != 4 else found
    with torch.inference_mode():
        assert apart(network.Vggish(state).eval()(examples), found) < 1e-5
    assert bool((found < 0).any()), "a last ReLU would show"


def test_a_batch_gives_what_each_clip_alone_gives(head: Served) -> None:
    clips = [clip(seconds, seed=seed) for seed, seconds in enumerate((3.0, 0.4, 12.0, 1.0))]
    together = [result["reply"]["values"]["values"] for result in head.batch(MEASURE, clips)]
    for one, found in zip(clips, together, strict=True):
        assert apart(found, head.numbers(MEASURE, one)) < 1e-4


@pytest.mark.parametrize(("rate", "channels", "bits"), FORMATS)
def test_one_clip_in_every_format(head: Served, rate: int, channels: int, bits: int) -> None:
    assert apart(head.numbers(MEASURE, clip(3.0, rate, channels, bits)), head.numbers(MEASURE, clip())) < 3e-3


@pytest.mark.parametrize(
    ("samples", "examples", "flags"),
    [(240, 1, ["padded"]), (15_599, 1, ["padded"]), (15_600, 1, None), (16_000, 1, None), (30_960, 2, None)],
)
def test_short_clips(head: Served, samples: int, examples: int, flags: list[str] | None) -> None:
    values = head.values(MEASURE, stored(wave()[4000 : 4000 + samples]))
    assert np.shape(values["values"]) == (examples, 128)
    assert values.get("flags") == flags


def test_twelve_minutes(head: Served) -> None:
    assert np.shape(head.values(MEASURE, clip(720.0))["values"]) == (749, 128)


def test_silence_is_valid_and_flagged_however_it_comes(head: Served) -> None:
    quiet, crossed = head.values(MEASURE, silent()), head.values(MEASURE, opposite())
    assert quiet["flags"] == crossed["flags"] == ["silent"]
    assert quiet["values"] == crossed["values"]
    assert len(set(map(tuple, quiet["values"]))) == 1, "every example of silence is the same"


def test_another_measure_is_refused(head: Served) -> None:
    assert head.reason("vggish128", clip()) == "unknown_measure"


def test_other_weights_under_the_same_name_are_other_weights(tmp_path: Path) -> None:
    path = weights(tmp_path)
    head = Served("vggish", "VggishHead", {"model": path})
    weights(tmp_path, seed=1)
    other = Served("vggish", "VggishHead", {"model": path})
    assert head.server.describe()["observed"] != other.server.describe()["observed"]


def test_a_self_test_that_gives_other_values_stops_the_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = weights(tmp_path)
    monkeypatch.setenv("TORUS_SELF_TESTS", str(tmp_path / "records"))
    Served("vggish", "VggishHead", {"model": path})
    Served("vggish", "VggishHead", {"model": path})
    (record,) = (tmp_path / "records").iterdir()
    monkeypatch.setattr(network, "_hann", lambda: np.ones(network.WINDOW))
    record.write_text(record.read_text().replace("0.", "7.", 40))
    with pytest.raises(RuntimeError, match="when these weights were first loaded") as stopped:
        Served("vggish", "VggishHead", {"model": path})
    for part in (str(record), "expected:", "mend:"):
        assert part in str(stopped.value)
    record.write_text("{")
    with pytest.raises(RuntimeError, match="cannot be read"):
        Served("vggish", "VggishHead", {"model": path})


@pytest.mark.parametrize("content", [{}, {"features.0.weight": torch.zeros(4, 1, 3, 3)}])
def test_a_file_that_is_no_vggish(tmp_path: Path, content: dict[str, Any]) -> None:
    path = tmp_path / "other.pth"
    torch.save(content, path)
    with pytest.raises(RuntimeError, match="no weights of VGGish"):
        Served("vggish", "VggishHead", {"model": path})


def test_weights_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nothing is fetched") as stopped:
        Served("vggish", "VggishHead", {"model": tmp_path / "gone.pth"})
    assert "gone.pth" in str(stopped.value)
    with pytest.raises(RuntimeError, match=r"weights\.model of the card"):
        Served("vggish", "VggishHead", {})
