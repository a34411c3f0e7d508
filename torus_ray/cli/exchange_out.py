"""Prompts and questions for people and models that run elsewhere. Nothing sealed is written: no spec, key or letter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torus_ray.bank.schema import LETTERS
from torus_ray.cli.exchange_place import Place
from torus_ray.errors import InputError
from torus_ray.protocol.graph import Node
from torus_ray.protocol.requests import SILENCE
from torus_ray.protocol.words import words_to_speak
from torus_ray.store.clips import read_clip

CLIPS = "clips"
Row = Mapping[str, Any]


def write_prompts(place: Place, target: Path) -> tuple[int, int]:
    """prompts.jsonl in `target`: a line a render (unit_id, stage, operation, prompt, words, source clip). Raises
    InputError.

    source, source_file: the clip to edit, null where the run has not got it yet; source_unit names the unit whose clip
    it is. Returns the numbers of prompts and of clips.
    """
    renders, captions = place.rows("renders"), place.rows("captions")
    lines: list[Row] = []
    clips: dict[str, bytes] = {}
    spoken: dict[str, str | None] = {}
    for node in place.graph:
        if node.kind != "render" or node.arm != place.arm:
            continue
        prompt = node.test.stage(node.stage).prompt
        words = spoken[node.test.id] = words_to_speak(prompt=prompt, before=spoken.get(node.test.id), caption=None)
        line: dict[str, Any] = {"unit_id": node.units[0].id, "test": node.test.id, "stage": node.stage}
        line |= {"audio_type": node.test.audio_type, "operation": node.operation, "prompt": prompt, "words": words}
        if node.operation == "edit":
            parent = renders.get(node.parents[0].units[0].id)
            line["source_unit"] = node.parents[0].units[0].id
            line |= _clip_fields(place, node.parents[0], parent, clips, "source")
        elif len(node.parents) > 1:
            caption = captions.get(node.parents[1].units[0].id)
            if caption is None or caption["text"] is None:
                continue  # Not to be asked before there is a caption.
            line["prompt"] = place.protocol.texts.edit_by_caption(caption["text"], prompt)
            line["words"] = words_to_speak(prompt=prompt, before=None, caption=caption["text"])
        lines.append(line)
    _write(target, "prompts.jsonl", lines, clips)
    return len(lines), len(clips)


def write_questions(place: Place, target: Path) -> tuple[int, int]:
    """questions.jsonl in `target`: a line a question whose clip is there, options in the order shown. Raises
    InputError."""
    renders = place.rows("renders")
    lines: list[Row] = []
    clips: dict[str, bytes] = {}
    for node in place.graph:
        if node.kind != "answer":
            continue
        heard = node.parents[0] if node.parents else None
        row = renders.get(heard.units[0].id) if heard else None
        if heard is not None and (row is None or row["status"] != "ok"):
            continue
        fields = _clip_fields(place, heard, row, clips, "clip")
        for unit in node.units:
            assert unit.question is not None
            options = place.protocol.shown(node, unit)
            line = {"unit_id": unit.id, **fields, "question": unit.question.text}
            line |= {"options": dict(zip(LETTERS, options, strict=True))}
            line |= {"prompt": place.protocol.texts.ask(unit.question.text, options)}
            lines.append(line)
    if not lines:
        raise InputError(
            "there are no clips to ask about",
            where=str(place.folder),
            expected="a run with renders",
            mend="render or import clips first",
        )
    _write(target, "questions.jsonl", lines, clips)
    return len(lines), len(clips)


def _clip_fields(place: Place, node: Node | None, row: Row | None, clips: dict[str, bytes], name: str) -> Row:
    """A clip's id and its file in the folder written; its bytes go into `clips`."""
    if node is None:
        clips[SILENCE.id] = SILENCE.data
        return {name: SILENCE.id, f"{name}_file": f"{CLIPS}/{SILENCE.id}.flac"}
    if row is None or row["clip"] is None:
        return {name: None, f"{name}_file": None}
    if row["clip"] not in clips:
        clips[row["clip"]] = read_clip(place.home(node), row["clip"], row["clip_sha256"])
    return {name: row["clip"], f"{name}_file": f"{CLIPS}/{row['clip']}.flac"}


def _write(target: Path, name: str, lines: Sequence[Row], clips: Mapping[str, bytes]) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(
            f"{target} is not empty",
            where=str(target.absolute()),
            expected="a folder that is empty or not there",
            mend="name another folder",
        )
    try:
        (target / CLIPS).mkdir(parents=True, exist_ok=True)
        for clip, data in clips.items():
            (target / CLIPS / f"{clip}.flac").write_bytes(data)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (target / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write {error.filename or target}: {error.strerror}",
            where=str(target.absolute()),
            expected="a folder that can be written",
            mend="name another folder, or free space",
        ) from error
