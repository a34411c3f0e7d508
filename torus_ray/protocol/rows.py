"""What a unit leaves behind: plain rows for the store's tables, built from a node, its plan and an outcome. Pure.

A row is context (which unit of which run) + outcome (what the head gave). Re-use takes the outcome of an equal key
and gives it the unit's own context.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from torus_ray.answers.letters import read_letter
from torus_ray.audio import StoredClip
from torus_ray.bank.digest import question_hash
from torus_ray.bank.order import letter_of
from torus_ray.heads import Wire, clip_from_wire
from torus_ray.protocol.graph import Node, Unit
from torus_ray.protocol.requests import Ask, Plan, Protocol, Verdict

TABLES = {"render": "renders", "caption": "captions", "answer": "answers", "measure": "measures"}

Row = dict[str, Any]

RENDER_OUTCOME = (
    "status", "reason", "message", "silent", "too_short", "clipped", "hit_limit", "clip", "clip_sha256", "clip_bytes",
    "rate_hz", "channels", "frames", "bits", "duration_s", "peak", "clipped_samples", "notes",
)  # fmt: skip
CAPTION_OUTCOME = ("status", "reason", "message", "text", "notes")
ANSWER_OUTCOME = ("status", "reason", "message", "reply", "notes")
MEASURE_OUTCOME = ("status", "reason", "message", "text", "values", "width", "flags", "values_json")
OUTCOMES = {
    "render": RENDER_OUTCOME,
    "caption": CAPTION_OUTCOME,
    "answer": ANSWER_OUTCOME,
    "measure": MEASURE_OUTCOME,
}

OPTION_COLUMNS = ("option_a", "option_b", "option_c", "option_d", "option_e", "option_f")

REUSABLE = ("ok", "unparsed", "refused")
"""Statuses whose outcome an equal key may take over; what failed is tried again."""


def make_row(
    protocol: Protocol,
    node: Node,
    unit: Unit,
    plan: Plan | Verdict,
    ask: Ask | None,
    outcome: Mapping[str, Any],
    reused_from: str | None = None,
) -> Row:
    """The row of one unit. outcome: the fields of OUTCOMES[node.kind], what is missing is null."""
    row: Row = {
        "unit_id": unit.id,
        "key": ask.key if ask else None,
        "system": protocol.system.name,
        "arm": node.arm.name,
        "seed": node.arm.seed,
        "test": node.test.id,
        "audio_type": node.test.audio_type,
        "stage": node.stage,
        "head": plan.host.name if isinstance(plan, Plan) else None,
        "fingerprint": protocol.fingerprint(plan.host, plan.operation) if isinstance(plan, Plan) else None,
        "reused_from": reused_from,
        **{name: outcome.get(name) for name in OUTCOMES[node.kind]},
    }
    content: Mapping[str, Any] = ask.content if ask else {}
    if node.kind == "render":
        row |= {
            "operation": node.operation,
            "prompt": content.get("prompt"),
            "words": content.get("words"),
            "parent_clip": content.get("clip"),
            "caption": plan.caption if isinstance(plan, Plan) else None,
        }
    elif node.kind == "caption":
        row |= {"clip": content.get("clip"), "instruction": content.get("instruction")}
    elif node.kind == "measure":
        row |= {"measure": node.measure, "clip": content.get("clip")}
    else:
        row |= _answer_fields(protocol, node, unit, content, row)
    return row


def _answer_fields(protocol: Protocol, node: Node, unit: Unit, content: Mapping[str, Any], row: Row) -> Row:
    question = unit.question
    assert question is not None
    options = content.get("options") or protocol.shown(node, unit)
    right = letter_of(question.answer, options)
    letter = strict = rule = None
    status, reason = row["status"], row["reason"]
    if row["reply"] is not None and status in ("ok", "unparsed"):
        reading = read_letter(row["reply"], options)
        letter, strict, rule = reading.letter, reading.letter_strict, reading.rule
        status = "ok" if letter else "unparsed"
        reason = None if letter else reading.reason
    return {
        "control": node.arm.control,
        "renderer": f"{protocol.system.name}/{node.arm.rendering.name}" if node.arm.control != "muted" else None,
        "listener": row["head"],
        "question": question.id,
        "family": question.family,
        "source_test": node.source.id,
        "option_shift": node.shift,
        "repeat": node.repeat,
        "clip": content.get("clip"),
        "status": status,
        "reason": reason,
        "prompt": content.get("prompt"),
        "question_text": question.text,
        **dict(zip(OPTION_COLUMNS, options, strict=True)),
        "letter": letter,
        "letter_strict": strict,
        "rule": rule,
        "answer_letter": right,
        "correct": letter == right,
        "correct_strict": strict == right,
        "question_hash": question_hash(question),
    }


def reply_outcome(kind: str, reply: Wire, at: int = 0) -> Row:
    """The outcome that a host's reply gives the row of the unit in place `at` of its node."""
    if kind == "render":
        return render_outcome(clip_from_wire(reply["clip"]), bool(reply["hit_limit"]), reply["notes"])
    if kind == "measure":
        return measure_outcome(reply["values"])
    said = {"reply": reply["texts"][at]} if kind == "answer" else {"text": reply["text"]}
    return {"status": "ok", "notes": reply["notes"] or None, **said}


