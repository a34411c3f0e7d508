"""The flat typed tables of a run, one place for every column (DESIGN 4, "Rows").

Unknown is null, never a sentinel. Times are epoch seconds, durations seconds, rates Hz.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from torus_ray.protocol.rows import OUTCOMES as HEAD_OUTCOMES
from torus_ray.protocol.rows import TABLES as TABLE_OF

Row = Mapping[str, Any]

STATUSES = ("ok", "unparsed", "refused", "failed", "timeout", "no_clip")
FINAL_STATUSES = frozenset({"ok", "unparsed", "refused"})
FINAL_FAILURES = frozenset({"not_finite", "empty"})
"""Reasons with which a seeded head would fail in the same way again."""

_TEXT, _FLAG, _INT, _SMALL, _REAL = pa.string(), pa.bool_(), pa.int64(), pa.int32(), pa.float64()
_VECTOR = pa.list_(pa.float32())

_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("silent", "too_short", "clipped", "hit_limit", "correct", "correct_strict"), _FLAG),
    **dict.fromkeys(("seed", "clip_bytes", "frames", "clipped_samples", "pid"), _INT),
    **dict.fromkeys(("rate_hz", "channels", "bits", "option_shift", "repeat", "attempt", "batch"), _SMALL),
    **dict.fromkeys(("duration_s", "peak", "cpu_s"), _REAL),
    **dict.fromkeys(("value", "lo", "hi", "half_width", "floor"), _REAL),
    **dict.fromkeys(("width", "n", "expected", "failed", "reference_n"), _SMALL),
    "values": _VECTOR,
    **dict.fromkeys(("ready_at", "submitted_at", "started_at", "ended_at", "returned_at", "committed_at"), _REAL),
}
"""Columns that are not text."""

_UNIT = "unit_id key system arm seed"
_PLACE = "test audio_type stage"
_END = "head fingerprint reused_from message"

_COLUMNS: dict[str, str] = {
    "renders": f"""{_UNIT} {_PLACE} operation status reason silent too_short clipped hit_limit
        clip clip_sha256 clip_bytes rate_hz channels frames bits duration_s peak clipped_samples
        prompt words parent_clip caption notes {_END}""",
    "captions": f"{_UNIT} {_PLACE} status reason clip instruction text notes {_END}",
    "answers": f"""{_UNIT} control renderer listener {_PLACE} question family source_test option_shift repeat
        clip status reason prompt question_text option_a option_b option_c option_d option_e option_f
        reply letter letter_strict rule answer_letter correct correct_strict question_hash notes {_END}""",
    "measures": f"{_UNIT} {_PLACE} measure status reason clip text values width flags values_json {_END}",
    "distances": """unit_id key system arm seed convention measure metric stages value lo hi half_width method reason
        n expected failed reference reference_n floor details_json""",
    "attempts": """unit_id operation attempt status kind message traceback stderr_tail worker node pid device batch
        ready_at submitted_at started_at ended_at returned_at committed_at cpu_s reused_from""",
}

SCHEMAS: Mapping[str, pa.Schema] = {
    table: pa.schema([(name, _TYPES.get(name, _TEXT)) for name in columns.split()])
    for table, columns in _COLUMNS.items()
}
"""Every table with its columns; `clip` is a clip's identity, `clip_sha256` and `clip_bytes` are of its FLAC file.

measures: `text` is a transcript; `values` are float32, frame after frame of `width` numbers (one frame: a vector);
`flags` are words with spaces between; `values_json` is what else a head said, small. distances: numbers about a set of
clips, `convention` is a number's whole name, `key` stands for all that it was made of.
"""

TABLES: tuple[str, ...] = tuple(SCHEMAS)
OPTION_COLUMNS = ("option_a", "option_b", "option_c", "option_d", "option_e", "option_f")

# A history keeps every row; elsewhere the newest row of a unit replaces the older ones.
HISTORY_TABLES = frozenset({"attempts"})

# What may differ between a run that was disturbed and one that was not.
_CIRCUMSTANCE = frozenset({"reused_from", "message", "notes"})


def outcome_columns(table: str) -> tuple[str, ...]:
    """Columns that must be equal, unit by unit, between an undisturbed run and any other way to the same end."""
    if table in HISTORY_TABLES:
        return ()
    return tuple(name for name in SCHEMAS[table].names if name not in _CIRCUMSTANCE)


OUTCOMES: Mapping[str, tuple[str, ...]] = {TABLE_OF[kind]: columns for kind, columns in HEAD_OUTCOMES.items()}
"""What a head gave, apart from which unit asked: what a unit with an equal key takes over."""


def is_final(status: str, reason: str | None, *, seeded: bool) -> bool:
    """Whether the same command leaves such a row alone. seeded: the head gives the same for the same seed."""
    return status in FINAL_STATUSES or (status == "failed" and seeded and reason in FINAL_FAILURES)


def check_names(table: str, rows: Sequence[Row]) -> None:
    """Raises ValueError for an unknown table or column: a mistake in code, found where it is made."""
    if table not in SCHEMAS:
        raise ValueError(f"unknown table {table!r}; there are {', '.join(TABLES)}")
    known = set(SCHEMAS[table].names)
    for row in rows:
        if not row.keys() <= known:
            raise ValueError(f"{table} has no column {sorted(row.keys() - known)}; unit {row.get('unit_id')!r}")
        if not row.get("unit_id"):
            raise ValueError(f"a row of {table} has no unit_id")


def to_arrow(table: str, rows: Sequence[Row]) -> pa.Table:
    """Rows as a typed table; what a row lacks is null. Raises ValueError naming column and unit of a bad value."""
    schema = SCHEMAS[table]
    if not rows:
        return schema.empty_table()
    columns = []
    for field, values in zip(schema, _values(table, rows), strict=True):
        try:
            columns.append(pa.array(values, field.type))
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise ValueError(_culprit(table, field, rows)) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _values(table: str, rows: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    """The values of each column."""
    names = SCHEMAS[table].names
    try:
        return zip(*map(itemgetter(*names), rows), strict=True)
    except KeyError:
        return zip(*([row.get(name) for name in names] for row in rows), strict=True)


def _culprit(table: str, field: pa.Field[Any], rows: Sequence[Row]) -> str:
    for row in rows:
        value = row.get(field.name)
        try:
            pa.array([value], field.type)
        except (pa.ArrowException, TypeError, OverflowError):
            return f"{table}.{field.name} of unit {row.get('unit_id')!r} is {field.type}, got {value!r:.80}"
    return f"{table}.{field.name} does not fit {field.type}"
