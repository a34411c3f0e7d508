"""Read a bank: a folder with bank.json and one JSON file a test, or the snapshot of one that a run folder keeps.

Everything that is wrong with a bank is told at once, a line for each problem, before anything starts.
"""

from __future__ import annotations

import bisect
import difflib
import gzip
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from torus_ray.bank.characters import NO_CONTROLS, first_control, shown, visible
from torus_ray.bank.consistency import inner_problems, loose_problems
from torus_ray.bank.digest import bank_hash, canonical_json
from torus_ray.bank.files import LARGEST_BYTES, READABLE, read_document, too_large
from torus_ray.bank.memory import no_collections, share_field_sets
from torus_ray.bank.near import near_names
from torus_ray.bank.positions import Path as JsonPath
from torus_ray.bank.positions import Positions, deepest, show_path
from torus_ray.bank.schema import LETTERS, QUESTIONS_PER_STAGE, STAGES, BankCard, Test, model_in
from torus_ray.errors import InputError

CARD_FILE = "bank.json"
SNAPSHOT_LEVEL = 3
"""Of gzip: 10,000 tests in a second; a higher one takes several for a tenth less."""
Document = TypeVar("Document", bound=BaseModel)


@dataclass(frozen=True)
class Bank:
    """A bank that was read and is sound. tests: sorted by id. path: None for a snapshot."""

    card: BankCard
    tests: tuple[Test, ...]
    path: Path | None = field(default=None, compare=False)

    @cached_property
    def hash(self) -> str:
        """digest.bank_hash, made when it is first asked for."""
        return bank_hash(self.card, self.tests)

    def test(self, test_id: str) -> Test:
        """The test of that id. Raises InputError with the nearest ids."""
        ids = [test.id for test in self.tests]
        at = bisect.bisect_left(ids, test_id)
        if at < len(ids) and ids[at] == test_id:
            return self.tests[at]
        near = near_names(test_id, ids)
        raise InputError(
            f"the bank {self.card.name} has no test {test_id!r}",
            where=str(self.path or self.card.name),
            expected=f"one of its {len(ids)} tests" + (f", near: {', '.join(near)}" if near else ""),
            mend="list the tests with `torus bank show" + (f" --bank {self.path}`" if self.path else "`"),
        )


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a bank. at: JSON path in the file, "" for the whole. line: from 1, where known."""

    file: str
    message: str
    expected: str = ""
    mend: str = ""
    at: str = ""
    line: int | None = None

    def render(self) -> str:
        """All of it on one line."""
        where = self.file + (f":{self.line}" if self.line else "") + (f" {self.at}" if self.at else "")
        expected = f"; expected {self.expected}" if self.expected else ""
        # A field's or a file's name can hold what a terminal would act on.
        return visible(f"{where}: {self.message}{expected}" + (f"; mend: {self.mend}" if self.mend else ""))


class BankError(InputError):
    """A bank (or one test of it: `what`) with problems: all of them, sorted by file and line."""

    def __init__(self, path: str, problems: Sequence[Problem], what: str = "bank") -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.file, p.line or 0, p.at, p.message)))
        self.what = what
        count = len(self.problems)
        super().__init__(f"the {what} {path} has {count} problem{'s' if count > 1 else ''}", where=path)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.where, self.problems, self.what)

    def render(self) -> str:
        return "\n".join([visible(f"error: {self.message}"), *(f"  {problem.render()}" for problem in self.problems)])


def load_bank(path: Path) -> Bank:
    """Read the bank in folder `path`. Raises BankError with every problem of every file.

    10,000 tests: 3.1 to 5.1 s and 351 MB, the interpreter included (benchmarks/bank_10k.py).
    """
    with no_collections():
        return _load(path)


def _load(path: Path) -> Bank:
    card_file = path / CARD_FILE
    if not card_file.exists():
        absent = "this is no folder" if path.exists() else "there is no such folder"
        what = "no bank.json in this folder" if path.is_dir() else absent
        expected = "a folder with bank.json and one JSON file a test"
        raise BankError(str(path), [Problem(str(path), what, expected, "give the path of a bank's folder")])
    files = sorted((file for file in path.glob("[!.]*.json") if file.name != CARD_FILE), key=lambda file: file.name)
    problems: list[Problem] = []
    card = _read_file(BankCard, card_file, problems)
    tests = {file.name: _read_file(Test, file, problems) for file in files}
    problems += _name_problems(path, {name: test.id for name, test in tests.items() if test})
    if not files:
        problems.append(Problem(str(path), "the bank is empty", "one JSON file a test", "add <test id>.json files"))
    if problems or card is None:
        raise BankError(str(path), problems)
    return _bank(card, [test for test in tests.values() if test], path)


def snapshot(bank: Bank) -> bytes:
    """The bank as gzipped JSON lines: the card, then one line a test in id order. Equal banks give equal bytes."""
    lines = [canonical_json(bank.card.model_dump()), *(canonical_json(test.model_dump()) for test in bank.tests)]
    return gzip.compress(b"\n".join(lines) + b"\n", SNAPSHOT_LEVEL, mtime=0)


def from_snapshot(data: bytes) -> Bank:
    """The bank in the bytes of :func:`snapshot`. Raises BankError where they are damaged."""
    name = "bank snapshot"
    try:
        lines = gzip.decompress(data).splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise BankError(name, [Problem(name, f"not a readable gzip file ({error})", "a whole snapshot")]) from error
    card, *tests = lines or [b""]
    return from_documents(
        name, (f"{name} line 1", card), [(f"{name} line {n}", test) for n, test in enumerate(tests, 2)]
    )


def from_documents(name: str, card: tuple[str, bytes], tests: Iterable[tuple[str, bytes]]) -> Bank:
    """The bank in a JSON card and one JSON document a test, each with what to call it. Raises BankError."""
    problems: list[Problem] = []
    read_card = _read(BankCard, *card, problems)
    read = [test for test in (_read(Test, *each, problems) for each in tests) if test]
    twice = [test_id for test_id, count in Counter(test.id for test in read).items() if count > 1]
    problems += [Problem(name, f"the id {test_id!r} occurs twice", "each id once") for test_id in twice]
    if problems or read_card is None:
        raise BankError(name, problems)
    return _bank(read_card, read, None)


def read_test(name: str, data: bytes) -> Test:
    """The test in the bytes of one JSON document, by every rule for a test alone; `name` is what to call it.

    Raises BankError with every problem.
    """
    problems: list[Problem] = []
    test = _read(Test, name, data, problems)
    if test is None or problems:
        raise BankError(name, problems, "test")
    return test


def _bank(card: BankCard, tests: Sequence[Test], path: Path | None) -> Bank:
    return Bank(card, tuple(sorted(tests, key=lambda test: test.id)), path)


# --- one file ---------------------------------------------------------------------------------------------------------


class _RepeatedKey(ValueError):
    pass


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _RepeatedKey


def _look_for_repeats(text: str) -> None:
    """Raise _RepeatedKey for an object with two equal keys, and what `json` raises for a text that is no JSON."""
    # As a float, for `int` refuses numbers of thousands of digits.
    json.loads(text, object_pairs_hook=_refuse_repeats, parse_int=float)


def _parsed(model: type[Document], data: bytes, text: str) -> Document:
    """The document in `data`, which is `text`. Raises what :func:`_look_for_repeats` does, and ValidationError."""
    try:
        document = model.model_validate_json(data)
    except ValidationError:
        _look_for_repeats(text)  # goes first: of a file that is no JSON, the schema has nothing to say
        raise
    # Pydantic takes the last of two equal keys without a word; a reader of the file may look at the first. No key of a
    # valid document is unknown, so without a repeated one there are as many as fields; a text may hold `":` besides.
    if data.translate(None, b" \t\r\n").count(b'":') != share_field_sets(document):
        _look_for_repeats(text)
    return document


def _read_file(model: type[Document], file: Path, problems: list[Problem]) -> Document | None:
    try:
        return _read(model, file.name, read_document(file), problems)
    except OSError as error:
        problems.append(_unreadable(file.name, error))
        return None


def _unreadable(file: str, error: OSError) -> Problem:
    mend = "mend its permissions, put the right file there, or take it away"
    return Problem(file, f"cannot be read ({error.strerror})", READABLE, mend)


def _read(model: type[Document], file: str, data: bytes, problems: list[Problem]) -> Document | None:
    """The document in `data`; or None, with what is wrong with it added to `problems`."""
    if len(data) > LARGEST_BYTES:
        problems.append(_unreadable(file, too_large(file)))
        return None
    try:
        text = data.decode("utf-8")
        document = _parsed(model, data, text)
    except UnicodeDecodeError as error:
        problems.append(_encoding_problem(file, data, error))
    except json.JSONDecodeError as error:
        problems.append(_syntax_problem(file, text, error))
    except RecursionError:
        problems.append(_nesting_problem(file, text))
    except _RepeatedKey:
        problems += _repeat_problems(file, text)
    except ValidationError as error:
        problems += _schema_problems(model, file, text, error)
    else:
        found = list(inner_problems(document)) if isinstance(document, Test) else []
        positions = Positions(text) if found else None
        for at, message, expected, mend in found:
            at_line = positions.line(at) if positions else None
            problems.append(Problem(file, message, expected, mend, show_path(at), at_line))
        return document
    return None


def _nesting_problem(file: str, text: str) -> Problem:
    mend = "take out what the schema has no place for"
    return Problem(file, "values are nested too deeply", "the shape of a test", mend, line=deepest(text))


def _repeat_problems(file: str, text: str) -> list[Problem]:
    try:
        twice = Positions(text).twice
    except RecursionError:
        return [_nesting_problem(file, text)]
    told = [(f"the field `{at[-1]}` is there twice", show_path(at), line) for at, line in twice]
    return [Problem(file, message, "once", "keep one of the two", at, line) for message, at, line in told]


def _encoding_problem(file: str, data: bytes, error: UnicodeDecodeError) -> Problem:
    line = data.count(b"\n", 0, error.start) + 1
    message = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
    return Problem(file, message, "UTF-8 text", "save the file as UTF-8 without a byte order mark", line=line)


def _syntax_problem(file: str, text: str, error: json.JSONDecodeError) -> Problem:
    if text.startswith("\ufeff"):
        return Problem(file, "the file starts with a byte order mark", "plain UTF-8", "save it without one", line=1)
    message = f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}"
    return Problem(file, message, "one JSON object", "look for a comma, quote or bracket there", line=error.lineno)


# --- what the schema says ---------------------------------------------------------------------------------------------


def _fields_at(model: type[BaseModel], path: JsonPath) -> list[str]:
    """The names of the fields that the object at `path` can have."""
    at: type[BaseModel] | None = model
    for step in path:
        if at and isinstance(step, str) and step in at.model_fields:
            at = model_in(at.model_fields[step].annotation)
    return list(at.model_fields) if at else []


def _told(message: str, expected: str = "", mend: str = "") -> Callable[[str, ErrorDetails], tuple[str, str, str]]:
    """A message with {name} the field, {value} what stands there, and pydantic's own context filled in."""

    def tell(name: str, error: ErrorDetails) -> tuple[str, str, str]:
        known = {"name": name, "value": shown(error["input"]), **error.get("ctx", {})}
        return message.format(**known), expected.format(**known), mend.format(**known)

    return tell


