"""Clips and answers that were made elsewhere, read into a run: all of it is checked first, then all is written."""

from __future__ import annotations

import difflib
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import soundfile

from torus_ray.audio import BadClip, StoredClip, decode, encode
from torus_ray.cli.exchange_place import Place
from torus_ray.errors import InputError
from torus_ray.protocol.graph import Node, Unit
from torus_ray.protocol.requests import SILENCE, Plan
from torus_ray.protocol.rows import make_row, render_outcome

CLIPS_FILE, ANSWERS_FILE = "clips.jsonl", "answers.jsonl"
_CLIP_FIELDS = {"unit_id": str, "file": str, "rate_hz": int, "sha256": str, "source": str, "hit_limit": bool}
_ANSWER_FIELDS = {"unit_id": str, "clip": str, "reply": str}

Row = dict[str, Any]


class ImportRefused(InputError):
    """What came back is not sound; a line for each thing. Nothing has been written."""

    def __init__(self, file: Path, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(
            f"{file.name} has {count} problem{'s' if count > 1 else ''}, so nothing was written", where=str(file)
        )

    def render(self) -> str:
        return "\n".join([f"error: {self.message}", *(f"  {problem}" for problem in self.problems)])


@dataclass(frozen=True)
class _Line:
    number: int
    fields: Mapping[str, Any]


class _Wrong(Exception):
    """What is wrong with a line, and the mend."""

    def __init__(self, what: str, mend: str) -> None:
        super().__init__(what)
        self.mend = mend


class _Desk:
    """Takes the lines of a file one by one, and every problem with its line."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.problems: list[str] = []

    @contextmanager
    def at(self, line: int) -> Iterator[None]:
        """What goes wrong within is written down with its line, and the next line is looked at."""
        try:
            yield
        except _Wrong as wrong:
            self.problems.append(f"{self.file.name}:{line}: {wrong}; mend: {wrong.mend}")

    def lines(self, known: Mapping[str, type], needed: Sequence[str]) -> Iterator[_Line]:
        """The JSON objects of the file whose fields are the right ones; each unit once."""
        seen: dict[str, int] = {}
        for number, text in enumerate(self._text().splitlines(), 1):
            if not text.strip():
                continue
            taken: _Line | None = None
            with self.at(number):
                fields = _fields(text, known, needed)
                before = seen.setdefault(fields["unit_id"], number)
                if before != number:
                    raise _Wrong(f"{fields['unit_id']} is on line {before} too", "keep one of the two")
                taken = _Line(number, fields)
            if taken is not None:
                yield taken
        if not seen and not self.problems:
            self.problems.append(f"{self.file.name}: it has no lines; mend: one JSON object a line")

    def _text(self) -> str:
        try:
            return self.file.read_bytes().decode("utf-8")
        except FileNotFoundError as error:
            raise InputError(
                f"there is no {self.file.name} in {self.file.parent}",
                where=str(self.file.absolute()),
                expected=f"a folder with {self.file.name}",
                mend="see docs: what `torus export` writes names the units",
            ) from error
        except UnicodeDecodeError as error:
            raise ImportRefused(
                self.file, [f"{self.file.name}: not UTF-8 ({error}); mend: save it as UTF-8"]
            ) from error
        except OSError as error:
            raise InputError(f"cannot read {self.file}: {error.strerror}", where=str(self.file.absolute())) from error

    def done(self) -> None:
        if self.problems:
            raise ImportRefused(self.file, self.problems)


def _fields(text: str, known: Mapping[str, type], needed: Sequence[str]) -> dict[str, Any]:
    """The fields of one line. Raises _Wrong."""
    mend = f"the fields are {', '.join(known)}; {', '.join(needed)} are needed"
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise _Wrong(f"not JSON: {error}", "one JSON object a line") from error
    if not isinstance(fields, dict):
        raise _Wrong("not a JSON object", mend)
    for name, value in fields.items():
        if name not in known:
            raise _Wrong(f"unknown field `{name}`", mend)
        wrong_bool = isinstance(value, bool) and known[name] is not bool
        if value is not None and (wrong_bool or not isinstance(value, known[name])):
            raise _Wrong(f"`{name}` is {json.dumps(value)[:60]}, not {known[name].__name__}", mend)
    for name in needed:
        if fields.get(name) is None:
            raise _Wrong(f"`{name}` is missing", mend)
    return fields


# --- clips ------------------------------------------------------------------------------------------------------------


def read_clips_in(place: Place, source: Path) -> tuple[int, int]:
    """Read `source`/clips.jsonl into the run: how many clips are new, and how many were there already.

    A line: unit_id, file (within `source`), and as far as known rate_hz, sha256 (of the file), source (id of the clip
    that was edited), hit_limit. Raises ImportRefused naming file and line; then nothing has been written.
    """
    if not place.is_imported:
        raise InputError(
            f"{place.system}/{place.arm.name} was rendered by `torus run`",
            where=str(place.folder),
            expected="a system of its own for clips that were made elsewhere",
            mend="choose another --system",
        )
    desk = _Desk(source / CLIPS_FILE)
    nodes = {node.units[0].id: node for node in place.graph if node.kind == "render"}
    there = {unit: row for unit, row in place.rows("renders").items() if row["status"] == "ok"}
    brought: dict[str, tuple[_Line, StoredClip]] = {}
    spoilt: set[str] = set()
    for line in desk.lines(_CLIP_FIELDS, ("unit_id", "file")):
        with desk.at(line.number):
            spoilt.add(line.fields["unit_id"])
            _known(line, nodes, place, "prompts.jsonl")
            brought[line.fields["unit_id"]] = line, _stored(line, source, place.protocol.system.card.bits)
    spoilt -= brought.keys()
    rows, clips, kept = [], [], 0
    ids = {unit: str(row["clip"]) for unit, row in there.items()} | {
        unit: clip.id for unit, (_, clip) in brought.items()
    }
    for unit, (line, stored) in brought.items():
        with desk.at(line.number):
            if unit not in there:
                rows.append(_render_row(place, nodes[unit], line, stored, ids))
                clips.append(stored)
            elif there[unit]["clip"] == stored.id:
                kept += 1
            else:
                what = f"{unit} has another clip already ({there[unit]['clip'][:12]}...)"
                raise _Wrong(what, "leave the line out, or import under another --arm, e.g. native.seed1")
    desk.done()
    if rows:
        place.write("renders", rows, clips)
    return len(rows), kept


def _render_row(place: Place, node: Node, line: _Line, stored: StoredClip, ids: Mapping[str, str]) -> Row:
    """The row of an imported clip; its parent's clip must be in the run or in the same import. Raises _Wrong."""
    unit = node.units[0]
    parents = []
    for parent in node.parents:
        clip = ids.get(parent.units[0].id)
        if clip is None:
            what = f"{unit.id} edits the clip of {parent.units[0].id}, which is not there"
            raise _Wrong(what, "import that clip first, or in the same file")
        told = line.fields.get("source")
        if told is not None and told != clip:
            what = f"{unit.id} was made from the clip {told[:12]}..., its source is {clip[:12]}..."
            raise _Wrong(what, "edit the clip that `torus export prompts` gives as source")
        parents.append({"status": "ok", "reason": None, "clip": clip})
    plan = place.protocol.resolve(node, parents)
    assert isinstance(plan, Plan)
    outcome = render_outcome(stored, bool(line.fields.get("hit_limit")))
    return make_row(place.protocol, node, unit, plan, plan.asks[0], outcome)


def _stored(line: _Line, source: Path, bits: int) -> StoredClip:
    """The clip in a line's file, as it is kept. Raises _Wrong."""
    name, told, declared = (line.fields.get(field) for field in ("file", "sha256", "rate_hz"))
    path = source / str(name)
    if not path.resolve().is_relative_to(source.resolve()):
        raise _Wrong(f"{name} is not inside {source}", "put the file beside clips.jsonl")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _Wrong(f"{name} cannot be read: {error.strerror}", "put the file there") from error
    if told is not None and hashlib.sha256(data).hexdigest() != told:
        raise _Wrong(f"{name} is not the file that sha256 names", "copy the file again")
    try:
        rate = soundfile.info(io.BytesIO(data)).samplerate
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise _Wrong(f"{name} is no audio that can be read", "write WAV, FLAC or Ogg") from error
    if declared is not None and declared != rate:
        raise _Wrong(f"rate_hz says {declared}, the header of {name} says {rate}", "mend the one that is wrong")
    try:
        return encode(decode(data), bits)
    except BadClip as error:
        raise _Wrong(f"{name}: {error.reason}: {error}", "render that clip again") from error


# --- answers ----------------------------------------------------------------------------------------------------------


def read_answers_in(place: Place, source: Path) -> tuple[int, int]:
    """Read `source`/answers.jsonl into the run: how many answers are new, and how many were there already.

    A line: unit_id, clip (the id of the clip that was heard), reply (as it was given; the letter is read here).
    Raises ImportRefused naming file and line; then nothing has been written.
    """
    desk = _Desk(source / ANSWERS_FILE)
    asked = {unit.id: (node, unit) for node in place.graph if node.kind == "answer" for unit in node.units}
    there, renders = place.rows("answers"), place.rows("renders")
    rows, kept = [], 0
    for line in desk.lines(_ANSWER_FIELDS, ("unit_id", "clip", "reply")):
        with desk.at(line.number):
            _known(line, asked, place, "questions.jsonl")
            unit_id, reply = line.fields["unit_id"], line.fields["reply"]
            node, unit = asked[unit_id]
            heard = _heard(node, renders)
            if heard is None or heard != line.fields["clip"]:
                now = f"the run's is {heard[:12]}..." if heard else "the run has no clip there"
                what = f"{unit_id} is an answer about another clip: {line.fields['clip'][:12]}..., {now}"
                raise _Wrong(what, "ask about the clips that `torus export questions` gives")
            before = there.get(unit_id)
            if before is None or before["status"] not in ("ok", "unparsed"):
                rows.append(_answer_row(place, node, unit, heard, reply))
            elif before["reply"] == reply and before["fingerprint"] == place.fingerprint:
                kept += 1
            else:
                raise _Wrong(f"{unit_id} has an answer already: {before['reply']!r:.40}", "leave the line out")
    desk.done()
    if rows:
        place.write("answers", rows)
    return len(rows), kept


def _heard(node: Node, renders: Mapping[str, Row]) -> str | None:
    """The clip that a question is about."""
    if not node.parents:
        return SILENCE.id
    row = renders.get(node.parents[0].units[0].id)
    return str(row["clip"]) if row is not None and row["clip"] else None


def _answer_row(place: Place, node: Node, unit: Unit, clip: str, reply: str) -> Row:
    plan = place.protocol.resolve(node, [{"status": "ok", "reason": None, "clip": clip}] if node.parents else [])
    assert isinstance(plan, Plan)
    ask = next(ask for ask in plan.asks if ask.unit == unit)
    return make_row(place.protocol, node, unit, plan, ask, {"status": "ok", "reply": reply})


def _known(line: _Line, units: Mapping[str, object], place: Place, file: str) -> None:
    """Raises _Wrong for a unit that the run does not expect."""
    unit = line.fields["unit_id"]
    if unit not in units:
        near = difflib.get_close_matches(unit, list(units), n=1)
        hint = f"near: {near[0]}" if near else f"all begin with {place.system}/{place.arm.name}/"
        raise _Wrong(f"no unit {unit!r} here, {hint}", f"take unit_id from {file}")
