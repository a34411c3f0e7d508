"""PaSST: the adapter over tiny random weights, hear21passt's own code underneath."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hear21passt.models import passt
from hear21passt.models.passt import PaSST

from actors.passt.adapter import _windows
from tests.actors.measures.served import FORMATS, Served, apart, clip, opposite, silent, stored, wave
from torus_ray.metrics import frontends

MEASURE = "passt527"
TINY = {"embed_dim": 24, "depth": 1, "num_heads": 2}


def weights(folder: Path) -> Path:
    """A file of random weights of a network of one layer of twenty-four."""
    torch.manual_seed(0)
    net = PaSST(img_size=(128, 998), patch_size=16, stride=(10, 10), num_classes=527, distilled=True, **TINY)
    for parameter in net.parameters():
        if parameter.ndim > 1:
            parameter.data *= 10
    path = folder / "passt.pt"
    torch.save(net.state_dict(), path)
    return path


def served(path: Path) -> Served:
    return Served("passt", "Passt", {"model": path}, network=TINY)


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return served(weights(tmp_path_factory.mktemp("passt")))


def test_ten_seconds_are_one_window(head: Served) -> None:
    values = head.values(MEASURE, clip(10.0))
    assert np.shape(values["values"]) == (1, 527)
    assert "flags" not in values


def test_windows_are_those_of_the_formulas(head: Served) -> None:
    for seconds in (0.2, 9.9, 10.0, 10.1, 10.2, 25.0):
        sound = wave(seconds, 32_000)
        ours, wanted = _windows(sound), frontends.passt_windows(sound)
        assert [len(piece) for piece in ours] == [len(piece) for piece in wanted]
        assert np.shape(head.values(MEASURE, stored(sound, 32_000))["values"]) == (len(wanted), 527)


def test_a_window_is_heard_alone(head: Served) -> None:
    sound = wave(12.0, 32_000)
    both = head.numbers(MEASURE, stored(sound, 32_000))
    assert apart(both[1], head.numbers(MEASURE, stored(sound[320_000:], 32_000))[0]) < 1e-4


def test_the_mel_is_the_one_of_evaluation(head: Served) -> None:
    """Twice the same: in training the network masks and jitters."""
    net = head.server.model._net
    assert not net.training
    assert not net.mel.training
    assert head.values(MEASURE, clip()) == head.values(MEASURE, clip())
    assert (net.mel.fmin, net.mel.fmax) == (0.0, 15_000)


def test_a_batch_gives_what_each_clip_alone_gives(head: Served) -> None:
    clips = [clip(seconds, seed=seed) for seed, seconds in enumerate((3.0, 0.4, 12.0, 3.0))]
    together = [result["reply"]["values"]["values"] for result in head.batch(MEASURE, clips)]
    for one, found in zip(clips, together, strict=True):
        assert apart(found, head.numbers(MEASURE, one)) < 1e-4


@pytest.mark.parametrize(("rate", "channels", "bits"), FORMATS)
def test_one_clip_in_every_format(head: Served, rate: int, channels: int, bits: int) -> None:
    assert apart(head.numbers(MEASURE, clip(3.0, rate, channels, bits)), head.numbers(MEASURE, clip())) < 5e-3


@pytest.mark.parametrize(("samples", "rate"), [(240, 16_000), (2_400, 16_000), (4_800, 32_000)])
def test_too_short_clips_are_as_missing(head: Served, samples: int, rate: int) -> None:
    assert head.reason(MEASURE, stored(wave(3.0, rate)[4000 : 4000 + samples], rate)) == "too_short"


def test_the_shortest_clip_that_has_a_window(head: Served) -> None:
    sound = wave(3.0, 32_000)[4000 : 4000 + 4_801]
    assert np.shape(head.values(MEASURE, stored(sound, 32_000))["values"]) == (1, 527)


def test_twelve_minutes(head: Served) -> None:
    assert np.shape(head.values(MEASURE, clip(720.0))["values"]) == (72, 527)


def test_silence_is_valid_and_flagged_however_it_comes(head: Served) -> None:
    quiet, crossed = head.values(MEASURE, silent()), head.values(MEASURE, opposite())
    assert quiet["flags"] == crossed["flags"] == ["silent"]
    assert quiet["values"] == crossed["values"]


def test_nothing_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    served(weights(tmp_path)).values(MEASURE, clip())
    assert capsys.readouterr().out == ""


def test_weights_of_another_size(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no weights of this PaSST"):
        Served("passt", "Passt", {"model": weights(tmp_path)})


class Built(Exception):
    """Ends a load where the network would be built."""


def test_the_network_is_the_one_of_the_library_where_the_card_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}

    def create(arch: str, **sizes: Any) -> torch.nn.Module:
        theirs.update(sizes)
        return torch.nn.Identity()

    def build(**sizes: Any) -> None:
        ours.update(sizes)
        raise Built

    monkeypatch.setattr(passt, "_create_vision_transformer", create)
    passt.get_model("passt_s_swa_p16_128_ap476", pretrained=False)
    monkeypatch.setattr(passt, "PaSST", build)
    with pytest.raises(Built):
        Served("passt", "Passt", {})
    assert ours == {name: theirs[name] for name in ours}
    assert theirs.keys() - ours.keys() == {"pretrained", "in_chans", "u_patchout", "s_patchout_t", "s_patchout_f"}
    assert (theirs["in_chans"], theirs["s_patchout_t"], theirs["s_patchout_f"]) == (1, 0, 0)
