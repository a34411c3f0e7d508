"""TangoFlux's adapter against the signatures of the released package."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.systems.clips import heard, render
from tests.systems.released import Released, Served, Tensor, default_of, fake_torch, install, library, serve

WEIGHTS = {
    "model": {"config.json": "{}", "tangoflux.safetensors": "", "vae.safetensors": ""},
    "text_encoder": ["config.json"],
}
NET = "tangoflux.model:TangoFlux"


class Vae:
    config = SimpleNamespace(sampling_rate=44_100)

    def to(self, *_: Any) -> Vae:
        return self

    eval = load_state_dict = to

    def decode(self, latents: Tensor) -> Any:
        assert latents.shape == (1, 64, 645)
        return SimpleNamespace(sample=Tensor(np.full((1, 2, 30 * 44_100), 0.25)))


class Tokenizer:
    model_max_length = 512

    def __call__(self, text: str) -> Any:
        return SimpleNamespace(input_ids=text.split())


def load(
    tmp_path: Path, patch: pytest.MonkeyPatch, missing: tuple[str, ...] = (), **changed: Any
) -> tuple[Served, Released]:
    fake_torch(patch)
    library(patch, "diffusers", AutoencoderOobleck=Vae)
    library(patch, "safetensors.torch", load_file=lambda path: {})

    def build(self: Any, config: Any, text_encoder_dir: str) -> None:
        self.tokenizer = Tokenizer()
        self.load_state_dict = lambda state, strict: SimpleNamespace(missing_keys=list(missing))

    flow = {f"{NET}.inference_flow": lambda self, **_: Tensor(np.zeros((1, 645, 64)))}
    made = install("tangoflux", patch, {NET: build, **flow})
    return serve("tangoflux", WEIGHTS, tmp_path, **changed), made


def test_a_render_is_the_released_call_with_the_cards_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made = load(tmp_path, monkeypatch, missing=("text_encoder.encoder.embed_tokens.weight",))
    result = served.ask(render("a dog barks", seed=3))
    clip = heard(result)
    assert result["reply"]["notes"] == "cut to the first 10 of 30.00 s"
    assert (clip.rate_hz, clip.channels, clip.duration_s) == (44_100, 2, 10.0)
    assert made.one(NET)["text_encoder_dir"] == str(tmp_path / "text_encoder")
    assert made.one(f"{NET}.inference_flow") == {
        "prompt": "a dog barks",
        "num_inference_steps": 50,
        "guidance_scale": 4.5,
        "duration": 10.0,
        "seed": 3,
        "disable_progress": True,
    }


def test_all_that_the_latents_hold_is_no_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _ = load(tmp_path, monkeypatch, duration_s=30.0)
    result = served.ask(render("a dog barks"))
    assert (heard(result).duration_s, result["reply"]["notes"]) == (30.0, "")


def test_the_cards_guidance_and_duration_are_the_packages_defaults() -> None:
    wrapper = ("tangoflux", "tangoflux", "TangoFluxInference.generate")
    assert (default_of(*wrapper, "guidance_scale"), default_of(*wrapper, "duration")) == (4.5, 10)
    assert default_of(*wrapper, "steps") == 25  # the deviation of the table


def test_a_prompt_that_the_tokenizer_would_cut_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _ = load(tmp_path, monkeypatch)
    result = served.ask(render("word " * 513))
    assert (result["status"], result["reason"]) == ("refused", "prompt_too_long")


def test_weights_that_leave_parameters_untrained_stop_the_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="1 parameters are not in the weights"):
        load(tmp_path, monkeypatch, missing=("fc.0.weight",))


@pytest.mark.parametrize("changed", [{"duration_s": 31.0}, {"duration_s": 0.5}, {"guidance_scale": 1.0}])
def test_what_the_model_cannot_do_is_refused_before_it_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, float]
) -> None:
    with pytest.raises(ValueError, match=r"TangoFlux (renders|fails)"):
        load(tmp_path, monkeypatch, **changed)
