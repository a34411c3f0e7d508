"""A bank on the desk: its tests as they are on disk now, and verdicts that become durable before they are told."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from torus_ray.bank.check import Finding, check_bank
from torus_ray.bank.files import read_document
from torus_ray.bank.load import CARD_FILE, Bank, BankError, Problem, load_bank, read_test
from torus_ray.bank.schema import BankCard, Test
from torus_ray.curation.folders import file_bytes
from torus_ray.curation.review.log import VerdictLog
from torus_ray.curation.review.verdicts import (
    Decision,
    Standing,
    Verdict,
    by_test,
    content_hash,
    standing,
    verified_by,
)
from torus_ray.errors import InputError
from torus_ray.store.files import TEMP_PREFIX, write_atomic

LONGEST_NAME, LONGEST_REASON = 60, 2000


class Conflict(InputError):
    """The test's file is not the one that was judged: nothing was written."""


class NoTest(InputError):
    """The bank had no test of that id when it was opened."""


class Refused(InputError):
    """A verdict lacks something. field: which of reviewer, reason, decision, test."""

    def __init__(self, field: str, message: str, *, expected: str, mend: str) -> None:
        super().__init__(message, where=field, expected=expected, mend=mend)
        self.field = field


@dataclass(frozen=True)
class Sheet:
    """One test as its file is now. version: sha256 of the bytes. test: None where problems make it unreadable.

    findings: what `torus bank check` says of this test alone. stamp: tells cheaply whether the file was touched.
    """

    id: str
    version: str
    test: Test | None
    problems: tuple[Problem, ...]
    findings: tuple[Finding, ...]
    standing: Standing
    data: bytes
    stamp: tuple[int, int, int] | None


