"""A run on Ray whose clips are measured by all heads at once, each in its own environment, over tiny random weights."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.actors.measures.environments import REPOSITORY, make, variables
from tests.engine.conftest import ray_address, ray_cluster  # noqa: F401
from tests.engine.systems import SIMULATED, canary_bank, host, system, table
from torus_ray.cli.measuring import write_numbers
from torus_ray.engine.opening import Opening
from torus_ray.engine.session import RunOptions, measure_runs, run_system
from torus_ray.protocol.graph import Arm
from torus_ray.store.manifest import read_manifest
from torus_ray.store.reader import current_rows
from torus_ray.systems import System, SystemCard, load_system, with_measures

ARMS = (Arm("native"), Arm("self-caption"))


@dataclass(frozen=True)
class Tiny:
    """A card of the project with random weights in the place of its own. made_by: what its own tests make them with."""

    card: str
    environment: str
    made_by: str
    weights: tuple[str, ...] = ("model",)
    settings: Mapping[str, Any] = field(default_factory=dict)


PASST = {"embed_dim": 24, "depth": 1, "num_heads": 2}
HEADS = (
    Tiny("whisper-large-v3", "metrics-asr-clap", "test_whisper:checkpoint"),
    Tiny("clap", "metrics-asr-clap", "test_clap:checkpoint"),
    Tiny(
        "passt",
        "metrics-passt",
        "test_passt:weights",
        settings={"network": PASST},
    ),
    Tiny("vggish", "metrics-vggish", "test_vggish:weights"),
    Tiny("fad.gudgud96", "metrics-parity", "test_parity:hub_folder", weights=("hub",)),
)
MEASURES = {
    "whisper-large-v3": None,
    "clap512": 4,
    "clap512.words": 4,
    "clap512.clip": 512,
    "passt527": 527,
    "vggish128.preact": 128,
    "gudgud96": 128,
}
MAKE = """
import importlib, pathlib, sys, types
sys.modules["tests"] = types.ModuleType("tests")  # laion-clap installs a package of this name
sys.modules["tests"].__path__ = ["tests"]
module, _, function = sys.argv[1].partition(":")
print(getattr(importlib.import_module("tests.actors.measures." + module), function)(pathlib.Path(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> list[System]:
    return [_with_tiny_weights(tiny, tmp_path_factory.mktemp(tiny.card)) for tiny in HEADS]


def _with_tiny_weights(tiny: Tiny, folder: Path) -> System:
    spec, python = make(tiny.environment)
    command = [str(python), "-c", MAKE, tiny.made_by, str(folder)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=variables(spec))
    card = load_system(tiny.card)
    ((name, spec_of),) = card.hosts.items()
    update = {
        "environment": str(spec.file),
        "settings": dict(tiny.settings),
        "weights": {
            weight: spec_of.card.weights[weight].model_copy(update={"path": told.stdout.split()[-1], "sha256": None})
            for weight in tiny.weights
        },
        "num_gpus": 0.0,
        "memory_gb": 0.5,
    }
    return System(card.card, {name: replace(spec_of, card=spec_of.card.model_copy(update=update))})


@pytest.mark.ray
@pytest.mark.timeout(900)
def test_all_heads_measure_a_run_as_its_clips_appear(
    heads: list[System],
    ray_address: str,  # noqa: F811
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
