"""`torus bank import`: a bank from Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def take(
    source: Annotated[Path, typer.Argument(help="A folder that `torus bank seal` wrote, or another with Parquet.")],
    target: Annotated[Path, typer.Argument(help="The bank's folder to write: a new one.")],
    mapping: Annotated[
        Path | None, typer.Option(help="A TOML file: where another's table keeps what (docs/bank.md).")
    ] = None,
) -> int:
    """Make a bank's folder from a sealed bank, its hash compared; or from another's table by a mapping of columns."""
    from torus_ray.bank.hub_import import read_mapped, read_mapping, read_sealed, write_bank
    from torus_ray.bank.seal import refuse_existing

    refuse_existing(target)
    bank = read_mapped(source, read_mapping(mapping)) if mapping else read_sealed(source)
    write_bank(bank, target)
    print(f"{target}: {bank.card.name}, {len(bank.tests)} tests, hash {bank.hash}")
    return 0
