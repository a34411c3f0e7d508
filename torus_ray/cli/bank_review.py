"""`torus bank review`: the page on which people verify a bank."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

Run = Annotated[
    list[Path] | None,
    typer.Option("--run", help="Runs whose clips can be played: run folders, or folders above some. Repeatable."),
]


def review(
    path: Annotated[
        Path | None, typer.Argument(help="A bank's folder; the project's own where nothing is said.")
    ] = None,
    runs: Run = None,
    reviewer: Annotated[str, typer.Option(help="Your name; the page asks for it where nothing is said.")] = "",
    host: Annotated[str, typer.Option(help="Address to listen on. Anybody who reaches it can read and judge.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free one.")] = 8047,
) -> int:
    """Serve a web page for human verification: read, listen, accept, edit or reject, a test at a time.

    Verdicts are durable when the page says saved: in reviews.jsonl in the bank's folder, and in the test's own file.
    """
    from torus_ray.cli.common import default_bank, runs_at
    from torus_ray.curation.review.clips import arm_clips
    from torus_ray.curation.review.desk import Desk
    from torus_ray.curation.review.server import Review, serve

    # To end it is what Ctrl-C is for here: also before the server listens, and pressed twice.
    with contextlib.suppress(KeyboardInterrupt), Desk(path or default_bank()) as desk:
        arms = arm_clips(runs_at(runs), desk.card.name) if runs else ()

        def ready(address: str) -> None:
            typer.echo(f"reviewing {desk.card.name} in {desk.path}: {address} (Ctrl-C ends)")

        serve(Review(desk, arms, reviewer, host), port, ready)
    typer.echo("ended")
    return 0
