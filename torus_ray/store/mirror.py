"""The mirror of a bucket: a folder in the cache in which its runs can be read as if they had been made there.

Parts never change once they are written, so only what is new is fetched, and everything that reads a run folder reads a
mirror too. Clips come when they are asked for. A mirror may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from torus_ray.store.bucket import Bucket, address_of, before_start, endpoint_of_environment, open_bucket
from torus_ray.store.files import written_beside
from torus_ray.store.layout import (
    MANIFEST,
    PARTS_LIST,
    SNAPSHOT,
    TABLES_FOLDER,
    clip_path,
    find_runs,
    parse_part,
    parts_in,
)
from torus_ray.store.tables import TABLES

MARK = ".torus-bucket.json"
"""Says at the top of a mirror which bucket it is of."""
FETCH_THREADS = 16
_LISTINGS = 20
_DEPTH = 4
_T = TypeVar("_T")


@dataclass(frozen=True)
class Mirror:
    """A bucket and its folder: an object's key is its path in there."""

    bucket: Bucket
    root: Path

    def key(self, path: Path) -> str:
        relative = path.relative_to(self.root).as_posix()
        return "" if relative == "." else relative

    def named(self, text: str) -> str:
        """A text for people, paths in this mirror written as URIs."""
        return text.replace(str(self.root), self.bucket.uri("").rstrip("/"))

    def fetch(self, path: Path) -> bytes:
        """Bring one file, anew. Raises FileNotFoundError where the bucket has none."""
        data = self.bucket.get(self.key(path))
        write_mirrored(path, data)
        return data

    def runs(self, folder: Path) -> list[Path]:
        """The runs at or under a folder, as the bucket has them, their run.json brought; those gone are forgotten."""
        before = find_runs(folder)  # First: what another process of this machine makes meanwhile must not be forgotten.
        level = [folder]
        found: list[Path] = []
        for _ in range(_DEPTH):
            listed = _at_once(lambda at: self.bucket.level(self.key(at)), level)
            found = [at for at, (_, names) in zip(level, listed, strict=True) if MANIFEST in names]
            if found:
                break
            level = [at / name for at, (names, _) in zip(level, listed, strict=True) for name in names]
        for run in set(before) - set(found):
            (run / MANIFEST).unlink(missing_ok=True)
        _at_once(lambda run: self.fetch(run / MANIFEST), found)
        return sorted(found)

    def bring(self, run: Path, *, anew: bool = False) -> None:
        """Make the rows of a run here those of the bucket. anew: fetch also what seems to be here."""
        for last in (*[False] * (_LISTINGS - 1), True):
            try:
                return self._bring(run, anew)
            except FileNotFoundError:  # A merge took a part away between listing and reading.
                if last:
                    raise

    def _bring(self, run: Path, anew: bool) -> None:
        tables = {table: run / TABLES_FOLDER / table for table in TABLES}
        before = [folder / name.file_name for folder in tables.values() for name in parts_in(folder)]
        listed = self.bucket.objects(f"{self.key(run)}/{TABLES_FOLDER}")
        sizes = {self.root / key: size for key, size in listed.items() if _is_part(key)}
        wanted = [path for path, size in sizes.items() if anew or not path.is_file() or path.stat().st_size != size]
        _at_once(self.fetch, wanted)
        # What changes in place: there may be none yet, or none any more.
        _at_once(self._fetch_or_forget, [run / TABLES_FOLDER / PARTS_LIST, run / MANIFEST])
        for path in set(before) - set(sizes):
            path.unlink(missing_ok=True)

    def bring_bank(self, bank: Path, *, anew: bool = False) -> None:
        """The rows of all runs on a bank, and the bank: a run's readers look into those beside it."""
        self._fetch_or_forget(bank / SNAPSHOT)
        for run in self.runs(bank):
            self.bring(run, anew=anew)

    def _fetch_or_forget(self, path: Path) -> None:
        try:
            self.fetch(path)
        except FileNotFoundError:
            path.unlink(missing_ok=True)


def local_folder(place: Path | str) -> Path:
    """Where a results folder, or something in it, can be read and written here: itself, or its place in a mirror.

    A URI's own folder is made, nothing is fetched. Raises InputError for a URI that is none of a bucket.
    """
    address = address_of(place)
    if address is None:
        return Path(place)
    endpoint = endpoint_of_environment()
    told = {"bucket": address.bucket, "endpoint": endpoint}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]
    root = _cache() / "mirrors" / f"{address.bucket}-{digest}"
    if not (root / MARK).is_file():
        write_mirrored(root / MARK, json.dumps(told).encode())
    return root / address.prefix


def mirror_of(folder: Path) -> Mirror | None:
    """The mirror that a folder lies in; None for a folder of its own."""
    at = folder.absolute()
    for above in (at, *at.parents):
        mark = above / MARK
        if mark.is_file():
            told = json.loads(mark.read_text(encoding="utf-8"))
            return Mirror(open_bucket(told["bucket"], told["endpoint"]), above)
    return None


def named(folder: Path) -> str:
    """What to call a run folder before people: its URI, or its path."""
    mirror = mirror_of(folder)
    return mirror.named(str(folder)) if mirror else str(folder)


def look_into(folder: Path, *, anew: bool = False) -> None:
    """Bring what readers of the runs at or under a mirrored folder need; does nothing for a folder of its own.

    Raises InputError where the bucket cannot be read.
    """
    mirror = mirror_of(folder)
    if mirror is not None:
        with before_start():
            mirror.bucket.impatient().level(mirror.key(folder))
            for bank in dict.fromkeys(run.parent.parent for run in mirror.runs(folder)):
                mirror.bring_bank(bank, anew=anew)


def prepare(results: Path, bank: Path) -> None:
    """Before a run starts on a mirrored results folder: see that it can be written, bring what is known.

    results, bank: the results folder, and the bank's folder in it. Raises InputError where it cannot.
    """
    mirror = mirror_of(results)
    if mirror is not None:
        mirror.bucket.impatient().check_writable(mirror.key(results))
        with before_start():
            mirror.runs(results)
            mirror.bring_bank(bank)


def clip_file(run: Path, clip: str) -> Path:
    """Where a clip lies here; brought from the bucket where the run is in one and has it."""
    path = clip_path(run, clip)
    mirror = mirror_of(run)
    if mirror is not None and not path.is_file():
        with suppress(FileNotFoundError):
            mirror.fetch(path)
    return path


def write_mirrored(path: Path, data: bytes) -> None:
    """A file of a mirror, whole or not at all. Not synced: what a power cut takes is fetched again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_beside(path, data, sync=False) as temp:
        os.replace(temp, path)


def _is_part(key: str) -> bool:
    path = PurePosixPath(key)
    return parse_part(path.name) is not None and path.parent.name in TABLES


def _at_once(do: Callable[[Path], _T], paths: Iterable[Path]) -> list[_T]:
    with ThreadPoolExecutor(FETCH_THREADS) as pool:
        return list(pool.map(do, paths))


def _cache() -> Path:
    return Path(os.environ.get("TORUS_CACHE") or Path.home() / ".cache" / "torus-ray").absolute()
