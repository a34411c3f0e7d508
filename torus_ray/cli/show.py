"""`torus show`: one unit of a run, all that was sent and came back."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from torus_ray.report.units import FoundUnit

At = Annotated[Path, typer.Argument(help="A run folder or s3:// URI, or what is above some.", show_default=False)]
Unit = Annotated[str, typer.Argument(help="A unit's id or enough of it, e.g. speech-01/edit/q2.", show_default=False)]

_SENT = {
    "renders": (
        ("prompt", "prompt sent"),
        ("words", "words to speak"),
        ("caption", "from the caption"),
        ("notes", "notes of the model"),
    ),
    "captions": (("instruction", "instruction sent"), ("text", "caption"), ("notes", "notes of the model")),
    "answers": (("prompt", "prompt sent"), ("notes", "notes of the model")),
    "measures": (("measure", "measure"), ("text", "text"), ("flags", "flags"), ("values_json", "beside it")),
}
_VALUES_SHOWN = 6
_FLAGS = ("silent", "too_short", "clipped", "hit_limit")


def show(
    run: At,
    unit: Unit,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Show a unit: prompt sent, caption, options, raw reply, letter, right letter, its clip and every attempt."""
    import polars as pl

    from torus_ray.cli.common import runs_at
    from torus_ray.report.runs import open_run
    from torus_ray.report.units import find_unit
    from torus_ray.store.mirror import named

    found = find_unit([open_run(folder) for folder in runs_at([run])], unit)
    clip = clip_facts(found)
    attempts = (
        found.run.rows("attempts").filter(pl.col("unit_id") == found.id).sort("returned_at", "attempt").to_dicts()
    )
    if as_json:
        print(
            json.dumps({"run": named(found.run.folder), "row": found.row, "clip": clip, "attempts": attempts}, indent=1)
        )
        return 0
    for line in [*describe(found), *_clip_lines(clip), *_attempt_lines(attempts)]:
        print(line)
    return 0


def clip_facts(found: FoundUnit) -> dict[str, Any] | None:
    """The clip that a unit made or heard: its id, its file, and what its render's row says of it."""
    import polars as pl

    from torus_ray.protocol.requests import SILENCE
    from torus_ray.report.runs import open_run
    from torus_ray.store.mirror import clip_file

    row, run = found.row, found.run
    if not row["clip"]:
        return None
    if found.table == "answers" and row["control"] == "muted" and row["clip"] == SILENCE.id:
        return {"clip": SILENCE.id, "what": f"{SILENCE.duration_s:g} s of digital silence, as the muted control plays"}
    renderer = row.get("renderer") or f"{row['system']}/{row['arm']}"
    own = renderer == f"{run.manifest.system}/{run.manifest.arm}"
    home = run if own else open_run(run.beside(renderer))
    path = clip_file(home.folder, row["clip"])
    facts: dict[str, Any] = {"clip": row["clip"], "path": str(path), "there": path.is_file()}
    renders = home.rows("renders").filter(pl.col("clip") == row["clip"])
    # Two renders may have come out as one sound: that of the stage heard is meant.
    heard = (pl.col("test") == (row.get("source_test") or row["test"])) & (pl.col("stage") == row["stage"])
    renders = renders.sort(heard, descending=True)
    if renders.height:
        made = renders.row(0, named=True)
        names = ("unit_id", "duration_s", "rate_hz", "channels", "bits", "peak", "clip_bytes", *_FLAGS)
        facts |= {name: made[name] for name in names}
    return facts


def describe(found: FoundUnit) -> list[str]:
    """What was sent and came back, a line or a block for each thing."""
    from torus_ray.store.mirror import named

    row = found.row
    lines = [f"unit: {found.id}", f"run: {named(found.run.folder)}"]
    lines.append(f"status: {row['status']}" + (f" ({row['reason']})" if row["reason"] else ""))
    if row["message"]:
        lines += block("message", row["message"])
    lines.append(
        f"head: {row['head'] or '-'}" + (f", taken over from {row['reused_from']}" if row["reused_from"] else "")
    )
    for name, title in _SENT[found.table]:
        if row[name]:
            lines += block(title, row[name])
    if found.table == "answers":
        lines += _answer_lines(found)
    if found.table == "measures" and row["values"] is not None:
        first = ", ".join(f"{value:.4g}" for value in row["values"][:_VALUES_SHOWN])
        shape = f"{len(row['values']) // row['width']} x {row['width']}"
        lines.append(f"values: {shape}: {first}{', ...' if len(row['values']) > _VALUES_SHOWN else ''}")
    return lines


def _answer_lines(found: FoundUnit) -> list[str]:
    row = found.row
    lines = [f"question: {row['question_text']}"]
    for letter in "ABCDEF":
        marks = ("*" if letter == row["answer_letter"] else " ") + (">" if letter == row["letter"] else " ")
        lines.append(f"  {marks} {letter}. {row[f'option_{letter.lower()}']}")
    lines.append("  (* right, > read)")
    lines += block("raw reply", row["reply"]) if row["reply"] is not None else ["raw reply: none"]
    strict = "" if row["letter_strict"] == row["letter"] else f", letters only: {row['letter_strict'] or 'none'}"
    lines.append(f"letter: {row['letter'] or 'none'} (rule {row['rule'] or '-'}{strict})")
    lines.append(f"right letter: {row['answer_letter']}, so {'correct' if row['correct'] else 'wrong'}")
    if row["control"]:
        lines.append(f"control: {row['control']}, source test {row['source_test']}")
    return lines


def block(title: str, text: str) -> list[str]:
    """A text under its title; on one line where it is one."""
    parts = text.splitlines() or [""]
    return [f"{title}: {parts[0]}"] if len(parts) == 1 else [f"{title}:", *(f"  | {part}" for part in parts)]


def _clip_lines(clip: dict[str, Any] | None) -> list[str]:
    if clip is None:
        return ["clip: none"]
    if "what" in clip:
        return [f"clip: {clip['what']}"]
    lines = [f"clip: {clip['path']}" + ("" if clip["there"] else " (NOT THERE)")]
    if "rate_hz" in clip:
        flags = [name for name in _FLAGS if clip[name]]
        facts = f"{clip['duration_s']:.2f} s, {clip['rate_hz']} Hz, {clip['channels']} channel(s), {clip['bits']} bit"
        peak = f"peak {clip['peak']:.3f}" if clip["peak"] is not None else "peak unknown"
        lines.append(f"  {facts}, {peak}, {clip['clip_bytes']} bytes" + "".join(f", {flag}" for flag in flags))
        lines.append(f"  made by {clip['unit_id']}")
    return lines


def _attempt_lines(attempts: list[dict[str, Any]]) -> list[str]:
    if not attempts:
        return ["attempts: none of its own"]
    lines = ["attempts:"]
    for row in attempts:
        began, ended = row["started_at"] or row["submitted_at"], row["ended_at"] or row["returned_at"]
        took = f"{ended - began:.3f} s" if began and ended else "time unknown"
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began)) if began else "?"
        lines.append(f"  {row['attempt']}: {row['status']}, {when}, {took}, {row['worker']}, pid {row['pid']}")
        if row["message"]:
            lines += [f"     {line}" for line in block(row["kind"] or "message", row["message"])]
    return lines
