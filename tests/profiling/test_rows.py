"""Rows of profiles: kept as Parquet, advice from them, and what a run will take."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.profiling.attempts import call
from torus_ray.errors import InputError
from torus_ray.profiling.estimate import Measured, estimate, load_seconds, measured_heads
from torus_ray.profiling.picture import draw_profile
from torus_ray.profiling.rows import FOLDER, ProfileRow, advise, read_rows, replicas_advised, write_rows
from torus_ray.store.local import LocalRunStore

MACHINE = {"cpus": 8.0, "gpus": 2.0, "memory_gib": 100.0}
NEEDS = {"cpus": 1.0, "gpus": 0.0, "memory_gib": 2.0}


def row(size: int, rate: float, **more: Any) -> ProfileRow:
    """Ten calls of `size` units, `rate` units a second."""
    told: dict[str, Any] = {"status": "ok", "calls": 10, "units": 10 * size, "busy_s": 10 * size / rate, **more}
    told = {"system": "s", "host": "g", "operation": "caption", "fingerprint": "f", "style": "batch", **told}
    return ProfileRow(size=size, **told)


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [row(1, 2.0, made_at=5.0, memory_gib=1.5, inline=True), row(2, 3.0, status="failed", reason="it raised")]
    write_rows(rows, tmp_path / FOLDER / "s" / "12345678" / "a.parquet")
    assert read_rows(tmp_path, "s") == sorted(rows, key=lambda each: each.made_at)
    assert read_rows(tmp_path, "other") == []


def test_files_that_are_no_profile_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER / "s" / "12345678"
    write_rows([row(1, 2.0)], folder / "a.parquet")
    (folder / "b.parquet").write_bytes(b"PAR1 not quite")
    assert len(read_rows(tmp_path, "s")) == 1


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_rows([row(1, 1.0)], tmp_path / "file" / "a.parquet")


@pytest.mark.parametrize(
    ("rates", "size", "words"),
    [
        ({1: 10.0}, 1, "the only size that went well"),
        ({1: 10.0, 2: 18.0, 4: 30.0}, 4, "3.00 times the rate of 1"),
        ({1: 10.0, 2: 18.0, 4: 30.0, 8: 31.0}, 4, "3.00 times the rate of 1, 8 gives +3%"),
        ({1: 10.0, 2: 9.0, 4: 5.0}, 1, "4 gives -50%"),
    ],
)
def test_the_smallest_size_with_nearly_the_best_rate_is_advised(rates: dict[int, float], size: int, words: str) -> None:
    (advice,) = advise([row(each, rate) for each, rate in rates.items()])
    assert advice.size == size
    assert advice.why == f"{size} a batch (10 calls): {words}"


def test_what_failed_is_no_advice() -> None:
    assert advise([row(1, 1.0, status="failed"), row(2, 9.0, status="skipped", units=0, busy_s=None)]) == []
    (advice,) = advise([row(1, 1.0), row(2, 9.0, status="failed")])
    assert advice.size == 1


@pytest.mark.parametrize(
    ("seen", "needs", "count", "words"),
    [
        (None, {}, 8, "8 CPUs, 1 a replica"),
        (20.0, {}, 4, "80% of 100.0 GiB, 20.0 GiB a replica; its card says 2 GiB, 20.0 GiB were seen"),
        (1.0, {"memory_gib": 30.0}, 2, "80% of 100.0 GiB, 30.0 GiB a replica"),
        (1.0, {"gpus": 0.5}, 4, "2 GPUs, 0.5 a replica"),
        (1.0, {"gpus": 4.0}, 0, "2 GPUs, 4 a replica"),
    ],
)
def test_replicas_are_limited_by_what_is_scarcest(
    seen: float | None, needs: dict[str, float], count: int, words: str
) -> None:
    told, why = replicas_advised([row(1, 1.0, memory_gib=seen)], {**NEEDS, **needs}, MACHINE)
    assert told == count
    assert why == f"{count} replica(s) on this machine: {words}"


def test_the_picture_shows_what_went_well(tmp_path: Path) -> None:
    rows = [row(1, 2.0, model_s=0.5, latency_p50_s=0.6), row(2, 3.0, model_s=0.7, latency_p50_s=0.8)]
    draw_profile([*rows, row(4, 1.0, status="failed")], tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    draw_profile([row(4, 1.0, status="failed")], tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


# --- what a run will take ---------------------------------------------------------------------------------------------

HEADS = {("g", "caption"): Measured(2.0, 10, "a profile"), ("u", "answer"): Measured(1.0, 10, "a profile")}
UNITS = {("g", "caption"): 30, ("u", "answer"): 40}


def test_hosts_that_are_there_together_take_as_long_as_the_slowest_and_turns_add_up() -> None:
    more = {"replicas": {"g": 2, "u": 1}, "loads": {"g": 3, "u": 2}, "load_s": {"g": 5.0, "u": 7.0}}
    told = estimate(UNITS, HEADS, together=True, **more)
    assert (told.seconds, told.start_s, told.unknown) == (40.0, 15.0, ())
    told = estimate(UNITS, HEADS, together=False, **more)
    assert (told.seconds, told.start_s) == (30.0 + 40.0, 3 * 5.0 + 2 * 7.0)


def test_a_head_that_was_never_measured_makes_the_time_unknown() -> None:
    some = {("g", "caption"): HEADS["g", "caption"]}
    told = estimate(UNITS, some, replicas={}, loads={}, load_s={}, together=True)
    assert (told.seconds, told.start_s, told.unknown) == (None, None, (("u", "answer"),))


def test_the_newest_profile_at_its_best_size_goes_before_earlier_runs(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER / "s" / "12345678"
    write_rows([row(1, 10.0, made_at=1.0), row(2, 40.0, made_at=2.0, load_s=3.0)], folder / "a.parquet")
    run = tmp_path / "bank@0123abcd" / "s" / "native"
    attempts = call("g#1", 0, 8, "a", "b", operation="caption") + call("g#1", 10, 12, "c", "d", operation="edit")
    with LocalRunStore(run) as store:
        store.append("renders", [{"unit_id": "a", "status": "ok"}], attempts=attempts)
    (run / "run.json").write_text("{}")
    known = measured_heads(tmp_path, "s", [("g", "caption"), ("g", "edit"), ("g", "answer")])
    assert known == {
        ("g", "caption"): Measured(0.025, 20, "a profile, 2 at once"),
        ("g", "edit"): Measured(1.0, 2, "earlier runs"),
    }
    assert load_seconds(tmp_path, "s") == {"g": 3.0}
    assert measured_heads(tmp_path, "other", [("g", "caption")]) == {}


def test_unit_seconds_and_rates_are_of_what_was_counted() -> None:
    made = row(2, 4.0)
    assert (made.unit_s, made.rate) == (0.25, 4.0)
    assert dataclasses.replace(made, audio_s=50.0).rate == 10.0
    assert dataclasses.replace(made, busy_s=None, units=0).rate is None
