"""Bringing weights: from a folder on this machine, or from the Hugging Face hub at a commit, checked before they count.

A fetch fills `PATH.part` and renames it when every digest holds: what stands at a weight's path is whole. The hub's own
client (huggingface_hub, no part of the core) does the downloading: it goes on after a cut connection, and a later
command with the files that are not whole yet.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, ClassVar, Literal

from torus_ray.errors import InputError, TorusError
from torus_ray.systems.weights import GB, Weight, digests, file_digest, folder_digest, write_record

PART_SUFFIX = ".part"
SPARE_GB = 1.0
"""What is left free on the disk."""
TOKEN_VARIABLE = "HF_TOKEN"

Tell = Callable[[str], None]


class FetchStopped(TorusError):
    """A fetch could not go on; what came stays, and the same command goes on from there."""

    exit_code: ClassVar[int] = 3


@dataclass(frozen=True)
class HubFile:
    """A file as the hub lists it. digest: `sha256` of a large one, else what `git` calls it; "" where it says none."""

    name: str
    size: int
    digest: str
    kind: Literal["sha256", "git"]


@dataclass(frozen=True)
class Listing:
    """What the hub has of a weight. commit: of that listing. licence: as the hub says, "" for nothing."""

    weight: Weight
    endpoint: str
    commit: str
    licence: str
    gated: bool
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(file.size for file in self.files)

    def lines(self) -> list[str]:
        """What a person has to know before saying yes."""
        card = self.weight.card
        pinned = "as the card says" if card.revision else f'the newest; to keep it: revision = "{self.commit}"'
        licence = card.licence or "not stated in the card"
        on_hub = f"; the hub says {self.licence}" if self.licence else ""
        free = shutil.disk_usage(_existing(self.weight.path)).free
        return [
            f"{self.weight.where}",
            f"  from: {self.endpoint}/{card.repo} at {self.commit} ({pinned})" + (", gated" if self.gated else ""),
            f"  size: {size_told(self.size)} in {len(self.files)} file(s); free there: {size_told(free)}",
            f"  licence: {licence}{on_hub}",
            f"  to: {self.weight.path}",
        ]


def size_told(size: int) -> str:
    """Bytes for people."""
    for unit, factor in (("GB", GB), ("MB", 1_000_000), ("kB", 1_000)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


# --- from a folder ----------------------------------------------------------------------------------------------------


def in_folder(weight: Weight, folder: Path) -> Path | None:
    """Where a folder has a weight: under its path's last name, under its repository's, as the hub's cache keeps it, or
    the folder itself. None where it has none."""
    repo, revision = weight.card.repo or "", weight.card.revision or ""
    places = [folder / weight.path.name]
    if repo:
        cached = folder / f"models--{repo.replace('/', '--')}" / "snapshots"
        places += [folder / repo, *([cached / revision] if revision else [])]
    places.append(folder)
    names = weight.card.files if weight.card.one_file else ()
    for place in places:
        if weight.path.suffix and place.is_file():
            return place
        for name in names:
            if (place / name).is_file():
                return place / name
        if place.is_dir() and not names and (place != folder or not weight.path.suffix) and _chosen(weight, place):
            return place
    return None


def _chosen(weight: Weight, folder: Path) -> list[Path]:
    """The files of a folder that are the weight's: hidden ones are nobody's."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    named = ((path, path.relative_to(folder)) for path in files)
    return [
        path
        for path, name in named
        if not any(part.startswith(".") for part in name.parts) and weight.card.takes(name.as_posix())
    ]


