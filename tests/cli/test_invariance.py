"""The same sound gives the same numbers: twice, in any order, in any format; and what odd clips give (METRICS 3, 11).

All through the command line's own entry, on clips that a head really hears (models/heard.py).
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.canary import make_canary_bank
from tests.engine.systems import gauge, host, system
from torus_ray.bank.load import load_bank
from torus_ray.cli import _run
from torus_ray.engine.opening import Opening
from torus_ray.engine.session import RunOptions, run_system
from torus_ray.metrics.frechet import frechet_distance
from torus_ray.protocol.graph import Arm
from torus_ray.store.layout import clip_path
from torus_ray.store.reader import current_rows
from torus_ray.store.tables import outcome_columns
from torus_ray.systems import load_system, with_measures

HEARD = Path(__file__).parent / "models" / "heard.py"
MEASURES = {"heard-words": ["wer"], "heard8": ["kl", "fad"], "heard-vector": ["fd"], "heard4": ["cm.class_argmax4"]}
CM, WER, KL = "cm.class_argmax4.heard4", "wer.pooled.heard-words", "kl.clip_mean.ref_gen.heard8"
FAD, FD = "fad.heard8", "fd.heard-vector"
SAID = "low mid high low mid"
TOLERANCE, LEVELS = 1e-3, 1e-3
"""What rates and widths may change: KL, FAD and FD as a share, and the log level of a band in one frame."""
Numbers = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Bench:
    """A folder with a bank of 4 tests in which people say SAID, and with runs on it."""

    folder: Path

    @property
    def ears(self) -> Path:
        return self.folder / "gauge" / "gauge.toml"

    def prompt(self, test: int, stage: str) -> str:
        return load_bank(self.folder / "bank").tests[test].stage(stage).prompt

    def run(self, name: str, *words: object, results: str = "results", exits: int = 0, **card: Any) -> Path:
        """`torus run` of a system of this name; the folder of its native arm. card: `bits`, and settings of Scenes."""
        more = {"bits": card.pop("bits")} if "bits" in card else {}
        scenes = host("generate", "edit", "caption", "answer", adapter=f"{HEARD}:Scenes", settings=card)
        system(self.folder / name, {"scenes": scenes}, name=name, **more)
        where = ["--bank", self.folder / "bank", "--results", self.folder / results, "--inline", "--quiet", "--json"]
        measured = [] if "--measures" in words else ["--measures", self.ears]
        call("run", self.folder / name / f"{name}.toml", *where, *measured, *words, exits=exits)
        return next((self.folder / results).glob(f"*/{name}/native"))

    def measure(self, run: Path, exits: int = 0) -> None:
        call("measure", run, "--measures", self.ears, "--inline", "--quiet", "--json", exits=exits)


def call(*words: object, exits: int = 0) -> str:
    """What a command prints, after it has ended as it should."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = _run([str(word) for word in words])
    assert code == exits, err.getvalue()
    return out.getvalue()


def numbers(run: Path, reference: Path | None = None) -> Numbers:
    """`torus score RUN --json`: the numbers of all stages, by their names."""
    (row,) = json.loads(call("score", run, "--json", *(["--reference", reference] if reference else [])))["rows"]
    return {number["convention"]: number for number in row["objective"] if number["stages"] == "S1-S3"}


def self_caption(native: Path) -> Path:
    return native.with_name("self-caption")


def rows(run: Path, table: str) -> pl.DataFrame:
    return current_rows(run, table, list(outcome_columns(table))).sort("unit_id")


def heard(run: Path, measure: str) -> dict[tuple[str, str], Any]:
    """What a head made of each clip: text, or frames x width; None where there is no measure."""
    found = current_rows(run, "measures").filter(pl.col("measure") == measure).sort("unit_id")
    return {
        (row["test"], row["stage"]): row["text"]
        if row["width"] is None
        else np.asarray(row["values"], dtype=np.float64).reshape(-1, row["width"])
        for row in found.iter_rows(named=True)
    }


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("invariance")
    make_canary_bank(folder / "bank", tests=4)
    for path in (folder / "bank").glob("canary-*.json"):
        test = json.loads(path.read_text(encoding="utf-8"))
        for stage in test["stages"].values():
            stage["transcript"] = SAID if stage["transcript"] else None
        if path.stem == "canary-003":
            test["stages"]["edit"]["transcript"] = "(wind)"  # of which the normaliser leaves nothing
        path.write_text(json.dumps(test), encoding="utf-8")
    gauge(folder / "gauge", adapter=f"{HEARD}:Ears", measures=MEASURES)
    return Bench(folder)


