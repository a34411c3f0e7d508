"""Take a bank from Parquet: a folder that `torus bank seal` wrote, or somebody else's table by a mapping of columns.

A mapping is a TOML file that says where another table keeps what a test needs; docs/bank.md shows one. What such a
table does not have, and no score depends on, is written as NOT_GIVEN.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from torus_ray.bank.load import CARD_FILE, Bank, from_documents
from torus_ray.bank.parquet import CARD_KEY, HASH_KEY, documents, questions_table
from torus_ray.bank.schema import AUDIO_TYPES, FAMILIES, LETTERS, STAGES, Id
from torus_ray.bank.seal import QUESTIONS, TESTS, write_sealed
from torus_ray.errors import InputError

NOT_GIVEN = "not given"


# --- what torus sealed ------------------------------------------------------------------------------------------------


def read_sealed(folder: Path) -> Bank:
    """The bank in a folder of `torus bank seal`, its hash and both tables compared. Raises InputError or BankError."""
    file = folder / TESTS
    table = _read_parquet(file)
    metadata = table.schema.metadata or {}
    card, sealed = metadata.get(CARD_KEY), metadata.get(HASH_KEY, b"").decode()
    if card is None:
        raise InputError(
            "this Parquet file holds no bank of torus",
            where=str(file),
            expected="a file that `torus bank seal` wrote",
            mend="say by --mapping where the table keeps what; docs/bank.md has an example",
        )
    bank = from_documents(str(file), (f"{file} metadata", card), documents(table))
    if bank.hash != sealed:
        raise _changed(file, f"the tests have the hash {bank.hash}", f"the hash it was sealed with, {sealed}")
    flat = folder / QUESTIONS
    if flat.exists() and not _read_parquet(flat).equals(questions_table(bank)):
        raise _changed(flat, f"its questions are not those of {TESTS}", "the same questions in both")
    return bank


def _changed(file: Path, message: str, expected: str) -> InputError:
    return InputError(message, where=str(file), expected=expected, mend="take the folder anew from where it came from")


def _read_parquet(file: Path) -> pa.Table:
    try:
        return pq.read_table(file)
    except (OSError, pa.ArrowException) as error:
        told = "there is no such file" if not file.exists() else f"it cannot be read as Parquet ({error})"
        mend = "give the folder of a sealed bank, or --mapping with the name of the file"
        raise InputError(told, where=str(file), expected=f"a folder with {TESTS}", mend=mend) from error


def write_bank(bank: Bank, target: Path) -> None:
    """The bank as a folder of JSON files, new and whole. Raises InputError if something is there already."""
    contents = {CARD_FILE: bank.card.model_dump(mode="json")}
    contents |= {f"{test.id}.json": test.model_dump(mode="json") for test in bank.tests}
    texts = {name: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for name, content in contents.items()}
    write_sealed({name: text.encode() for name, text in texts.items()}, target)


# --- somebody else's table --------------------------------------------------------------------------------------------


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Columns(_Strict):
    """The other table's columns: one row a question. options: one column of lists, or six columns in order. answer: the
    text of the right option, its letter A-F, or its index from 0. The rest may be missing."""

    test: str
    audio_type: str
    stage: str
    prompt: str
    question: str
    options: str | list[str]
    answer: str
    family: str | None = None
    spec: str | None = None
    transcript: str | None = None
    attribute: str | None = None
    value: str | None = None


class Mapped(_Strict):
    """A mapping: the card of the bank to be, the file in the folder, its columns, and what its values mean here.

    values: by column of ours (audio_type, stage, family), the other's word to ours. family: where it has no column.
    """

    name: Id
    title: str
    licence: str
    about: str
    file: str
    columns: Columns
    order_seed: int = 0
    answer: Literal["text", "letter", "index"] = "text"
    family: str = Field(default=FAMILIES[0])
    values: dict[Literal["audio_type", "stage", "family"], dict[str, str]] = {}


def read_mapping(file: Path) -> Mapped:
    """Raises InputError with the field that is wrong."""
    try:
        return Mapped.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"the mapping cannot be read ({error})", where=str(file), expected="a TOML file", mend="see docs/bank.md"
        ) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = ".".join(map(str, first["loc"]))
        raise InputError(
            f"the mapping's `{at}`: {first['msg']}", where=str(file), expected="see docs/bank.md", mend=f"mend `{at}`"
        ) from error


def read_mapped(folder: Path, mapping: Mapped) -> Bank:
    """The bank in another's table: rows of a test together, a stage's in order. Raises InputError or BankError."""
    file = folder / mapping.file
    table = pl.DataFrame(pl.from_arrow(_read_parquet(file)))
    columns = mapping.columns
    wanted = [
        name for value in columns.model_dump().values() for name in ([value] if isinstance(value, str) else value or [])
    ]
    absent = sorted({name for name in wanted if name not in table.columns})
    if absent:
        raise InputError(
            f"the table has no column {', '.join(absent)}",
            where=str(file),
            expected=f"one of {', '.join(table.columns)}",
            mend="mend the names under [columns] in the mapping",
        )
    tests: dict[str, list[dict[str, Any]]] = {}
    for number, row in enumerate(table.iter_rows(named=True), 1):
        tests.setdefault(_slug(str(row[columns.test])), []).append({**row, "": f"{file} row {number}"})
    card = {name: getattr(mapping, name) for name in ("name", "title", "order_seed", "licence", "about")}
    built = ((name, json.dumps(_test(name, rows, mapping)).encode()) for name, rows in tests.items())
    return from_documents(str(file), ("the mapping", json.dumps(card).encode()), built)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _test(test_id: str, rows: Sequence[Mapping[str, Any]], mapping: Mapped) -> dict[str, Any]:
    columns = mapping.columns
    stages: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        stages.setdefault(_value(row, "stage", columns.stage, mapping, STAGES), []).append(row)
    return {
        "id": test_id,
        "audio_type": _value(rows[0], "audio_type", columns.audio_type, mapping, AUDIO_TYPES),
        "title": test_id,
        "seed": dict.fromkeys(
            ("scene", "intervention", "acoustic_outcome", "altered_attribute", "counterfactual_outcome"), NOT_GIVEN
        ),
        "stages": {name: _stage(of_stage, mapping) for name, of_stage in stages.items()},
        "provenance": {
            "author": mapping.title,
            "written": NOT_GIVEN,
            "human_verified_by": None,
            "notes": f"imported from {mapping.file}; what reads '{NOT_GIVEN}' was not in it",
        },
    }


def _stage(rows: Sequence[Mapping[str, Any]], mapping: Mapped) -> dict[str, Any]:
    columns = mapping.columns
    source = {"what": NOT_GIVEN, "onset_s": 0.0, "duration_s": 10.0, "level": NOT_GIVEN, "place": NOT_GIVEN}
    spec = {
        "summary": _optional(rows[0], columns.spec) or NOT_GIVEN,
        "duration_s": 10.0,
        "room": NOT_GIVEN,
        "sources": [source],
    }
    return {
        "prompt": rows[0][columns.prompt],
        "spec": spec,
        "transcript": _optional(rows[0], columns.transcript),
        "questions": [_question(number, row, mapping) for number, row in enumerate(rows, 1)],
    }


def _question(number: int, row: Mapping[str, Any], mapping: Mapped) -> dict[str, Any]:
    columns = mapping.columns
    several = columns.options
    options = list(row[several] or []) if isinstance(several, str) else [row[name] for name in several]
    answer = _answer(row, options, mapping)
    family = _value(row, "family", columns.family, mapping, FAMILIES) if columns.family else mapping.family
    return {
        "id": f"q{number}",
        "family": family,
        "text": row[columns.question],
        "options": options,
        "answer": answer,
        "key": {
            "attribute": _optional(row, columns.attribute) or NOT_GIVEN,
            "value": _optional(row, columns.value) or answer,
        },
    }


def _answer(row: Mapping[str, Any], options: Sequence[Any], mapping: Mapped) -> Any:
    given = row[mapping.columns.answer]
    if mapping.answer == "text":
        return given
    shown = str(given).strip()
    places = list(LETTERS) if mapping.answer == "letter" else [str(at) for at in range(len(LETTERS))]
    if shown.upper() not in places or places.index(shown.upper()) >= len(options):
        raise _unknown(row, f"the answer {given!r}", places, "say under `answer` how the right option is given")
    return options[places.index(shown.upper())]


def _optional(row: Mapping[str, Any], column: str | None) -> Any:
    return row[column] if column else None


def _value(row: Mapping[str, Any], ours: str, column: str, mapping: Mapped, known: Sequence[str]) -> str:
    """The value of one of our columns, put into our words."""
    given = str(row[column])
    meant: dict[str, str] = mapping.values.get(ours, {})  # type: ignore[call-overload]
    value = meant.get(given, given)
    if value not in known:
        raise _unknown(row, f"the {ours} {given!r}", known, f"say under [values.{ours}] what it means here")
    return value


def _unknown(row: Mapping[str, Any], what: str, known: Sequence[str], mend: str) -> InputError:
    return InputError(f"unknown: {what}", where=row[""], expected=f"one of {', '.join(known)}", mend=mend)
