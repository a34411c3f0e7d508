"""Where things lie: the bank that is made, and beside it ``<bank>.curation`` with the rows of how it was made."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from torus_ray.bank.files import read_document
from torus_ray.bank.load import CARD_FILE, Bank
from torus_ray.bank.schema import BankCard, Test
from torus_ray.curation.ledger import Ledger
from torus_ray.errors import InputError
from torus_ray.store.errors import from_os_error
from torus_ray.store.files import make_folder, write_atomic

FLAGS_FILE = "flags.jsonl"
"""In the bank's folder, a record a question on a line of its own; no part of the bank's digest, and no test."""
WRITTEN = "written"


def rows_folder(out: Path) -> Path:
    """The folder of rows that belongs to the bank `out`."""
    return out.with_name(f"{out.name}.curation")


def check_out(out: Path, ids: Collection[str]) -> None:
    """Raises InputError where the folder `out` is something else than a bank of (some of) the tests `ids`."""
    if out.exists() and not out.is_dir():
        raise InputError("--out is a file", where=str(out), expected="a folder, or none yet", mend="choose another")
    there = sorted(file.stem for file in out.glob("*.json") if file.name != CARD_FILE) if out.exists() else []
    others = [name for name in there if name not in ids]
    ours = rows_folder(out).exists()
    if others or (not ours and out.exists() and any(out.iterdir())):
        what = f"tests that are not of this command: {', '.join(others[:5])}" if others else "files of something else"
        raise InputError(
            f"the folder holds {what}",
            where=str(out),
            expected="an empty folder, none yet, or the one that this very command made before",
            mend="choose another --out",
        )


def check_unchanged(out: Path, ledger: Ledger) -> None:
    """Raises InputError where a file of the bank `out` is not as :func:`write_bank` left it: somebody worked on it."""
    rows = ledger.rows("outcomes", ["step", "key"]).iter_rows(named=True)
    known = {row["key"] for row in rows if row["step"] == WRITTEN}
    for file in sorted(out.glob("*.json")) if out.is_dir() else ():
        if _digest(file) not in known:
            raise InputError(
                f"{file.name} was changed since it was written",
                where=str(file),
                expected="the bank as this command left it",
                mend="choose another --out, so that nobody's work is written over",
            )


def _digest(file: Path) -> str | None:
    """sha256 of a bank's file; None for what cannot be one."""
    try:
        return hashlib.sha256(read_document(file)).hexdigest()
    except OSError:
        return None


def write_bank(out: Path, bank: Bank, flags: Iterable[Mapping[str, Any]], ledger: Ledger) -> None:
    """Write a whole bank and its flags, durably, what is to be there noted in the rows first."""
    files = {f"{test.id}.json": file_bytes(test) for test in bank.tests}
    files[CARD_FILE] = file_bytes(bank.card)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    known = set(ledger.rows("outcomes", ["key"])["key"])
    noted = [{"unit": name, "step": WRITTEN, "key": digest, "status": "ok"} for name, digest in digests.items()]
    ledger.add_now("outcomes", [{**row, "at": time.time()} for row in noted if row["key"] not in known])
    for name, content in files.items():
        _write(out / name, content)
    _write(out / FLAGS_FILE, "".join(f"{json.dumps(flag, ensure_ascii=False)}\n" for flag in flags).encode())


def write_card(out: Path, card: BankCard) -> None:
    """Write bank.json, durably."""
    _write(out / CARD_FILE, file_bytes(card))


def write_test(out: Path, test: Test) -> None:
    """Write a test's file, durably; a file that already says so stays untouched."""
    _write(out / f"{test.id}.json", file_bytes(test))


def file_bytes(document: BankCard | Test) -> bytes:
    """A file as a bank has it: two spaces of indent, fields in the schema's order, a newline at the end."""
    return (json.dumps(document.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    try:
        make_folder(path.parent)
        if not path.exists() or read_document(path) != content:
            write_atomic(path, content)
    except OSError as error:
        raise from_os_error(error, path) from error
