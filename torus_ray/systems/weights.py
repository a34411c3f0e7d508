"""Weights: what a card says of them, whether they are on this machine, and whether they are what they should be.

Nothing here touches a network; fetching is in torus_ray.systems.fetching.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.systems import System

GB = 1_000_000_000
RECORD_SUFFIX = ".weights.json"
"""A fetch leaves a record beside what it brought (beside, so that it is no part of the weights' digest)."""

_RESTRICTED = re.compile(r"non-?commercial|\bNC\b|research", re.IGNORECASE)

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class WeightCard(BaseModel):
    """One file or folder of weights: where it is on this machine (~ is the user's home), and its digest when known.

    path: absolute, or relative to the card, or `package:path/inside/it` for weights that come in a package.
    sha256: of the file; of a folder: :func:`folder_digest`.
    repo, revision, files: where `torus weights fetch` gets them: `owner/name` on the Hugging Face hub, the commit, and
    which files of it (patterns; all where nothing is said). A single file goes to `path` itself where it bears that
    name, everything else into the folder `path`.
    size_gb: 10^9 bytes, about. gated: the hub gives them to people who accepted its conditions.
    obtain: for weights that are not on the hub: how a person gets them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, AfterValidator(os.path.expanduser)]
    sha256: Sha256 | None = None
    repo: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    files: tuple[str, ...] = ()
    size_gb: Annotated[float, Field(gt=0)] | None = None
    licence: str = ""
    gated: bool = False
    obtain: str = ""

    @model_validator(mode="after")
    def _of_a_repository(self) -> WeightCard:
        if not self.repo and (self.revision or self.files or self.gated):
            raise ValueError("revision, files and gated are of a repository: say which in `repo`")
        return self

    @property
    def in_package(self) -> bool:
        """Whether they come inside a package of the environment."""
        return ":" in self.path and not os.path.isabs(self.path)

    @property
    def one_file(self) -> bool:
        """Whether `path` is to be the one file that `files` names."""
        return self.files == (Path(self.path).name,)

    @property
    def identity(self) -> str | None:
        """What stands for the weights' content without reading them: the digest, or the commit; None: neither."""
        if self.sha256:
            return self.sha256
        chosen = ",".join(sorted(self.files))
        return f"{self.repo}@{self.revision}:{chosen}" if self.repo and self.revision else None

    def takes(self, name: str) -> bool:
        """Whether a file of the repository is one of these."""
        return not self.files or any(fnmatch(name, pattern) for pattern in self.files)


def restricts(licence: str) -> bool:
    """Whether a licence, as a card words it, keeps out some uses (non-commercial, research only)."""
    return bool(_RESTRICTED.search(licence))


@dataclass(frozen=True)
class Weight:
    """One weight of one host of a system. reference: how the system is called on the command line."""

    reference: str
    host: str
    name: str
    card: WeightCard

    @property
    def path(self) -> Path:
        return Path(self.card.path)

    @property
    def where(self) -> str:
        return f"{self.reference}: hosts.{self.host}.weights.{self.name}"

    @property
    def there(self) -> bool:
        return self.card.in_package or self.path.exists()

    @property
    def source(self) -> str:
        """Where they come from, for people."""
        if self.card.repo:
            return f"hub {self.card.repo}@{(self.card.revision or 'main, no commit in the card')[:12]}"
        return "a package" if self.card.in_package else self.card.obtain or "not stated"

    def how_to_get(self) -> str:
        """What a person does to have them."""
        if not self.card.repo:
            return self.card.obtain or f"put them at {self.card.path}"
        size = f"{self.card.size_gb:g} GB, " if self.card.size_gb else ""
        gate = (
            f"accept the conditions at https://huggingface.co/{self.card.repo} and set HF_TOKEN, then "
            if self.card.gated
            else ""
        )
        return (
            f"{gate}`torus weights fetch {self.reference}` ({size}licence: {self.card.licence or 'not stated'}), "
            "with --from DIR where a folder has them"
        )


def weights_of(system: System, reference: str = "") -> list[Weight]:
    """Every weight of a system's hosts."""
    return [
        Weight(reference or system.name, host.name, name, card)
        for host in system.hosts.values()
        for name, card in host.card.weights.items()
    ]


# --- digests and records ----------------------------------------------------------------------------------------------


def file_digest(path: Path, kind: Literal["sha256", "git"] = "sha256") -> str:
    """sha256 of a file; `git`: what git calls it (sha1 of a blob), which the hub gives for small files."""
    with path.open("rb") as file:
        if kind == "sha256":
            return hashlib.file_digest(file, "sha256").hexdigest()
        start = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
        while chunk := file.read(1 << 20):
            start.update(chunk)
        return start.hexdigest()


def digests(path: Path) -> dict[str, str]:
    """sha256 of each file at or under a path, by its name relative to it (a file's own name)."""
    if path.is_file():
        return {path.name: file_digest(path)}
    return {file.relative_to(path).as_posix(): file_digest(file) for file in _files(path)}


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def folder_digest(found: Mapping[str, str]) -> str:
    """One digest of a folder: sha256 over its files' digests and names, as `sha256sum` prints them, sorted by name."""
    lines = "".join(f"{found[name]}  {name}\n" for name in sorted(found))
    return hashlib.sha256(lines.encode()).hexdigest()


def record_file(weight: Weight) -> Path:
    return weight.path.with_name(weight.path.name + RECORD_SUFFIX)


def write_record(weight: Weight, *, source: str, revision: str, found: Mapping[str, str]) -> None:
    """What was brought: the source, its commit ("" where there is none), the digest of each file."""
    record = {"source": source, "revision": revision, "files": dict(sorted(found.items()))}
    record_file(weight).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_record(weight: Weight) -> dict[str, Any] | None:
    """The record of a fetch; None where none was left. Raises InputError for one that cannot be read."""
    path = record_file(weight)
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        files = {str(name): str(digest) for name, digest in record["files"].items()}
        return {"source": str(record["source"]), "revision": str(record["revision"]), "files": files}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"the record of a fetch cannot be read: {type(error).__name__}: {error}",
            where=str(path),
            expected="what `torus weights fetch` wrote",
            mend="remove it together with the weights, and fetch them again",
        ) from error


