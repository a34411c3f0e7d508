"""`torus bank gate`: the coupled gate with its two repair rounds."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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

SOLVERS: tuple[Literal["muted", "ideal"], ...] = ("muted", "ideal")

if TYPE_CHECKING:
    from torus_ray.bank.load import Bank
    from torus_ray.curation.endpoints import Endpoint, Role
    from torus_ray.curation.gate import GateResult
    from torus_ray.protocol.executor import Executor
    from torus_ray.systems import System


def gate(
    bank: Annotated[Path, typer.Argument(help="The bank's folder.")],
    out: Out,
    muted: Annotated[
        str | None,
        typer.Option(help="A system whose answer head is given silence; the [muted] chat model where nothing is said."),
    ] = None,
    models: Models = None,
    changes: Changes = None,
    orders: Annotated[
        int, typer.Option(help="Asks of a question by each solver, under so many orders.", min=1, max=6)
    ] = 6,
    threshold: Annotated[
        float, typer.Option(help="How probable it must be that a solver knows the answer.", min=0.5, max=0.999)
    ] = 0.9,
    rule: Annotated[
        Literal["paper", "posterior"], typer.Option(help="Which rule sends a question to repair; both are recorded.")
    ] = "paper",
    repair: Annotated[bool, typer.Option(help="Repair what is flagged, in two rounds.")] = True,
    asks: Asks = 3,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    address: Annotated[str | None, typer.Option(help="A running Ray cluster, for --muted SYSTEM.")] = None,
    inline: Annotated[bool, typer.Option(help="Run --muted SYSTEM in this process, without Ray.")] = False,
    plan: Plan = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Flag a question if the muted solver is right or the ideal solver is wrong; repair in two rounds; keep the flags.
    The same command goes on where it stopped. Exit 1 if a question stays flagged or could not be judged."""
    import asyncio

    from torus_ray.bank.load import load_bank
    from torus_ray.curation.chat import Caller, spent
    from torus_ray.curation.endpoints import read_endpoints
    from torus_ray.curation.estimate import check_budget
    from torus_ray.curation.folders import FLAGS_FILE, check_out, check_unchanged, rows_folder, write_bank
    from torus_ray.curation.gate import Gate, GateOptions
    from torus_ray.curation.judging import knows
    from torus_ray.curation.ledger import Ledger
    from torus_ray.curation.limits import Spend
    from torus_ray.curation.solvers import ChatSolver, GateSolver, HeadSolver
    from torus_ray.engine.opening import Opening, open_executor

    out = out.absolute()
    loaded = load_bank(bank)
    endpoints = read_endpoints(models, changes or [])
    system = _muted_system(muted) if muted is not None else None
    used = _used(endpoints, system, repair=repair)
    most = Spend(max_calls, max_tokens, max_cost)
    check_budget(most, used.values())
    check_out(out, {test.id for test in loaded.tests})
    if out.resolve() == bank.resolve():
        raise InputError("--out is the bank itself", where=str(out), expected="a folder of its own", mend="name one")
    if rule == "posterior" and knows(orders, orders) < threshold:
        raise InputError(
            f"with --orders {orders} no question can reach the threshold of {threshold:g}",
            where="--rule posterior",
            expected="orders enough for a verdict",
            mend="ask under more orders, or lower --threshold",
        )
    if system and inline and not plan:
        from torus_ray.cli.borrow import borrow_environment

        borrow_environment([system])  # may start this command anew, in the model's interpreter
    if _tell(loaded, used, orders, rows_folder(out), system, plan=plan, as_json=as_json):
        return 0
    for endpoint in used.values():
        endpoint.key()
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger(rows_folder(out)))
        line = stack.enter_context(progress("gate", quiet=quiet or as_json))
        runner = stack.enter_context(asyncio.Runner())
        budget = spent(ledger, most)
        caller = Caller(ledger, budget, watch=line.watch)
        stack.callback(lambda: runner.run(caller.close()))

        def run(work: Coroutine[Any, Any, None]) -> None:
            runner.run(work)

        listener: GateSolver
        if system:

            def started(system: System = system) -> Executor:
                how = Opening(inline=inline, address=address)
                executor = stack.enter_context(open_executor(system, how, line.tell))
                executor.start()
                return executor

            listener = HeadSolver(system, started, ledger)
        else:
            listener = ChatSolver("muted", used["muted"], caller, run)
        solvers = (listener, ChatSolver("ideal", used["ideal"], caller, run))
        options = GateOptions(orders, threshold, rule, asks, repair)
        check_unchanged(out, ledger)
        result = Gate(solvers, endpoints["author"], caller, ledger, options, run).gate(loaded)
        write_bank(out, result.bank, result.flags(), ledger)
    summary = _summary(result, loaded)
    if as_json:
        print(json.dumps({"bank": str(out), **summary, **told_spend(budget)}, indent=1))
    else:
        print(_told(summary, result))
        print(f"{spend_line(budget, caller.tally)}\nbank: {out}, flags in {FLAGS_FILE}; no human has verified it")
    return 1 if summary["flagged"] or summary["not_judged"] else 0


