"""`torus bank`: look at a bank and check it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from torus_ray.bank.load import Bank
    from torus_ray.bank.schema import Stage, Test

app = typer.Typer(help="Banks of tests: show, check.", no_args_is_help=True, rich_markup_mode=None)

Where = Annotated[Path | None, typer.Option("--bank", help="A bank's folder; the project's own where nothing is said.")]


@app.command()
def check(
    path: Annotated[
        Path | None, typer.Argument(help="A bank's folder; the project's own where nothing is said.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Check a bank: the schema of every file, then balance and wording. Exit 1 if an error or warning is found."""
    from torus_ray.bank.check import check_bank

    bank = _load(path)
    report = check_bank(bank)
    findings = report.findings
    if as_json:
        print(json.dumps([finding.__dict__ for finding in findings], indent=1))
        return 1 if findings else 0
    for finding in findings:
        print(finding.render())
    what = f"{report.tests} tests, {report.questions} questions, {len(findings)} findings"
    print(f"{bank.card.name}@{bank.hash[:8]}: {what}")
    return 1 if findings else 0


@app.command()
def show(
    test: Annotated[str | None, typer.Argument(help="A test's id; a list of all where nothing is said.")] = None,
    bank: Where = None,
    keys: Annotated[bool, typer.Option(help="Also what is sealed: specs, transcripts, keys, right letters.")] = False,
) -> int:
    """Show a bank's tests, or one whole: prompts, and questions in the order shown."""
    from torus_ray.bank.order import letter_of, shown_options
    from torus_ray.bank.schema import LETTERS

    loaded = _load(bank)
    if test is None:
        verified = sum(t.provenance.human_verified_by is not None for t in loaded.tests)
        card = loaded.card
        print(
            f"{card.title} ({card.name}@{loaded.hash[:8]}): {len(loaded.tests)} tests, {verified} verified by a person"
        )
        for entry in loaded.tests:
            print(f"{entry.id}  {entry.audio_type}: {entry.title}")
        return 0
    chosen = loaded.test(test)
    print(f"{chosen.id}  {chosen.audio_type}: {chosen.title}")
    for name, stage in _stages(chosen).items():
        print(f"\n{name}: {stage.prompt}")
        if keys:
            print(f"  spec: {stage.spec.summary}")
            print(f"  transcript: {stage.transcript or '-'}")
        for question in stage.questions:
            item = f"{chosen.id}.{name}.{question.id}"
            options = shown_options(seed=loaded.card.order_seed, item=item, options=question.options)
            right = letter_of(question.answer, options)
            print(f"  {question.id} [{question.family}] {question.text}")
            for letter, option in zip(LETTERS, options, strict=True):
                print(f"    {'*' if keys and letter == right else ' '} {letter}. {option}")
    return 0


def _load(path: Path | None) -> Bank:
    from torus_ray.bank.load import load_bank
    from torus_ray.cli.common import default_bank

    return load_bank(path or default_bank())


def _stages(test: Test) -> dict[str, Stage]:
    from torus_ray.bank.schema import STAGES

    return {name: test.stage(name) for name in STAGES}
