"""`torus bank draft`: tests from seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.cli.bank_calls import (
    AsJson,
    Asks,
    Changes,
    MaxCalls,
    MaxCost,
    MaxTokens,
    Models,
    Out,
    Plan,
    Quiet,
    progress,
    spend_line,
    tell_plan,
    told_spend,
)
from torus_ray.errors import InputError

if TYPE_CHECKING:
    from torus_ray.bank.schema import BankCard
    from torus_ray.curation.endpoints import Endpoint


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
