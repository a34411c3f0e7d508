"""`torus verify` on the level of the store: what is broken, missing or untrue, each by the name of its unit or file.

What needs the bank or the letter reader is handed in, so that this module knows rows and files only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import Protocol as Interface

import polars as pl

from torus_ray.audio import BadClip, identify
from torus_ray.bank.schema import LETTERS
from torus_ray.store.clips import stored_bytes
from torus_ray.store.errors import ManifestError
from torus_ray.store.files import sha256_of
from torus_ray.store.layout import MANIFEST, PartName, clip_path, parse_part, table_folder
from torus_ray.store.manifest import read_manifest
from torus_ray.store.parts import Part, live_parts, open_part, read_parts_list, unreadable
from torus_ray.store.reader import current_rows
from torus_ray.store.tables import HISTORY_TABLES, OPTION_COLUMNS, STATUSES, TABLES

VERIFY_THREADS = 4
_HEARD = ("unit_id", "system", "arm", "seed", "test", "source_test", "stage", "renderer", "clip")


@dataclass(frozen=True)
class Finding:
    """Something that is wrong. kind: one of the words used in this module. where: file or unit."""

    kind: str
    where: str
    message: str


@dataclass(frozen=True)
class KnownQuestion:
    """What the bank says of a question: its hash, and the text of its right option."""

    question_hash: str
    answer: str


class Reading(Interface):
    """What a letter reader gives."""

    @property
    def letter(self) -> str | None: ...

    @property
    def letter_strict(self) -> str | None: ...


ReadLetter = Callable[[str, Sequence[str]], Reading]
Questions = Mapping[tuple[str, str, str], KnownQuestion]
"""By (test, stage, question)."""


def verify(
    run: Path,
    *,
    questions: Questions | None = None,
    read_letter: ReadLetter | None = None,
    expected: Mapping[str, Collection[str]] | None = None,
) -> list[Finding]:
    """Everything that is wrong with a run folder; empty when nothing is.

    questions: the bank's; rows of another bank are found by them. read_letter: (reply, options A to F) to a reading.
    expected: unit ids by table. What is not given is not checked. Reads and decodes every clip.
    """
    findings = [*_manifest(run), *_parts(run)]
    renders = current_rows(run, "renders")
    findings += _clip_files(run, renders)
    for table in ("renders", "captions", "measures", "answers"):
        rows = renders if table == "renders" else current_rows(run, table)
        findings += _statuses(table, rows)
        if expected is not None:
            findings += _missing_units(table, rows, expected.get(table, ()))
        if questions is not None:
            findings += _foreign(table, rows, questions)
        if table != "renders":
            findings += _parents(run, table, rows, renders)
        if table == "measures":
            findings += _measures(rows)
        if table == "answers":
            findings += _answers(rows, questions or {}, read_letter)
    return findings


# --- files ------------------------------------------------------------------------------------------------------------


def _manifest(run: Path) -> Iterator[Finding]:
    try:
        if read_manifest(run) is None:
            yield Finding("manifest", str(run / MANIFEST), "there is no run.json")
    except ManifestError as error:
        yield Finding("manifest", error.where, error.message)


def _parts(run: Path) -> Iterator[Finding]:
    listed: dict[str, dict[str, str]] = {}
    try:
        listed = read_parts_list(run)
    except ManifestError as error:
        yield Finding("broken_list", error.where, error.message)
    for table in TABLES:
        folder = table_folder(run, table)
        live, _ = live_parts(folder)
        broken = unreadable(folder, live)
        for part in broken:
            yield Finding("broken_part", str(folder / part.name.file_name), "the part cannot be read")
        for name in _lost(live, [parse_part(file) for file in listed.get(table, {})]):
            yield Finding("missing_part", str(folder / name.file_name), "the part was written and is not there")
        for part in live:
            file = part.name.file_name
            digest = listed.get(table, {}).get(file)
            if part not in broken and digest is not None and sha256_of(folder / file) != digest:
                yield Finding("changed_part", str(folder / file), "the part is not the one written (sha256 differs)")
            if part not in broken and part.covers_from != part.name and table not in HISTORY_TABLES:
                yield from _doubles(folder / file)


def _lost(live: Sequence[Part], listed: Sequence[PartName | None]) -> list[PartName]:
    """Parts that must have been: listed, or a gap in an epoch's numbers; neither there nor covered by one that is."""
    newest = {part.name.epoch: part.name.seq for part in live}
    numbered = {PartName(epoch, seq) for epoch, last in newest.items() for seq in range(1, last + 1)}
    # A broken part cannot tell what it covered.
    covered_perhaps = max((part.name for part in live if part.rows is None), default=PartName(0, 0))
    numbered = {name for name in numbered if name > covered_perhaps}
    wanted = numbered | {name for name in listed if name is not None}
    return sorted(name for name in wanted if not any(part.covers_from <= name <= part.name for part in live))


