from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.store.s3 import Server
from tests.store.sample import answer, encoded_otherwise, manifest, render, tone
from torus_ray.store import ClipDamaged, ClipSource, LocalRunStore, StoreError, current_rows
from torus_ray.store.bucket import Bucket, open_bucket
from torus_ray.store.clips import read_clip
from torus_ray.store.index import ReuseIndex
from torus_ray.store.layout import clip_path, find_runs, parts_in, write_snapshot
from torus_ray.store.mirror import clip_file, local_folder, look_into, mirror_of, named
from torus_ray.store.place import place_of


def write(run: Path, tests: Sequence[str] = ("t1",), **told: object) -> None:
    with LocalRunStore(run) as store:
        for number, test in enumerate(tests):
            store.append("renders", [render(test, tone(number))], clips=[tone(number)])
            store.flush()
        store.write_manifest(manifest(**told))


@pytest.fixture
def elsewhere(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The run sys/native on mini@00000000 in a bucket, and its folder on a machine that knows nothing of it."""
    uri = bucket.uri("results/mini@00000000/sys/native")
    write(local_folder(uri), ("t1", "t2"))
    monkeypatch.setenv("TORUS_CACHE", str(tmp_path / "elsewhere"))
    return local_folder(uri)


def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that are got from buckets from now on."""
    keys: list[str] = []
    get = Bucket.get

    def seen(self: Bucket, key: str) -> bytes:
        keys.append(key)
        return get(self, key)

    monkeypatch.setattr(Bucket, "get", seen)
    return keys


def parts(keys: Sequence[str]) -> list[str]:
    return [key for key in keys if key.endswith(".parquet")]


def test_a_folder_of_its_own_has_no_mirror(tmp_path: Path) -> None:
    assert local_folder(tmp_path) == tmp_path
    assert mirror_of(tmp_path) is None
    assert named(tmp_path) == str(tmp_path)


def test_buckets_of_one_name_at_two_servers_are_two(s3: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    here = local_folder("s3://bucket/a")
    assert named(here / "b") == "s3://bucket/a/b"
    assert local_folder(Path("s3://bucket/a")) == here
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://other.example")
    assert local_folder("s3://bucket/a") != here


def test_only_what_is_new_is_brought(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = fetched(monkeypatch)
    look_into(elsewhere)
    assert sorted(current_rows(elsewhere, "renders")["test"]) == ["t1", "t2"]
    assert len(parts(keys)) == len(set(parts(keys))) == 1
    look_into(elsewhere)
    assert len(parts(keys)) == 1
    look_into(elsewhere, anew=True)
    assert len(parts(keys)) == 2
    assert not any(key.endswith(".flac") for key in keys)


def test_what_was_merged_meanwhile_goes_and_what_was_cut_short_here_is_mended(elsewhere: Path) -> None:
    look_into(elsewhere)
    folder = elsewhere / "tables" / "renders"
    (old,) = parts_in(folder)
    write(elsewhere, ("t3", "t4"))
    (new,) = parts_in(folder)
    (folder / old.file_name).write_bytes(b"what another machine has merged away")
    (folder / new.file_name).write_bytes(b"")
    look_into(elsewhere)
    assert parts_in(folder) == [new]
    assert current_rows(elsewhere, "renders").height == 4


def test_a_part_that_goes_between_listing_and_reading_is_listed_anew(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = mirror_of(elsewhere)
    assert held is not None
    bucket, get = held.bucket, Bucket.get

    def merged_first(self: Bucket, key: str) -> bytes:
        if key.endswith(".parquet"):
            monkeypatch.setattr(Bucket, "get", get)
            data = bucket.get(key)
            bucket.put(key.replace("000001-", "000002-"), data)
            bucket.delete([key])
        return get(self, key)

    monkeypatch.setattr(Bucket, "get", merged_first)
    look_into(elsewhere)
    assert current_rows(elsewhere, "renders").height == 2


def test_readers_see_the_runs_beside_and_forget_those_that_are_gone(elsewhere: Path) -> None:
    bank = elsewhere.parent.parent
    write_snapshot(bank, b"the bank", put=place_of(bank).put)
    write(bank / "other" / "native", arm="native")
    held = mirror_of(bank)
    assert held is not None
    for name in ("sys", "other"):
        (bank / name / "native" / "run.json").unlink(missing_ok=True)
    (bank / "bank.jsonl.gz").unlink()
    look_into(elsewhere)
    assert find_runs(bank) == [bank / "other" / "native", bank / "sys" / "native"]
    assert (bank / "bank.jsonl.gz").read_bytes() == b"the bank"
    held.bucket.delete(list(held.bucket.objects(held.key(bank / "other"))))
    for place in (bank.parent, bank, bank / "sys", elsewhere):
        look_into(place)
        assert find_runs(bank) == [elsewhere]


def test_a_clip_comes_when_it_is_asked_for(elsewhere: Path) -> None:
    look_into(elsewhere)
    (first, second) = (tone(0), tone(1))
    path = clip_path(elsewhere, first.id)
    assert not path.exists()
    assert read_clip(elsewhere, first.id) == first.data
    assert clip_file(elsewhere, first.id) == path
    assert path.read_bytes() == first.data
    path.write_bytes(b"what a power cut left")
    assert read_clip(elsewhere, first.id) == first.data
    held = mirror_of(elsewhere)
    assert held is not None
    held.bucket.put(held.key(clip_path(elsewhere, second.id)), b"noise")
    with pytest.raises(ClipDamaged, match="s3://"):
        read_clip(elsewhere, second.id)
    assert not clip_file(elsewhere, tone(9).id).exists()
    with pytest.raises(ClipDamaged, match="missing"):
        read_clip(elsewhere, tone(9).id)


def test_finished_work_of_another_bank_is_found(elsewhere: Path) -> None:
    results = elsewhere.parents[2]
    held = mirror_of(results)
    assert held is not None
    held.runs(results)
    row = render("t1", tone(0))
    found = ReuseIndex(results, [row["fingerprint"]]).find("renders", row["key"])
    assert found is not None
    assert found.run == elsewhere
    target = results / "mini@11111111" / "sys" / "native"
    with LocalRunStore(target) as store:
        linked = store.link_clips([_source(found.run, tone(0).id), _source(found.run, tone(9).id)])
        assert set(linked.kept) == {tone(0).id}
        assert "missing" in linked.damaged[tone(9).id]
        assert store.has_clip(tone(0).id)
    assert held.bucket.get(held.key(clip_path(target, tone(0).id))) == tone(0).data


def _source(run: Path, clip: str) -> ClipSource:
    return ClipSource(clip, str(run), hashlib.sha256(tone(0).data).hexdigest())


def test_rows_and_clips_are_in_the_bucket_when_they_are_told_to_be(bucket: Bucket) -> None:
    run = local_folder(bucket.uri("run"))
    told: list[list[str]] = []
    with LocalRunStore(run) as store:
        assert store.name == bucket.uri("run")
        store.append(
            "renders",
            [render("t1", tone(1))],
            clips=[tone(1)],
            on_durable=lambda at, rows: told.append(list(bucket.objects("run"))),
            urgent=True,
        )
        store.flush()
        (keys,) = told
        assert f"run/clips/{tone(1).id[:2]}/{tone(1).id}.flac" in keys
        assert parts(keys) == ["run/tables/renders/000001-000001.parquet"]
        assert store.has_clip(tone(1).id)
        assert not store.has_clip(tone(2).id)


def test_parts_are_merged_in_the_bucket_too(bucket: Bucket) -> None:
    run = local_folder(bucket.uri("run"))
    with LocalRunStore(run) as store:
        for number in range(20):
            store.append("answers", [answer(f"t{number}", "q1", None)])
            store.flush()
        assert len(parts(list(bucket.objects("run/tables/answers")))) < 20
    keys = list(bucket.objects("run/tables"))
    assert len(parts(keys)) == 1
    assert "run/tables/parts.json" in keys
    assert current_rows(run, "answers").height == 20


def test_the_same_sound_of_another_encoder_keeps_the_file_that_rows_name(bucket: Bucket) -> None:
    run = local_folder(bucket.uri("run"))
    place = place_of(run)
    stored = tone(1)
    key = f"run/clips/{stored.id[:2]}/{stored.id}.flac"
    assert place.keep_clip(stored.id, stored.data) == stored.data
    assert place.keep_clip(stored.id, encoded_otherwise(stored.data)) == stored.data
    bucket.put(key, b"noise")
    assert place.keep_clip(stored.id, stored.data) == stored.data
    assert bucket.get(key) == stored.data


def test_clips_at_hand_stay_within_their_bound(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    run = local_folder(bucket.uri("run"))
    clips = [tone(number) for number in range(4)]
    monkeypatch.setattr("torus_ray.store.place.MIRRORED_CLIP_BYTES", sum(len(clip.data) for clip in clips[2:]))
    place = place_of(run)
    for clip in clips:
        place.keep_clip(clip.id, clip.data)
    assert [clip_path(run, clip.id).exists() for clip in clips] == [False, False, True, True]
    assert all(place.has_clip(clip.id) for clip in clips)


def test_a_store_that_is_gone_stops_the_run_and_keeps_what_was_told(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torus_ray.store.bucket.RETRY_S", 0.1)
    open_bucket.cache_clear()
    run = local_folder(bucket.uri("run"))
    store = LocalRunStore(run)
    store.append("renders", [render("t1", tone(1))], clips=[tone(1)])
    store.flush()
    gone = Bucket(bucket.name, "http://127.0.0.1:1", retry_s=0.1)
    held = store._place._mirror  # type: ignore[attr-defined]
    monkeypatch.setattr(held.bucket, "_patient", gone._patient)
    monkeypatch.setattr(held.bucket, "impatient", lambda: gone)
    store.append("renders", [render("t2", None)])
    with pytest.raises(StoreError, match="no store answers there"):
        store.close()
    assert len(parts(list(bucket.objects("run/tables")))) == 1
