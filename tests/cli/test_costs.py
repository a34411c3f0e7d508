"""What a run may cost is told by --plan and before a run starts; where nothing is paid for, nothing is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.systems import canary_bank
from tests.standin.openai_server import StandIn
from tests.systems.api import KEY, KEY_ENV, PRICES, heard_by
from torus_ray.cli.costs import CLIP_S, estimate_run
from torus_ray.cli.run import run as run_command
from torus_ray.protocol.graph import Arm
from torus_ray.systems import load_system

ARMS = (Arm("native"), Arm("self-caption"))


def test_an_estimate_counts_every_call_and_bounds_what_it_costs(tmp_path: Path) -> None:
    bank = canary_bank(tmp_path / "bank", tests=2)
    made = heard_by("http://host/v1", tmp_path, prices=PRICES)
    (told,) = estimate_run(made, bank, bank.tests, ARMS, repeats=1)
    assert told.calls == 2 * (9 + 9 + 2)
    audio = told.calls * CLIP_S * PRICES["audio_tokens_per_s"] * PRICES["audio_in"] / 1e6
    replies = told.calls * 3000 * PRICES["text_out"] / 1e6
    assert told.likely is not None
    assert told.most is not None
    assert audio < told.likely < 2 * audio
    assert audio + replies < told.most < 2 * audio + replies
    (twice,) = estimate_run(made, bank, bank.tests, ARMS, repeats=2)
    assert twice.calls == 2 * (18 + 18 + 2)


def test_without_prices_calls_are_told_and_without_a_key_nothing(tmp_path: Path) -> None:
    bank = canary_bank(tmp_path / "bank", tests=1)
    (told,) = estimate_run(heard_by("http://host/v1", tmp_path), bank, bank.tests, ARMS, repeats=1)
    assert "20 paid calls; its card has no operating.prices" in str(told)
    assert estimate_run(load_system("simulated"), bank, bank.tests, ARMS, repeats=1) == []
    free = heard_by("http://host/v1", tmp_path, name="free", key_env="")
    assert estimate_run(free, bank, bank.tests, ARMS, repeats=1) == []


def test_the_cost_is_told_before_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    canary_bank(tmp_path / "bank", tests=1)
    monkeypatch.setenv(KEY_ENV, KEY)
    with StandIn(["A"], key=KEY) as server:
        heard_by(server.base_url, tmp_path, prices=PRICES)
        card = str(tmp_path / "heard" / "heard.toml")
        options = {"bank": tmp_path / "bank", "results": tmp_path / "results", "arms": "native"}
        assert run_command([card], plan=True, **options) == 0
        planned = capsys.readouterr()
        assert "host listener: 9 paid calls, about" in planned.out
        assert server.requests == []
        assert run_command([card], inline=True, quiet=True, measures="none", **options) == 0
    assert "host listener: 9 paid calls, about" in capsys.readouterr().err
