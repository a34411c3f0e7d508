"""Systems of the toy model, and a run of them: what the tests of the engine share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from tests.canary import make_canary_bank
from torus_ray.bank.load import Bank, load_bank
from torus_ray.engine.opening import Opening
from torus_ray.engine.session import RunOptions, RunResult, run_system
from torus_ray.protocol.graph import Arm
from torus_ray.store.reader import current_rows
from torus_ray.store.tables import outcome_columns
from torus_ray.systems import System, read_card, with_measures

ROOT = Path(__file__).parents[2]
TOY = Path(__file__).parent / "models" / "toy.py"
SIMULATED = ROOT / "actors" / "simulated" / "adapter.py"
ARMS = (Arm("native"), Arm("self-caption"))
ALL_ARMS = (*ARMS, Arm("native", control="muted"), Arm("native", control="swapped"))
OUTCOME_TABLES = ("renders", "captions", "answers", "measures")
MEASURES = {"toy-words": ["wer"], "toy8": ["kl", "fad"], "toy-vector": ["fd"], "toy4": ["cm.class_argmax4"]}
OPERATIONS = ("generate", "edit", "caption", "answer")


def host(*operations: str, adapter: str = f"{TOY}:Toy", **fields: Any) -> dict[str, Any]:
    """One host's card. Resources are small, so that several fit the tests' cluster; `heads` may say more of a head."""
    heads = fields.pop("heads", {})
    return {
        "adapter": adapter,
        "num_cpus": 0.5,
        "memory_gb": 0.2,
        "replicas": 1,
        **fields,
        "heads": {operation: heads.get(operation, {}) for operation in operations or OPERATIONS},
    }


def system(folder: Path, hosts: Mapping[str, Mapping[str, Any]] | None = None, **card: Any) -> System:
    """A system written as a card and read back."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"name": "toy", "title": "Toy", **card, "hosts": hosts or {"toy": host()}}
    path = folder / f"{content['name']}.toml"
    path.write_text("".join(f"{key} = {toml(value)}\n" for key, value in content.items()), encoding="utf-8")
    return read_card(path)


def gauge(folder: Path, **fields: Any) -> System:
    """A card that measures: the toy's measures, on one host. fields: of the host."""
    taken = fields.pop("measures", MEASURES)
    card = host("measure", heads={"measure": {"measures": taken}}, **fields)
    return system(folder, {"gauge": card}, name="gauge")


def measured(made: System, folder: Path, **fields: Any) -> System:
    """The system with the gauge beside it."""
    return with_measures(made, [gauge(folder, **fields)])


def toml(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value)


def canary_bank(folder: Path, tests: int = 6) -> Bank:
    make_canary_bank(folder, tests=tests)
    return load_bank(folder)


def run(made: System, bank: Bank, results: Path, arms: tuple[Arm, ...] = ARMS, **options: Any) -> RunResult:
    """A run; on Ray when an `address` is given, else inline."""
    told = options.pop("told", None)
    opening = Opening(
        inline="address" not in options, address=options.pop("address", None), exact=options.pop("exact", False)
    )
    asked = RunOptions(results, **{"tests": bank.tests, "arms": arms, "opening": opening, **options})
    return run_system(made, bank, asked, tell=told.append if told is not None else print)


def outcomes(result: RunResult) -> dict[tuple[str, str], pl.DataFrame]:
    """What must be equal however a run went: (arm, table) -> rows in the order of their units."""
    return {
        (arm, table): current_rows(folder, table, list(outcome_columns(table))).sort("unit_id")
        for arm, folder in result.runs.items()
        for table in OUTCOME_TABLES
    }


def table(result: RunResult, name: str) -> pl.DataFrame:
    """The rows of all arms."""
    return pl.concat([current_rows(folder, name) for folder in result.runs.values()])


def computed(result: RunResult, name: str) -> pl.DataFrame:
    """Of those, the rows that a head was asked for."""
    return table(result, name).filter(pl.col("reused_from").is_null() & pl.col("head").is_not_null())
