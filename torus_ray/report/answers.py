"""The answers of runs as one frame that `stats` can count, as stored or read anew from the raw replies."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from torus_ray.answers.letters import read_letter
from torus_ray.report.runs import Run
from torus_ray.store.tables import OPTION_COLUMNS

_READ = ["test", "audio_type", "stage", "question", "family", "system", "control", "seed", "listener", "renderer"]
_STATED = ["option_shift", "repeat", "status", "reason", "correct", "correct_strict"]
_REPLY = ["unit_id", "reply", "letter", "letter_strict", "answer_letter", *OPTION_COLUMNS]

_READINGS = pl.Struct({"letter": pl.String, "letter_strict": pl.String, "reason": pl.String})


def answers_of(run: Run, *, reread: bool = False) -> pl.DataFrame:
    """One row an answer: who, what was asked (test, stage, question, family, audio_type), how it ended, `correct`.

    arm is the run's line (its arm without the seed), so that seeds are pooled inside tests. reread: letters come from
    the stored replies by today's reader, and `changed` says where they are not those stored.
    """
    rows = run.rows("answers", [*_READ, *_STATED, *(_REPLY if reread else [])])
    rows = rows.with_columns(arm=pl.lit(run.line))
    if not reread:
        return rows
    given = pl.col("reply").is_not_null() & pl.col("status").is_in(["ok", "unparsed"])
    stored = rows.select("status", "letter", "letter_strict")
    rows = rows.with_columns(
        pl.struct("reply", *OPTION_COLUMNS).map_elements(_reading, return_dtype=_READINGS).alias("reading"), given=given
    )
    read = pl.col("reading").struct
    rows = rows.with_columns(
        letter=pl.when("given").then(read.field("letter")),
        letter_strict=pl.when("given").then(read.field("letter_strict")),
        reason=pl.when("given").then(read.field("reason")).otherwise("reason"),
    )
    ended = pl.when(pl.col("letter").is_not_null()).then(pl.lit("ok")).otherwise(pl.lit("unparsed"))
    rows = rows.with_columns(
        # An answer without a reply cannot be read: one that says ok all the same is for `torus verify` to name.
        status=pl.when("given").then(ended).otherwise("status"),
        correct=(pl.col("letter") == pl.col("answer_letter")).fill_null(False),
        correct_strict=(pl.col("letter_strict") == pl.col("answer_letter")).fill_null(False),
    )
    changed = pl.any_horizontal(rows[name].ne_missing(stored[name]) for name in stored.columns)
    return rows.with_columns(changed=changed).drop("reading", "given", "reply", *OPTION_COLUMNS)


def _reading(row: dict[str, str | None]) -> dict[str, str | None]:
    reading = read_letter(row["reply"], [row[name] or "" for name in OPTION_COLUMNS])
    return {"letter": reading.letter, "letter_strict": reading.letter_strict, "reason": reading.reason}


def incomplete(answers: pl.DataFrame) -> bool:
    """Whether some were refused because the system cannot: then no Total stands for the whole test (DESIGN 7)."""
    lacking = (pl.col("status") == "refused") & (pl.col("reason") == "no_capability")
    return bool(answers.select((lacking | _below_no_capability()).any()).item())


def _below_no_capability() -> pl.Expr:
    # Answers without a clip carry the first cause: a stage that the system could not render.
    return (pl.col("status") == "no_clip") & (pl.col("reason").str.ends_with("no_capability")).fill_null(False)


def together(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The answers of several runs, one below the other."""
    return pl.concat(frames, how="vertical")