@pytest.fixture(scope="module")
def base(bench: Bench) -> Path:
    """The native arm of a measured run; its self-caption arm lies beside it."""
    native = bench.run("base")
    bench.run("base", "--reference", native)
    return native


@pytest.fixture(scope="module")
def bare(bench: Bench) -> Path:
    """The same runs in a folder of their own, not measured."""
    return bench.run("base", "--measures", "none", results="bare")


def assert_same(native: Path, other: Path) -> None:
    """Both arms have the rows of both arms of another run, unit by unit, and their numbers."""
    for table in ("renders", "captions", "answers", "measures"):
        for arm in ("native", "self-caption"):
            assert rows(native.with_name(arm), table).equals(rows(other.with_name(arm), table)), (arm, table)
    assert numbers(self_caption(native), native) == numbers(self_caption(other), other)


def test_the_clips_have_something_to_measure(base: Path) -> None:
    found = numbers(self_caption(base))
    assert all(found[name]["value"] > 0.01 for name in (CM, WER, KL, FAD, FD))
    assert 0 < found[CM]["value"] < 100
    assert (found[WER]["n"], found[FD]["n"]) == (5, 12)


def test_the_same_command_elsewhere_leaves_the_same_rows(bench: Bench, base: Path) -> None:
    assert_same(bench.run("base", results="again"), base)


def test_later_tests_first_leave_the_same_rows(bench: Bench, base: Path) -> None:
    bench.run("base", "--tests", "canary-00[23]", results="later")
    native = bench.run("base", "--tests", "canary-00[01]", results="later")
    assert_same(native, base)


def test_tests_in_reverse_order_leave_the_same_rows(bench: Bench, base: Path, tmp_path: Path) -> None:
    """No option of the command turns the order round: this is what it calls."""
    bank = load_bank(bench.folder / "bank")
    made = with_measures(load_system(str(bench.folder / "base" / "base.toml")), [load_system(str(bench.ears))])
    options = RunOptions(tmp_path, bank.tests[::-1], (Arm("self-caption"), Arm("native")), opening=Opening(inline=True))
    assert_same(run_system(made, bank, options).runs["native"], base)


def test_measured_later_is_measured_alike(bench: Bench, base: Path, bare: Path, tmp_path: Path) -> None:
    shutil.copytree(bare.parents[1], tmp_path / "later" / bare.parents[1].name)
    later = next((tmp_path / "later").glob("*/base"))
    bench.measure(later)
    assert rows(later / "native", "measures").equals(rows(base, "measures"))
    assert numbers(later / "self-caption", later / "native") == numbers(self_caption(base), base)


@pytest.mark.parametrize(("stage", "damage"), [("counterfactual", b"no FLAC at all"), ("edit", None)])
def test_a_clip_that_is_corrupt_or_gone_takes_no_other_with_it(
    bench: Bench, base: Path, bare: Path, tmp_path: Path, stage: str, damage: bytes | None
) -> None:
    """The counterfactual clip of the first test is the first of the set in the order in which sets are read."""
    shutil.copytree(bare.parents[1], tmp_path / "bad" / bare.parents[1].name)
    native = next((tmp_path / "bad").glob("*/base/native"))
    place = ("canary-000", stage)
    renders = current_rows(self_caption(native), "renders")
    (clip,) = renders.filter(pl.col("test") == place[0], pl.col("stage") == stage)["clip"]
    file = clip_path(self_caption(native), clip)
    file.unlink()
    if damage:
        file.write_bytes(damage)
    bench.measure(native)
    bench.measure(self_caption(native), exits=1)
    found, whole = numbers(self_caption(native), native), numbers(self_caption(base), base)
    for name in (KL, FAD, FD):
        assert (found[name]["n"], found[name]["expected"], found[name]["failed"]) == (11, 12, 1)
        assert found[name]["details"]["why"] == {"clip_damaged": 1}
    ours, theirs = heard(self_caption(base), "heard-vector"), heard(base, "heard-vector")
    kept = np.concatenate([vector for at, vector in ours.items() if at != place])
    assert found[FD]["value"] == pytest.approx(frechet_distance(kept, np.concatenate(list(theirs.values()))))
    # Nothing was said: its five words are five errors, whatever was heard before.
    words = heard(self_caption(base), "heard-words")[place].split()
    right = sum(a == b for a, b in zip(words, SAID.split(), strict=True))
    assert found[WER]["details"]["errors"] >= whole[WER]["details"]["errors"] + min(right, 1)
    assert (found[WER]["n"], found[WER]["expected"], found[WER]["details"]["words"]) == (5, 5, 25)
    assert (found[CM]["n"], found[CM]["expected"]) == (12, 12)
    assert found[CM]["value"] <= whole[CM]["value"]
    assert found[CM]["details"]["confusion"]["speech>none"] == 1


