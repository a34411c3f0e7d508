"""The `torus` command. Each command imports what it needs when it is called: help and score never load Ray."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

EXIT_USAGE = 2
EXIT_STOPPED = 3
INTERRUPTED = 130
"""What Typer makes of Ctrl-C before anybody else sees it."""
GOES_ON = (("run",), ("measure",), ("bank", "draft"), ("bank", "gate"), ("env", "build"), ("weights", "fetch"))
"""The commands that keep what they have done when they are stopped, and go on from there."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code.

    0 done, 1 finished with failed units or a check that found something, 2 bad usage or input (nothing started), 3
    stopped before the end (the same command goes on, if it is one of GOES_ON).
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words)
    except KeyboardInterrupt:
        code = _stopped(words)  # before the command began, while modules were loaded
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    import os
    import signal

    import typer

    from torus_ray.errors import TorusError

    command = _command()

    # Many small matrices: numpy's own threads would only wait for one another (10 times as long on a busy machine).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What stops a job (Ray's, a batch system's) ends like Ctrl-C: rows are written out, hosts ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = int(command(arguments, standalone_mode=False, prog_name="torus") or 0)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        return code
    except TorusError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    except typer.Exit as end:
        return int(end.exit_code)
    except _usage_problem() as error:
        error.show(sys.stderr)
        return EXIT_USAGE
    except (KeyboardInterrupt, typer.Abort):
        return _stopped(arguments)
    except BrokenPipeError:
        # The reader of a pipe went away (`torus report | head`): nothing to say, nobody to say it to.
        sys.stderr.close()
        return 0


@cache
def _command() -> Any:
    """The command tree, built from the functions' signatures once: it keeps nothing from one command to the next."""
    import typer

    from torus_ray.cli.app import app

    return typer.main.get_command(app)


def _stopped(words: list[str]) -> int:
    goes_on = any(tuple(words[: len(command)]) == command for command in GOES_ON)
    more = "; what is done stays, and the same command goes on from there" if goes_on else ""
    print(f"stopped{more}", file=sys.stderr)
    return EXIT_STOPPED


def _usage_problem() -> Any:
    """Typer's base of all usage errors: it carries a click of its own, so click's class would catch nothing."""
    import typer

    return next(cls for cls in typer.BadParameter.__mro__ if cls.__name__ == "ClickException")
