"""The items of benchmarks/obedience and its script: a right result passes everything, the untouched base fails what
should change."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.obedience import checks, expect, run
from tests.benchmarks.known import EDITS, heard
from torus_ray.audio import Clip
from torus_ray.heads import Host
from torus_ray.stats.intervals import wilson_interval

PROMPTS = run.read_items("prompts.json")
PAIRS = run.read_items("pairs.json")


def ideal(name: str) -> Any:
    """What an obedient editor makes of a known base, built from the scene itself."""
    s = copy.deepcopy(EDITS[name]["scene"])
    sources = s["sources"]
    if name == "known-01":
        sources[0]["times"] = [1.0, 4.0]
    elif name == "known-02":
        s.update(room_s=3.0, wet=0.6)
    elif name == "known-05":
        del sources[0]
    elif name == "known-06":
        sources[0]["times"], sources[1]["at"] = [3.6, 4.1], 0.8
    elif name == "known-07":
        return heard(s)[::-1]
    elif name == "known-08":
        wave = heard(s)
        return wave * np.interp(np.arange(len(wave)) / checks.RATE, [0, 3, 6], [1, 1, 0])
    elif name == "known-10":
        s.update(low_pass_hz=500, gain_db=-8)
    elif name == "known-12":
        s["seconds"], sources[0]["times"] = 9, [0.5 + i for i in range(8)]
    elif name == "known-13":
        sources[1]["db"] += 9
    elif name == "known-15":
        sources.append({"is": "knock", "times": [4.6, 5.1], "db": -12})
    elif name == "known-16":
        s["gain_db"] = -6
    elif name == "known-17":
        return checks.band(heard(s), None, 1000)
    return heard(s)


IDEAL = [f"known-{n:02}" for n in (1, 2, 5, 6, 7, 8, 10, 12, 13, 15, 16, 17)]


@pytest.mark.parametrize("name", IDEAL)
def test_an_obedient_editor_passes_and_an_idle_one_does_not(name: str) -> None:
    item, base = EDITS[name], heard(EDITS[name]["scene"])
    result = ideal(name)
    wrong = [
        (e, expect.judge(e, result, base)[1])
        for e in item["changed"] + item["stayed"]
        if not expect.judge(e, result, base)[0]
    ]
    assert not wrong
    assert not all(expect.judge(e, base, base)[0] for e in item["changed"])
    silent = np.zeros(len(base)) + 1e-7
    assert not all(expect.judge(e, silent, base)[0] for e in item["stayed"])


def test_items_are_well_formed() -> None:
    assert [sum(p["type"] == t for p in PROMPTS) for t in ("speech", "sound", "music")] == [10, 10, 10]
    assert all(1 <= len(p["expect"]) <= 3 for p in PROMPTS)
    assert len(EDITS) == 30
    assert sum(e["counterfactual"] for e in EDITS.values()) >= 8
    assert sum("scene" in e for e in EDITS.values()) >= 12
    assert all(e["changed"] and e["stayed"] for e in EDITS.values())
    kinds = [e["kind"] for p in PROMPTS for e in p["expect"]]
    kinds += [e["kind"] for item in EDITS.values() for e in item["changed"] + item["stayed"]]
    assert set(kinds) <= set(expect.ONE) | set(expect.TWO)


def test_pairs_have_opposite_truths() -> None:
    assert len(PAIRS) == 20
    for pair in PAIRS:
        assert len(set(pair["options"])) == 6
        assert pair["a"]["right"] in pair["options"]
        assert pair["b"]["right"] in pair["options"]
        assert pair["a"]["right"] != pair["b"]["right"]
        assert pair["a"]["scene"] != pair["b"]["scene"]


# --- the script -------------------------------------------------------------------------------------------------------


def test_a_share_stands_beside_its_wilson_interval() -> None:
    assert wilson_interval(0.8, 10).lo == pytest.approx(0.4902, abs=1e-4)
    assert wilson_interval(0.8, 10).hi == pytest.approx(0.9433, abs=1e-4)
    assert run.rate(8, 10) == "8 of 10 | 80.0 | 49.0 to 94.3"
    assert run.rate(0, 0) == "0 of 0 | 0.0 | 0.0 to 100.0"


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        ("(C) two bells", "C"),
        ("The answer is D.", "D"),
        ("A dog barks", "A"),
        ("I hear three of them", None),
        ("it is red", "F"),
    ],
)
def test_read_letter(reply: str, letter: str | None) -> None:
    options = ["a dog barks", "two", "bells", "gongs", "horns", "red"]
    assert run.read_letter(reply, options).letter == letter


def test_loads_a_class_with_relative_imports(tmp_path: Path) -> None:
    folder = tmp_path / "some-model"
    folder.mkdir()
    (folder / "helper.py").write_text("VALUE = 7\n")
    (folder / "adapter.py").write_text("from .helper import VALUE\n\nclass Mine:\n    value = VALUE\n")
    assert run.load_class(f"{folder}/adapter.py:Mine").value == 7
    with pytest.raises(SystemExit, match="no class Other"):
        run.load_class(f"{folder}/adapter.py:Other")
    with pytest.raises(SystemExit, match="no such file"):
        run.load_class(f"{folder}/missing.py:Mine")


class Recorder:
    """Returns the base for every edit, and always answers A."""

    def load(self, host: Host) -> None: ...

    def edit(self, requests: Any) -> Any:
        return [r.reply(Clip(r.clip.wave, r.clip.rate_hz)) for r in requests]

    def answer(self, requests: Any) -> Any:
        return [r.reply(["A"] * len(r.questions)) for r in requests]


def test_an_idle_model_is_reported_as_such() -> None:
    asker = run.Asker(Recorder(), None)
    found = list(run.examine_edits(asker, [EDITS["known-01"], EDITS["known-16"]]))
    assert [f.holds for f in found if f.part == "changed"] == [False, False, False]
    assert all(f.holds for f in found if f.part == "stayed")
    text = "\n".join(run.report_findings("Edits", found, ("changed", "stayed")))
    assert "| every expectation holds | 0 of 2 |" in text
    assert "known-01" in text
    heard_ = list(run.examine_listening(asker, [PAIRS[0]]))
    assert "| pairs: the answer flips | 0 of 1 |" in "\n".join(run.report_listening(heard_))


def test_a_model_that_raises_fails_every_expectation() -> None:
    found = list(run.examine_generation(run.Asker(Recorder(), None), PROMPTS[:1]))
    assert len(found) == len(PROMPTS[0]["expect"])
    assert not any(f.holds for f in found)
