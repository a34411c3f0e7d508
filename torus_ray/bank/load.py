"""Read a bank: a folder with bank.json and one JSON file a test, or the snapshot of one that a run folder keeps.

Everything that is wrong with a bank is told at once, a line for each problem, before anything starts.
"""

from __future__ import annotations

import bisect
import difflib
import gzip
import json
import math
import string
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from torus_ray.bank.digest import bank_hash, canonical_json
from torus_ray.bank.memory import no_collections, share_field_sets
from torus_ray.bank.positions import Path as JsonPath
from torus_ray.bank.positions import Positions, show_path
from torus_ray.bank.schema import LETTERS, QUESTIONS_PER_STAGE, STAGES, BankCard, Question, Test
from torus_ray.errors import InputError
from torus_ray.folding import fold

CARD_FILE = "bank.json"
Document = TypeVar("Document", bound=BaseModel)


@dataclass(frozen=True)
class Bank:
    """A bank that was read and is sound. tests: sorted by id. hash: digest.bank_hash. path: None for a snapshot."""

    card: BankCard
    tests: tuple[Test, ...]
    hash: str
    path: Path | None = field(default=None, compare=False)

    def test(self, test_id: str) -> Test:
        """The test of that id. Raises InputError with the nearest ids."""
        ids = [test.id for test in self.tests]
        at = bisect.bisect_left(ids, test_id)
        if at < len(ids) and ids[at] == test_id:
            return self.tests[at]
        near = difflib.get_close_matches(test_id, ids, n=3)
        raise InputError(
            f"the bank {self.card.name} has no test {test_id!r}",
            where=str(self.path or self.card.name),
            expected=f"one of its {len(ids)} tests" + (f", near: {', '.join(near)}" if near else ""),
            mend="list the tests with `torus bank show`",
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
        return f"{where}: {self.message}{expected}" + (f"; mend: {self.mend}" if self.mend else "")


class BankError(InputError):
    """A bank with problems: all of them, sorted by file and line."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.file, p.line or 0, p.at, p.message)))
        count = len(self.problems)
        super().__init__(f"the bank {path} has {count} problem{'s' if count > 1 else ''}", where=path)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.where, self.problems)

    def render(self) -> str:
        return "\n".join([f"error: {self.message}", *(f"  {problem.render()}" for problem in self.problems)])


def load_bank(path: Path) -> Bank:
    """Read the bank in folder `path`. Raises BankError with every problem of every file.

    10,000 tests: under 5 s and 500 MB (benchmarks/bank_10k.py).
    """
    with no_collections():
        return _load(path)


def _load(path: Path) -> Bank:
    card_file = path / CARD_FILE
    if not card_file.is_file():
        absent = "this is no folder" if path.exists() else "there is no such folder"
        what = "no bank.json in this folder" if path.is_dir() else absent
        expected = "a folder with bank.json and one JSON file a test"
        raise BankError(str(path), [Problem(str(path), what, expected, "give the path of a bank's folder")])
    files = sorted(file for file in path.glob("[!.]*.json") if file.name != CARD_FILE)
    problems: list[Problem] = []
    card = _read_file(BankCard, card_file, problems)
    tests = {file.name: _read_file(Test, file, problems) for file in files}
    problems += _name_problems({name: test.id for name, test in tests.items() if test})
    if not files:
        problems.append(Problem(str(path), "the bank is empty", "one JSON file a test", "add <test id>.json files"))
    if problems or card is None:
        raise BankError(str(path), problems)
    return _bank(card, [test for test in tests.values() if test], path)


def snapshot(bank: Bank) -> bytes:
    """The bank as gzipped JSON lines: the card, then one line a test in id order. Equal banks give equal bytes."""
    lines = [canonical_json(bank.card.model_dump()), *(canonical_json(test.model_dump()) for test in bank.tests)]
    return gzip.compress(b"\n".join(lines) + b"\n", mtime=0)


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


def _bank(card: BankCard, tests: Sequence[Test], path: Path | None) -> Bank:
    ordered = tuple(sorted(tests, key=lambda test: test.id))
    return Bank(card, ordered, bank_hash(card, ordered), path)


# --- one file ---------------------------------------------------------------------------------------------------------


class _RepeatedKey(ValueError):
    pass


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _RepeatedKey


def _read_file(model: type[Document], file: Path, problems: list[Problem]) -> Document | None:
    try:
        return _read(model, file.name, file.read_bytes(), problems)
    except OSError as error:
        message = f"cannot be read ({error.strerror})"
        problems.append(Problem(file.name, message, "a readable file", "mend its permissions or take it away"))
        return None


def _read(model: type[Document], file: str, data: bytes, problems: list[Problem]) -> Document | None:
    """The document in `data`; or None, with what is wrong with it added to `problems`."""
    try:
        text = data.decode("utf-8")
        # Pydantic takes the last of two equal keys without a word; a reader of the file may look at the first.
        json.loads(text, object_pairs_hook=_refuse_repeats)
        document = model.model_validate_json(data)
        share_field_sets(document)
    except UnicodeDecodeError as error:
        problems.append(_encoding_problem(file, data, error))
    except json.JSONDecodeError as error:
        problems.append(_syntax_problem(file, text, error))
    except RecursionError:
        problems.append(Problem(file, "values are nested too deeply", "the shape of a test"))
    except _RepeatedKey:
        for at, line in Positions(text).twice:
            mend = "keep one of the two"
            problems.append(Problem(file, f"the field `{at[-1]}` is there twice", "once", mend, show_path(at), line))
    except ValidationError as error:
        problems += _schema_problems(model, file, text, error)
    else:
        found = list(_test_problems(document)) if isinstance(document, Test) else []
        positions = Positions(text) if found else None
        for at, message, expected, mend in found:
            at_line = positions.line(at) if positions else None
            problems.append(Problem(file, message, expected, mend, show_path(at), at_line))
        return document
    return None


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


@cache
def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation such as ``Annotated[tuple[Source, ...], ...] | None`` holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for arg in get_args(annotation) if (model := _model_in(arg))), None)


def _fields_at(model: type[BaseModel], path: JsonPath) -> list[str]:
    """The names of the fields that the object at `path` can have."""
    at: type[BaseModel] | None = model
    for step in path:
        if at and isinstance(step, str) and step in at.model_fields:
            at = _model_in(cast(Hashable, at.model_fields[step].annotation))
    return list(at.model_fields) if at else []


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _told(message: str, expected: str = "", mend: str = "") -> Callable[[str, ErrorDetails], tuple[str, str, str]]:
    """A message with {name} the field, {value} what stands there, and pydantic's own context filled in."""

    def tell(name: str, error: ErrorDetails) -> tuple[str, str, str]:
        known = {"name": name, "value": _shown(error["input"]), **error.get("ctx", {})}
        return message.format(**known), expected.format(**known), mend.format(**known)

    return tell


_COUNTS = {"questions": QUESTIONS_PER_STAGE, "options": len(LETTERS)}
_PLAIN = "plain ASCII words in lower case joined by hyphens, such as `glass-on-stone`"
_TOLD: Mapping[str, Callable[[str, ErrorDetails], tuple[str, str, str]]] = {
    "missing": _told("`{name}` is missing", "every field of the schema", "add `{name}`"),
    "literal_error": _told("unknown {name} {value}", "{expected}", "write one of these"),
    "string_too_short": _told("`{name}` is empty", "some text", "write it"),
    "string_too_long": _told("`{name}` is too long", "at most {max_length} characters", "shorten it"),
    "string_pattern_mismatch": _told("`{name}` is {value}", _PLAIN, "rename it"),
    "string_type": _told("`{name}` is {value}", "text in quotes", "put it in quotes"),
    "string_unicode": _told("`{name}` holds half of a surrogate pair", "whole characters", "type the character"),
    "int_type": _told("`{name}` is {value}", "a whole number", "write digits without quotes"),
    "int_from_float": _told("`{name}` is {value}", "a whole number", "write digits without quotes"),
    "float_type": _told("`{name}` is {value}", "a number", "write digits without quotes"),
    "tuple_type": _told("`{name}` is {value}", "a list", "put it in brackets"),
    "model_type": _told("`{name}` is {value}", "an object", "put its fields in braces"),
    "greater_than": _told("`{name}` is {value}", "more than {gt}", "change the number"),
    "less_than_equal": _told("`{name}` is {value}", "at most {le}", "change the number"),
}


def _schema_problems(model: type[BaseModel], file: str, text: str, error: ValidationError) -> Iterator[Problem]:
    """Pydantic's complaints in words, each with its line."""
    errors = error.errors(include_url=False)
    if any(detail["type"] == "json_invalid" for detail in errors):
        yield Problem(file, str(errors[0].get("ctx", {}).get("error", errors[0]["msg"])), "JSON", "mend the text there")
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


# --- what the schema cannot say ---------------------------------------------------------------------------------------

Found = tuple[JsonPath, str, str, str]


def _test_problems(test: Test) -> Iterator[Found]:
    """(path, message, expected, mend) of what is wrong with a test that fits the schema."""
    for stage_name in STAGES:
        stage = test.stage(stage_name)
        seen: set[str] = set()
        for index, question in enumerate(stage.questions):
            at: JsonPath = ("stages", stage_name, "questions", index)
            if question.id in seen:
                message = f"two questions of the stage have the id {question.id!r}"
                yield (*at, "id"), message, "ids q1, q2, q3", "give each its own"
            seen.add(question.id)
            yield from _option_problems(question, at)
        numbers: list[tuple[JsonPath, float]] = [
            ((*("sources", index), name), getattr(source, name))
            for index, source in enumerate(stage.spec.sources)
            for name in ("onset_s", "duration_s")
        ]
        if stage.spec.music:
            numbers.append((("music", "tempo_bpm"), stage.spec.music.tempo_bpm))
        for path, value in numbers:
            if not math.isfinite(value):
                yield ("stages", stage_name, "spec", *path), f"`{path[-1]}` is {value}", "a number", "write the number"


_LOOSE = {ord(char): None for char in string.punctuation + string.whitespace}


def _surely_differ(options: Sequence[str]) -> bool:
    """Whether letters and digits alone tell the options apart: a quick look that spares most of them the folding."""
    together = "\0".join(options)
    return together.isascii() and len(set(together.lower().translate(_LOOSE).split("\0"))) == len(options)


def _option_problems(question: Question, at: JsonPath) -> Iterator[Found]:
    if not _surely_differ(question.options):
        groups: dict[str, list[int]] = defaultdict(list)
        for index, option in enumerate(question.options):
            groups[fold(option)].append(index)
        for same in (group for group in groups.values() if len(group) > 1):
            texts = " and ".join(_shown(question.options[index]) for index in same)
            message = f"equal options: {texts} (case, spacing and punctuation do not count)"
            yield (*at, "options", same[1]), message, "six different texts", "change all but one"
    if question.answer not in question.options:
        near = [option for option in question.options if fold(option) == fold(question.answer)]
        near = near or difflib.get_close_matches(question.answer, question.options, n=1)
        mend = f"write it as the option is written: {_shown(near[0])}" if near else "copy the text of the right option"
        yield (*at, "answer"), f"the answer {_shown(question.answer)} is none of the options", "the text of one", mend


def _name_problems(ids: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with the ids of all tests together. ids: test id by file name."""
    files: dict[str, list[str]] = defaultdict(list)
    for name, test_id in ids.items():
        files[test_id].append(name)
    for test_id, names in files.items():
        if len(names) > 1:
            message = f"the id {test_id!r} is in {' and in '.join(names)}"
            yield Problem(names[0], message, "an id of its own for each test", "change one, and its file's name", "id")
        elif names[0] != f"{test_id}.json":
            message = f"the file's name does not fit the id {test_id!r} in it"
            yield Problem(names[0], message, f"{test_id}.json", "rename the file or change the id", "id")
