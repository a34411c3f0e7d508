"""`torus trace`: when each call of a run waited, computed and became durable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torus_ray.errors import InputError

At = Annotated[Path, typer.Argument(help="A run folder or s3:// URI, or what is above runs that went on together.")]


def trace(
    run: At,
    output: Annotated[Path, typer.Option(help="The trace to write.")] = Path("trace.json"),
    gantt: Annotated[
        Path | None, typer.Option(help="Draw it too, into this .png, .svg or .pdf.", show_default=False)
    ] = None,
) -> int:
    """Write a run as a trace that ui.perfetto.dev shows: a track a worker, a slice a call, its units and its waiting
    beside it; and how busy each host was."""
    from torus_ray.cli.common import runs_at
    from torus_ray.profiling.gantt import SUFFIXES, draw_gantt
    from torus_ray.profiling.slices import slices_of
    from torus_ray.profiling.trace import trace_events, write_trace
    from torus_ray.profiling.use import use_of

    if gantt is not None and gantt.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{gantt.name} is no kind of picture that can be drawn",
            where="--gantt",
            expected="a file that ends in " + ", ".join(SUFFIXES),
            mend="e.g. --gantt run.png",
        )
    folders = runs_at([run])
    slices = slices_of(folders)
    try:
        with output.open("w", encoding="utf-8") as file:
            count = write_trace(trace_events(slices), file)
        if gantt is not None:
            draw_gantt(slices, gantt, ", ".join("/".join(folder.parts[-2:]) for folder in folders))
    except OSError as error:
        raise InputError(
            f"cannot write {error.filename or output}: {error.strerror or error}",
            where=str(output),
            expected="a file in a folder that is there and can be written",
            mend="choose another with --output or --gantt",
        ) from error
    print(f"{output}: {len(slices)} calls, {count} events; open it at https://ui.perfetto.dev, which sends it nowhere")
    for use in use_of(slices):
        print(use)
    if gantt is not None:
        print(gantt)
    return 0
