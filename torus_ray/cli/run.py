"""`torus run`: evaluate systems on a bank."""

from __future__ import annotations

import json
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.cli.measuring import Measures, Reference, measured_by, reference_for, write_numbers
from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.bank.load import Bank
    from torus_ray.bank.schema import Test
    from torus_ray.engine.session import RunResult
    from torus_ray.protocol.graph import Arm
    from torus_ray.systems import System

DEFAULT_RESULTS = Path("results")
MAX_SEED = 2**31 - 1
URI = re.compile(r"[a-z][a-z0-9+.-]*:/")


def run(
    systems: Annotated[
        list[str] | None, typer.Argument(help="Systems by name, or paths to their cards.", show_default=False)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A model class of your own: FILE.py:CLASS, run by this Python.")
    ] = None,
    generator: Annotated[
        str | None, typer.Option(help="Compose a system: whose generate head. A card, or hf:OWNER/NAME.")
    ] = None,
    editor: Annotated[
        str | None,
        typer.Option(help="Compose a system: whose edit head (none: self-caption arm). A card, or hf:OWNER/NAME."),
    ] = None,
    listener: Annotated[
        str | None, typer.Option(help="Compose a system: whose caption and answer heads. A card, or hf:OWNER/NAME.")
    ] = None,
    bank: Annotated[
        Path | None, typer.Option(help="A bank's folder (the project's own where nothing is said).", show_default=False)
    ] = None,
    tests: Annotated[str | None, typer.Option(help="Only tests whose id matches, e.g. 'speech-*'.")] = None,
    limit: Annotated[
        int | None, typer.Option(help="Only the first N tests; without it later, the run goes on.", min=1)
    ] = None,
    arms: Annotated[str | None, typer.Option(help="Edit modes: native, self-caption, or both with a comma.")] = None,
    controls: Annotated[str | None, typer.Option(help="Control arms beside them: muted, swapped.")] = None,
    seeds: Annotated[str, typer.Option(help="Seeds of rendering and answering, e.g. 0,1,2.")] = "0",
    repeats: Annotated[int, typer.Option(help="How often each question is asked of a clip.", min=1)] = 1,
    measures: Measures = None,
    reference: Reference = None,
    exact: Annotated[
        bool, typer.Option(help="One request at a time where a head's replies depend on their batch.")
    ] = False,
    results: Annotated[
        Path, typer.Option(help="Where runs are kept: a folder, or s3://BUCKET/PREFIX.")
    ] = DEFAULT_RESULTS,
    address: Annotated[
        str | None,
        typer.Option(help="A running Ray cluster: HOST:PORT, auto, local. Else that of RAY_ADDRESS, else our own."),
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(help="End in order before it, to go on later: 3h, 90m, 2026-12-01T08:00.", show_default=False),
    ] = None,
    inline: Annotated[bool, typer.Option(help="In this process, without Ray: for debugging an adapter.")] = False,
    plan: Annotated[bool, typer.Option(help="Say what would be run, and stop.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on standard output instead of a table.")
    ] = False,
    quiet: Annotated[bool, typer.Option(help="No progress line.")] = False,
) -> int:
    """Evaluate systems on a bank: render, edit twice, caption, answer; measure each clip beside it. The same command
    again goes on where it stopped."""
    from torus_ray.bank.load import load_bank
    from torus_ray.cli.common import default_bank, results_at
    from torus_ray.cli.until import deadline_of
    from torus_ray.engine.jobs import cluster_address, in_job

    ends_at = deadline_of(deadline) if deadline is not None else None
    if not inline:
        cluster_address(address)  # what is wrong with it is said before anything else
    check_results(results)
    results = results_at(results)
    chosen = choose_systems(systems or [], model=model, generator=generator, editor=editor, listener=listener)
    chosen = [measured_by(system, measures) for system in chosen]
    loaded = load_bank(bank or default_bank())
    selected = choose_tests(loaded, pattern=tests, limit=limit)
    wanted = {system.name: choose_arms(system, arms=arms, controls=controls, seeds=seeds) for system in chosen}
    if plan:
        from torus_ray.cli.plan import print_plan

        print_plan(chosen, loaded, selected, wanted, repeats=repeats, results=results, as_json=as_json)
        return 0
    if inline:
        from torus_ray.cli.borrow import borrow_environment

        borrow_environment(chosen)

    from torus_ray.cli.costs import estimate_run
    from torus_ray.cli.progress import progress_line
    from torus_ray.engine.opening import Opening
    from torus_ray.engine.session import RunOptions, run_system
    from torus_ray.store.layout import bank_folder

    home = bank_folder(results.absolute(), loaded.card.name, loaded.hash)
    references = {system.name: reference_for(system, reference, home) for system in chosen}
    ended: list[RunResult] = []
    for system in chosen:
        options = RunOptions(
            results=results.absolute(),
            tests=selected,
            arms=wanted[system.name],
            repeats=repeats,
            opening=Opening(
                inline=inline, address=address, exact=exact, only_python=model is not None, deadline=ends_at
            ),
            reference=references[system.name],
        )
        with progress_line(system.name, quiet=quiet or as_json) as line:
            for cost in estimate_run(system, loaded, selected, wanted[system.name], repeats=repeats):
                line.tell(str(cost))
            conclude = write_numbers(line.tell)
            ended.append(run_system(system, loaded, options, watch=line.watch, tell=line.tell, conclude=conclude))
    print_results(ended, as_json=as_json)
    code = max(result.exit_code for result in ended)
    if code and in_job():
        # Ray's job command makes 1 of every code but 0.
        print(f"exit code {code}; it stands in run.json", file=sys.stderr)
    return code


