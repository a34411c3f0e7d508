from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.store.sample import manifest
from torus_ray.errors import InputError
from torus_ray.store import write_manifest
from torus_ray.store.files import write_atomic
from torus_ray.store.layout import find_runs, parse_part, parts_in, run_folder, write_snapshot


def test_a_run_lies_under_bank_system_and_arm(tmp_path: Path) -> None:
    run = run_folder(tmp_path, "torus-open-48", "0123456789abcdef", "pocket", "native.seed1")
    assert run == tmp_path / "torus-open-48@01234567" / "pocket" / "native.seed1"


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "a b"])
def test_a_name_that_leaves_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be a folder name"):
        run_folder(tmp_path, "bank", "0" * 64, name, "native")


def test_runs_are_found_from_every_level(tmp_path: Path) -> None:
    first = run_folder(tmp_path, "bank", "0" * 64, "a", "native")
    second = run_folder(tmp_path, "bank", "0" * 64, "b", "native")
    for run in (second, first):
        write_manifest(run, manifest())
    assert find_runs(first) == [first]
    assert find_runs(first.parent) == [first]
    assert find_runs(first.parent.parent) == [first, second]
    assert find_runs(tmp_path) == [first, second]
    assert find_runs(tmp_path / "nothing") == []


def test_the_snapshot_is_written_once_and_never_replaced_by_another(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path / "bank@0", gzip.compress(b"tests", mtime=1))
    first = path.read_bytes()
    assert write_snapshot(tmp_path / "bank@0", gzip.compress(b"tests", mtime=2)) == path
    assert path.read_bytes() == first
    with pytest.raises(InputError, match="another bank"):
        write_snapshot(tmp_path / "bank@0", gzip.compress(b"other tests"))


def test_parts_sort_by_epoch_then_number_and_temps_are_none(tmp_path: Path) -> None:
    for name in (
        "000002-000001.parquet",
        "000001-000010.parquet",
        "000001-000009.parquet",
        ".tmp-1-000003-000001.parquet",
    ):
        (tmp_path / name).touch()
    assert parts_in(tmp_path) == [(1, 9), (1, 10), (2, 1)]
    assert parse_part("1000000-000001.parquet") == (1_000_000, 1)


def test_a_write_that_fails_leaves_the_old_content_and_no_temp(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def fail() -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_atomic(path, b"new", before_rename=fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
