"""What `torus run` and `torus measure` share: which cards measure, what distances are taken to, and writing the numbers
made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.store.local import LocalRunStore
    from torus_ray.systems import System

NONE = "none"
Measures = Annotated[
    str | None,
    typer.Option(
        help="Cards that measure the clips, by name or path, with commas; or none. Where nothing is said: those made "
        "for the system.",
        show_default=False,
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        help="What KL, FAD and FD are taken to: a run folder, SYSTEM_FOLDER:ARM, or a reference pack.",
        show_default=False,
    ),
]


def measured_by(system: System, measures: str | None) -> System:
    """The system with the measuring hosts asked for. Raises InputError."""
    from torus_ray.systems import load_system, measuring_by_default, with_measures

    if measures is None:
        return with_measures(system, [load_system(name) for name in measuring_by_default(system.name)])
    names = [word.strip() for word in measures.split(",") if word.strip()]
    if not names:
        raise InputError("--measures has nothing", where="--measures", expected="names or `none`", mend="name a card")
    if names == [NONE]:
        return system
    return with_measures(system, [load_system(name) for name in dict.fromkeys(names)])


def reference_for(system: System, reference: str | None, bank_folder: Path) -> str | None:
    """How run.json is to name the reference: what was asked for, else the arm that a measuring card takes for this
    system (DESIGN 8). Raises InputError for a reference that is not there."""
    from torus_ray.report.references import locate, named
    from torus_ray.systems import measuring_by_default

    if reference is not None:
        return named(locate(reference), bank_folder)
    arms = set(measuring_by_default(system.name).values()) if system.measures else set()
    return f"{system.name}/{arms.pop()}" if len(arms) == 1 else None


def write_numbers(tell: Callable[[str], None]) -> Callable[[Mapping[str, LocalRunStore]], None]:
    """Makes the numbers of each arm, when its measures are there, and writes them into its table `distances`."""

    def conclude(stores: Mapping[str, LocalRunStore]) -> None:
        from torus_ray.report.objective import rows_to_store
        from torus_ray.report.runs import open_run

        for store in stores.values():
            try:
                rows = rows_to_store(open_run(Path(store.location)))
            except InputError as error:
                tell(f"no objective numbers for {store.location}: {error.message}")
                continue
            if rows:
                store.append("distances", rows)

    return conclude
