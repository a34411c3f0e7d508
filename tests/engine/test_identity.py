"""What stands for the environment and the weights of a host in its identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.engine.systems import host, system
from torus_ray.engine import identity
from torus_ray.engine.env_spec import INHERIT
from torus_ray.engine.identity import environment_digest, weights_digest


def of(folder: Path, **weight: Any) -> str:
    """The digest of a host whose one weight is the folder `net` beside its card."""
    card = system(folder, {"toy": host(weights={"net": {"path": str(folder / "net"), **weight}})})
    return weights_digest(card.hosts["toy"])


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A folder of weights with code beside them."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "model.bin").write_bytes(b"weights")
    (tmp_path / "net" / "modeling.py").write_text("x = 1\n")
    return tmp_path / "net"


def test_the_files_stand_for_weights_that_a_card_says_nothing_of(tmp_path: Path, net: Path) -> None:
    first = of(tmp_path)
    (net / "model.bin").write_bytes(b"other")
    assert of(tmp_path) != first


def test_caches_of_python_are_no_part_of_weights(tmp_path: Path, net: Path) -> None:
    first = of(tmp_path)
    (net / "__pycache__").mkdir()
    (net / "__pycache__" / "modeling.cpython-311.pyc").write_bytes(b"x")
    assert of(tmp_path) == first


def test_weights_that_a_card_pins_are_not_read(tmp_path: Path, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_digest_path", lambda path: pytest.fail("read"))
    pins: list[dict[str, Any]] = [
        {"sha256": "0" * 64},
        {"repo": "owner/name", "revision": "1" * 40},
        {"repo": "owner/name", "revision": "2" * 40},
        {"repo": "owner/name", "revision": "2" * 40, "files": ["model.bin"]},
    ]
    assert len({of(tmp_path, **pin) for pin in pins}) == len(pins)


def test_what_is_installed_stands_for_an_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path)])
    monkeypatch.setattr("site.ENABLE_USER_SITE", False)
    digests = [environment_digest(INHERIT)]
    for name, version in (("one", "1.0"), ("two", "1.0"), ("two", "2.0")):
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nA text.\n")
        digests += [environment_digest(INHERIT), environment_digest(INHERIT)]
    assert digests[1::2] == digests[2::2]
    assert len(set(digests)) == 4
