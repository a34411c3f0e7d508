"""The clips of runs, by arm, test and stage: what a reviewer can listen to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from torus_ray.bank.load import from_snapshot
from torus_ray.bank.schema import STAGES, StageName
from torus_ray.errors import InputError
from torus_ray.store.layout import MANIFEST, SNAPSHOT
from torus_ray.store.manifest import RunManifest, read_manifest
from torus_ray.store.mirror import clip_file
from torus_ray.store.reader import current_rows

FLAGS = ("silent", "too_short", "clipped", "hit_limit")


@dataclass(frozen=True)
class Render:
    """What an arm made of a stage. clip: its id, None where there is none (status and reason say why).

    prompt: the stage's prompt in the bank that the run was made on. duration_s: seconds.
    """

    status: str
    reason: str | None
    clip: str | None
    duration_s: float | None
    flags: tuple[str, ...]
    prompt: str


@dataclass(frozen=True)
class ArmClips:
    """One run folder. name: system/arm. renders: by (test id, stage)."""

    name: str
    folder: Path
    renders: Mapping[tuple[str, StageName], Render]

    def file(self, clip: str) -> Path | None:
        """The FLAC file of a clip of this arm; None for any other id."""
        known = any(render.clip == clip for render in self.renders.values())
        return clip_file(self.folder, clip) if known else None


def arm_clips(runs: Iterable[Path], bank: str) -> tuple[ArmClips, ...]:
    """The arms in these run folders that rendered something, controls left out. bank: the name of the bank reviewed.

    Raises InputError for a folder that is no run, a run of another bank, and runs without any clip.
    """
    folders = list(runs)
    found = [(folder, _manifest(folder, bank)) for folder in folders]
    kept = [(folder, manifest) for folder, manifest in found if manifest.control is None]
    names = Counter(f"{manifest.system}/{manifest.arm}" for _, manifest in kept)
    arms = []
    for folder, manifest in kept:
        name = f"{manifest.system}/{manifest.arm}"
        renders = _renders(folder)
        if renders:
            # Runs on two states of the bank have one name each only with the bank's hash.
            arms.append(ArmClips(name if names[name] == 1 else f"{name}@{manifest.bank_hash[:8]}", folder, renders))
    if folders and not arms:
        raise InputError(
            "there are no clips to listen to",
            where=", ".join(map(str, folders)),
            expected="a run of a system's own arm (native, self-caption) with renders",
            mend="let `torus run` make some, or leave --run away",
        )
    return tuple(arms)


def _manifest(folder: Path, bank: str) -> RunManifest:
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(
            f"no run at {folder}", where=str(folder), expected=f"a folder with {MANIFEST}", mend="check it"
        )
    if manifest.bank != bank:
        raise InputError(
            f"the run was made on the bank {manifest.bank}, you review {bank}",
            where=str(folder),
            expected=f"a run on {bank}",
            mend="give the run of this bank, or review the other bank",
        )
    return manifest


def _renders(folder: Path) -> dict[tuple[str, StageName], Render]:
    path = folder.parent.parent / SNAPSHOT
    if not path.is_file():
        raise InputError(
            "the run's copy of its bank is not there",
            where=str(path),
            expected="the snapshot that `torus run` writes beside the systems",
            mend="copy it from where the run was made",
        )
    tests = from_snapshot(path.read_bytes()).tests
    prompts = {(test.id, stage): test.stage(stage).prompt for test in tests for stage in STAGES}
    columns = ["test", "stage", "operation", "status", "reason", "clip", "duration_s", *FLAGS]
    rows = current_rows(folder, "renders", columns).filter(pl.col("stage").is_in(STAGES))
    return {
        (row["test"], row["stage"]): Render(
            status=row["status"],
            reason=row["reason"],
            clip=row["clip"],
            duration_s=row["duration_s"],
            flags=tuple(name for name in FLAGS if row[name]),
            prompt=prompts.get((row["test"], row["stage"]), ""),
        )
        for row in rows.iter_rows(named=True)
    }