def test_swapped_sides_are_one_distance_and_another_divergence(base: Path) -> None:
    there, back = numbers(self_caption(base), base), numbers(base, self_caption(base))
    for name in (FAD, FD):
        assert there[name]["value"] == pytest.approx(back[name]["value"], rel=1e-9)
    assert there[KL]["value"] != pytest.approx(back[KL]["value"], rel=1e-3)
    other = there[KL]["details"]["others"]["kl.clip_mean.gen_ref.heard8"]
    assert other == pytest.approx(back[KL]["value"], abs=1e-4)  # eps stands on the other side


def test_a_run_against_its_own_pack_is_zero_and_against_itself_a_dash(base: Path, tmp_path: Path) -> None:
    call("reference", "pack", base, "--out", tmp_path / "pack")
    found, own = numbers(base, tmp_path / "pack"), numbers(base, base)
    assert [found[name]["value"] for name in (FAD, FD)] == pytest.approx([0, 0], abs=1e-9)
    assert found[KL]["value"] == pytest.approx(-8e-6, abs=1e-6)
    assert {(own[name]["value"], own[name]["reason"]) for name in (KL, FAD, FD)} == {(None, "is_reference")}


def test_another_system_with_the_same_clips_is_at_no_distance(bench: Bench, base: Path) -> None:
    found = numbers(bench.run("twin", "--arms", "native", "--reference", base))
    assert [found[name]["value"] for name in (FAD, FD)] == pytest.approx([0, 0], abs=1e-9)
    assert found[KL]["value"] == pytest.approx(-8e-6, abs=1e-6)
    assert found[CM]["value"] == numbers(base)[CM]["value"]


def test_a_clip_of_twelve_seconds_measured_twice_gives_the_same(bench: Bench, base: Path) -> None:
    odd = {bench.prompt(1, "edit"): "twelve seconds"}
    asked = ("--arms", "native", "--limit", "2")
    beside = bench.run("long", *asked, odd=odd)
    after = bench.run("long", *asked, "--measures", "none", results="long-after", odd=odd)
    bench.measure(after)
    assert rows(after, "measures").equals(rows(beside, "measures"))
    place = ("canary-001", "edit")
    assert heard(after, "heard8")[place].shape == (12, 8)
    assert numbers(after, base) == numbers(beside, base)


# Every rate, channel count and width beside the plain one; the real heads hear more (tests/actors/embedded_measures).
FORMATS = [(16_000, 2, 24), (44_100, 1, 24), (48_000, 2, 16)]


@pytest.fixture(scope="module")
def plain(bench: Bench, base: Path) -> tuple[Numbers, Mapping[Any, Any]]:
    """Numbers and frames of three tests at 16 kHz, one channel, 16 bits."""
    run = bench.run("plain", "--arms", "native", "--limit", "3")
    return numbers(run, self_caption(base)), heard(run, "heard8")


