"""What the page is told: plain data for JSON, made from a desk, its clips and its flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torus_ray.bank.load import BankError
from torus_ray.bank.order import option_order
from torus_ray.bank.schema import AUDIO_TYPES, FAMILIES, STAGES, Test
from torus_ray.curation.review.clips import ArmClips, Render
from torus_ray.curation.review.desk import Desk, Refused, Sheet
from torus_ray.curation.review.flags import Flag, check_flags, gate_flags, read_gate
from torus_ray.curation.review.verdicts import REVIEWED
from torus_ray.errors import InputError


def bank_payload(desk: Desk, arms: Sequence[ArmClips]) -> dict[str, Any]:
    """The list of tests with how each stands, and the arms that can be listened to."""
    gate = read_gate(desk.path)
    return {
        "name": desk.card.name,
        "title": desk.card.title,
        "folder": str(desk.path),
        "audio_types": AUDIO_TYPES,
        "families": FAMILIES,
        "stages": STAGES,
        "arms": [arm.name for arm in arms],
        "tests": [_entry(sheet, _flags(sheet, gate.get(sheet.id, ()))) for sheet in desk.sheets()],
    }


def test_payload(desk: Desk, arms: Sequence[ArmClips], sheet: Sheet) -> dict[str, Any]:
    """One test whole: keys, order of the options as shown to systems, verdicts, flags, clips by stage and arm."""
    flags = _flags(sheet, read_gate(desk.path).get(sheet.id, ()))
    told = _entry(sheet, flags) | {
        "problems": problems_payload(BankError(sheet.id, sheet.problems)) if sheet.problems else [],
        "test": sheet.test.model_dump(mode="json") if sheet.test else None,
        "history": [
            {"at": v.at, "reviewer": v.reviewer, "decision": v.decision, "reason": v.reason}
            for v in desk.history(sheet.id)
        ],
    }
    if sheet.test:
        told |= {
            "shown": _shown(sheet.test, desk.card.order_seed),
            "flags": [flag.__dict__ for flag in flags],
            "clips": {
                stage: [
                    _clip(number, arm.renders.get((sheet.id, stage)), sheet.test.stage(stage).prompt)
                    for number, arm in enumerate(arms)
                ]
                for stage in STAGES
            },
        }
    return told


def problems_payload(error: InputError) -> list[dict[str, str]]:
    """Each thing that is wrong, with the JSON path or the field that it is about."""
    if isinstance(error, BankError):
        return [{"at": p.at, "message": p.message, "expected": p.expected, "mend": p.mend} for p in error.problems]
    at = error.field if isinstance(error, Refused) else ""
    return [{"at": at, "message": error.message, "expected": error.expected, "mend": error.mend}]


def _flags(sheet: Sheet, gate: Sequence[Mapping[str, Any]]) -> tuple[Flag, ...]:
    return (*gate_flags(sheet.test, gate), *check_flags(sheet.findings)) if sheet.test else ()


def _entry(sheet: Sheet, flags: Sequence[Flag]) -> dict[str, Any]:
    test, stands = sheet.test, sheet.standing
    return {
        "id": sheet.id,
        "version": sheet.version,
        "title": test.title if test else sheet.id,
        "audio_type": test.audio_type if test else None,
        "state": stands.state if test else "broken",
        "reviewed": test is not None and stands.state in REVIEWED,
        "by": list(stands.by),
        "reason": stands.reason,
        "flagged": sum(flag.current for flag in flags),
    }


def _shown(test: Test, seed: int) -> dict[str, list[list[int]]]:
    """By stage and question: indices of the options in the order in which systems see them."""
    return {
        stage: [
            option_order(seed=seed, item=f"{test.id}.{stage}.{question.id}", options=question.options)
            for question in test.stage(stage).questions
        ]
        for stage in STAGES
    }


def _clip(number: int, render: Render | None, prompt: str) -> dict[str, Any] | None:
    if render is None:
        return None
    return {
        "url": f"/clips/{number}/{render.clip}" if render.clip else None,
        "status": render.status,
        "reason": render.reason,
        "duration_s": render.duration_s,
        "flags": render.flags,
        "other_prompt": None if render.prompt == prompt else render.prompt,
    }
