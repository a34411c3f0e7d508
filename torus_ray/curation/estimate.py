"""What a command will take, before it starts: calls to come, those that stand, tokens and money as far as known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torus_ray.bank.load import Bank
from torus_ray.bank.schema import STAGES
from torus_ray.curation.chat import ChatReply
from torus_ray.curation.draft import draft_key
from torus_ray.curation.endpoints import Endpoint, safe_url
from torus_ray.curation.judging import Job, Solver
from torus_ray.curation.limits import Spend
from torus_ray.curation.seeds import SeedEntry
from torus_ray.curation.solvers import solver_request
from torus_ray.curation.wording import prompt
from torus_ray.errors import InputError

BYTES_A_TOKEN = 4
PLANNED_TOKENS, QUESTIONS_TOKENS, REPAIR_TOKENS, LETTER_TOKENS = 1_600, 1_200, 250, 5
"""Sizes of replies as the project's own tests have them, without thinking."""


@dataclass(frozen=True)
class Estimate:
    """One role's part. calls: to come if no reply has to be asked for again; standing: answered before. Tokens without
    what a model thinks. cost: None where a price is unknown."""

    role: str
    endpoint: Endpoint
    calls: int
    standing: int
    tokens_in: int
    tokens_out: int

    @property
    def cost(self) -> float | None:
        return self.endpoint.cost(self.tokens_in, self.tokens_out)

    def render(self) -> str:
        end = self.endpoint
        key = f"key from {end.key_env}" if end.key_env else "no key"
        money = f"{self.cost:.4f}" if self.cost is not None else "unknown, no prices given"
        stand = f", {self.standing} stand" if self.standing else ""
        return (
            f"{self.role}: {end.model} at {safe_url(end.base_url)} ({key}; {end.in_flight} calls at once)\n"
            f"  {self.calls} calls to come{stand}; about {self.tokens_in:,} tokens in and {self.tokens_out:,} out, "
            f"thinking not counted; cost {money}"
        )

    def as_json(self) -> dict[str, object]:
        end = self.endpoint
        names = {"model": end.model, "base_url": safe_url(end.base_url), "key_env": end.key_env}
        counts = {
            name: getattr(self, name) for name in ("role", "calls", "standing", "tokens_in", "tokens_out", "cost")
        }
        return {**counts, **names}


def draft_estimate(seeds: Sequence[SeedEntry], author: Endpoint, *, out: Path, standing: Collection[str]) -> Estimate:
    """Two calls a seed that has no test yet. standing: keys of tests that were drafted."""
    done = [s for s in seeds if (out / f"{s.id}.json").exists() or draft_key(s, author) in standing]
    todo = len(seeds) - len(done)
    read = sum(len(prompt(name).user) + len(prompt(name).system) for name in ("architect", "author")) // BYTES_A_TOKEN
    tokens_in = todo * (read + PLANNED_TOKENS + 100)
    tokens_out = todo * (PLANNED_TOKENS + QUESTIONS_TOKENS)
    return Estimate("author", author, 2 * todo, 2 * len(done), tokens_in, tokens_out)


def solver_estimate(
    bank: Bank, endpoint: Endpoint, role: Solver, orders: int, standing: Mapping[str, ChatReply]
) -> Estimate:
    """One chat solver on every question once, before any repair. standing: replies to calls by key."""
    jobs = (
        Job(test, name, question, bank.card.order_seed, shift)
        for test in bank.tests
        for name in STAGES
        for question in test.stage(name).questions
        for shift in range(orders)
    )
    calls = answered = tokens_in = 0
    for job in jobs:
        request, _ = solver_request(role, endpoint, job)
        known = standing.get(request.key)
        if known and known.stands(endpoint.max_tokens):
            answered += 1
        else:
            calls += 1
            tokens_in += 3 * request.most_tokens[0] // BYTES_A_TOKEN
    return Estimate(role, endpoint, calls, answered, tokens_in, calls * LETTER_TOKENS)


def repair_estimate(bank: Bank, author: Endpoint) -> Estimate:
    """The author's calls if every question were sent back twice: the most, re-asks apart."""
    questions = sum(len(test.stage(name).questions) for test in bank.tests for name in STAGES)
    return Estimate("author (at most)", author, 2 * questions, 0, 2 * questions * 1_000, 2 * questions * REPAIR_TOKENS)


def check_budget(most: Spend, endpoints: Iterable[Endpoint]) -> None:
    """Raises InputError for a budget in money where a price is unknown."""
    unpriced = sorted({end.model for end in endpoints if not end.priced})
    if most.money is not None and unpriced:
        raise InputError(
            f"a budget in money cannot be kept: no price is known of {', '.join(unpriced)}",
            where="--max-cost",
            expected="input_price and output_price of each model, for a million tokens",
            mend="give them (--set author.input_price=... --set author.output_price=...), or use --max-tokens or "
            "--max-calls",
        )