_COUNTS = {"questions": QUESTIONS_PER_STAGE, "options": len(LETTERS)}
_PLAIN = "plain ASCII words in lower case joined by hyphens, such as `glass-on-stone`"


def _pattern_told(name: str, error: ErrorDetails) -> tuple[str, str, str]:
    if error.get("ctx", {}).get("pattern") == NO_CONTROLS:
        message = f"`{name}` holds the control character {first_control(error['input'])}"
        return message, "text; of the control characters tab and newline alone", "take it out"
    return f"`{name}` is {shown(error['input'])}", _PLAIN, "rename it"


_TOLD: Mapping[str, Callable[[str, ErrorDetails], tuple[str, str, str]]] = {
    "missing": _told("`{name}` is missing", "every field of the schema", "add `{name}`"),
    "literal_error": _told("unknown {name} {value}", "{expected}", "write one of these"),
    "string_too_short": _told("`{name}` is empty", "some text", "write it"),
    "string_too_long": _told("`{name}` is too long", "at most {max_length} characters", "shorten it"),
    "string_pattern_mismatch": _pattern_told,
    "string_type": _told("`{name}` is {value}", "text in quotes", "put it in quotes"),
    "string_unicode": _told("`{name}` holds half of a surrogate pair", "whole characters", "type the character"),
    "int_type": _told("`{name}` is {value}", "a whole number", "write digits without quotes"),
    "int_from_float": _told("`{name}` is {value}", "a whole number", "write digits without quotes"),
    "float_type": _told("`{name}` is {value}", "a number", "write digits without quotes"),
    "tuple_type": _told("`{name}` is {value}", "a list", "put it in brackets"),
    "model_type": _told("`{name}` is {value}", "an object", "put its fields in braces"),
    "finite_number": _told("`{name}` is {value}", "a number", "write the number"),
    "greater_than": _told("`{name}` is {value}", "more than {gt}", "change the number"),
    "less_than_equal": _told("`{name}` is {value}", "at most {le}", "change the number"),
}