def copy_from(weight: Weight, source: Path) -> None:
    """Bring a weight from a place on this machine (hard links where that can be), checked by its card's digest.

    Raises InputError where it is not what the card says.
    """
    part = _part(weight)
    _remove(part)
    if source.is_file():
        _link(source, part)
    else:
        for file in _chosen(weight, source):
            _link(file, part / file.relative_to(source))
    found = digests(part)
    if part.is_file():
        found = {weight.path.name: next(iter(found.values()))}
    wrong = _unlike_card(weight, found)
    if wrong:
        _remove(part)
        raise InputError(
            f"{source} is not what the card says: sha256 {wrong}",
            where=weight.where,
            expected=f"sha256 {weight.card.sha256}",
            mend="give another folder, or fetch without --from",
        )
    _finish(weight, part, source=str(source), revision="", found=found)


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    real = source.resolve()
    try:
        os.link(real, target)
    except OSError:  # another disk, or one without links
        shutil.copyfile(real, target)


# --- from the hub -----------------------------------------------------------------------------------------------------


def list_hub(weight: Weight) -> Listing:
    """What the hub has of a weight: names, sizes, digests; nothing is downloaded. Raises InputError (gated, unknown,
    nothing that fits), FetchStopped where the hub does not answer."""
    hub = _hub_client(weight)
    card = weight.card
    api = hub.HfApi(endpoint=_endpoint(hub))
    try:
        info = api.model_info(card.repo, revision=card.revision, files_metadata=True, token=_token(), timeout=30)
    except Exception as error:
        raise _told(error, weight) from error
    files = tuple(_hub_file(sibling) for sibling in info.siblings or () if card.takes(sibling.rfilename))
    lacking = [pattern for pattern in card.files if not any(fnmatch(file.name, pattern) for file in files)]
    if lacking or not files:
        raise InputError(
            f"{card.repo} at {info.sha} has no {', '.join(lacking) or 'file'}",
            where=weight.where,
            expected="files that the card names",
            mend="look at the repository's list of files, and mend `files` in the card",
        )
    licence = str(getattr(info.card_data, "license", "") or "")
    return Listing(weight, _endpoint(hub), str(info.sha), licence, bool(info.gated), files)


def _hub_file(sibling: Any) -> HubFile:
    large = sibling.lfs.sha256 if sibling.lfs else ""
    digest = large or sibling.blob_id or ""
    return HubFile(sibling.rfilename, int(sibling.size or 0), digest, "sha256" if large else "git")


def check_room(listings: Iterable[Listing]) -> None:
    """InputError where the disks have no room for all of it."""
    wanted: dict[int, int] = {}
    for listing in listings:
        place = _existing(listing.weight.path)
        device = place.stat().st_dev
        wanted[device] = wanted.get(device, 0) + listing.size
        free = shutil.disk_usage(place).free
        if wanted[device] + SPARE_GB * GB > free:
            raise InputError(
                f"{size_told(wanted[device])} do not fit on the disk of {place}: {size_told(free)} are free",
                where=listing.weight.where,
                expected=f"room, and {SPARE_GB:g} GB more",
                mend="free some, or put another disk at that path",
            )


def fetch(listing: Listing, tell: Tell = lambda line: None) -> None:
    """Download what was listed, check each file, and put it in place. Raises FetchStopped when it is cut off (it goes
    on from there) or brings other bytes, InputError where the hub refuses."""
    weight = listing.weight
    hub = _hub_client(weight)
    part = _part(weight)
    part.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(listing.files, start=1):
        if _is_good(part / file.name, file):
            continue
        tell(f"{number}/{len(listing.files)} {file.name}, {size_told(file.size)}")
        try:
            hub.hf_hub_download(
                weight.card.repo,
                file.name,
                revision=listing.commit,
                local_dir=part,
                endpoint=listing.endpoint,
                token=_token(),
            )
        except Exception as error:
            raise _told(error, weight) from error
        if not _is_good(part / file.name, file):
            (part / file.name).unlink()
            raise FetchStopped(
                f"{file.name} came with other bytes than the hub lists ({file.kind} {file.digest})",
                where=weight.where,
                expected="the bytes of that commit",
                mend="it was thrown away, the same command fetches it again; if it stays so, do not trust the source",
            )
    _remove(part / ".cache")
    found = digests(part)
    if weight.card.one_file:
        part = _single(part, weight)
    wrong = _unlike_card(weight, found)
    if wrong:
        _remove(_part(weight))
        _remove(part)
        raise InputError(
            f"the hub's files are not what the card says: sha256 {wrong}",
            where=weight.where,
            expected=f"sha256 {weight.card.sha256}",
            mend="mend sha256 or revision in the card; what came was thrown away",
        )
    source = f"{listing.endpoint}/{weight.card.repo}@{listing.commit}"
    _finish(weight, part, source=source, revision=listing.commit, found=found)


