"""Drafting (paper 3.2): a seed becomes a test by two authors, the Test Architect and the Question Author.

Every call is a durable row; a step that cannot be brought to a usable reply is a row with its reason, and the other
seeds go on. The same again takes up what stands.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torus_ray.bank.digest import sha256_of
from torus_ray.bank.schema import STAGES, BankCard, Test
from torus_ray.curation.chat import Caller, ChatReply, in_parallel
from torus_ray.curation.endpoints import Endpoint
from torus_ray.curation.folders import write_card, write_test
from torus_ray.curation.ledger import Ledger, read_rows
from torus_ray.curation.replies import (
    Architecture,
    Questions,
    StepFailed,
    ask_until_good,
    read_shape,
    read_whole_test,
    stages_text,
)
from torus_ray.curation.seeds import SeedEntry
from torus_ray.curation.wording import prompt

Row = dict[str, Any]


@dataclass(frozen=True)
class DraftResult:
    """made: ids of the tests that are there, in the order of the seeds. failed: (id, step, reason, message)."""

    made: tuple[str, ...]
    failed: tuple[tuple[str, str, str, str], ...]


def draft_key(seed: SeedEntry, author: Endpoint) -> str:
    """What a drafted test depends on: another model or prompt drafts it anew, another cap or price does not."""
    versions = [prompt(name).version for name in ("architect", "author", "reask")]
    settings = [author.model, author.temperature, author.reasoning_effort]
    return sha256_of({"seed": seed.model_dump(mode="json"), "prompts": versions, "author": settings})


def standing_tests(folder: Path) -> dict[str, str]:
    """The test of each key that was drafted before, as JSON."""
    rows = read_rows(folder, "outcomes", ["step", "key", "status", "document"]).iter_rows(named=True)
    return {row["key"]: row["document"] for row in rows if row["step"] == "draft" and row["status"] == "ok"}


async def draft(
    seeds: Sequence[SeedEntry],
    *,
    out: Path,
    card: BankCard,
    author: Endpoint,
    caller: Caller,
    ledger: Ledger,
    asks: int,
) -> DraftResult:
    """Draft every seed that has no test yet into the bank folder `out`, `author.in_flight` at once.

    A test's file that is there is never touched: somebody may have worked on it. asks: how often a step is asked at
    most, the first time included. Raises CurationStop, StoreError: what was answered until then stands.
    """
    write_card(out, card)
    standing = standing_tests(ledger.folder)
    made: dict[str, None] = {}
    failed: dict[str, tuple[str, str, str, str]] = {}

    async def one(seed: SeedEntry) -> None:
        if (out / f"{seed.id}.json").exists():
            made[seed.id] = None
            return
        key = draft_key(seed, author)
        row: Row = {"unit": seed.id, "step": "draft", "key": key, "status": "ok"}
        known = standing.get(key)
        if known is not None:
            write_test(out, Test.model_validate_json(known))
            made[seed.id] = None
            return
        try:
            test, row["asks"] = await _draft_one(seed, author, caller, asks)
        except StepFailed as error:
            row |= {"step": error.step, "status": "failed", "reason": error.reason, "message": error.message}
            row |= {"asks": error.asks}
            failed[seed.id] = (seed.id, error.step, error.reason, error.message)
        else:
            row["document"] = json.dumps(test.model_dump(mode="json"), ensure_ascii=False)
        await ledger.add("outcomes", {**row, "at": time.time()})
        if "document" in row:
            write_test(out, test)
            made[seed.id] = None

    await in_parallel(author.in_flight, seeds, one)
    ids = [seed.id for seed in seeds]
    return DraftResult(tuple(i for i in ids if i in made), tuple(failed[i] for i in ids if i in failed))


async def _draft_one(seed: SeedEntry, author: Endpoint, caller: Caller, asks: int) -> tuple[Test, int]:
    values = {name: getattr(seed, name) for name in ("audio_type", *type(seed.seed).model_fields)}
    plan, planned, first = await ask_until_good(
        caller,
        author,
        prompt("architect"),
        values,
        lambda reply: read_shape(Architecture, reply),
        unit=seed.id,
        asks=asks,
    )

    def read(reply: ChatReply) -> Test:
        return read_whole_test(_document(seed, plan, planned, read_shape(Questions, reply), reply, author))

    shown = {"audio_type": seed.audio_type, "stages": stages_text(plan.stages)}
    test, _, second = await ask_until_good(caller, author, prompt("author"), shown, read, unit=seed.id, asks=asks)
    return test, first + second


def _document(
    seed: SeedEntry,
    plan: Architecture,
    planned: ChatReply,
    questions: Questions,
    reply: ChatReply,
    author: Endpoint,
) -> Row:
    """The test as a bank's file has it. Its date is the author's reply's, so the same rows give the same test."""
    stages: Row = {}
    for name in STAGES:
        stage = getattr(plan.stages, name).model_dump(mode="json")
        asked = [q.model_dump(mode="json") for q in getattr(questions, name)]
        stages[name] = {**stage, "questions": [{"id": f"q{i}", **q} for i, q in enumerate(asked, 1)]}
    responses = ", ".join(
        f"{role} {r.response_id or 'unnamed'}" for role, r in (("architect", planned), ("author", reply))
    )
    prompts = f"{prompt('architect').version}, {prompt('author').version}"
    return {
        "id": seed.id,
        "audio_type": seed.audio_type,
        "title": plan.title,
        "seed": seed.seed.model_dump(mode="json"),
        "stages": stages,
        "provenance": {
            "author": f"{reply.model_version or author.model} ({prompts}), from a seed",
            "written": time.strftime("%Y-%m-%d", time.gmtime(reply.at)),
            "human_verified_by": None,
            "notes": f"responses: {responses}",
        },
    }
