"""A head that can serve nothing any more ends the run, inline and on Ray; one that only measures costs its numbers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.engine.conftest import ray_address, ray_cluster  # noqa: F401
from tests.engine.systems import SIMULATED, canary_bank, host, run, system, table
from tests.standin.openai_server import Reply, StandIn
from tests.systems.api import ANSWER, FOLDER, ledger
from torus_ray.bank.load import Bank
from torus_ray.protocol.executor import EngineStop
from torus_ray.protocol.graph import Arm
from torus_ray.store.layout import run_folder
from torus_ray.store.manifest import read_manifest
from torus_ray.store.reader import current_rows
from torus_ray.systems import System, with_measures

NATIVE = (Arm("native"),)
CALLS = 9
"""Of one test in the native arm: three stages, three questions each."""
ON = ["inline", pytest.param("ray", marks=pytest.mark.ray)]
SPENT = '''
from torus_ray.heads import HeadStop, Model

class Spent(Model):
    """Measures one clip, then nothing any more."""

    def __init__(self):
        self.measured = 0

    def measure(self, requests):
        self.measured += len(requests)
        if self.measured > 1:
            raise HeadStop("the licence ran out", "licence.txt", "a licence of today", "renew it")
        return [request.reply({"values": [0.5, 0.5]}) for request in requests]
'''


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return canary_bank(tmp_path_factory.mktemp("bank") / "bank", tests=3)


@pytest.fixture(params=ON)
def where(request: pytest.FixtureRequest) -> dict[str, str]:
    """How a run is opened."""
    return {"address": request.getfixturevalue("ray_address")} if request.param == "ray" else {}


def two_listeners(sound: StandIn, music: StandIn, folder: Path, budget: int) -> System:
    """Two servers that listen by audio type, the one for sound with a budget; the rest is simulated."""

    def listener(server: StandIn, audio_type: str, **operating: Any) -> dict[str, Any]:
        return host(
            "answer",
            adapter=f"{FOLDER / 'adapter.py'}:OpenAIApi",
            style="async",
            settings={"model": "gpt-audio"},
            operating={"base_url": server.base_url, **operating},
            heads={"answer": {"audio_types": [audio_type], "settings": ANSWER, "seeded": False}},
        )

    simulated = f"{SIMULATED}:Simulated"
    hosts = {
        "simulated": host(
            "generate", "edit", "answer", adapter=simulated, heads={"answer": {"audio_types": ["speech"]}}
        ),
        "sound": listener(sound, "sound", budget={"calls": budget}, ledger=str(folder / "ledger.jsonl")),
        "music": listener(music, "music"),
    }
    return system(folder, hosts, name="heard")


def prompts(server: StandIn) -> list[str]:
    return [body["messages"][0]["content"][0]["text"] for body in server.requests]


@pytest.mark.ray
def test_what_is_under_way_is_kept_and_the_same_command_goes_on(
    bank: Bank,
    tmp_path: Path,
    ray_address: str,  # noqa: F811
) -> None:
    def both_under_way(_: StandIn) -> bool:
        return len(music.requests) >= 3

    def stopped_for_a_while(_: StandIn) -> bool:
        """The sound listener has spent its budget, and half a second ago its fourth and last call came back."""
        return len(sound.requests) > 3 and time.monotonic() - sound.arrived_at[3] > 0.5

    sound = StandIn(["B", "B", "B", Reply("B", after=both_under_way), "B"])
    music = StandIn([*[Reply("C", after=stopped_for_a_while)] * 3, "C"])
    with sound, music:
        results = tmp_path / "results"
        with pytest.raises(EngineStop, match="budget does not allow another call: 4 calls") as caught:
            run(two_listeners(sound, music, tmp_path, budget=4), bank, results, NATIVE, address=ray_address)
        assert caught.value.exit_code == 3
        assert "'sound'" in caught.value.message
        assert "operating.budget" in caught.value.mend
        folder = run_folder(results, bank.card.name, bank.hash, "heard", "native")
        manifest = read_manifest(folder)
        assert manifest is not None
        assert (manifest.state, manifest.exit_code) == ("stopped", 3)
        rows = current_rows(folder, "answers").filter(pl.col("listener") != "simulated")
        assert set(rows["status"]) == {"ok"}
        durable = dict(rows["listener"].value_counts().iter_rows())
        assert durable["sound"] == 3
        assert durable["music"] >= 3, "what the other server was asked before the stop"
        asked = prompts(sound), prompts(music)

        last = run(two_listeners(sound, music, tmp_path, budget=100), bank, results, NATIVE, address=ray_address)
        assert last.exit_code == 0
        assert set(table(last, "answers")["status"]) == {"ok"}
        for server, before in zip((sound, music), asked, strict=True):
            again = prompts(server)[len(before) :]
            assert not set(again) & set(rows["prompt"]), "what was durable is paid once"
        assert len(music.requests) == CALLS
        assert len(sound.requests) == len(ledger(tmp_path)) == CALLS + 1


def test_a_head_that_only_measures_stops_nothing_but_its_numbers(
    bank: Bank, tmp_path: Path, where: dict[str, str]
) -> None:
    (tmp_path / "spent.py").write_text(SPENT)
    gauge = host("measure", adapter=f"{tmp_path / 'spent.py'}:Spent", heads={"measure": {"measures": {"toy2": ["fd"]}}})
    measured = system(tmp_path, {"gauge": gauge}, name="gauge")
    simulated = system(tmp_path, {"simulated": host(adapter=f"{SIMULATED}:Simulated")}, name="simulated")
    told: list[str] = []
    result = run(with_measures(simulated, [measured]), bank, tmp_path / "results", NATIVE, told=told, **where)
    assert result.exit_code == 1
    for name in ("renders", "answers"):
        assert set(table(result, name)["status"]) == {"ok"}
    rows = table(result, "measures")
    assert dict(rows["status"].value_counts().iter_rows()) == {"ok": 1, "failed": CALLS - 1}
    failed = rows.filter(pl.col("status") == "failed")
    assert set(failed["reason"]) == {"host_down"}
    assert failed["message"].str.contains("'gauge.gauge': the licence ran out").all()
    assert [line for line in told if "the licence ran out" in line and "goes on without it, renew it" in line]
