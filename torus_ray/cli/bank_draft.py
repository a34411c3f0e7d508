"""`torus bank draft`: tests from seeds. And what it shares with `torus bank gate`: endpoints, budget, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.bank.schema import BankCard
    from torus_ray.curation.chat import Tally
    from torus_ray.curation.endpoints import Endpoint
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


def draft(
    seeds: Annotated[Path, typer.Argument(help="A JSON list of seeds, or one a line.")],
    out: Out,
    models: Models = None,
    changes: Changes = None,
    card: Annotated[Path | None, typer.Option(help="The bank.json to use; one made up where nothing is said.")] = None,
    asks: Asks = 3,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    plan: Plan = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Draft tests from seeds with a chat model: Test Architect, then Question Author. The same command goes on where
    it stopped. Exit 1 if some seed has no test."""
    import asyncio

    from torus_ray.curation.chat import Caller, spent
    from torus_ray.curation.draft import draft as draft_all
    from torus_ray.curation.draft import standing_tests
    from torus_ray.curation.endpoints import read_endpoints
    from torus_ray.curation.estimate import check_budget, draft_estimate
    from torus_ray.curation.folders import check_out, rows_folder
    from torus_ray.curation.ledger import Ledger
    from torus_ray.curation.limits import Spend
    from torus_ray.curation.seeds import read_seeds

    out = out.absolute()
    entries = read_seeds(seeds)
    author = read_endpoints(models, changes or [])["author"]
    most = Spend(max_calls, max_tokens, max_cost)
    check_budget(most, [author])
    check_out(out, {seed.id for seed in entries})
    the_card = _card(card, out, author)
    folder = rows_folder(out)
    estimate = draft_estimate(entries, author, out=out, standing=standing_tests(folder))
    if tell_plan([estimate], plan=plan, as_json=as_json):
        return 0
    if estimate.calls:
        author.key()
    with Ledger(folder) as ledger, progress("draft", quiet=quiet or as_json) as line, asyncio.Runner() as runner:
        budget = spent(ledger, most)
        caller = Caller(ledger, budget, watch=line.watch)
        try:
            result = runner.run(
                draft_all(entries, out=out, card=the_card, author=author, caller=caller, ledger=ledger, asks=asks)
            )
        finally:
            runner.run(caller.close())
    code = 1 if result.failed else 0
    if as_json:
        failed = [dict(zip(("seed", "step", "reason", "message"), each, strict=True)) for each in result.failed]
        print(
            json.dumps({"bank": str(out), "tests": list(result.made), "failed": failed, **told_spend(budget)}, indent=1)
        )
        return code
    for seed, step, reason, message in result.failed:
        print(f"no test: {seed}: {step}: {reason}: {message}")
    print(f"{len(result.made)} of {len(entries)} tests in {out}; {spend_line(budget, caller.tally)}")
    if result.made:
        print("no human has verified them; next: torus bank gate")
    return code


def _card(path: Path | None, out: Path, author: Endpoint) -> BankCard:
    """The card that is given; that of the folder, where it has one; else one made up."""
    import re

    from pydantic import ValidationError

    from torus_ray.bank.characters import visible
    from torus_ray.bank.files import read_document
    from torus_ray.bank.schema import BankCard

    there = path or (out / "bank.json" if (out / "bank.json").exists() else None)
    if there is None:
        name = re.sub(r"[^a-z0-9]+", "-", out.name.lower()).strip("-")[:60].strip("-") or "bank"
        about = visible(f"Drafted from seeds by {author.model}. No human has verified it.")
        return BankCard(name=name, title=visible(out.name), order_seed=0, licence="unknown", about=about)
    try:
        return BankCard.model_validate_json(read_document(there))
    except (OSError, ValidationError) as error:
        told = error.strerror if isinstance(error, OSError) else error.errors(include_url=False)[0]["msg"]
        raise InputError(
            f"the card cannot be used: {told}",
            where=str(there),
            expected="a bank.json: name, title, order_seed, licence, about",
            mend="mend it, or leave --card out",
        ) from error


# --- shared with the gate ---------------------------------------------------------------------------------------------


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
