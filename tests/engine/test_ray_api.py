"""A whole protocol run on Ray with a listener behind an API: the rows of the inline run, and the key nowhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import canary_bank, run, table
from tests.standin.openai_server import Reply, StandIn, rate_limited
from tests.systems.api import KEY, KEY_ENV, files_with, heard_by, ledger
from torus_ray.protocol.graph import Arm

# Hosts have the environment of their cluster, and this is read before the tests' own is started.
os.environ.setdefault(KEY_ENV, KEY)

ARMS = (Arm("native"), Arm("self-caption"), Arm("native", control="muted"))
COLUMNS = ("unit_id", "status", "reply", "letter", "clip")


@pytest.mark.ray
def test_the_whole_protocol_leaves_the_rows_of_the_inline_run(tmp_path: Path, ray_address: str) -> None:
    bank = canary_bank(tmp_path / "bank", tests=2)
    answers, captions = [], []
    for name, options in (("inline", {}), ("ray", {"address": ray_address})):
        folder = tmp_path / name
        folder.mkdir()

        def said(body: dict[str, Any]) -> Reply | str:
            told = body["messages"][0]["content"][0]["text"]
            if len(server.requests) in (3, 8):
                return rate_limited(retry_after_ms="50")
            return "ABCDEF"[len(told) % 6] if "A." in told else 'A tone; a voice says "so it goes".'

        with StandIn(said, key=KEY) as server:
            result = run(heard_by(server.base_url, folder), bank, folder / "results", ARMS, **options)
        assert result.exit_code == 0
        assert files_with(KEY, folder) == []
        assert sum(line["status"] == "failed" for line in ledger(folder)) == 2
        assert len(ledger(folder)) == len(server.requests)
        answers.append(table(result, "answers").sort("unit_id").select(COLUMNS))
        captions.append(table(result, "captions").sort("unit_id").select("unit_id", "status", "text"))
    assert answers[0].equals(answers[1])
    assert captions[0].equals(captions[1])
    assert set(answers[0]["status"]) == set(captions[0]["status"]) == {"ok"}
