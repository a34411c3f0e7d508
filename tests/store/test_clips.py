from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile

from tests.store.sample import tone
from torus_ray.audio import StoredClip
from torus_ray.store import ClipDamaged, ClipSource
from torus_ray.store.clips import ClipFolder, read_clip
from torus_ray.store.layout import clip_path
from torus_ray.store.place import FolderPlace


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[ClipFolder]:
    clips = clips_of(tmp_path / "run")
    yield clips
    clips.close()


def clips_of(run: Path) -> ClipFolder:
    return ClipFolder(run, FolderPlace(run))


def keep(folder: ClipFolder, stored: StoredClip) -> str:
    sha256 = folder.start_keep(stored).result().sha256
    folder.sync([stored.id])
    return sha256


def recoded(stored: StoredClip) -> StoredClip:
    """The same sound in other bytes, as another encoder version would write it."""
    samples, rate = soundfile.read(io.BytesIO(stored.data), dtype="int16")
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="FLAC", subtype="PCM_16", compression_level=0.0)
    assert buffer.getvalue() != stored.data
    return dataclasses.replace(stored, data=buffer.getvalue())


def test_a_clip_is_written_once(folder: ClipFolder, tmp_path: Path) -> None:
    stored = tone(1)
    sha256 = keep(folder, stored)
    path = clip_path(tmp_path / "run", stored.id)
    assert path.parent.name == stored.id[:2]
    before = path.stat().st_mtime_ns
    assert keep(folder, stored) == sha256
    assert path.stat().st_mtime_ns == before
    assert read_clip(tmp_path / "run", stored.id, sha256) == stored.data
    assert read_clip(tmp_path / "run", stored.id) == stored.data


def test_the_same_sound_from_another_encoder_keeps_the_file_that_rows_name(folder: ClipFolder, tmp_path: Path) -> None:
    stored = tone(1)
    sha256 = keep(folder, stored)
    assert keep(folder, recoded(stored)) == sha256


def test_a_damaged_file_is_found_by_name_and_mended_by_writing_again(folder: ClipFolder, tmp_path: Path) -> None:
    stored = tone(1)
    sha256 = keep(folder, stored)
    path = clip_path(tmp_path / "run", stored.id)
    data = bytearray(stored.data)
    data[-5] ^= 1
    path.write_bytes(data)
    for known in (sha256, None):
        with pytest.raises(ClipDamaged, match=path.name):
            read_clip(tmp_path / "run", stored.id, known)
    assert keep(folder, stored) == sha256
    path.unlink()
    with pytest.raises(ClipDamaged, match="missing"):
        read_clip(tmp_path / "run", stored.id)


def test_linking_takes_over_what_is_sound_and_names_what_is_not(folder: ClipFolder, tmp_path: Path) -> None:
    good, bad, gone = tone(1), tone(2), tone(3)
    digests = {clip.id: keep(folder, clip) for clip in (good, bad, gone)}
    source = tmp_path / "run"
    path = clip_path(source, bad.id)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    clip_path(source, gone.id).unlink()
    target = clips_of(tmp_path / "other")
    linked = target.link([ClipSource(clip, str(source), sha256) for clip, sha256 in digests.items()])
    target.close()
    assert set(linked.kept) == {good.id}
    assert set(linked.damaged) == {bad.id, gone.id}
    assert "missing" in linked.damaged[gone.id]
    assert clip_path(tmp_path / "other", good.id).samefile(clip_path(source, good.id))
    assert linked.kept[good.id].sha256 == digests[good.id]


def test_where_there_are_no_hard_links_a_copy_is_made(
    folder: ClipFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = tone(1)
    sha256 = keep(folder, stored)

    def refuse(*_: object) -> None:
        raise OSError("cross-device link")

    monkeypatch.setattr("os.link", refuse)
    target = clips_of(tmp_path / "other")
    target.link([ClipSource(stored.id, str(tmp_path / "run"), sha256)])
    target.close()
    assert read_clip(tmp_path / "other", stored.id, sha256) == stored.data