def _doubles(path: Path) -> Iterator[Finding]:
    with open_part(path) as file:
        units = pl.Series("unit_id", file.read(["unit_id"])["unit_id"])
    for unit in units.filter(units.is_duplicated()).unique(maintain_order=True):
        yield Finding("double_unit", unit, f"the unit has two rows in the merged part {path}")


def _clip_files(run: Path, renders: pl.DataFrame) -> list[Finding]:
    rows = renders.filter(pl.col("clip").is_not_null())
    wanted = rows.select("unit_id", "clip", "clip_sha256", "clip_bytes").rows(named=True)
    with ThreadPoolExecutor(VERIFY_THREADS) as pool:
        checked = pool.map(lambda row: _clip_file(run, row), wanted)
        return [finding for finding in checked if finding is not None]


def _clip_file(run: Path, row: Mapping[str, Any]) -> Finding | None:
    path = clip_path(run, row["clip"])
    try:
        data = stored_bytes(run, row["clip"])
    except FileNotFoundError:
        return Finding("missing_clip", row["unit_id"], f"its clip is not there: {path}")
    if hashlib.sha256(data).hexdigest() != row["clip_sha256"]:
        return Finding("changed_clip", row["unit_id"], f"its clip is not the file written (sha256 differs): {path}")
    if len(data) != row["clip_bytes"]:
        return Finding(
            "changed_clip", row["unit_id"], f"clip_bytes says {row['clip_bytes']}, the file has {len(data)}: {path}"
        )
    try:
        identity = identify(data)
    except BadClip as error:
        return Finding("changed_clip", row["unit_id"], f"its clip cannot be decoded ({error}): {path}")
    if identity != row["clip"]:
        return Finding("changed_clip", row["unit_id"], f"its clip's PCM has the identity {identity}: {path}")
    return None


# --- rows -------------------------------------------------------------------------------------------------------------


def _statuses(table: str, rows: pl.DataFrame) -> Iterator[Finding]:
    for row in rows.filter(~pl.col("status").is_in(STATUSES) | pl.col("status").is_null()).rows(named=True):
        yield Finding("status", row["unit_id"], f"{table}: status {row['status']!r} is none of {', '.join(STATUSES)}")
    if table == "renders":
        for unit in rows.filter((pl.col("status") == "ok") != pl.col("clip").is_not_null())["unit_id"]:
            yield Finding("status", unit, "renders: a row has a clip if and only if it is ok")


def _missing_units(table: str, rows: pl.DataFrame, expected: Collection[str]) -> Iterator[Finding]:
    have = set(rows["unit_id"])
    for unit in expected:
        if unit not in have:
            yield Finding("missing_unit", unit, f"{table} has no row of this unit")


def _foreign(table: str, rows: pl.DataFrame, questions: Questions) -> Iterator[Finding]:
    """Rows of another bank: a test that the bank has not, or a question with other words."""
    tests = {test for test, _, _ in questions}
    for row in rows.filter(~pl.col("test").is_in(list(tests))).rows(named=True):
        yield Finding("foreign_row", row["unit_id"], f"{table}: the bank has no test {row['test']!r}")
    if table != "answers":
        return
    for row in rows.filter(pl.col("test").is_in(list(tests))).rows(named=True):
        known = questions.get((row["test"], row["stage"], row["question"]))
        if known is None:
            yield Finding("foreign_row", row["unit_id"], f"the bank has no question {row['question']!r} there")
        elif known.question_hash != row["question_hash"]:
            yield Finding("foreign_row", row["unit_id"], "the question is not the bank's (question_hash differs)")


