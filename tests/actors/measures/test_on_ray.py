"""A run on Ray whose clips are measured by all heads at once, each in its own environment, over tiny random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.actors.measures.tiny import HEADS, with_tiny_weights
from tests.engine.systems import SIMULATED, canary_bank, host, system, table
from torus_ray.cli.measuring import write_numbers
from torus_ray.engine.opening import Opening
from torus_ray.engine.session import RunOptions, measure_runs, run_system
from torus_ray.protocol.graph import Arm
from torus_ray.store.manifest import read_manifest
from torus_ray.store.reader import current_rows
from torus_ray.systems import System, SystemCard, with_measures

ARMS = (Arm("native"), Arm("self-caption"))


MEASURES = {
    "whisper-large-v3": None,
    "clap512": 4,
    "clap512.words": 4,
    "clap512.clip": 512,
    "passt527": 527,
    "vggish128.preact": 128,
    "gudgud96": 128,
}


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> list[System]:
    return [with_tiny_weights(tiny, tmp_path_factory.mktemp(tiny.card)) for tiny in HEADS]


@pytest.mark.ray
@pytest.mark.timeout(900)
def test_all_heads_measure_a_run_as_its_clips_appear(
    heads: list[System],
    ray_address: str,
    tmp_path: Path,
) -> None:
    bank = canary_bank(tmp_path / "bank", tests=3)
    fake = system(tmp_path, {"toy": host(adapter=f"{SIMULATED}:Simulated", settings={"clip_s": 2.0, "noise": True})})
    told: list[str] = []
    options = RunOptions(
        tmp_path / "results", bank.tests, ARMS, opening=Opening(address=ray_address), reference="toy/self-caption"
    )
    result = run_system(
        with_measures(fake, heads), bank, options, tell=told.append, conclude=write_numbers(told.append)
    )
    rows = table(result, "measures")
    assert set(rows["status"]) == {"ok"}, (told, rows.filter(pl.col("status") != "ok")["reason"].unique().to_list())
    assert set(rows["measure"]) == set(MEASURES)
    for measure, width in MEASURES.items():
        assert set(rows.filter(pl.col("measure") == measure)["width"]) == {width}
    frames = rows.filter(pl.col("measure") == "vggish128.preact")["values"].list.len().unique().to_list()
    assert frames == [2 * 128], "two seconds hold two examples"
    _each_in_its_own_environment(result.runs["native"])
    _numbers_are_there(result.runs["native"])
    _nothing_is_left_to_measure(heads, bank, options)


def _each_in_its_own_environment(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert manifest is not None
    used = {Path(head.environment).stem.removesuffix("-cpu") for head in manifest.heads.values()}
    assert used == {"inherit", *(tiny.environment for tiny in HEADS)}
    digests = [head.observed["weights_sha256"] for name, head in manifest.heads.items() if name.endswith(".measure")]
    assert len(set(digests)) == len(HEADS)


def _numbers_are_there(folder: Path) -> None:
    rows = current_rows(folder, "distances").filter(pl.col("stages") == "S1-S3")
    numbers = {row["convention"]: row for row in rows.iter_rows(named=True)}
    for column in (
        "cm.argmax4.clap512",
        "cm.argmax4.clap512.words",
        "wer.pooled.whisper-large-v3",
        "kl.clip_mean.ref_gen.passt527",
        "fad.vggish128.preact",
        "fad.gudgud96",
        "fd.clap512.clip",
    ):
        assert numbers[column]["value"] is not None, (column, numbers[column])
        assert numbers[column]["n"] > 0


def _nothing_is_left_to_measure(heads: list[System], bank: Any, options: RunOptions) -> None:
    """`torus measure` of the same run asks no head again."""
    bare = System(SystemCard.model_construct(name="toy", title="toy", hosts={}), {})
    assert measure_runs(with_measures(bare, heads), bank, options).computed == 0
