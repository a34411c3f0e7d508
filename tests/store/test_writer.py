from __future__ import annotations

import dataclasses
import errno
import os
import queue
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.store.sample import answer, encoded_otherwise, render, temps, tone
from torus_ray.store import LocalRunStore, StoreError, current_rows, writer
from torus_ray.store.clips import read_clip
from torus_ray.store.layout import clip_path, parts_in
from torus_ray.store.tables import Row


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_rows_and_clips_are_there_when_the_callback_comes(run: Path) -> None:
    seen: queue.SimpleQueue[tuple[float, list[str], bool]] = queue.SimpleQueue()
    with LocalRunStore(run) as store:
        for number in range(5):
            clip = tone(number)

            def look(at: float, rows: object, clip: str = clip.id) -> None:
                # As another process would: from the files alone.
                seen.put((at, list(current_rows(run, "renders")["clip"]), clip_path(run, clip).exists()))

            before = time.time()
            store.append("renders", [render(f"t{number}", clip)], clips=[clip], on_durable=look, urgent=True)
            at, clips, there = seen.get(timeout=5)
            assert clip.id in clips
            assert there
            assert before <= at <= time.time()


def test_what_waits_is_written_at_once_and_the_rest_gathers(run: Path) -> None:
    with LocalRunStore(run) as store:
        done: queue.SimpleQueue[float] = queue.SimpleQueue()
        store.append("answers", [answer("t1", "q1", None)])
        store.append("renders", [render("t1", None)], on_durable=lambda at, rows: done.put(at), urgent=True)
        done.get(timeout=writer.GROUP_S / 2)
        assert current_rows(run, "answers").height == 0
        store.append("answers", [answer("t1", "q2", None)], on_durable=lambda at, rows: done.put(at))
        done.get(timeout=5)
        assert current_rows(run, "answers").height == 2
        assert len(parts_in(run / "tables" / "answers")) == 1


def test_a_full_group_does_not_wait_for_its_second(run: Path) -> None:
    with LocalRunStore(run) as store:
        done: queue.SimpleQueue[float] = queue.SimpleQueue()
        rows = [answer(f"t{number}", "q1", None) for number in range(writer.GROUP_ROWS)]
        started = time.monotonic()
        store.append("answers", rows, on_durable=lambda at, rows: done.put(at))
        done.get(timeout=5)
        assert time.monotonic() - started < writer.GROUP_S


def test_callbacks_come_once_each_in_order(run: Path) -> None:
    called: list[int] = []
    with LocalRunStore(run) as store:
        for number in range(300):
            row = answer(f"t{number}", "q1", None)
            store.append(
                "answers", [row], on_durable=lambda at, rows, n=number: called.append(n), urgent=number % 7 == 0
            )  # type: ignore[misc]
        store.flush()
        assert called == list(range(300))
        assert store.rows("answers")["test"].to_list() == [f"t{number}" for number in range(300)]


def test_attempts_get_the_time_of_their_units_commit(run: Path) -> None:
    times: list[float] = []
    with LocalRunStore(run) as store:
        attempt = {"unit_id": "u1", "attempt": 1, "status": "ok"}
        store.append(
            "renders",
            [render("t1", None)],
            attempts=[attempt],
            on_durable=lambda at, rows: times.append(at),
            urgent=True,
        )
    assert current_rows(run, "attempts").select("unit_id", "committed_at").rows() == [("u1", times[0])]


def test_the_newest_row_of_a_unit_counts_across_parts_and_openings(run: Path) -> None:
    with LocalRunStore(run) as store:
        store.append("renders", [render("t1", None), render("t2", None)])
    with LocalRunStore(run) as store:
        assert store.epoch == 2
        store.append("renders", [render("t1", tone(1))], clips=[tone(1)])
        store.flush()
        assert dict(store.rows("renders", ["test", "status"]).rows()) == {"t1": "ok", "t2": "failed"}
    assert dict(current_rows(run, "renders", ["test", "status"]).rows()) == {"t1": "ok", "t2": "failed"}


def test_the_row_says_what_the_file_is_even_where_another_encoder_wrote_it(run: Path) -> None:
    clip = tone(1)
    wrong = render("t1", clip, clip_sha256="0" * 64, clip_bytes=1)
    other = dataclasses.replace(clip, data=encoded_otherwise(clip.data))
    assert other.data != clip.data
    told: list[Row] = []
    with LocalRunStore(run) as store:
        store.append("renders", [wrong], clips=[clip])
        store.flush()
        store.append("renders", [render("t2", other)], clips=[other], on_durable=lambda at, rows: told.extend(rows))
    written = current_rows(run, "renders").to_dicts()
    for row in (*written, *told):
        assert read_clip(run, row["clip"], row["clip_sha256"]) == clip.data
        assert row["clip_bytes"] == len(clip.data)
    assert [row["test"] for row in (*written, *told)] == ["t1", "t2", "t2"]


