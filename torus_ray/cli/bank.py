"""`torus bank`: look at a bank and check it; sealing and importing have modules of their own."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.cli import bank_import, bank_seal
from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.bank.check import BankReport
    from torus_ray.bank.load import Bank

app = typer.Typer(
    help="Banks of tests: show, check, draft, gate, review, seal, import.", no_args_is_help=True, rich_markup_mode=None
)

app.command("seal")(bank_seal.seal)
app.command("import")(bank_import.take)

Where = Annotated[Path | None, typer.Option("--bank", help="A bank's folder; the project's own where nothing is said.")]


@app.command()
def check(
    path: Annotated[
        Path | None, typer.Argument(help="A bank's folder; the project's own where nothing is said.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The statistics of a bank's card.")] = False,
) -> int:
    """Check a bank: the schema of every file, then solvers that hear nothing, echo, balance, near-duplicates and
    wording. Exit 1 if an error or warning is found, 2 if it is no bank; with --json its problems are JSON too."""
    from torus_ray.bank.load import BankError
    from torus_ray.bank.statistics import statistics

    if as_json and markdown:
        raise InputError("--json and --markdown together", where="--markdown", expected="one", mend="leave one out")
    try:
        bank = _load(path)
    except BankError as error:
        if not as_json:
            raise
        print(json.dumps({"bank": error.where, "problems": [asdict(problem) for problem in error.problems]}, indent=1))
        return error.exit_code
    report = checked(bank)
    if as_json:
        print(json.dumps(_told(bank, report), indent=1))
    elif markdown:
        print(statistics(bank, report), end="")
    else:
        _print(bank, report)
    return 1 if report.findings else 0


def checked(bank: Bank) -> BankReport:
    """The report on a bank, with sentence embeddings where they are installed."""
    from torus_ray.bank.check import check_bank
    from torus_ray.bank.embeddings import NoEmbeddings, default_cache, load_embedder

    try:
        embed = load_embedder(cache=default_cache())
    except NoEmbeddings:
        embed = None
    return check_bank(bank, embed=embed)


def _print(bank: Bank, report: BankReport) -> None:
    from torus_ray.bank.embeddings import INSTALL

    for finding in report.findings:
        print(finding.render())
    for heading, rates in (("deaf solvers", report.solvers), ("echo", report.echoes)):
        print(f"{heading} (right of {report.questions} questions, chance 16.7 %; Wilson 95 %, n = questions):")
        for rate in rates:
            interval, limit = (
                rate.interval.scaled(100),
                f"{'under' if rate.below else 'at most'} {100 * rate.limit:.0f}",
            )
            spread = f"{interval.lo:4.1f} to {interval.hi:4.1f}"
            print(f"  {100 * rate.share:5.1f} %  {spread}  ({limit})  {rate.rule}")
    if report.not_made:
        print(f"not checked, the sentence embeddings are not installed ({INSTALL}): {'; '.join(report.not_made)}")
    verified = f"{report.human_verified} verified by a human"
    what = f"{report.tests} tests, {verified}, {report.questions} questions, {len(report.findings)} findings"
    print(f"{bank.card.name}@{bank.hash[:8]}: {what}")


def _told(bank: Bank, report: BankReport) -> dict[str, object]:
    return {
        "bank": bank.card.name,
        "hash": bank.hash,
        "tests": report.tests,
        "questions": report.questions,
        "human_verified": report.human_verified,
        "letters": dict(report.letters),
        "families": dict(report.families),
        "audio_types": dict(report.audio_types),
        "solvers": [rate.as_json() for rate in report.solvers],
        "echo": [rate.as_json() for rate in report.echoes],
        "not_made": list(report.not_made),
        "findings": [asdict(finding) for finding in report.findings],
    }


@app.command()
def show(
    test: Annotated[str | None, typer.Argument(help="A test's id; a list of all where nothing is said.")] = None,
    bank: Where = None,
    keys: Annotated[bool, typer.Option(help="Also what is sealed: specs, transcripts, keys, right letters.")] = False,
) -> int:
    """Show a bank's tests, or one whole: prompts, and questions in the order shown."""
    from torus_ray.bank.order import letter_of, shown_options
    from torus_ray.bank.schema import LETTERS, STAGES

    if test is not None and bank is None and Path(test).is_dir():
        raise InputError(
            f"{test} is a folder, no test", where="TEST", expected="a test's id", mend=f"torus bank show --bank {test}"
        )
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
    for name in STAGES:
        stage = chosen.stage(name)
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
