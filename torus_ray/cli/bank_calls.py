"""What `torus bank draft` and `torus bank gate` share: options, the plan, what was spent, where the calls stand."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from torus_ray.curation.chat import Tally
    from torus_ray.curation.estimate import Estimate
    from torus_ray.curation.limits import Budget

Out = Annotated[Path, typer.Option("--out", help="The bank's folder to make; the rows lie beside it in OUT.curation.")]
Models = Annotated[Path | None, typer.Option("--models", help="A TOML file: which chat model has which role.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="ROLE.FIELD=VALUE, e.g. author.model=my-model; `none` unsets.")
]
MaxCalls = Annotated[int | None, typer.Option(help="Most calls, over all commands on this folder.", min=0)]
MaxTokens = Annotated[int | None, typer.Option(help="Most tokens, in and out, likewise.", min=0)]
MaxCost = Annotated[float | None, typer.Option(help="Most money, in the currency of the prices.", min=0)]
Asks = Annotated[
    int, typer.Option(help="How often a step is asked at most, until its reply can be used.", min=1, max=10)
]
Plan = Annotated[bool, typer.Option("--plan", help="Say what it would take, and stop.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress line.")]

PLAIN_S, REDRAW_S = 15.0, 0.2


def tell_plan(estimates: Sequence[Estimate], *, plan: bool, as_json: bool, notes: Sequence[str] = ()) -> bool:
    """Print what is to come (on stderr before a start); whether to stop there."""
    if plan and as_json:
        print(json.dumps({"plan": [estimate.as_json() for estimate in estimates], "notes": list(notes)}, indent=1))
    else:
        for text in (*(estimate.render() for estimate in estimates), *notes):
            print(text, file=sys.stdout if plan else sys.stderr)
    return plan


def told_spend(budget: Budget) -> dict[str, object]:
    """What this folder has cost, all commands together; cost: null where that of some call is unknown."""
    cost = round(budget.cost, 6) if budget.cost is not None else None
    return {"calls": budget.calls, "tokens": budget.tokens, "cost": cost}


def spend_line(budget: Budget, tally: Tally) -> str:
    """What was asked now, and what the folder has cost."""
    bad = ", ".join(f"{count} {reason}" for reason, count in sorted(tally.tries.items()) if reason != "ok")
    now = f"{tally.asked} replies now, {tally.reused} had before" + (f" ({bad})" if bad else "")
    return f"{now}; {budget.calls} calls, {budget.tokens:,} tokens, {budget.cost_text()} in all"


class Line:
    """Where the calls stand, on stderr: one live line, or a plain one now and then."""

    def __init__(self, title: str, *, quiet: bool) -> None:
        self._title, self._quiet, self._next, self._width = title, quiet, 0.0, 0
        self._live = sys.stderr.isatty() and not quiet

    def watch(self, tally: Tally) -> None:
        import time

        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + (REDRAW_S if self._live else PLAIN_S)
        bad = "".join(f", {count} {reason}" for reason, count in sorted(tally.tries.items()) if reason != "ok")
        text = f"{self._title}: {tally.asked} replies, {tally.reused} had before, {tally.in_flight} in flight{bad}"
        sys.stderr.write("\r" + text.ljust(self._width) if self._live else text + "\n")
        sys.stderr.flush()
        self._width = len(text)

    def tell(self, text: str) -> None:
        """A line of its own."""
        self.close()
        print(f"{self._title}: {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._live and self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
        self._width = 0


@contextmanager
def progress(title: str, *, quiet: bool) -> Iterator[Line]:
    """The line for the time of some work; Ctrl-C in it ends the command as stopped."""
    line = Line(title, quiet=quiet)
    try:
        yield line
    except KeyboardInterrupt as stop:
        raise typer.Abort from stop
    finally:
        line.close()
