"""Where things lie: ``results/<bank>@<hash8>/<system>/<arm>/`` and what is in it."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import NamedTuple

from torus_ray.errors import InputError
from torus_ray.store.files import Put, make_folder, write_atomic

MANIFEST = "run.json"
LOCK = "lock"
TABLES_FOLDER = "tables"
CLIPS_FOLDER = "clips"
PARTS_LIST = "parts.json"
SNAPSHOT = "bank.jsonl.gz"

_PART = re.compile(r"^(\d{6,})-(\d{6,})\.parquet$")
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._+=,-]*$")


class PartName(NamedTuple):
    """A part's place in the order of writing: later epochs, and in an epoch later numbers, are newer."""

    epoch: int
    seq: int

    @property
    def file_name(self) -> str:
        return f"{self.epoch:06d}-{self.seq:06d}.parquet"


def parse_part(file_name: str) -> PartName | None:
    """The place in a part's file name, or None when it is no part."""
    match = _PART.match(file_name)
    return PartName(int(match[1]), int(match[2])) if match else None


def bank_folder(results: Path, bank: str, bank_hash: str) -> Path:
    """The folder of all runs on one bank."""
    return results / f"{_checked(bank, 'bank')}@{_checked(bank_hash, 'bank hash')[:8]}"


def run_folder(results: Path, bank: str, bank_hash: str, system: str, arm: str) -> Path:
    """The folder of one run: one bank, one system's arm. Raises InputError for a name that is no folder name."""
    return bank_folder(results, bank, bank_hash) / _checked(system, "system") / _checked(arm, "arm")


def table_folder(run: Path, table: str) -> Path:
    return run / TABLES_FOLDER / table


def clip_path(run: Path, clip: str) -> Path:
    """Where the clip with this identity lies in a run."""
    return run / CLIPS_FOLDER / clip[:2] / f"{clip}.flac"


def parts_in(folder: Path) -> list[PartName]:
    """All parts in a table's folder, oldest first; empty when there is no folder."""
    if not folder.is_dir():
        return []
    names = (parse_part(path.name) for path in folder.iterdir())
    return sorted(name for name in names if name is not None)


def find_runs(path: Path) -> list[Path]:
    """Run folders at or under `path`, which is a run, a system's or bank's folder or the results root; sorted."""
    for depth in range(4):
        found = sorted(manifest.parent for manifest in path.glob("*/" * depth + MANIFEST))
        if found:
            return found
    return []


def write_snapshot(folder: Path, data: bytes, *, put: Put = write_atomic) -> Path:
    """Keep the bank's snapshot (gzip bytes) beside the systems, once. Raises InputError where another bank's lies.

    put: how files become durable there.
    """
    path = folder / SNAPSHOT
    if path.exists():
        if _content(path.read_bytes()) != _content(data):
            raise InputError(
                f"{path} holds another bank",
                where=str(path),
                expected="the snapshot of the bank that this folder is named after",
                mend="choose another --results folder, or move this one away",
            )
        return path
    make_folder(folder)
    put(path, data)
    return path


def _content(data: bytes) -> bytes:
    # gzip headers may carry a time; what counts is inside.
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _checked(name: str, what: str) -> str:
    if not _NAME.match(name):
        raise InputError(
            f"{what} {name!r} cannot be a folder name",
            where=what,
            expected="letters, digits and . _ + = , - with a letter or digit first",
            mend=f"rename the {what}",
        )
    return name
