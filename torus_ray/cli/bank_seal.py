"""`torus bank seal`: a bank as Parquet with its card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def seal(
    path: Annotated[Path, typer.Argument(help="A bank's folder.")],
    target: Annotated[Path, typer.Argument(help="The folder to write: a new one.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Write a bank as a Hugging Face dataset: Parquet and a card with hash, statistics and how many tests a human has
    verified. A bank with errors is refused."""
    from torus_ray.bank.load import load_bank
    from torus_ray.bank.seal import refuse_existing, sealed_files, write_sealed
    from torus_ray.bank.statistics import verified
    from torus_ray.cli.bank import checked

    refuse_existing(target)
    bank = load_bank(path)
    report = checked(bank)
    files = sealed_files(bank, report)
    write_sealed(files, target)
    if as_json:
        told = {"bank": bank.card.name, "hash": bank.hash, "folder": str(target), "files": sorted(files)}
        print(json.dumps({**told, "tests": report.tests, "human_verified": report.human_verified}, indent=1))
        return 0
    print(f"{target}: {bank.card.name}, {report.tests} tests, hash {bank.hash}")
    warnings = len(report.findings)
    print(f"{verified(bank)} {warnings} warning{'' if warnings == 1 else 's'} of `torus bank check`.")
    return 0