def _schema_problems(model: type[BaseModel], file: str, text: str, error: ValidationError) -> Iterator[Problem]:
    """Pydantic's complaints in words, each with its line."""
    errors = error.errors(include_url=False)
    if any(detail["type"] == "json_invalid" for detail in errors):
        message = str(errors[0].get("ctx", {}).get("error", errors[0]["msg"]))
        line = re.search(r"at line ([0-9]+)", message)
        yield Problem(file, message, "JSON", "mend the text there", line=int(line[1]) if line else None)
        return
    positions = Positions(text)
    for detail in errors:
        at: JsonPath = detail["loc"]
        named = [step for step in at if isinstance(step, str)]
        name = named[-1] if named else "the file"
        if detail["type"] == "extra_forbidden":
            known = _fields_at(model, at[:-1])
            near = difflib.get_close_matches(name, known, n=1)
            mend = f"rename it to `{near[0]}`" if near else "take it out"
            told = (f"unknown field `{name}`", f"only {', '.join(known)}", mend)
        elif detail["type"] in ("too_short", "too_long"):
            # Pydantic counts the members that are right in themselves; the wrong ones have problems of their own.
            count, exactly = len(detail["input"]), _COUNTS.get(name)
            if count == exactly or (exactly is None and count):
                continue
            told = (f"{count} {name}", f"exactly {exactly}" if exactly else "at least 1", "add or drop some")
        elif detail["type"] == "missing" and at[-1] in STAGES:
            told = (f"the stage `{name}` is missing", f"the stages {', '.join(STAGES)}", f"write the stage `{name}`")
        else:
            tell = _TOLD.get(detail["type"])
            told = tell(name, detail) if tell else (f"`{name}`: {detail['msg']}", "", "")
        yield Problem(file, *told, at=show_path(at), line=positions.line(at))
    for where, message, expected, mend in loose_problems(json.loads(text, parse_int=float)) if model is Test else ():
        yield Problem(file, message, expected, mend, show_path(where), positions.line(where))


# --- all tests together -----------------------------------------------------------------------------------------------


def _name_problems(folder: Path, ids: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with the ids of all tests together. ids: test id by file name in `folder`."""

    def line(name: str) -> int:
        return Positions(read_document(folder / name).decode()).line(("id",))

    files: dict[str, list[str]] = defaultdict(list)
    for name, test_id in ids.items():
        files[test_id].append(name)
    for test_id, names in files.items():
        if len(names) > 1:
            message = f"the id {test_id!r} is in {' and in '.join(names)}"
            mend = "change one, and its file's name"
            yield Problem(names[0], message, "an id of its own for each test", mend, "id", line(names[0]))
        elif names[0] != f"{test_id}.json":
            message = f"the file's name does not fit the id {test_id!r} in it"
            mend = "rename the file or change the id"
            yield Problem(names[0], message, f"{test_id}.json", mend, "id", line(names[0]))
