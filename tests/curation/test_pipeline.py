"""The whole pipeline against the stand-in server, as a user runs it: from five seeds to a gated and sealed bank."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.curation.authors import LEAKS, Scripted, questions, role_of, seed
from tests.standin.openai_server import Reply, StandIn, cut, rate_limited, refusal, server_error
from torus_ray.bank.check import check_bank
from torus_ray.bank.hub_import import read_sealed
from torus_ray.bank.load import load_bank
from torus_ray.bank.seal import sealed_files, write_sealed
from torus_ray.cli import _run
from torus_ray.curation.folders import FLAGS_FILE, rows_folder
from torus_ray.curation.ledger import read_rows

KEY = "sk-stand-in-0123456789"


def five_options(take: int) -> str:
    reply = questions(take)
    reply["edit"][0]["options"].pop()
    return json.dumps(reply)


def answer_missing(take: int) -> str:
    reply = questions(take)
    reply["generation"][1]["answer"] = "Nothing of the kind"
    return json.dumps(reply)


def faults() -> dict[tuple[str, int], list[Reply | str]]:
    """Every fault once."""
    return {
        ("architect", 0): ["Certainly! Here is the test.", rate_limited(retry_after_ms="20")],
        ("author", 0): [server_error()],
        ("author", 1): [five_options(1), rate_limited()],
        ("author", 2): [answer_missing(2)],
        ("architect", 3): [refusal(), Reply('{"title": "cut', finish_reason="length")],
        ("architect", 4): [cut("headers"), cut("body"), Reply(raw=b"<html>busy</html>", content_type="text/html")],
    }


def endpoint(role: str, server: StandIn, **more: object) -> list[str]:
    fields = {"base_url": server.base_url, "model": f"stand-in-{role}", "key_env": "STAND_IN_KEY", **more}
    return [word for name, value in fields.items() for word in ("--set", f"{role}.{name}={value}")]


@pytest.fixture
def seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STAND_IN_KEY", KEY)
    path = tmp_path / "seeds.jsonl"
    path.write_text("".join(json.dumps(seed(take)) + "\n" for take in range(5)))
    return path


def all_text(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_five_seeds_become_a_sealed_bank(seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = Scripted(faults())
    draft, gated = tmp_path / "draft", tmp_path / "gated"
    with StandIn(script, key=KEY) as server:
        drafting = ["bank", "draft", str(seeds), "--out", str(draft), "--json", *endpoint("author", server)]
        assert _run(drafting) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["tests"] == [f"take-{take}" for take in range(5)]
        assert told["calls"] == len(server.requests) == 10 + 11

        gating = ["bank", "gate", str(draft), "--out", str(gated), "--json", "--orders", "1"]
        gating += [word for role in ("author", "ideal", "muted") for word in endpoint(role, server)]
        assert _run(gating) == 1  # one question stays flagged
        told = json.loads(capsys.readouterr().out)
        asked = len(server.requests)

        # The same again: nothing is asked, everything is as it was.
        before = load_bank(gated)
        assert _run(drafting) == 0
        assert _run(gating) == 1
        assert len(server.requests) == asked
        assert load_bank(gated) == before

    assert told["flagged_at_first_by"] == {"paper": 4, "posterior": 0}
    assert told["flagged_by"] == {"paper": 1, "posterior": 0}
    assert (told["sent_back"], told["changed"], told["not_judged"]) == (4, 4, 0)
    assert script.counts["repair_options"] == 4
    assert script.counts["repair_question"] == 2

    flags = [json.loads(line) for line in (gated / FLAGS_FILE).read_text().splitlines()]
    assert len(flags) == 45
    by_place = {(flag["test"], flag["stage"], flag["question"]): flag for flag in flags}
    for (take, stage, question), mended in LEAKS.items():
        flag = by_place[f"take-{take}", stage, question]
        assert flag["flagged_at_first"]
        assert flag["flagged"] == (mended == 3)
        assert [repair["round"] for repair in flag["repairs"]] == list(range(1, min(mended, 2) + 1))
        assert flag["muted"]["kind"] == "chat, hears silence"
        assert flag["muted"]["model_version"] == "stand-in-muted-2026-01-01"
    assert sum(bool(flag["repairs"]) for flag in flags) == 4

    # Flags lie beside the tests, and a repaired test says so.
    bank = load_bank(gated)
    assert bank.card == load_bank(draft).card
    assert "repaired in round 2 by stand-in-author" in str(bank.test("take-1").provenance.notes)
    assert bank.test("take-1").stages.edit.questions[1].text.endswith("now?")
    assert bank.test("take-0").stages.generation.questions[0].text == "How often is the generation stroke heard?"

    # And sealed it is a bank like any other, that no human has verified.
    sealed = tmp_path / "sealed"
    write_sealed(sealed_files(bank, check_bank(bank)), sealed)
    assert read_sealed(sealed) == bank
    assert not any(test.provenance.human_verified_by for test in bank.tests)

    # Nothing secret is in what was written.
    for folder in (draft, gated, rows_folder(draft), rows_folder(gated)):
        assert KEY.encode() not in all_text(folder)


def test_a_killed_draft_goes_on_and_pays_for_nothing_twice(seeds: Path, tmp_path: Path) -> None:
    out = tmp_path / "draft"
    script = Scripted()

    all_planned = threading.Event()

    def architects_only(body: dict[str, Any]) -> Reply | str:
        if role_of(body) == "architect":
            return script(body)
        # An author's request comes only when its architect's row is durable.
        script.counts["author"] += 1
        if script.counts["author"] == 5:
            all_planned.set()
        return Reply("", after=lambda server: False)

    with StandIn(architects_only, key=KEY) as server:
        command = [sys.executable, "-m", "torus_ray.cli", "bank", "draft", str(seeds), "--out", str(out)]
        with subprocess.Popen([*command, *endpoint("author", server)], stderr=subprocess.DEVNULL) as process:
            assert all_planned.wait(60)
            os.kill(process.pid, signal.SIGKILL)
    assert read_rows(rows_folder(out), "calls").height == 5
    with StandIn(script, key=KEY) as server:
        assert _run([*command[3:], "--quiet", *endpoint("author", server)]) == 0
        assert Counter(map(role_of, server.requests)) == {"author": 5}
    rows = read_rows(rows_folder(out), "calls")
    assert rows.height == 10
    assert rows["key"].n_unique() == 10


def test_a_stopped_draft_says_so_and_ends_with_three(
    seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped: list[bool] = []
    # In the background of a shell the signal is ignored, and so it should be.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def ctrl_c(body: dict[str, Any]) -> Reply | str:
        if not stopped:
            stopped.append(True)
            os.kill(os.getpid(), signal.SIGINT)
        return Reply("", after=lambda server: False)

    words = ["bank", "draft", str(seeds), "--out", str(tmp_path / "draft"), "--quiet"]
    try:
        with StandIn(ctrl_c, key=KEY) as server:
            assert _run([*words, *endpoint("author", server)]) == 3
    finally:
        signal.signal(signal.SIGINT, before)
    assert "the same command goes on" in capsys.readouterr().err
    with StandIn(Scripted(), key=KEY) as server:
        assert _run([*words, *endpoint("author", server)]) == 0


def test_what_cannot_be_drafted_is_a_row_with_its_reason(
    seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "draft"
    script = Scripted({("architect", 1): ["no"] * 3, ("author", 2): [five_options(2)] * 3})
    with StandIn(script, key=KEY) as server:
        words = ["bank", "draft", str(seeds), "--out", str(out), "--quiet", *endpoint("author", server)]
        assert _run(words) == 1
        said = capsys.readouterr().out
        assert "no test: take-1: architect: not_json: it is not one JSON object" in said
        assert "no test: take-2: author: schema: " in said
        rows = read_rows(rows_folder(out), "outcomes").filter(status="failed")
        assert rows.select("unit", "step", "reason", "asks").rows() == [
            ("take-1", "architect", "not_json", 3),
            ("take-2", "author", "schema", 3),
        ]
        assert {test.id for test in load_bank(out).tests} == {"take-0", "take-3", "take-4"}
        assert "next: torus bank gate" in said
        # With more asks the same command goes on from the third.
        asked = len(server.requests)
        assert _run([*words, "--asks", "4"]) == 0
        assert Counter(map(role_of, server.requests[asked:])) == {"architect": 1, "author": 2}


def test_a_draft_of_nothing_names_no_next_step(seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = Scripted({("architect", take): ["no"] for take in range(5)})
    with StandIn(script, key=KEY) as server:
        words = [str(seeds), "--out", str(tmp_path / "draft"), "--asks", "1", *endpoint("author", server)]
        assert _run(["bank", "draft", *words]) == 1
    said = capsys.readouterr().out
    assert "0 of 5 tests" in said
    assert "next" not in said


def test_a_cost_that_is_not_known_is_never_a_number(
    seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StandIn(Scripted(), key=KEY) as server:
        draft, gated = str(tmp_path / "draft"), str(tmp_path / "gated")
        drafting = ["bank", "draft", str(seeds), "--out", draft, "--quiet", *endpoint("author", server)]
        assert _run([*drafting, "--max-calls", "4"]) == 3
        assert "cost unknown (4 calls of unknown price); the next may take" in capsys.readouterr().err
        prices = ["--set", "author.input_price=1", "--set", "author.output_price=1"]
        assert _run([*drafting, *prices]) == 0
        assert " and 4 calls of unknown price) in all" in capsys.readouterr().out
        assert _run([*drafting, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["cost"] is None
        gating = ["bank", "gate", draft, "--out", gated, "--orders", "1", "--quiet", "--no-repair"]
        _run([*gating, *endpoint("ideal", server), *endpoint("muted", server, hears="nothing")])
        assert "cost unknown (90 calls of unknown price) in all" in capsys.readouterr().out


def test_a_wrong_key_stops_at_once_and_is_not_shown(
    seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StandIn(Scripted(), key="another") as server:
        words = ["bank", "draft", str(seeds), "--out", str(tmp_path / "draft"), *endpoint("author", server)]
        assert _run(words) == 3
        said = capsys.readouterr()
    assert "wrong_key" in said.err
    assert "key_env" in said.err
    assert KEY not in said.out + said.err
    assert KEY.encode() not in all_text(tmp_path / "draft.curation")
    assert read_rows(tmp_path / "draft.curation", "calls")["attempt"].to_list() == [1] * 5


def test_a_plan_asks_nothing_and_needs_no_key(
    seeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("STAND_IN_KEY")
    with StandIn(Scripted()) as server:
        prices = endpoint("author", server, input_price=1.0, output_price=2.0)
        assert _run(["bank", "draft", str(seeds), "--out", str(tmp_path / "draft"), "--plan", "--json", *prices]) == 0
        (author,) = json.loads(capsys.readouterr().out)["plan"]
        assert author["calls"] == 10
        assert author["cost"] == pytest.approx((author["tokens_in"] + 2 * author["tokens_out"]) / 1e6)
        assert not server.requests
    assert not (tmp_path / "draft.curation").exists()


def test_a_budget_is_kept_and_the_same_command_with_more_goes_on(
    seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "draft"
    with StandIn(Scripted(), key=KEY) as server:
        words = ["bank", "draft", str(seeds), "--out", str(out), "--quiet", *endpoint("author", server)]
        assert _run([*words, "--max-calls", "7"]) == 3
        assert "the budget does not allow another call" in capsys.readouterr().err
        assert len(server.requests) == 7
        assert _run([*words, "--max-cost", "1"]) == 2
        assert "no price is known of stand-in-author" in capsys.readouterr().err
        assert _run([*words, "--max-calls", "10"]) == 0
        assert len(server.requests) == 10


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "author.modle=x"], "near: model"),
        (["--set", "critic.model=x"], "no role"),
        (["--set", "author.key_env=sk-abcdefgh"], "NAME of a variable"),
        (["--set", "author.key_env=NOT_THERE"], "NOT_THERE is not set"),
        (["--models", "nowhere.toml"], "cannot be read"),
    ],
)
def test_wrong_usage_starts_nothing(
    seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    out = tmp_path / "draft"
    assert _run(["bank", "draft", str(seeds), "--out", str(out), *words]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert "sk-abcdefgh" not in said
    assert not out.exists()
    assert not rows_folder(out).exists()


def test_a_folder_of_something_else_is_left_alone(
    seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "draft").mkdir()
    (tmp_path / "draft" / "notes.txt").write_text("mine")
    assert _run(["bank", "draft", str(seeds), "--out", str(tmp_path / "draft"), "--plan"]) == 2
    assert "something else" in capsys.readouterr().err