class DiskFull:
    """Stands in for os.fsync; full from the moment it is told so."""

    def __init__(self) -> None:
        self.full, self.fsync = False, os.fsync

    def __call__(self, fd: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.fsync(fd)


@pytest.mark.parametrize("with_clip", [False, True])
def test_a_full_disk_stops_the_store_and_loses_nothing_written(
    run: Path, monkeypatch: pytest.MonkeyPatch, with_clip: bool
) -> None:
    disk = DiskFull()
    monkeypatch.setattr(os, "fsync", disk)
    failures: queue.SimpleQueue[StoreError] = queue.SimpleQueue()
    acknowledged: list[float] = []
    store = LocalRunStore(run, on_failure=failures.put)
    store.append("renders", [render("t1", tone(1))], clips=[tone(1)])
    store.flush()
    disk.full = True
    clip = tone(2) if with_clip else None
    store.append(
        "renders",
        [render("t2", clip)],
        clips=[clip] if clip else [],
        on_durable=lambda at, rows: acknowledged.append(at),
    )
    with pytest.raises(StoreError, match="No space left on device"):
        store.flush()
    told = failures.get(timeout=5)
    assert "free space" in told.mend
    assert str(run) in told.where
    with pytest.raises(StoreError):
        store.append("renders", [render("t3", None)])
    with pytest.raises(StoreError):
        store.close()
    assert acknowledged == []
    assert temps(run) == []
    disk.full = False
    assert current_rows(run, "renders")["test"].to_list() == ["t1"]
    with LocalRunStore(run) as again:
        again.append("renders", [render("t2", None)])
    assert current_rows(run, "renders")["test"].to_list() == ["t1", "t2"]


def test_a_disk_that_fills_while_parts_are_merged_loses_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = DiskFull()
    monkeypatch.setattr(os, "fsync", disk)
    store = LocalRunStore(run)
    for test in ("t1", "t2"):
        store.append("renders", [render(test, None)])
        store.flush()
    disk.full = True
    with pytest.raises(StoreError, match="No space left"):
        store.close()
    disk.full = False
    assert temps(run) == []
    assert current_rows(run, "renders")["test"].to_list() == ["t1", "t2"]
    LocalRunStore(run).close()
    assert len(parts_in(run / "tables" / "renders")) == 1


def test_a_run_folder_that_goes_away_stops_the_store(run: Path) -> None:
    store = LocalRunStore(run)
    run.rename(run.with_name("moved"))
    store.append("renders", [render("t1", None)])
    with pytest.raises(StoreError, match="lock"):
        store.close()


def test_a_body_that_fails_keeps_its_error_and_its_rows(run: Path) -> None:
    def body() -> None:
        with LocalRunStore(run) as store:
            store.append("renders", [render("t1", None)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        body()
    assert current_rows(run, "renders").height == 1
    LocalRunStore(run).close()


def test_mistakes_in_rows_are_named(run: Path) -> None:
    with LocalRunStore(run) as store:
        with pytest.raises(ValueError, match=r"no column .'colour'"):
            store.append("renders", [render("t1", None, colour="red")])
        with pytest.raises(ValueError, match="unknown table"):
            store.append("paintings", [])
        with pytest.raises(ValueError, match="no unit_id"):
            store.append("renders", [{"status": "ok"}])
    store = LocalRunStore(run)
    store.append("renders", [render("t1", None), render("t2", None, seed="zero")])
    with pytest.raises(
        StoreError, match=r"renders\.seed of unit 'sys/native/t2/generation/generate' is int64, got 'zero'"
    ):
        store.close()


def test_appending_waits_while_too_much_is_unwritten(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_WAITING_BYTES", 10_000)
    gate = threading.Event()

    def hold(point: str) -> None:
        if point == "part_written":
            gate.wait(10)

    appended: list[int] = []
    with LocalRunStore(run, fault=hold) as store:

        def produce() -> None:
            for number in range(20):
                clip = tone(number)
                store.append("renders", [render(f"t{number}", clip)], clips=[clip], urgent=True)
                appended.append(len(clip.data))

        thread = threading.Thread(target=produce)
        thread.start()
        deadline = time.monotonic() + 5
        while sum(appended) < 5_000 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        assert len(appended) < 20
        assert sum(appended) <= 10_000
        gate.set()
        thread.join(10)
    assert current_rows(run, "renders").height == 20


def test_closed_is_closed(run: Path) -> None:
    store = LocalRunStore(run)
    store.close()
    store.close()
    with pytest.raises(RuntimeError, match="closed"):
        store.append("renders", [render("t1", None)])


def test_many_small_commits_become_few_parts(run: Path) -> None:
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with LocalRunStore(run) as store:
        for number in range(80):
            store.append("renders", [render(f"t{number}", None)], on_durable=lambda at, rows: done.put(at), urgent=True)
            done.get(timeout=5)
        store.flush()
        assert len(parts_in(run / "tables" / "renders")) < 40
        assert store.rows("renders").height == 80
    assert len(parts_in(run / "tables" / "renders")) == 1
    assert current_rows(run, "renders")["test"].to_list() == [f"t{number}" for number in range(80)]
