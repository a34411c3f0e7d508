"""A run folder as a reader sees it: its manifest, the bank it was made on, which questions it should have answered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from torus_ray.bank.load import Bank, from_snapshot
from torus_ray.errors import InputError
from torus_ray.protocol.graph import CONTROLS, Arm
from torus_ray.store.layout import MANIFEST, SNAPSHOT
from torus_ray.store.manifest import RunManifest, read_manifest
from torus_ray.store.mirror import named
from torus_ray.store.reader import current_rows
from torus_ray.systems import EDIT_MODES


@dataclass(frozen=True)
class Run:
    """One run folder, ``results/<bank>@<hash8>/<system>/<arm>/``, and its run.json."""

    folder: Path
    manifest: RunManifest

    @property
    def line(self) -> str:
        """The arm without its seed, so what is one line of a table: native, self-caption, native.muted."""
        control = self.manifest.control
        return self.manifest.edit_mode + (f".{control}" if control else "")

    @property
    def arm(self) -> Arm:
        """The arm as the protocol knows it. Raises InputError for one of a later version."""
        manifest = self.manifest
        for mode in EDIT_MODES:
            for control in (None, *CONTROLS):
                if (mode, control) == (manifest.edit_mode, manifest.control):
                    return Arm(mode, manifest.seed, control)
        raise InputError(
            f"the arm {manifest.arm} is none that this torus-ray knows",
            where=str(self.folder / MANIFEST),
            expected=f"an edit mode of {', '.join(EDIT_MODES)}, a control of {', '.join(CONTROLS)} or none",
            mend="read it with the torus-ray that wrote it",
        )

    @property
    def bank_name(self) -> str:
        return f"{self.manifest.bank}@{self.manifest.bank_hash[:8]}"

    def rows(self, table: str, columns: list[str] | None = None) -> pl.DataFrame:
        """The current rows of a table; broken parts are logged."""
        return current_rows(self.folder, table, columns)

    def beside(self, renderer: str) -> Path:
        """The folder of another run on the same bank, as rows name it: ``system/arm``."""
        return self.folder.parent.parent / renderer

    @cached_property
    def tests(self) -> tuple[str, ...]:
        """Tests whose questions this arm should answer.

        A swapped control renders clips of tests that nobody asked this arm about; run.json lists those too.
        """
        asked = set(self.rows("answers", ["test"])["test"])
        silent = [test for test in self.manifest.tests if test not in asked]
        lent = self._lent() if silent and self.manifest.control is None else set()
        return tuple(test for test in self.manifest.tests if test in asked or test not in lent)

    def _lent(self) -> set[str]:
        """Tests whose clips the swapped control of this arm hears, and which it is not asked about itself.

        A command asks an arm and its controls about the same tests.
        """
        folder = self.folder.with_name(f"{self.manifest.arm}.swapped")
        control = read_manifest(folder)
        heard = set(current_rows(folder, "answers", ["source_test"])["source_test"])
        return heard - set(control.tests if control else ())

    @cached_property
    def bank(self) -> Bank:
        """The bank as the run kept it. Raises InputError where that is missing, damaged or another bank."""
        path = self.folder.parent.parent / SNAPSHOT
        if not path.is_file():
            raise InputError(
                "the run's copy of its bank is not there",
                where=named(path),
                expected="the snapshot that `torus run` writes beside the systems",
                mend="copy it from where the run was made; the same `torus run` command writes it again",
            )
        bank = from_snapshot(path.read_bytes())
        if bank.hash != self.manifest.bank_hash:
            raise InputError(
                f"the copy of the bank is {bank.card.name}@{bank.hash[:8]}, the run was made on {self.bank_name}",
                where=named(path),
                expected=f"a bank with the hash {self.manifest.bank_hash}",
                mend="put the right snapshot back",
            )
        return bank


def open_run(folder: Path) -> Run:
    """The run in a folder. Raises InputError where there is none or its run.json cannot be understood."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(
            f"no run at {named(folder)}",
            where=named(folder.absolute()),
            expected="a run folder: it holds run.json",
            mend="check the path; `torus run` prints it",
        )
    return Run(folder, manifest)
