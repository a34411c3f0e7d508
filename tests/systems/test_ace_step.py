"""ACE-Step's adapter against the signatures of the released package."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.systems.clips import heard, render
from tests.systems.released import Released, Served, Tensor, default_of, facts, fake_torch, install, serve
from torus_ray.systems import load_system

PARTS = [
    f"{part}/" for part in facts("ace-step")["modules"]["acestep.model_downloader"]["MAIN_MODEL_COMPONENTS"]["value"]
]
HANDLER, PLANNER = "acestep.handler:AceStepHandler", "acestep.llm_inference:LLMHandler"
API = "acestep.inference"
SOUND = {"tensor": Tensor(np.full((2, 480_000), 0.1)), "sample_rate": 48_000}
GOOD = SimpleNamespace(success=True, error=None, status_message="", audios=[SOUND])


def load(
    tmp_path: Path,
    patch: pytest.MonkeyPatch,
    result: Any = GOOD,
    ready: bool = True,
    parts: Any = PARTS,
    **changed: Any,
) -> tuple[Served, Released, list[int]]:
    seeds = fake_torch(patch)
    roots: list[Path] = []

    def start(self: Any, project_root: str, **_: Any) -> tuple[str, bool]:
        # As the released handler does: its own root, not the argument.
        roots.append(Path(self._get_project_root()) / "checkpoints")
        return "started" if ready else "DiT not found", ready

    made = install(
        "ace-step",
        patch,
        {
            f"{HANDLER}.initialize_service": start,
            f"{PLANNER}.initialize": lambda self, **_: ("started", True),
            f"{API}:generate_music": lambda **_: result,
        },
    )
    served = serve("ace-step", {"checkpoints": parts}, tmp_path, **changed)
    assert (roots[0] / "vae").resolve() == tmp_path / "checkpoints" / "vae"
    return served, made, seeds


def test_a_render_is_the_released_call_with_the_cards_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, made, seeds = load(tmp_path, monkeypatch)
    clip = heard(served.ask(render("a slow waltz", "music", seed=11)))
    assert (clip.rate_hz, clip.channels, clip.duration_s) == (48_000, 2, 10.0)
    assert made.one(f"{API}:GenerationConfig") == {"batch_size": 1, "use_random_seed": False, "seeds": [11]}
    params = made.one(f"{API}:GenerationParams")
    assert (params["caption"], params["duration"], params["thinking"]) == ("a slow waltz", 10.0, True)
    assert made.one(f"{PLANNER}.initialize")["backend"] == "pt"
    assert seeds[-1] == 11  # the planner samples from the global generator
    served.server.close()
    assert [call.name for call in made.calls][-1] == f"{PLANNER}.unload"


def test_the_cards_generation_settings_are_the_packages_defaults() -> None:
    settings = load_system("ace-step").hosts["ace_step"].card.settings
    for name, value in settings["generation"].items():
        assert value == default_of("ace-step", API, "GenerationParams", name), name
    for name in ("dit", "planner"):
        assert f"{settings[name]}/" in PARTS


def test_a_caption_beyond_the_documented_length_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _, _ = load(tmp_path, monkeypatch)
    assert served.ask(render("x" * 513, "music"))["reason"] == "prompt_too_long"


def test_a_generation_that_failed_is_an_error_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = SimpleNamespace(success=False, error="LM generation failed: no codes", status_message="", audios=[])
    served, _, _ = load(tmp_path, monkeypatch, result=bad)
    assert "no codes" in served.raised(render("a waltz", "music"))["message"]


def test_a_checkpoint_that_would_be_downloaded_is_named_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError, match=r"Qwen3-Embedding-0\.6B missing"):
        load(tmp_path, monkeypatch, parts=[part for part in PARTS if "Qwen3" not in part])


def test_a_handler_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="DiT not found"):
        load(tmp_path, monkeypatch, ready=False)


def test_lengths_that_the_model_does_not_make_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="10 to 600 s"):
        load(tmp_path, monkeypatch, duration_s=5.0)
