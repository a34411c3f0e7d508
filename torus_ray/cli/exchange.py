"""`torus export` and `torus import`: people and models that run elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

export_app = typer.Typer(
    help="For people and models that run elsewhere: prompts, questions.", no_args_is_help=True, rich_markup_mode=None
)
import_app = typer.Typer(help="What came back from them: clips, answers.", no_args_is_help=True, rich_markup_mode=None)

Target = Annotated[Path, typer.Argument(help="A folder to write; it must be empty or not there.", show_default=False)]
Source = Annotated[Path, typer.Argument(help="The folder that came back.", show_default=False)]
OneRun = Annotated[Path, typer.Argument(help="A run folder.", show_default=False)]
RunOrBank = Annotated[Path, typer.Argument(help="A run folder, or a bank's.", show_default=False)]
DEFAULT_RESULTS = Path("results")


@export_app.command("prompts")
def export_prompts(
    origin: RunOrBank,
    target: Target,
    system: Annotated[str | None, typer.Option(help="Of a bank: the name that the system is to have.")] = None,
    arm: Annotated[str | None, typer.Option(help="Of a bank: native, or native.seed1.")] = None,
) -> int:
    """Write prompts.jsonl, a line a render, each with the clip that it edits where the run has it."""
    from torus_ray.cli.exchange_out import write_prompts
    from torus_ray.cli.exchange_place import place

    count, clips = write_prompts(place(origin, system=system, arm=arm, results=DEFAULT_RESULTS), target)
    print(f"{target}/prompts.jsonl: {count} prompts, {clips} clips")
    return 0


@export_app.command("questions")
def export_questions(run: OneRun, target: Target) -> int:
    """Write questions.jsonl, a line a question in the order shown, with the clips; no right answers in it."""
    from torus_ray.cli.exchange_out import write_questions
    from torus_ray.cli.exchange_place import place

    count, clips = write_questions(place(run), target)
    print(f"{target}/questions.jsonl: {count} questions, {clips} clips")
    return 0


@import_app.command("clips")
def import_clips(
    origin: RunOrBank,
    source: Source,
    system: Annotated[str, typer.Option(help="The name of the system that made them.", show_default=False)],
    arm: Annotated[str, typer.Option(help="The arm: native or native.seed1.", show_default=False)],
    results: Annotated[Path, typer.Option(help="Of a bank: where runs are kept.")] = DEFAULT_RESULTS,
) -> int:
    """Read clips.jsonl and its files into a run. Nothing is written unless all of it is sound. Stages can come one
    after another."""
    from torus_ray.cli.exchange_in import read_clips_in
    from torus_ray.cli.exchange_place import place

    at = place(origin, system=system, arm=arm, results=results)
    new, kept = read_clips_in(at, source)
    print(f"{new} clips are new, {kept} were there\nrows: {at.folder}")
    return 0


@import_app.command("answers")
def import_answers(run: OneRun, source: Source) -> int:
    """Read answers.jsonl into a run. Nothing is written unless all of it is sound."""
    from torus_ray.cli.exchange_in import read_answers_in
    from torus_ray.cli.exchange_place import place

    at = place(run)
    new, kept = read_answers_in(at, source)
    print(f"{new} answers are new, {kept} were there\nrows: {at.folder}")
    return 0