def render_outcome(clip: StoredClip, hit_limit: bool, notes: str = "") -> Row:
    """The outcome of a clip that came back, but for its file, which the store knows (clip_sha256, clip_bytes)."""
    return {
        "notes": notes or None,
        "status": "ok",
        "silent": clip.silent,
        "too_short": clip.too_short,
        "clipped": clip.clipped_samples > 0,
        "hit_limit": hit_limit,
        "clip": clip.id,
        "rate_hz": clip.rate_hz,
        "channels": clip.channels,
        "frames": clip.frames,
        "bits": clip.bits,
        "duration_s": clip.duration_s,
        "peak": clip.peak,
        "clipped_samples": clip.clipped_samples,
    }


def measure_outcome(values: Mapping[str, Any]) -> Row:
    """The outcome of a measure: its reply's `text`, `values` and `flags`, and whatever else it holds as JSON.

    values: numbers (one vector) or lists of equally many (frames), kept as float32. flags: words on how it was
    measured. Numbers that are not finite, or of no such shape, make the unit `failed` with a reason.
    """
    rest = dict(values)
    row: Row = {"status": "ok", "text": rest.pop("text", None)}
    if flags := rest.pop("flags", None):
        row["flags"] = " ".join(map(str, flags))
    numbers = rest.pop("values", None)
    if row["text"] is not None and not isinstance(row["text"], str):
        return _unusable("bad_reply", f"text is a {type(row['text']).__name__}, expected a str")
    if row["text"] is None and numbers is None:
        return _unusable("bad_reply", f"neither text nor values, but {', '.join(sorted(values)) or 'nothing'}")
    if numbers is not None:
        try:
            with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and said so below
                frames = np.atleast_2d(np.asarray(numbers, dtype=np.float32))
        except (TypeError, ValueError) as error:
            return _unusable("bad_reply", f"values are no numbers, or of unequal length: {error}")
        if frames.ndim != 2 or frames.size == 0:
            return _unusable("bad_reply", f"values have the shape {frames.shape}, expected (frames, width)")
        if not np.isfinite(frames).all():
            wrong = frames.size - int(np.isfinite(frames).sum())
            return _unusable("not_finite", f"{wrong} of {frames.size} values are NaN or infinite")
        row |= {"values": frames.ravel(), "width": int(frames.shape[1])}
    if rest:
        try:
            row["values_json"] = json.dumps(rest, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            return _unusable("bad_reply", f"{', '.join(sorted(rest))} cannot be kept: {error}")
    return row


def _unusable(reason: str, message: str) -> Row:
    return {"status": "failed", "reason": reason, "message": message}


def settled(verdict: Verdict) -> Row:
    """The outcome of a unit that asks nothing."""
    return {"status": verdict.status, "reason": verdict.reason}
