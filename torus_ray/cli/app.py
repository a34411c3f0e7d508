"""The command tree: one function a command, each in the module of its subject."""

from __future__ import annotations

import typer

from torus_ray.cli import (
    bank,
    bank_draft,
    bank_gate,
    bank_review,
    contract,
    env,
    exchange,
    measure,
    new,
    profile,
    reference,
    replay,
    report,
    run,
    score,
    show,
    systems,
    trace,
    verify,
    weights,
)

app = typer.Typer(
    name="torus",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="TORUS: does a unified audio model agree with itself? It renders, edits twice and answers questions about "
    "its own clips; torus runs that for any model and turns the answers into numbers with intervals.",
)

app.command("run")(run.run)
app.command("measure")(measure.measure)
app.command("score")(score.score)
app.command("report")(report.report)
app.command("show")(show.show)
app.command("replay")(replay.replay)
app.command("verify")(verify.verify)
app.command("trace")(trace.trace)
app.command("profile")(profile.profile)
app.command("systems")(systems.systems)
app.command("doctor")(systems.doctor)
app.command("new")(new.new)
app.command("check")(contract.check)
app.add_typer(reference.app, name="reference")
app.add_typer(env.app, name="env")
app.add_typer(weights.app, name="weights")
bank.app.command("draft")(bank_draft.draft)
bank.app.command("gate")(bank_gate.gate)
bank.app.command("review")(bank_review.review)
app.add_typer(bank.app, name="bank")
app.add_typer(exchange.export_app, name="export")
app.add_typer(exchange.import_app, name="import")
