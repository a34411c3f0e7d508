"""What several commands share: where the project's bank is, and which runs a path means."""

from __future__ import annotations

from pathlib import Path

from torus_ray.errors import InputError


def default_bank() -> Path:
    """The project's own bank: inside the installed package, else in the checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_data" / "bank", package.parent / "bank"):
        if (folder / "torus_open_48").is_dir():
            return folder / "torus_open_48"
    raise InputError(
        "the project's bank is not here", where=str(package), expected="bank/torus_open_48", mend="give --bank"
    )


def runs_at(paths: list[Path], *, anew: bool = False) -> list[Path]:
    """The run folders at or under each path (a run, a system's, a bank's or the results folder) or s3:// URI; of what
    lies in a bucket, the mirror here, brought up to date. anew: trust nothing that is here. Raises InputError."""
    from torus_ray.store.layout import find_runs
    from torus_ray.store.mirror import local_folder, look_into, mirror_of, named

    found: list[Path] = []
    for path in paths:
        folder = local_folder(path)
        look_into(folder, anew=anew)
        runs = find_runs(folder)
        if not runs:
            raise InputError(
                f"no run at {named(folder)}",
                where=named(folder) if mirror_of(folder) else str(path.absolute()),
                expected="a run folder (it holds run.json), or a folder above some",
                mend="check the path; `torus run` prints it",
            )
        found += runs
    return list(dict.fromkeys(found))


def results_at(place: Path) -> Path:
    """The results folder as it is written to and read here: an absolute path; of an s3:// URI, its mirror. Raises
    InputError."""
    from torus_ray.store.mirror import local_folder

    return local_folder(place).absolute()
