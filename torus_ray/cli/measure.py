"""`torus measure`: take the measures of runs that are there already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.cli.measuring import Measures, Reference, measured_by, reference_for, write_numbers
from torus_ray.cli.score import Runs
from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.report.runs import Run
    from torus_ray.systems import System


def measure(
    runs: Runs,
    measures: Measures = None,
    reference: Reference = None,
    address: Annotated[
        str | None, typer.Option(help="A running Ray cluster; one of our own where nothing is said.")
    ] = None,
    inline: Annotated[bool, typer.Option(help="In this process, without Ray.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on standard output instead of a table.")
    ] = False,
    quiet: Annotated[bool, typer.Option(help="No progress line.")] = False,
) -> int:
    """Measure the clips of runs: adds measures, or replaces those of a head that has changed. Renders, captions and
    answers stay as they are."""
    from torus_ray.cli.borrow import borrow_environment
    from torus_ray.cli.common import runs_at
    from torus_ray.cli.progress import progress_line
    from torus_ray.cli.run import print_results
    from torus_ray.engine.opening import Opening
    from torus_ray.engine.session import RunOptions, measure_runs
    from torus_ray.report.runs import open_run

    opened = [open_run(folder) for folder in runs_at(runs)]
    groups: dict[Path, list[Run]] = {}
    for run in opened:
        if run.manifest.control is None:
            groups.setdefault(run.folder.parent.absolute(), []).append(run)
    if not groups:
        raise InputError(
            "a control has no clips of its own",
            where=", ".join(str(run.folder) for run in opened),
            expected="a run that renders",
            mend="name the arm that it controls",
        )
    systems = {folder: _system(group, measures) for folder, group in groups.items()}
    if inline:
        borrow_environment(systems.values())
    # All references are looked for before anything starts.
    references = {folder: reference_for(system, reference, folder.parent) for folder, system in systems.items()}
    ended = []
    for folder, group in groups.items():
        tests = {test for run in group for test in run.tests}
        options = RunOptions(
            results=folder.parent.parent,
            tests=tuple(test for test in group[0].bank.tests if test.id in tests),
            arms=tuple(run.arm for run in group),
            opening=Opening(inline=inline, address=address),
            reference=references[folder],
        )
        with progress_line(f"measuring {systems[folder].name}", quiet=quiet or as_json) as line:
            ended.append(
                measure_runs(
                    systems[folder],
                    group[0].bank,
                    options,
                    watch=line.watch,
                    tell=line.tell,
                    conclude=write_numbers(line.tell),
                )
            )
    print_results(ended, as_json=as_json)
    return max(result.exit_code for result in ended)


def _system(runs: list[Run], measures: str | None) -> System:
    """The measuring hosts under the name of the runs' system: what they render with is not needed. Raises
    InputError."""
    from torus_ray.systems import System, SystemCard, measuring_by_default, with_measures

    manifest = runs[0].manifest
    card = SystemCard.model_construct(name=manifest.system, title=manifest.system, hosts={})
    asked = measures or ",".join(measuring_by_default(manifest.system))
    system = measured_by(System(card, {}), asked) if asked else System(card, {})
    if not system.measures:
        raise InputError(
            f"nothing to measure {manifest.system} with",
            where="--measures",
            expected="cards that measure",
            mend="e.g. --measures embedded; `torus systems` lists them",
        )
    return with_measures(system, [])
