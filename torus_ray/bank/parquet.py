"""A bank as two Parquet tables: `tests`, a row a test with all that it holds, and `questions`, a flat row a question.

`tests` alone is the whole bank: the card and the bank's hash are in the file's metadata. The same bank gives the same
bytes with the same release of pyarrow.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel

from torus_ray.bank.asked import questions_of
from torus_ray.bank.digest import canonical_json
from torus_ray.bank.load import Bank
from torus_ray.bank.order import letter_of, shown_options
from torus_ray.bank.schema import Test

CARD_KEY, HASH_KEY = b"torus_bank_card", b"torus_bank_hash"
PLAIN: dict[Any, pa.DataType] = {str: pa.string(), float: pa.float64(), int: pa.int64()}


def arrow_type(annotation: Any) -> pa.DataType:
    """The Arrow type of a field of the schema: models become structs, tuples lists, literals strings."""
    if annotation in PLAIN:
        return PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return pa.struct(_columns(annotation))
    inner = [arg for arg in get_args(annotation) if arg is not type(None) and arg is not Ellipsis]
    if get_origin(annotation) is Literal:
        return pa.string()
    if get_origin(annotation) is tuple:
        return pa.list_(arrow_type(inner[0]))
    # Annotated[X, ...] and X | None
    assert get_origin(annotation) in (Union, types.UnionType) or hasattr(annotation, "__metadata__"), annotation
    return arrow_type(inner[0])


def _columns(model: type[BaseModel]) -> list[tuple[str, pa.DataType]]:
    return [(name, arrow_type(info.annotation)) for name, info in model.model_fields.items()]


def tests_table(bank: Bank) -> pa.Table:
    """One row a test, in id order; columns as the fields of :class:`Test`, nested."""
    schema = pa.schema(_columns(Test))
    rows = [test.model_dump(mode="json") for test in bank.tests]
    metadata = {CARD_KEY: canonical_json(bank.card.model_dump()), HASH_KEY: bank.hash.encode()}
    return pa.Table.from_pylist(rows, schema=schema.with_metadata(metadata))


def questions_table(bank: Bank) -> pa.Table:
    """One row a question, in the bank's order; options as they are shown, A first."""
    return pa.Table.from_pylist(list(_questions(bank)), schema=QUESTIONS)


TEXT = pa.string()
QUESTIONS = pa.schema(
    [
        ("question_id", TEXT),
        ("test_id", TEXT),
        ("audio_type", TEXT),
        ("stage", TEXT),
        ("prompt", TEXT),
        ("family", TEXT),
        ("question", TEXT),
        ("options", pa.list_(TEXT)),
        ("letter", TEXT),
        ("answer", TEXT),
        ("key_attribute", TEXT),
        ("key_value", TEXT),
        ("human_verified_by", TEXT),
    ]
)


def _questions(bank: Bank) -> Iterator[dict[str, Any]]:
    for test, stage, question in questions_of(bank):
        item = f"{test.id}.{stage}.{question.id}"
        options = shown_options(seed=bank.card.order_seed, item=item, options=question.options)
        yield {
            "question_id": item,
            "test_id": test.id,
            "audio_type": test.audio_type,
            "stage": stage,
            "prompt": test.stage(stage).prompt,
            "family": question.family,
            "question": question.text,
            "options": list(options),
            "letter": letter_of(question.answer, options),
            "answer": question.answer,
            "key_attribute": question.key.attribute,
            "key_value": question.key.value,
            "human_verified_by": test.provenance.human_verified_by,
        }


def to_bytes(table: pa.Table) -> bytes:
    """The table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue().to_pybytes())


def documents(table: pa.Table) -> Iterator[tuple[str, bytes]]:
    """(name, JSON) of each test of a :func:`tests_table`."""
    for number, row in enumerate(table.to_pylist(), 1):
        yield f"row {number} ({row.get('id')})", json.dumps(row, ensure_ascii=False).encode()
