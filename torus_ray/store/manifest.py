"""run.json: what a run is and how it stands, apart from its rows: thousands of runs can be listed in a moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from torus_ray.store.errors import ManifestError, from_os_error
from torus_ray.store.files import Put, make_folder, write_atomic
from torus_ray.store.layout import MANIFEST

MANIFEST_VERSION = 1


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HeadInfo(_Model):
    """One head as it ran. fingerprint: see DESIGN 4, "Identity". settings: declared; observed: seen only after loading.

    seeded: the same request and seed give the same reply, so a failure of the model's own is final.
    """

    fingerprint: str
    host: str = ""
    adapter: str = ""
    environment: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    observed: dict[str, Any] = Field(default_factory=dict)
    seeded: bool = True


class MeasureInfo(_Model):
    """One measure of a run's clips: the head that takes it, its fingerprint, and the metrics made of it."""

    head: str
    fingerprint: str
    metrics: tuple[str, ...]


class Driver(_Model):
    """The process that wrote the run last."""

    pid: int
    host: str


class RunManifest(_Model):
    """What a run is (bank, system, arm, heads) and how it stands.

    versions: packages by environment. counts: rows by table and status. created, updated: epoch seconds.
    exit_code: that of the last driver, null while one runs or when it was killed. measures: by name, those of the last
    command that measured. reference: what its distances are taken to, `system/arm` or `pack:<sha256>`.
    """

    version: Literal[1] = 1
    bank: str
    bank_hash: str
    tests: tuple[str, ...]
    system: str
    arm: str
    edit_mode: str
    seed: int
    control: str | None = None
    heads: dict[str, HeadInfo]
    measures: dict[str, MeasureInfo] = Field(default_factory=dict)
    reference: str | None = None
    versions: dict[str, dict[str, str]] = Field(default_factory=dict)
    card: dict[str, Any] = Field(default_factory=dict)
    created: float
    updated: float
    state: Literal["running", "finished", "stopped"]
    exit_code: int | None = None
    counts: dict[str, dict[str, int]] = Field(default_factory=dict)
    engine: str
    epoch: int
    driver: Driver


def read_manifest(run: Path) -> RunManifest | None:
    """The manifest of a run folder; None where there is none. Raises ManifestError where it cannot be understood."""
    path = run / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise _unreadable(path, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise _unreadable(path, "not a JSON object")
    version = content.get("version")
    if version != MANIFEST_VERSION:
        raise ManifestError(
            f"{path} has version {version!r}",
            where=str(path),
            expected=f"version {MANIFEST_VERSION}, which this torus-ray writes",
            mend="read it with the torus-ray that wrote it, or use another --results folder",
        )
    try:
        return RunManifest.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise _unreadable(path, f"field {field}: {first['msg']}") from error


def write_manifest(run: Path, manifest: RunManifest, *, put: Put = write_atomic) -> None:
    """Replace run.json in one step, durably. put: how files become durable there. Raises StoreError."""
    path = run / MANIFEST
    try:
        make_folder(run)
        put(path, manifest.model_dump_json(indent=1).encode())
    except OSError as error:
        raise from_os_error(error, path) from error


def _unreadable(path: Path, why: str) -> ManifestError:
    return ManifestError(
        f"{path} cannot be read: {why}",
        where=str(path),
        expected="a run.json as torus run writes it",
        mend="move it away and run the same command again: rows and clips are kept, and run.json is written anew",
    )
