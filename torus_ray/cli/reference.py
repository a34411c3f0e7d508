"""`torus reference pack`: what KL, FAD and FD need of a run, as one file without its audio."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torus_ray.errors import InputError

app = typer.Typer(no_args_is_help=True, help="References that distances are taken to.")


@app.callback()
def _reference() -> None:
    """References that distances are taken to."""


@app.command("pack")
def pack(
    run: Annotated[Path, typer.Argument(help="The run folder of one arm.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="The file to write.", show_default=False)] = None,
) -> int:
    """Write a reference pack: class scores, frames and vectors of a run, hashes of its bank and heads, no audio.
    `--reference FILE` takes it."""
    from torus_ray.cli.common import runs_at
    from torus_ray.report.references import write_pack
    from torus_ray.report.runs import open_run

    folders = runs_at([run])
    if len(folders) != 1:
        raise InputError(
            f"{run} holds {len(folders)} runs",
            where=str(run.absolute()),
            expected="one run: a reference is one arm",
            mend="name one of " + ", ".join(str(folder) for folder in folders[:4]),
        )
    opened = open_run(folders[0])
    manifest = opened.manifest
    target = out or Path(f"{manifest.system}-{manifest.arm}@{manifest.bank_hash[:8]}.reference.parquet")
    rows = write_pack(opened, target)
    print(f"written: {target} ({rows} measures, {target.stat().st_size / 1e6:.1f} MB)")
    return 0
