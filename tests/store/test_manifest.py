from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.store.sample import manifest
from torus_ray.store import ManifestError, read_manifest, write_manifest


def test_what_is_written_is_read(tmp_path: Path) -> None:
    told = manifest(counts={"answers": {"ok": 3}}, state="finished", exit_code=0, card={"name": "sys"})
    write_manifest(tmp_path / "run", told)
    assert read_manifest(tmp_path / "run") == told


def test_no_manifest_is_none(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"version": 7}', "has version 7"),
        ('{"version": 1}', "field bank"),
    ],
)
def test_what_is_no_manifest_is_named_with_a_mend(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ManifestError, match=message) as caught:
        read_manifest(tmp_path)
    assert caught.value.where == str(tmp_path / "run.json")
    assert caught.value.mend


def test_an_unknown_field_is_named(tmp_path: Path) -> None:
    content = json.loads(manifest().model_dump_json()) | {"colour": "red"}
    (tmp_path / "run.json").write_text(json.dumps(content))
    with pytest.raises(ManifestError, match="colour"):
        read_manifest(tmp_path)
