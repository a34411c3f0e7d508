from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.store.sample import render, tone
from torus_ray.store import LocalRunStore, bucket_lease
from torus_ray.store.bucket import Bucket
from torus_ray.store.bucket_lease import BucketLease, take_bucket_lease
from torus_ray.store.errors import RunHeld, StoreError
from torus_ray.store.mirror import local_folder

ELSEWHERE = {"token": "t", "beat": 0, "pid": 7, "host": "far-away", "machine": "another", "born": "1", "epoch": 5}


@pytest.fixture
def lease(bucket: Bucket) -> Iterator[BucketLease]:
    taken = take_bucket_lease(bucket, "run")
    yield taken
    taken.release()


def lock(bucket: Bucket) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(bucket.get("run/lock"))
    return told


def write_lock(bucket: Bucket, **told: Any) -> None:
    bucket.put("run/lock", json.dumps(ELSEWHERE | told).encode())


def test_a_second_driver_is_told_who_holds_the_run(bucket: Bucket, lease: BucketLease) -> None:
    with pytest.raises(RunHeld, match=f"process {os.getpid()} .this very process. on ") as held:
        take_bucket_lease(bucket, "run")
    assert held.value.where == bucket.uri("run/lock")
    lease.check()
    lease.release()
    lease.release()
    with pytest.raises(StoreError, match="given back"):
        lease.check()
    again = take_bucket_lease(bucket, "run")
    assert again.epoch == 2
    again.release()


def test_a_process_of_this_machine_holds_the_run_until_it_dies(bucket: Bucket) -> None:
    holder = subprocess.Popen(["sleep", "60"])
    write_lock(bucket, lease_s=30, **bucket_lease._process(holder.pid), pid=holder.pid)
    with pytest.raises(RunHeld, match=f"process {holder.pid} on far-away") as held:
        take_bucket_lease(bucket, "run")
    assert f"kill {holder.pid}" in held.value.mend
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    after = take_bucket_lease(bucket, "run")
    assert after.epoch == 6
    after.release()


def test_a_process_that_hangs_loses_the_run_when_its_lease_ends(bucket: Bucket) -> None:
    write_lock(bucket, lease_s=-5, **bucket_lease._process(os.getpid()), pid=os.getpid())
    after = take_bucket_lease(bucket, "run")
    assert after.epoch == 6
    after.release()


def test_a_lease_of_another_machine_is_taken_when_it_has_not_been_renewed(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_lease, "_LOOK_S", 0.05)
    monkeypatch.setattr(bucket_lease, "_ROUNDING_S", 0.0)
    for wrong in (0.0, 4e9):  # Whatever this machine takes for the time.
        monkeypatch.setattr("time.time", lambda wrong=wrong: wrong)
        write_lock(bucket, lease_s=0.2)
        taken = take_bucket_lease(bucket, "run")
        assert taken.epoch == 6
        taken.release()


def test_a_lease_of_another_machine_that_is_renewed_is_held(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_lease, "_LOOK_S", 0.02)
    write_lock(bucket, lease_s=60)
    looked = threading.Event()
    look = bucket.get_versioned

    def seen(key: str) -> Any:
        found = look(key)
        looked.set()
        return found

    monkeypatch.setattr(bucket, "get_versioned", seen)
    holder = threading.Thread(target=lambda: (looked.wait(30), write_lock(bucket, lease_s=60, beat=1)))
    holder.start()
    with pytest.raises(RunHeld, match="process 7 on far-away"):
        take_bucket_lease(bucket, "run")
    holder.join()
    assert lock(bucket)["beat"] == 1


def test_a_lease_given_back_or_damaged_is_free(bucket: Bucket) -> None:
    write_lock(bucket, released=True)
    taken = take_bucket_lease(bucket, "run")
    assert taken.epoch == 6
    taken.release()
    bucket.put("run/lock", b"half a js")
    taken = take_bucket_lease(bucket, "run")
    assert taken.epoch == 1
    taken.release()


def test_the_epoch_is_above_every_part_ever_written(bucket: Bucket) -> None:
    bucket.put("run/tables/answers/000041-000003.parquet", b"")
    taken = take_bucket_lease(bucket, "run")
    assert taken.epoch == 42
    assert lock(bucket)["epoch"] == 42
    taken.release()


def test_of_two_who_take_it_at_once_one_has_it(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = bucket.objects

    def slow(prefix: str) -> Any:
        write_lock(bucket)  # Somebody else is quicker.
        return listing(prefix)

    monkeypatch.setattr(bucket, "objects", slow)
    with pytest.raises(RunHeld, match="process 7 on far-away"):
        take_bucket_lease(bucket, "run")


def test_it_is_renewed(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed = threading.Event()
    write = bucket.put_if

    def seen(key: str, data: bytes, tag: str | None) -> str | None:
        if json.loads(data)["beat"] == 2:
            renewed.set()
        return write(key, data, tag)

    monkeypatch.setattr(bucket_lease, "RENEW_S", 0.01)
    monkeypatch.setattr(bucket, "put_if", seen)
    taken = take_bucket_lease(bucket, "run")
    assert renewed.wait(30)
    taken.check()
    taken.release()
    assert lock(bucket)["released"]


def test_a_reply_that_is_lost_loses_no_lease(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    write = bucket.put_if

    def unheard(key: str, data: bytes, tag: str | None) -> str | None:
        write(key, data, tag)
        return None

    monkeypatch.setattr(bucket, "put_if", unheard)
    taken = take_bucket_lease(bucket, "run")
    taken._renew()
    taken.check()
    monkeypatch.setattr(bucket, "put_if", write)
    taken._renew()
    taken.check()
    assert lock(bucket)["beat"] == 2
    taken.release()


def test_a_driver_that_has_slept_for_too_long_asks_the_store(
    bucket: Bucket, lease: BucketLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease._renewed -= bucket_lease.LEASE_S
    lease.check()
    assert lock(bucket)["beat"] == 1
    lease._renewed -= bucket_lease.LEASE_S
    write_lock(bucket)
    with pytest.raises(StoreError, match="process 7 on far-away has taken it"):
        lease.check()


@pytest.mark.parametrize("how", ["taken", "removed"])
def test_a_driver_whose_lease_is_gone_writes_nothing_more(bucket: Bucket, how: str) -> None:
    run = local_folder(bucket.uri("run"))
    store = LocalRunStore(run)
    store.append("renders", [render("t1", tone(1))], clips=[tone(1)])
    store.flush()
    if how == "taken":
        write_lock(bucket)
    else:
        bucket.delete(["run/lock"])
    store._lease._renewed -= bucket_lease.LEASE_S  # type: ignore[attr-defined]
    before = list(bucket.objects("run/tables"))
    store.append("renders", [render("t2", None)])
    with pytest.raises(StoreError, match="has taken it" if how == "taken" else "was removed"):
        store.close()
    assert list(bucket.objects("run/tables")) == before
