"""The coherence table of a run folder from its Parquet rows alone: `python tests/coherence_from_rows.py RUN`.

Stands by itself on purpose: it shares no code with the package, so that the two can be wrong only apart.
"""

import json
import sys
from pathlib import Path

import polars as pl

STAGES = {"generation": "S1", "edit": "S2", "counterfactual": "S3"}


def current_answers(run: Path) -> pl.DataFrame:
    """One row a unit, the newest: parts in the order of their names, rows in the order within."""
    parts = sorted(
        (run / "tables" / "answers").glob("[0-9]*-[0-9]*.parquet"), key=lambda p: tuple(map(int, p.stem.split("-")))
    )
    return pl.concat([pl.read_parquet(part) for part in parts]).unique("unit_id", keep="last", maintain_order=True)


def coherence(answers: pl.DataFrame, by: list[str]) -> dict[str, dict[str, float]]:
    """Right, asked and percent of each group; a letter is right when it is the one under which the answer stood."""
    right = (pl.col("status") == "ok") & (pl.col("letter") == pl.col("answer_letter")).fill_null(False)
    numbers = answers.group_by(by).agg(right.sum().alias("correct"), pl.len().alias("expected"))
    return {
        "+".join(str(row[name]) for name in by): {
            "correct": row["correct"],
            "expected": row["expected"],
            "pct": 100 * row["correct"] / row["expected"],
        }
        for row in numbers.to_dicts()
    }


def table(run: Path) -> dict[str, dict[str, float]]:
    """S1, S2, S3 and Total, and the groups by audio type and family."""
    answers = current_answers(run).with_columns(stage=pl.col("stage").replace(STAGES), Total=pl.lit("Total"))
    return {k: v for by in ("stage", "Total", "audio_type", "family") for k, v in coherence(answers, [by]).items()}


if __name__ == "__main__":
    print(json.dumps({run: table(Path(run)) for run in sys.argv[1:]}, indent=1, sort_keys=True))
