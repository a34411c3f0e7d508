from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.sample import render
from torus_ray.store import LocalRunStore, current_rows, parts
from torus_ray.store.layout import PartName, table_folder
from torus_ray.store.parts import Part, live_parts, merge, merge_candidates, part_bytes, read_parts_list
from torus_ray.store.reader import read_table
from torus_ray.store.tables import to_arrow


def write(run: Path, name: PartName, rows: dict[str, str], table: str = "renders") -> None:
    folder = table_folder(run, table)
    folder.mkdir(parents=True, exist_ok=True)
    full = [{"unit_id": unit, "status": "failed", "message": text} for unit, text in rows.items()]
    (folder / name.file_name).write_bytes(part_bytes(to_arrow(table, full)))


def content(run: Path, table: str = "renders") -> dict[str, str]:
    return dict(current_rows(run, table, ["unit_id", "message"]).rows())


def made(*rows: int | None) -> list[Part]:
    return [Part(PartName(1, at + 1), PartName(1, at + 1), count) for at, count in enumerate(rows)]


def test_small_parts_are_merged_when_there_are_enough() -> None:
    few, many = made(*[3] * (parts.MERGE_PARTS - 1)), made(*[3] * parts.MERGE_PARTS)
    assert merge_candidates(few, everything=False) == ()
    assert merge_candidates(many, everything=False) == many
    large_first = made(40_000, *[3] * parts.MERGE_PARTS)
    assert merge_candidates(large_first, everything=False) == large_first[1:]


def test_merging_stays_small_while_the_run_goes_on_and_takes_all_at_its_end() -> None:
    large = made(*[30_000] * parts.MERGE_PARTS)
    assert merge_candidates(large, everything=False) == ()
    assert merge_candidates(large, everything=True) == large
    assert merge_candidates(made(5), everything=True) == ()


def test_a_broken_part_and_what_is_older_is_left_alone() -> None:
    some = made(5, None, 6, 7)
    assert merge_candidates(some, everything=True) == some[2:]


def test_each_row_is_rewritten_a_few_times_only() -> None:
    live: list[Part] = []
    written = 0
    for seq in range(1, 4001):
        live.append(Part(PartName(1, seq), PartName(1, seq), 3))
        if chosen := merge_candidates(live, everything=False):
            rows = sum(part.rows or 0 for part in chosen)
            written += rows
            live = [*live[: -len(chosen)], Part(PartName(1, seq), chosen[0].name, rows)]
    assert len(live) <= 4 * parts.MERGE_PARTS
    assert written <= 4 * 3 * 4000


def test_a_merge_that_was_cut_short_counts_once(tmp_path: Path) -> None:
    write(tmp_path, PartName(1, 1), {"a": "old", "b": "b"})
    write(tmp_path, PartName(2, 1), {"a": "new"})
    write(tmp_path, PartName(1, 1), {"a": "first"}, "attempts")
    write(tmp_path, PartName(2, 1), {"a": "second"}, "attempts")
    for table in ("renders", "attempts"):
        folder = table_folder(tmp_path, table)
        live, _ = live_parts(folder)
        merge(table, folder, live, PartName(2, 2))
        again, covered = live_parts(folder)
        assert [part.name for part in again] == [PartName(2, 2)]
        assert sorted(covered) == [PartName(1, 1), PartName(2, 1)]
    assert content(tmp_path) == {"a": "new", "b": "b"}
    assert sorted(current_rows(tmp_path, "attempts")["message"]) == ["first", "second"]
    LocalRunStore(tmp_path).close(compact=False)
    assert [path.name for path in table_folder(tmp_path, "renders").iterdir()] == ["000002-000002.parquet"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.one_of(
            st.dictionaries(st.sampled_from("abcdef"), st.text("xyz", max_size=3), min_size=1),
            st.integers(2, 4),  # merge so many of the newest
        ),
        max_size=12,
    )
)
def test_whatever_is_written_and_merged_the_newest_row_of_each_unit_counts(
    steps: list[dict[str, str] | int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = tmp_path_factory.mktemp("run")
    folder = table_folder(run, "renders")
    told: dict[str, str] = {}
    for seq, step in enumerate(steps, 1):
        if isinstance(step, int):
            live, _ = live_parts(folder)
            if len(live) >= step:
                merge("renders", folder, live[-step:], PartName(1, seq))
                if seq % 2:  # sometimes the deletion does not come to pass
                    for part in live[-step:]:
                        (folder / part.name.file_name).unlink()
        else:
            write(run, PartName(1, seq), step)
            told |= step
        assert content(run) == told


def test_a_broken_part_is_named_kept_and_left_out(tmp_path: Path) -> None:
    with LocalRunStore(tmp_path) as store:
        store.append("renders", [render("t1", None)])
    path = next(table_folder(tmp_path, "renders").iterdir())
    path.write_bytes(path.read_bytes()[:-20])
    read = read_table(tmp_path, "renders")
    assert read.broken == (path,)
    assert read.rows.height == 0
    with LocalRunStore(tmp_path) as store:
        store.append("renders", [render("t2", None)])
        store.flush()
        store.append("renders", [render("t3", None)])
    assert path.exists()
    assert current_rows(tmp_path, "renders")["test"].to_list() == ["t2", "t3"]


def test_a_flipped_byte_inside_a_part_is_found_when_it_is_read_and_does_not_stop_a_merge(tmp_path: Path) -> None:
    with LocalRunStore(tmp_path) as store:
        store.append("renders", [render(f"t{number}", None) for number in range(50)])
    path = next(table_folder(tmp_path, "renders").iterdir())
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    assert read_table(tmp_path, "renders").broken == (path,)
    with LocalRunStore(tmp_path) as store:
        store.append("renders", [render("t2", None)])
        store.flush()
    assert path.exists()
    assert current_rows(tmp_path, "renders")["test"].to_list() == ["t2"]


def test_a_reader_beside_the_writer_never_sees_less_or_double(tmp_path: Path) -> None:
    done = threading.Event()
    heights: list[int] = []
    unique: list[bool] = []

    def read() -> None:
        while not done.is_set():
            rows = current_rows(tmp_path, "renders", ["unit_id"])
            heights.append(rows.height)
            unique.append(bool(rows["unit_id"].is_unique().all()))

    with LocalRunStore(tmp_path) as store:
        thread = threading.Thread(target=read)
        thread.start()
        for number in range(100):
            store.append("renders", [render(f"t{number}", None)], urgent=True)
            store.flush()
    done.set()
    thread.join()
    assert heights == sorted(heights)
    assert all(unique)


def test_the_list_of_parts_follows_merges(tmp_path: Path) -> None:
    with LocalRunStore(tmp_path) as store:
        store.append("renders", [render("t1", None)])
        store.flush()
        store.append("renders", [render("t2", None)])
    assert list(read_parts_list(tmp_path)["renders"]) == ["000001-000003.parquet"]
