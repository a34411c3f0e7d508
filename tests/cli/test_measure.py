"""`torus run --measures`, `torus measure`, `torus reference pack`, `--reference`, `--published`: through the command
line's own entry, with a toy that measures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.canary import make_canary_bank
from tests.cli.conftest import Cli
from tests.engine.systems import gauge, system
from torus_ray.cli import _run
from torus_ray.store import LocalRunStore
from torus_ray.store.manifest import read_manifest
from torus_ray.store.reader import current_rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with cards, a bank of 6 tests, and `results`: both arms measured against the native one."""
    folder = tmp_path_factory.mktemp("measure")
    make_canary_bank(folder / "bank")
    system(folder / "toy")
    gauge(folder / "gauge")
    gauge(folder / "other", settings={"accent": "!"})
    command = ["run", folder / "toy" / "toy.toml", "--inline", "--bank", folder / "bank", "--results"]
    told = ["--measures", folder / "gauge" / "gauge.toml", "--quiet", "--json"]
    assert _run([str(word) for word in [*command, folder / "results", *told]]) == 0
    native = next((folder / "results").glob("*/toy/native"))
    assert _run([str(word) for word in [*command, folder / "results", *told, "--reference", native]]) == 0
    return folder


@pytest.fixture
def mine(made: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    shutil.copytree(made, tmp_path / "made")
    return tmp_path / "made"


def toy(folder: Path, arm: str = "") -> Path:
    return next((folder / "results").glob("*/toy")) / arm


def objective(out: str) -> dict[str, dict[str, Any]]:
    """Arm -> number of all stages by its name, from the JSON of run or score."""
    rows = json.loads(out)
    rows = rows["table"] if "table" in rows else rows["rows"]
    return {row["arm"]: {n["convention"]: n for n in row["objective"] if n["stages"] == "S1-S3"} for row in rows}


def test_the_row_of_both_arms_is_complete(made: Path, cli: Cli) -> None:
    code, out, _ = cli("score", made / "results", "--json")
    assert code == 0
    arms = objective(out)
    for arm in ("native", "self-caption"):
        assert arms[arm]["cm.class_argmax4.toy4"]["value"] is not None
        assert arms[arm]["wer.pooled.toy-words"]["n"] == 6
    distances = ("kl.clip_mean.ref_gen.toy8", "fad.toy8", "fd.toy-vector")
    assert {arms["native"][name]["reason"] for name in distances} == {"is_reference"}
    for name in distances:
        number = arms["self-caption"][name]
        assert (number["n"], number["expected"], number["reference"]) == (18, 18, "toy/native")
    _, text, _ = cli("report", made / "results")
    lines = text.splitlines()
    heading = lines.index("Objective metrics")
    assert lines[heading + 1].split() == ["arm", "CM", "WER", "KL", "FAD", "FD"]
    assert lines[heading + 3].split()[-3:] == ["-", "-", "-"]
    assert "distances to toy/native" in text.replace("\n", " ")
    assert max(map(len, lines)) <= 100
    assert "fad.toy8" in text


def test_numbers_are_kept_as_rows_and_verified(mine: Path, cli: Cli) -> None:
    rows = current_rows(toy(mine, "self-caption"), "distances")
    assert set(rows["stages"]) == {"S1-S3", "S2+S3"}
    assert cli("verify", toy(mine))[0] == 0
    mine_is = (pl.col("convention") == "fad.toy8") & (pl.col("stages") == "S1-S3") & pl.col("value").is_not_null()
    bent = rows.filter(mine_is).row(0, named=True)
    with LocalRunStore(toy(mine, "self-caption")) as store:
        store.append("distances", [{**bent, "value": bent["value"] + 0.5}])
    code, out, _ = cli("verify", toy(mine, "self-caption"))
    assert code == 1
    assert [line.split(":")[0] for line in out.splitlines()[:-1]] == ["distance"]
    assert "fad.toy8" in out


def test_the_same_command_again_writes_nothing(mine: Path, cli: Cli) -> None:
    before = read_manifest(toy(mine, "native"))
    words = ["--bank", mine / "bank", "--measures", mine / "gauge" / "gauge.toml", "--inline", "--quiet"]
    code, out, _ = cli("run", mine / "toy" / "toy.toml", "--results", mine / "results", *words)
    assert code == 0
    assert "nothing to do" in out
    after = read_manifest(toy(mine, "native"))
    assert before is not None
    assert after is not None
    assert after.model_dump() == before.model_dump()
    assert after.reference == "toy/native"


def test_a_run_without_measures_gets_them_later(mine: Path, cli: Cli) -> None:
    words = ["--bank", mine / "bank", "--inline", "--quiet", "--limit", 3]
    assert cli("run", mine / "toy" / "toy.toml", "--results", mine / "plain", *words)[0] == 0
    (plain,) = (mine / "plain").glob("*/toy")
    _, out, _ = cli("report", plain)
    assert "Objective" not in out
    code, _, err = cli("measure", plain)
    assert code == 2
    assert "--measures embedded" in err
    card = mine / "gauge" / "gauge.toml"
    code, out, _ = cli("measure", plain, "--measures", card, "--reference", f"{plain}:native", "--inline", "--json")
    assert code == 0
    assert objective(out)["self-caption"]["fd.toy-vector"]["n"] == 9
    assert cli("verify", plain)[0] == 0


def test_another_head_measures_anew_and_its_numbers_do_not_mix(mine: Path, cli: Cli) -> None:
    words = ["--measures", mine / "other" / "gauge.toml", "--inline", "--json"]
    code, out, _ = cli("measure", toy(mine, "self-caption"), *words)
    assert code == 0
    number = objective(out)["self-caption"]["fad.toy8"]
    assert (number["value"], number["reason"]) == (None, "reference_by_another_head")
    code, out, _ = cli("measure", toy(mine, "native"), *words)
    assert code == 0
    _, out, _ = cli("score", toy(mine), "--json")
    assert objective(out)["self-caption"]["fad.toy8"]["value"] is not None


def test_a_reference_pack_gives_the_numbers_of_its_run_without_audio(mine: Path, cli: Cli, tmp_path: Path) -> None:
    pack = tmp_path / "native.parquet"
    code, out, _ = cli("reference", "pack", toy(mine, "native"), "--out", pack)
    assert code == 0
    assert f"written: {pack} (36 measures" in out
    by_run = objective(cli("score", toy(mine, "self-caption"), "--json")[1])["self-caption"]
    shutil.rmtree(toy(mine, "native"))
    by_pack = objective(cli("score", toy(mine, "self-caption"), "--reference", pack, "--json")[1])["self-caption"]
    for name in ("kl.clip_mean.ref_gen.toy8", "fad.toy8", "fd.toy-vector", "mmd2.rbf_median.toy-vector"):
        assert by_pack[name]["value"] == pytest.approx(by_run[name]["value"], rel=1e-12)
        assert by_pack[name]["reference"].startswith("pack:")
    # Not a word of what was said, nothing of the bank but its hash
    content = pq.read_table(pack)
    assert set(content["measure"].to_pylist()) == {"toy8", "toy-vector"}
    assert content["text"].null_count == content.num_rows


@pytest.mark.parametrize("damage", ["cut", "text", "bank"])
def test_a_bad_reference_is_an_error_that_says_so(mine: Path, cli: Cli, tmp_path: Path, damage: str) -> None:
    pack = tmp_path / "native.parquet"
    cli("reference", "pack", toy(mine, "native"), "--out", pack)
    if damage == "cut":
        pack.write_bytes(pack.read_bytes()[:-50])
    if damage == "text":
        pack.write_text("no pack")
    if damage == "bank":
        table = pq.read_table(pack)
        told = json.loads(table.schema.metadata[b"torus.reference"])
        told["bank_hash"] = "0" * 64
        pq.write_table(table.replace_schema_metadata({b"torus.reference": json.dumps(told).encode()}), pack)
    code, _, err = cli("score", toy(mine, "self-caption"), "--reference", pack)
    assert code == 2
    assert ("another bank" if damage == "bank" else "not a reference pack") in err


def test_wrong_places_and_words_are_told(made: Path, cli: Cli) -> None:
    for words, said in (
        (["score", toy(made), "--reference", made / "nowhere"], "no reference at"),
        (["reference", "pack", toy(made)], "holds 2 runs"),
        (["measure", toy(made), "--measures", "nobody"], "no system is called"),
        (["measure", toy(made), "--measures", made / "toy" / "toy.toml"], "measures nothing"),
        (["report", toy(made), "--published", "--format", "csv"], "no part of a CSV"),
        (["report"], "no run is named"),
        (["report", "--published", "--by", "stage"], "no run is named"),
        (["run", "embedded"], "only measures"),
    ):
        code, _, err = cli(*words)
        assert code == 2, words
        assert said in err, words


def test_the_paper_stands_beside_only_when_asked_and_says_what_it_is(made: Path, cli: Cli) -> None:
    _, plain, _ = cli("report", toy(made))
    assert "Audex" not in plain
    for way in ("terminal", "markdown"):
        _, out, _ = cli("report", toy(made), "--published", "--format", way)
        assert "Another bank: not comparable" in out
        assert "63.2±6.3" in out


def test_the_paper_can_be_seen_without_a_run(tmp_path: Path, cli: Cli) -> None:
    for way in ("terminal", "markdown"):
        code, out, _ = cli("report", "--published", "--format", way)
        assert code == 0
        assert "Another bank: not comparable" in out
        assert "63.2±6.3" in out
        assert "which are not published" in out
        assert cli("report", "--published", "--format", way, "--out", tmp_path / way)[0] == 0
        assert (tmp_path / way).read_text(encoding="utf-8") == out


def test_what_only_measures_has_no_arms(made: Path, cli: Cli) -> None:
    card = made / "gauge" / "gauge.toml"
    assert "arms: none" in cli("systems", card)[1]
    (told,) = json.loads(cli("systems", card, "--json")[1])
    assert told["arms"] == []


def test_csv_has_every_number_unrounded(made: Path, cli: Cli) -> None:
    _, out, _ = cli("report", toy(made), "--format", "csv")
    rows = pl.read_csv(out.encode(), infer_schema_length=None).filter(pl.col("by") == "objective")
    fad = rows.filter((pl.col("group") == "fad.toy8") & (pl.col("arm") == "self-caption"))
    assert set(fad["stages"]) == {"S1-S3", "S2+S3"}
    assert fad["reference"].to_list() == ["toy/native"] * 2
    assert fad["n"].to_list() == [18, 12]


def test_show_tells_of_a_measure(made: Path, cli: Cli) -> None:
    code, out, _ = cli("show", toy(made, "native"), "canary-000/edit/measure:toy8")
    assert code == 0
    assert "values: 3 x 8: " in out
    assert "flags: padded" in out


def test_the_plan_counts_measures(made: Path, cli: Cli) -> None:
    words = ["--bank", made / "bank", "--measures", made / "gauge" / "gauge.toml", "--plan"]
    code, out, _ = cli("run", made / "toy" / "toy.toml", *words)
    assert code == 0
    assert "arm native: 18 renders, 54 answers, 60 measures" in out