def _muted_system(name: str) -> System:
    """The hosts of a system that answer, with nothing but that, digested as the engine does."""
    from dataclasses import replace

    from torus_ray.engine.opening import with_identity
    from torus_ray.systems import System, load_system

    system = load_system(name)
    hosts = {
        host.name: replace(host, card=host.card.model_copy(update={"heads": {"answer": host.card.heads["answer"]}}))
        for host in system.hosts.values()
        if "answer" in host.card.heads
    }
    if not hosts:
        raise InputError(
            f"{system.name} answers no questions",
            where="--muted",
            expected="a system with an answer head",
            mend="`torus systems` lists them",
        )
    return with_identity(System(system.card, hosts))


def _used(endpoints: dict[Role, Endpoint], system: System | None, *, repair: bool) -> dict[Role, Endpoint]:
    """The chat models that this command may ask. Raises InputError where nothing is muted."""
    if system is None and "muted" not in endpoints:
        raise InputError(
            "there is no muted solver",
            where="torus bank gate",
            expected="--muted SYSTEM, or a chat model for the role `muted`",
            mend="e.g. --muted pocket; or --set muted.model=... --set muted.key_env=...",
        )
    roles: dict[Role, bool] = {"author": repair, "muted": system is None, "ideal": True}
    return {role: endpoints[role] for role, wanted in roles.items() if wanted}


def _tell(
    bank: Bank,
    used: dict[Role, Endpoint],
    orders: int,
    folder: Path,
    system: System | None,
    *,
    plan: bool,
    as_json: bool,
) -> bool:
    """Print what the gate will take; whether to stop there."""
    from torus_ray.bank.schema import STAGES
    from torus_ray.curation.chat import standing_replies
    from torus_ray.curation.estimate import repair_estimate, solver_estimate

    standing = standing_replies(folder)
    estimates = [solver_estimate(bank, used[role], role, orders, standing) for role in SOLVERS if role in used]
    if "author" in used:
        estimates.append(repair_estimate(bank, used["author"]))
    questions = sum(len(test.stage(name).questions) for test in bank.tests for name in STAGES)
    notes = [f"{questions} questions, {orders} orders each; the solvers are asked again about what is repaired"]
    if system:
        notes.append(f"muted: {system.name}, given 1 s of silence, {questions * orders} asks")
    return tell_plan(estimates, plan=plan, as_json=as_json, notes=notes)


def _summary(result: GateResult, before: Bank) -> dict[str, Any]:
    from torus_ray.curation.gate import changed_questions
    from torus_ray.curation.judging import RULES, false_flag_rate, flagged

    first = next(iter(result.verdicts.values()))["muted"]
    states = [result.state(place) for place in result.verdicts]
    return {
        "questions": len(states),
        "rule": result.rule,
        "flagged": states.count(True),
        "not_judged": states.count(None),
        "flagged_by": {rule: sum(flagged(v, rule) is True for v in result.verdicts.values()) for rule in RULES},
        "flagged_at_first_by": {rule: sum(flagged(v, rule) is True for v in result.first.values()) for rule in RULES},
        "sent_back": len(result.repairs),
        "changed": changed_questions(before, result.bank),
        "orders": first.asks,
        "threshold": first.threshold,
        "guesser_flagged": round(false_flag_rate(first.asks, first.threshold), 4),
        "muted": {name: sum(getattr(v["muted"], name) for v in result.first.values()) for name in ("right", "asks")},
        "ideal": {name: sum(getattr(v["ideal"], name) for v in result.first.values()) for name in ("right", "asks")},
    }


def _told(summary: dict[str, Any], result: GateResult) -> str:
    from torus_ray.curation.judging import flagged

    first, last = summary["flagged_at_first_by"], summary["flagged_by"]
    lines = [
        f"{summary['questions']} questions: by the paper's rule {first['paper']} flagged at first, {last['paper']} at "
        f"the end; by the posterior ({summary['orders']} orders, threshold {summary['threshold']:g}) "
        f"{first['posterior']}, {last['posterior']}",
        *(
            f"{solver}: right in {summary[solver]['right']} of {summary[solver]['asks']} asks at first (chance 16.7%)"
            for solver in ("muted", "ideal")
        ),
        f"{summary['sent_back']} questions sent back, {summary['changed']} changed",
    ]
    for place, verdicts in result.verdicts.items():
        state = flagged(verdicts, result.rule)
        if state is not False:
            why = [
                f"{v.solver} {v.letters} for {v.right_letters}" + (f" ({v.reason})" if v.reason else "")
                for v in verdicts.values()
            ]
            lines.append(f"{'flagged' if state else 'not judged'}: {'.'.join(place)}: {'; '.join(why)}")
    return "\n".join(lines)