def _parents(run: Path, table: str, rows: pl.DataFrame, renders: pl.DataFrame) -> Iterator[Finding]:
    """What was heard must be the clip of its test and stage in the run that rendered it: this one, save in controls."""
    of_run = {run: _stage_clips(renders)}
    names = [name for name in _HEARD if name in rows.columns]
    for row in rows.filter(pl.col("clip").is_not_null()).select(names).rows(named=True):
        renderer = row.get("renderer")
        own = f"{row['system']}/{row['arm']}"
        source = run if renderer in (None, own) else run.parent.parent / str(renderer)
        if source not in of_run:
            of_run[source] = _stage_clips(current_rows(source, "renders"))
        clips = of_run[source]
        if clips.get((row.get("source_test") or row["test"], row["stage"], row["seed"])) == row["clip"]:
            continue
        if row["clip"] in clips.values():
            yield Finding("wrong_clip", row["unit_id"], f"{table}: the clip heard is another stage's: {row['clip']}")
        else:
            yield Finding(
                "no_parent", row["unit_id"], f"{table}: no render in {source} has the clip heard: {row['clip']}"
            )


def _stage_clips(renders: pl.DataFrame) -> dict[tuple[str, str, int], str]:
    rows = renders.filter(pl.col("clip").is_not_null()).select("test", "stage", "seed", "clip").rows()
    return {(test, stage, seed): clip for test, stage, seed, clip in rows}


def _measures(rows: pl.DataFrame) -> Iterator[Finding]:
    """A measure that is ok holds a text, or finite numbers in whole frames."""
    sizes = rows.select(
        "unit_id",
        "status",
        "text",
        "width",
        pl.col("values").list.len().alias("size"),
        pl.col("values").list.eval(pl.element().is_finite().all()).list.first().alias("finite"),
    )
    for row in sizes.rows(named=True):
        if row["status"] == "ok" and row["text"] is None and not row["size"]:
            yield Finding("measure", row["unit_id"], "the measure is ok and holds neither a text nor numbers")
        if row["size"] and (not row["width"] or row["size"] % row["width"]):
            yield Finding("measure", row["unit_id"], f"{row['size']} values are no frames of {row['width']}")
        if row["size"] and not row["finite"]:
            yield Finding("measure", row["unit_id"], "some of its values are NaN or infinite")


def _answers(rows: pl.DataFrame, questions: Questions, read_letter: ReadLetter | None) -> Iterator[Finding]:
    for row in rows.rows(named=True):
        unit, letter, right = row["unit_id"], row["letter"], row["answer_letter"]
        if (letter is not None) != (row["status"] == "ok"):
            yield Finding(
                "letter", unit, f"an answer has a letter if and only if it is ok; {row['status']} has {letter!r}"
            )
        if bool(row["correct"]) != (letter is not None and letter == right):
            yield Finding(
                "correct", unit, f"correct is {row['correct']}, but the letter is {letter} and {right} is right"
            )
        strict = row["letter_strict"]
        if bool(row["correct_strict"]) != (strict is not None and strict == right):
            yield Finding(
                "correct",
                unit,
                f"correct_strict is {row['correct_strict']}, but {strict} was read and {right} is right",
            )
        options = [row[name] for name in OPTION_COLUMNS]
        known = questions.get((row["test"], row["stage"], row["question"]))
        if known is not None and dict(zip(LETTERS, options, strict=True)).get(right) != known.answer:
            yield Finding("letter", unit, f"answer_letter is {right}, which is not where the right option was shown")
        if read_letter is not None and row["reply"] is not None and row["status"] in ("ok", "unparsed"):
            reading = read_letter(row["reply"], options)
            if (reading.letter, reading.letter_strict) != (letter, strict):
                read = f"{reading.letter} (strict {reading.letter_strict})"
                yield Finding("letter", unit, f"the reply reads as {read}, the row says {letter} (strict {strict})")