@pytest.mark.parametrize(("rate_hz", "channels", "bits"), FORMATS)
def test_one_sound_in_any_format_has_one_row_of_numbers(
    bench: Bench, base: Path, plain: tuple[Numbers, Mapping[Any, Any]], rate_hz: int, channels: int, bits: int
) -> None:
    card = {"rate_hz": rate_hz, "channels": channels, "bits": bits}
    run = bench.run(f"f{rate_hz}-{channels}-{bits}", "--arms", "native", "--limit", "3", **card)
    found, (expected, levels) = numbers(run, self_caption(base)), plain
    assert [found[name]["value"] for name in (CM, WER)] == [expected[name]["value"] for name in (CM, WER)]
    for name in (KL, FAD, FD):
        assert found[name]["value"] == pytest.approx(expected[name]["value"], rel=TOLERANCE)
    for place, frames in heard(run, "heard8").items():
        assert np.abs(frames - levels[place]).max() < LEVELS


@pytest.fixture(scope="module")
def odd(bench: Bench, base: Path) -> Path:
    """Two speech tests and a music test with clips of every odd kind; one of NaN, so that the command ends with 1."""
    kinds = {
        (0, "generation"): "silent",
        (0, "edit"): "opposite",
        (0, "counterfactual"): "short",
        (3, "generation"): "twelve minutes",
        (3, "counterfactual"): "nan",
    }
    told = {bench.prompt(test, stage): kind for (test, stage), kind in kinds.items()}
    return bench.run("odd", "--arms", "native", "--reference", base, exits=1, odd=told, rate_hz=8_000)


def test_what_odd_clips_are_called(odd: Path) -> None:
    found = {
        (row["test"], row["stage"]): row
        for row in current_rows(odd, "renders").iter_rows(named=True)
        if row["test"] in ("canary-000", "canary-003")
    }
    assert found["canary-000", "generation"]["silent"]
    assert not found["canary-000", "edit"]["silent"]  # of two channels; their mean is
    assert found["canary-000", "counterfactual"]["too_short"]
    assert found["canary-003", "generation"]["duration_s"] == 720
    broken = found["canary-003", "counterfactual"]
    assert (broken["status"], broken["reason"], broken["clip"]) == ("failed", "not_finite", None)


def test_odd_clips_in_wer(odd: Path) -> None:
    words = heard(odd, "heard-words")
    assert words["canary-000", "generation"] == words["canary-000", "edit"] == ""
    assert len(words["canary-003", "generation"].split()) == 1440
    found = numbers(odd)[WER]
    # Silence, opposite channels and NaN are five errors each; "(wind)" has no words and is left out.
    assert (found["n"], found["expected"], found["failed"]) == (5, 5, 1)
    assert found["details"]["why"] == {"no_clip": 1}
    assert found["details"]["words"] == 25
    assert found["details"]["empty_share"] == 3 / 5
    assert found["details"]["looped"] == 1
    assert found["value"] > 1435 / 25
    assert found["details"]["pooled_unlooped"] == pytest.approx((5 + 5 + 5 + 4) / 20)


def test_odd_clips_in_kl_fad_and_fd(odd: Path) -> None:
    found = numbers(odd)
    # No window up to 0.15 s: the short clip has no KL.
    assert (found[KL]["n"], found[KL]["expected"], found[KL]["failed"]) == (10, 12, 1)
    for name in (FAD, FD):
        assert (found[name]["n"], found[name]["expected"], found[name]["failed"]) == (11, 12, 1)
    # 2 s and 2.5 s are two frames, padded 30 ms one, 12 minutes 750.
    assert found[FAD]["details"]["rows"][0] == 9 * 2 + 1 + 750
    for name in (KL, FAD, FD):
        assert found[name]["details"]["why"] == {"no_clip": 1}
        assert np.isfinite(found[name]["value"])


def test_odd_clips_in_cm(odd: Path) -> None:
    found = numbers(odd)[CM]
    assert (found["n"], found["expected"], found["failed"]) == (12, 12, 1)
    assert found["details"]["confusion"]["speech>none"] == 1
    assert found["value"] == pytest.approx(100 * found["details"]["hits"] / 12)


def test_odd_clips_are_counted_where_the_table_is_printed(odd: Path) -> None:
    text = call("report", odd)
    assert "10/12" in text
    assert "11/12" in text
    call("verify", odd)