def _is_good(path: Path, file: HubFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    return not file.digest or file_digest(path, file.kind) == file.digest


def _single(part: Path, weight: Weight) -> Path:
    """The one file of a weight, out of the folder that the hub's client wants."""
    single = part.with_name(part.name + "-file")
    (part / weight.path.name).replace(single)
    _remove(part)
    return single


def _hub_client(weight: Weight) -> Any:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise InputError(
            "fetching from the hub needs the package huggingface_hub",
            where=weight.where,
            expected="huggingface_hub in the interpreter that runs torus",
            mend="`pip install huggingface_hub`, or bring the files yourself: --from DIR",
        ) from error


def _endpoint(hub: Any) -> str:
    return str(os.environ.get("HF_ENDPOINT") or hub.constants.ENDPOINT).rstrip("/")


def _token() -> str | bool:
    """The person's token, from the environment only; False keeps the client from looking elsewhere."""
    return os.environ.get(TOKEN_VARIABLE) or False


def _told(error: Exception, weight: Weight) -> TorusError:
    """An error of the hub's client as one for people. By the classes' names: they have moved between versions."""
    names = {cls.__name__ for cls in type(error).__mro__}
    repo = weight.card.repo
    status = getattr(getattr(error, "response", None), "status_code", None)
    if "GatedRepoError" in names or status in (401, 403):
        token = os.environ.get(TOKEN_VARIABLE)
        have = f"{TOKEN_VARIABLE} is set, but not let in" if token else f"{TOKEN_VARIABLE} is not set"
        return InputError(
            f"the hub does not give {repo} to everybody ({have})",
            where=weight.where,
            expected="an account that accepted the conditions, and its token",
            mend=f"accept them at https://huggingface.co/{repo}, set {TOKEN_VARIABLE} to a token that may read it, "
            "then the same command",
        )
    if names & {"RepositoryNotFoundError", "RevisionNotFoundError", "EntryNotFoundError"}:
        return InputError(
            f"the hub has no {repo} at {weight.card.revision or 'main'}",
            where=weight.where,
            expected="a repository and a commit that are there",
            mend="mend repo or revision in the card",
        )
    told = str(error).strip().splitlines() or [""]
    return FetchStopped(
        f"the hub did not give {repo}: {type(error).__name__}: {told[0][:200]}",
        where=weight.where,
        expected="an answer of the hub (HF_ENDPOINT names another one)",
        mend="the same command goes on with what is missing; without a network: --from DIR",
    )


# --- putting it in place ----------------------------------------------------------------------------------------------


def _part(weight: Weight) -> Path:
    return weight.path.with_name(weight.path.name + PART_SUFFIX)


def _existing(path: Path) -> Path:
    """The nearest folder above a path that is there."""
    return next(parent for parent in path.absolute().parents if parent.is_dir())


def _unlike_card(weight: Weight, found: Mapping[str, str]) -> str:
    """The digest of what came, where the card states another; else ""."""
    if not weight.card.sha256:
        return ""
    single = len(found) == 1 and (weight.card.one_file or weight.path.name in found)
    digest = next(iter(found.values())) if single else folder_digest(found)
    return "" if digest == weight.card.sha256 else digest


def _finish(weight: Weight, part: Path, *, source: str, revision: str, found: Mapping[str, str]) -> None:
    write_record(weight, source=source, revision=revision, found=found)
    part.replace(weight.path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
