"""What distances are taken to: a run, or a reference pack: what KL, FAD and FD need of a run, without its audio.

A pack is one Parquet file: the rows of those measures, and in its metadata the clips, the heads and the bank.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from torus_ray.errors import InputError
from torus_ray.report.makers import SET_METRICS
from torus_ray.report.measured import ClipFacts, Measured, Place, measured_of, rows_by_measure
from torus_ray.report.runs import Run, open_run
from torus_ray.store.errors import from_os_error
from torus_ray.store.files import sha256_of, write_atomic
from torus_ray.store.layout import MANIFEST
from torus_ray.store.manifest import MeasureInfo
from torus_ray.store.mirror import local_folder, look_into
from torus_ray.store.parts import BROKEN
from torus_ray.store.tables import SCHEMAS

PACK_VERSION = 1
_METADATA = b"torus.reference"
_ROWS = ("test", "stage", "seed", "measure", "key", "fingerprint", "status", "reason", "text", "values", "width")


def locate(text: str) -> Path:
    """The run folder or pack file that `--reference` means: RUN, RUN:ARM (RUN a system's folder or a run beside that
    arm), or a file. Raises InputError."""
    path = _here(text)
    if path.is_file() or (path / MANIFEST).is_file():
        return path.absolute()
    folder, colon, arm = text.rpartition(":")
    if colon and not arm.startswith("//"):
        beside = _here(folder)
        for place in (beside / arm, beside.parent / arm):
            if (place / MANIFEST).is_file():
                return place.absolute()
    raise InputError(
        f"no reference at {text}",
        where=str(path.absolute()),
        expected="a run folder, SYSTEM_FOLDER:ARM, or a pack written by `torus reference pack`",
        mend="check the path; `torus run` prints those of its runs",
    )


def _here(text: str) -> Path:
    """A path, or the mirror of what an s3:// URI means, brought up to date."""
    folder = local_folder(text)
    look_into(folder)
    return folder


def named(place: Path, bank_folder: Path) -> str:
    """How run.json keeps a reference: `system/arm` of a run on the same bank and in the same results, else its path."""
    inside = place.is_relative_to(bank_folder.absolute()) and place.is_dir()
    return place.relative_to(bank_folder.absolute()).as_posix() if inside else str(place)


def reference_of(run: Run, text: str | None = None) -> Measured | None:
    """The reference of a run: `text` as `named` gives it, else what its run.json says; None where neither says any, or
    the one of run.json is not there. Raises InputError for one of another bank or that cannot be read."""
    said = text or run.manifest.reference
    if said is None:
        return None
    place = run.beside(said) if not Path(said).is_absolute() else Path(said)
    if not place.exists() and text is None:
        return None
    found = measured_of(open_run(place)) if place.is_dir() else read_pack(place)
    if found.bank_hash != run.manifest.bank_hash:
        raise InputError(
            f"the reference {found.name} is of another bank ({found.bank_hash[:8]}) than the run ({run.bank_name})",
            where=str(place),
            expected="a reference on the same bank: clips of different tests make no pair",
            mend="choose one of this bank",
        )
    return found


def write_pack(run: Run, out: Path) -> int:
    """Write what KL, FAD and FD need of a run to a file; its rows. Raises InputError where nothing was measured."""
    measured = measured_of(run)
    wanted = {name: info for name, info in measured.measures.items() if set(info.metrics) & set(SET_METRICS)}
    rows = [row for name in wanted for _, row in sorted(measured.rows[name].items())]
    if not rows:
        raise InputError(
            "nothing of the run was measured that distances need",
            where=str(run.folder),
            expected=f"measures with one of {', '.join(SET_METRICS)}",
            mend=f"`torus measure {run.folder}` first",
        )
    manifest = run.manifest
    told = {
        "version": PACK_VERSION,
        "bank": manifest.bank,
        "bank_hash": manifest.bank_hash,
        "system": manifest.system,
        "arm": manifest.arm,
        "measures": {name: info.model_dump(mode="json") for name, info in wanted.items()},
        "clips": [[*place, asdict(facts)] for place, facts in sorted(measured.clips.items())],
    }
    schema = pa.schema([SCHEMAS["measures"].field(name) for name in _ROWS])
    table = pa.Table.from_arrays(
        [pa.array([row[field.name] for row in rows], field.type) for field in schema],
        schema=schema.with_metadata({_METADATA: json.dumps(told, sort_keys=True).encode()}),
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    try:
        write_atomic(out, sink.getvalue().to_pybytes())
    except OSError as error:
        raise from_os_error(error, out) from error
    return len(rows)


def read_pack(path: Path) -> Measured:
    """The reference in a pack. Raises InputError for a file that is none, or is damaged."""
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        told = json.loads((table.schema.metadata or {})[_METADATA])
        if told["version"] != PACK_VERSION:
            raise ValueError(f"version {told['version']}, this torus-ray reads {PACK_VERSION}")
        measures = {name: MeasureInfo.model_validate(info) for name, info in told["measures"].items()}
        clips: Mapping[Place, Any] = {(t, s, seed): ClipFacts(**facts) for t, s, seed, facts in told["clips"]}
        rows = rows_by_measure(pl.DataFrame(table.select(list(_ROWS))), measures)
    except (*BROKEN, KeyError, TypeError) as error:
        raise InputError(
            f"not a reference pack: {error}",
            where=str(path),
            expected="a file written by `torus reference pack`, whole",
            mend="write it again from its run, or copy it again",
        ) from error
    return Measured(f"pack:{sha256_of(path)[:16]}", str(told["bank_hash"]), measures, clips, rows)