class Desk:
    """The one writer of a bank under review; for one thread at a time.

    Raises BankError for a bank that is not sound, InputError where it cannot be written or is under review already.
    What the log says last and a killed server had no time to write into a test's file is written now.
    """

    def __init__(self, bank: Path) -> None:
        if not (bank / CARD_FILE).is_file():
            load_bank(bank)  # says what is missing, and makes no log in a folder that is no bank
        with contextlib.ExitStack() as held:
            self._log = held.enter_context(VerdictLog(bank))
            for temp in bank.glob(f"{TEMP_PREFIX}*"):  # of a killed server; readers would take it for a test
                temp.unlink()
            loaded = load_bank(bank)
            self.path, self.card = bank, loaded.card
            self._verdicts = by_test(self._log.verdicts)
            self._redo()
            self._sheets = {test.id: self._read(test.id) for test in loaded.tests}
            held.pop_all()

    def close(self) -> None:
        self._log.close()

    def __enter__(self) -> Desk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def sheets(self) -> tuple[Sheet, ...]:
        """Every test in id order; files that were touched are read anew."""
        for sheet in list(self._sheets.values()):
            if sheet.stamp != _stamp(self._file(sheet.id)):
                self._sheets[sheet.id] = self._read(sheet.id)
        return tuple(self._sheets.values())

    def sheet(self, test_id: str) -> Sheet:
        """One test, read from its file now. Raises NoTest."""
        if test_id not in self._sheets:
            raise NoTest(
                f"the bank has no test {test_id!r}",
                where=str(self.path),
                expected="a test that was there when the server was started",
                mend="start the server again if it is new",
            )
        self._sheets[test_id] = self._read(test_id)
        return self._sheets[test_id]

    def history(self, test_id: str) -> tuple[Verdict, ...]:
        """Every verdict on a test, oldest first."""
        return tuple(self._verdicts.get(test_id, ()))

    def judge(
        self,
        test_id: str,
        decision: Decision,
        *,
        reviewer: str,
        version: str,
        reason: str | None = None,
        edited: Mapping[str, Any] | None = None,
    ) -> Sheet:
        """Make a verdict durable, in the log and in the test's file, and return the test as it is then.

        version: of the sheet that was judged. edited: the whole test as the reviewer wants it; another id is refused,
        and its provenance stays what it is. Raises NoTest, Conflict, Refused, BankError (the edited
        test is not valid: all problems with their JSON paths) and OSError, in each case with nothing changed.
        """
        name, why = _name(reviewer), (reason or "").strip()
        if len(why) > LONGEST_REASON:
            mend = "shorten it"
            raise Refused(
                "reason", "the reason is too long", expected=f"at most {LONGEST_REASON} characters", mend=mend
            )
        if decision == "reject" and not why:
            mend = "write what is wrong with the test"
            raise Refused("reason", "a rejection needs a reason", expected="a sentence", mend=mend)
        sheet = self.sheet(test_id)
        if sheet.version != version:
            raise self._conflict(sheet)
        if sheet.test is None:
            raise BankError(f"{test_id}.json", sheet.problems, "test")
        before = self._verdicts.setdefault(test_id, [])
        names = verified_by(sheet.test, before, name) if decision == "accept" else None
        test = self._edited(sheet.test, edited) if decision == "edit" else sheet.test
        after = _verified(test, names)
        data = sheet.data if after == sheet.test else file_bytes(after)
        verdict = Verdict(
            at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            reviewer=name,
            test_id=test_id,
            decision=decision,
            reason=why or None,
            content=content_hash(after),
            file_before=sheet.version,
            file_after=_sha256(data),
            verified_by=names,
            test=after.model_dump(mode="json") if decision == "edit" else None,
        )
        self._log.append(verdict, lambda: self._write(test_id, data, sheet.version))
        before.append(verdict)
        return self.sheet(test_id)

    def _edited(self, test: Test, edited: Mapping[str, Any] | None) -> Test:
        if edited is None:
            raise Refused("test", "an edit without a test", expected="the whole test", mend="send it as `test`")
        if edited.get("id", test.id) != test.id:
            mend = f"write {test.id} there again; a test gets another id by another file's name, outside the review"
            raise Refused("id", "the id of a test cannot be changed here", expected=test.id, mend=mend)
        own = {"id": test.id, "provenance": test.provenance.model_dump(mode="json")}
        found = read_test(f"{test.id}.json", json.dumps({**edited, **own}).encode())
        if content_hash(found) == content_hash(test):
            mend = "change something, or leave the edit"
            raise Refused("test", "nothing was changed (provenance apart)", expected="a test that differs", mend=mend)
        return found

    def _file(self, test_id: str) -> Path:
        return self.path / f"{test_id}.json"

    def _write(self, test_id: str, data: bytes, version: str) -> None:
        if _sha256(data) != version:
            write_atomic(self._file(test_id), data)

    def _read(self, test_id: str) -> Sheet:
        path = self._file(test_id)
        stamp = _stamp(path)
        try:
            data = read_document(path)
        except OSError as error:
            problem = Problem(path.name, f"cannot be read ({error.strerror})", "the test's file", "put it back")
            return Sheet(test_id, "", None, (problem,), (), Standing("changed"), b"", stamp)
        version = _sha256(data)
        try:
            test = read_test(path.name, data)
            if test.id != test_id:
                message = f"the file's name does not fit the id {test.id!r} in it"
                raise BankError(path.name, [Problem(path.name, message, test_id, "change the id back", "id")])
        except BankError as error:
            return Sheet(test_id, version, None, error.problems, (), Standing("changed"), data, stamp)
        return Sheet(
            id=test_id,
            version=version,
            test=test,
            problems=(),
            findings=_findings(self.card, test),
            standing=standing(test, self._verdicts.get(test_id, ())),
            data=data,
            stamp=stamp,
        )

    def _conflict(self, sheet: Sheet) -> Conflict:
        last = self._verdicts.get(sheet.id, [])[-1:]
        by = f" by {last[0].reviewer} ({last[0].decision})" if last and last[0].file_after == sheet.version else ""
        return Conflict(
            f"the test was changed{by} since you opened it",
            where=str(self._file(sheet.id)),
            expected="the file as it was when the page showed it",
            mend="look at the test as it is now, then judge it again; nothing was overwritten",
        )

    def _redo(self) -> None:
        for test_id, verdicts in self._verdicts.items():
            last, path = verdicts[-1], self._file(test_id)
            if last.file_before == last.file_after or not path.is_file():
                continue
            data = read_document(path)
            if _sha256(data) == last.file_before:
                test = read_test(path.name, json.dumps(last.test).encode() if last.test else data)
                self._write(test_id, file_bytes(_verified(test, last.verified_by)), last.file_before)


def _verified(test: Test, names: str | None) -> Test:
    provenance = test.provenance.model_copy(update={"human_verified_by": names})
    return test.model_copy(update={"provenance": provenance})


def _findings(card: BankCard, test: Test) -> tuple[Finding, ...]:
    return tuple(found for found in check_bank(Bank(card, (test,))).findings if found.test)


def _name(reviewer: str) -> str:
    name = " ".join(reviewer.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or "," in name:
        expected = f"1 to {LONGEST_NAME} characters without commas"
        raise Refused("reviewer", "a verdict needs a reviewer's name", expected=expected, mend="write who you are")
    return name


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