def check_results(results: Path) -> None:
    """Raises InputError for a place that a job would lose: its folder is a copy that Ray throws away."""
    from torus_ray.engine.jobs import in_job

    if in_job() and not (results.is_absolute() or URI.match(str(results))):
        raise InputError(
            f"results in {results}: a job's own folder is a copy, which is thrown away",
            where="--results",
            expected="a folder by its whole path, on a disk that outlives the job, or a URI",
            mend="e.g. --results /shared/results, or s3://BUCKET/results",
        )


def print_results(ended: list[RunResult], *, as_json: bool) -> None:
    from torus_ray.cli.failures import failure_lines
    from torus_ray.report.tables import coherence_table
    from torus_ray.report.terminal import print_table
    from torus_ray.store.mirror import named

    folders = [folder for result in ended for folder in result.runs.values()]
    table = coherence_table(folders)
    if as_json:
        told = [
            {
                "runs": {arm: named(folder) for arm, folder in result.runs.items()},
                "units": dict(result.by_status),
                "computed": result.computed,
                "setup_s": round(result.setup_s, 3),
                "evaluation_s": round(result.evaluation_s, 3),
                "exit_code": result.exit_code,
            }
            for result in ended
        ]
        print(json.dumps({"systems": told, "table": table.rows}, indent=1))
        return
    print_table(table)
    for line in failure_lines(folders):
        print(line)
    for result in ended:
        if result.computed:
            print(f"{result.computed} units in {result.evaluation_s:.1f} s, after {result.setup_s:.1f} s of set-up")
        else:
            print("nothing to do: every unit of this command has its row")
        for folder in result.runs.values():
            print(f"rows: {_shown(folder)}")


def _shown(folder: Path) -> str:
    """A path as short as it can be typed here, or a URI."""
    from torus_ray.store.mirror import named

    here, name = Path.cwd(), named(folder)
    return str(folder.relative_to(here)) if name == str(folder) and folder.is_relative_to(here) else name


# --- choosing ---------------------------------------------------------------------------------------------------------


def choose_systems(
    names: list[str], *, model: str | None, generator: str | None, editor: str | None, listener: str | None
) -> list[System]:
    """The systems that the command line asks for. Raises InputError."""
    from torus_ray.systems import compose, load_system

    composed = generator is not None or listener is not None or editor is not None
    if sum((bool(names), model is not None, composed)) != 1:
        raise InputError(
            "say what to run in one way",
            where="torus run",
            expected="SYSTEM..., or --model FILE.py:CLASS, or --generator ID --listener ID",
            mend="e.g. `torus run pocket`; `torus systems` lists what there is",
        )
    if model is not None:
        from torus_ray.cli.model import system_of_model

        return [system_of_model(model)]
    if not composed:
        return [_that_renders(load_system(name)) for name in dict.fromkeys(names)]
    if generator is None or listener is None:
        raise InputError(
            "a composed system needs a generator and a listener",
            where="torus run",
            expected="--generator ID --listener ID, and --editor ID where it edits natively",
            mend="add what is missing",
        )
    return [
        compose(
            generator=load_system(generator),
            editor=load_system(editor) if editor else None,
            listener=load_system(listener),
        )
    ]


def _that_renders(system: System) -> System:
    if system.only_measures:
        raise InputError(
            f"{system.name} only measures: there is nothing that it could be evaluated for",
            where="torus run",
            expected="a system that renders or answers",
            mend=f"`torus run SYSTEM --measures {system.name}`, or `torus measure RUN --measures {system.name}`",
        )
    return system


def choose_tests(bank: Bank, *, pattern: str | None, limit: int | None) -> tuple[Test, ...]:
    """The tests of a bank that match, in id order, at most `limit`. Raises InputError when none does."""
    matching = tuple(test for test in bank.tests if pattern is None or fnmatchcase(test.id, pattern))
    if not matching:
        raise InputError(
            f"no test matches {pattern!r}",
            where="--tests",
            expected=f"a pattern that matches some of {bank.tests[0].id} ... {bank.tests[-1].id}",
            mend="`torus bank show` lists the ids",
        )
    return matching[:limit] if limit else matching


def choose_arms(system: System, *, arms: str | None, controls: str | None, seeds: str) -> tuple[Arm, ...]:
    """Edit modes x seeds, and their controls. Raises InputError for a word that is none of them."""
    from torus_ray.protocol.graph import CONTROLS, Arm
    from torus_ray.systems import EDIT_MODES

    modes = _words(arms, "--arms", EDIT_MODES) if arms is not None else list(system.edit_modes)
    wanted_controls = _words(controls, "--controls", CONTROLS) if controls is not None else []
    numbers = []
    for word in seeds.split(","):
        if not word.strip().isdecimal():
            raise InputError(
                f"{word.strip()!r} is no seed", where="--seeds", expected="whole numbers, e.g. 0,1,2", mend="mend it"
            )
        numbers.append(int(word))
        if numbers[-1] > MAX_SEED:
            raise InputError(f"{word} is too large", where="--seeds", expected=f"at most {MAX_SEED}", mend="take less")
    wanted = [Arm(mode, seed) for mode in EDIT_MODES if mode in modes for seed in dict.fromkeys(numbers)]
    return tuple(wanted + [Arm(arm.edit_mode, arm.seed, c) for arm in wanted for c in CONTROLS if c in wanted_controls])


def _words(text: str, option: str, known: tuple[str, ...]) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in words if word not in known]
    if unknown or not words:
        raise InputError(
            f"{option} has {', '.join(map(repr, unknown)) or 'nothing'}",
            where=option,
            expected="one or more of " + ", ".join(known),
            mend="mend the word",
        )
    return words