# --- checking ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checked:
    """A weight looked at. wrong: it is not there, or not what it should be. digest: what was read, "" for nothing."""

    weight: Weight
    wrong: bool
    found: str
    expected: str = ""
    mend: str = ""
    digest: str = ""


def check_weight(weight: Weight) -> Checked:
    """Read a weight whole and compare it with its card, else with the record of its fetch. Raises InputError for a
    record that cannot be read."""
    card = weight.card
    if card.in_package:
        return Checked(weight, False, f"{card.path}: in a package of the environment; `torus doctor` looks for it")
    if not weight.there:
        return Checked(weight, True, f"not at {card.path}", "the weights", weight.how_to_get())
    again = f"remove {card.path}, then {weight.how_to_get()}"
    found = digests(weight.path)
    digest = next(iter(found.values())) if weight.path.is_file() else folder_digest(found)
    if not found:
        return Checked(weight, True, f"{card.path} is empty", "the weights", again)
    if card.sha256:
        wrong = digest != card.sha256
        told = f"sha256 {digest}" if wrong else "as its card says, by sha256"
        return Checked(weight, wrong, told, f"sha256 {card.sha256}, as its card says", again if wrong else "", digest)
    record = read_record(weight)
    if record is None:
        note = f'there, and nothing to compare it with; for the card: sha256 = "{digest}"'
        return Checked(weight, False, note, digest=digest)
    if card.revision and record["revision"] not in ("", card.revision):
        told = f"fetched at commit {record['revision']}"
        return Checked(weight, True, told, f"commit {card.revision}, as its card says", again, digest)
    differ = sorted(name for name, value in record["files"].items() if found.get(name) != value)
    if differ:
        some = ", ".join(differ[:3]) + (", ..." if len(differ) > 3 else "")
        told = f"{len(differ)} of {len(record['files'])} files are missing or not what was fetched: {some}"
        return Checked(weight, True, told, f"the files of {record['source']}", again, digest)
    return Checked(weight, False, f"as fetched from {record['source']}, {len(found)} file(s)", digest=digest)
