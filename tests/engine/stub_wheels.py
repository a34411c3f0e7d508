"""Tiny wheels and environment files, for real uv to build real environments without a network."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

DRIVER_RAY = importlib.metadata.version("ray")
MINOR = f"{sys.version_info[0]}.{sys.version_info[1]}"
STUBS: Mapping[str, str] = {"ray": DRIVER_RAY, "numpy": "2.4.6", "soundfile": "0.14.0", "soxr": "1.1.0"}


def write_wheel(folder: Path, name: str, version: str, body: str = "") -> str:
    """Write a wheel of one module that has a __version__; its sha256."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"__version__ = {version!r}\n{body}",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: stub\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        path: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        for path, text in files.items()
    }
    record = "".join(f"{path},sha256={digests[path]},{len(text.encode())}\n" for path, text in files.items())
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def write_wheels(folder: Path, packages: Mapping[str, str] = STUBS) -> dict[str, str]:
    """Wheels of all packages; sha256 by name."""
    folder.mkdir(parents=True, exist_ok=True)
    return {name: write_wheel(folder, name, version) for name, version in packages.items()}


def write_environment(
    folder: Path,
    name: str = "tiny",
    *,
    hashes: Mapping[str, str] | None = None,
    packages: Mapping[str, str] = STUBS,
    extra: str = "",
) -> Path:
    """An environment file and its lock; packages without a known hash get one of zeros."""
    folder.mkdir(parents=True, exist_ok=True)
    known = hashes or {}
    lines = (f"{p}=={v} \\\n    --hash=sha256:{known.get(p, '0' * 64)}\n" for p, v in packages.items())
    (folder / f"{name}.txt").write_text("# a lock\n" + "".join(lines))
    file = folder / f"{name}.toml"
    file.write_text(f'lock = "{name}.txt"\n{extra}\n')
    return file
