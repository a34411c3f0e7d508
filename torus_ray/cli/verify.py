"""`torus verify`: derive every number of a run again, check every hash, name what is wrong."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from torus_ray.cli.score import Runs
from torus_ray.errors import InputError, TorusError

CLOSE = 1e-6
"""How near a number made anew comes: other machines sum in another order."""

if TYPE_CHECKING:
    from pathlib import Path

    from torus_ray.bank.load import Bank
    from torus_ray.report.runs import Run
    from torus_ray.report.tables import CoherenceTable
    from torus_ray.store.verify import Finding, Questions


def verify(
    runs: Runs,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> int:
    """Check runs: parts, clips, rows, letters, the bank that they belong to, the table, and stored WER, CM and
    distances. Exit 1 if anything is wrong, each thing on a line with its name."""
    from torus_ray.cli.common import runs_at
    from torus_ray.store.mirror import named

    found = {named(folder): _as_named(folder) for folder in runs_at(runs, anew=True)}
    if as_json:
        told = {name: [finding.__dict__ for finding in findings] for name, findings in found.items()}
        print(json.dumps(told, indent=1))
        return 1 if any(found.values()) else 0
    for name, findings in found.items():
        for finding in findings:
            print(f"{finding.kind}: {finding.where}: {finding.message}")
        print(f"{name}: {f'{len(findings)} findings' if findings else 'nothing is wrong'}")
    return 1 if any(found.values()) else 0


def _as_named(folder: Path) -> list[Finding]:
    """The findings, of a run in a bucket with the URIs of what is wrong."""
    from torus_ray.store.mirror import mirror_of
    from torus_ray.store.verify import Finding

    mirror = mirror_of(folder)
    found = findings_of(folder)
    if mirror is None:
        return found
    return [Finding(f.kind, mirror.named(f.where), mirror.named(f.message)) for f in found]


def findings_of(folder: Path) -> list[Finding]:
    """Everything that is wrong with one run folder."""
    from torus_ray.answers.letters import read_letter
    from torus_ray.report.runs import open_run
    from torus_ray.store.verify import Finding
    from torus_ray.store.verify import verify as verify_store

    try:
        run = open_run(folder)
    except TorusError:
        return verify_store(folder, read_letter=read_letter)
    bank: list[Finding] = []
    questions: Questions | None = None
    expected = None
    try:
        questions = _questions(run.bank)
        expected = _expected(run, run.bank)
    except InputError as error:
        bank = [Finding("bank", error.where, error.message)]
    found = verify_store(folder, questions=questions, read_letter=read_letter, expected=expected)
    heard = _heard_silence(run)
    found = [finding for finding in found if finding.kind != "no_parent" or finding.where not in heard]
    return [*bank, *_gathered(run, found), *_counts(run), *_table(folder), *_distances(run)]


def _questions(bank: Bank) -> Questions:
    from torus_ray.bank.digest import question_hash
    from torus_ray.bank.schema import STAGES
    from torus_ray.store.verify import KnownQuestion

    return {
        (test.id, stage, question.id): KnownQuestion(question_hash(question), question.answer)
        for test in bank.tests
        for stage in STAGES
        for question in test.stage(stage).questions
    }


def _expected(run: Run, bank: Bank) -> dict[str, list[str]]:
    """The units that the run should hold, by table; answers only of tests that this arm is asked about."""
    from torus_ray.protocol.graph import build_graph
    from torus_ray.protocol.rows import TABLES

    arm = run.arm
    asked = set(run.tests)
    tests = [test for test in bank.tests if test.id in set(run.manifest.tests)]
    repeats = 1 + max(run.rows("answers", ["repeat"])["repeat"].drop_nulls().to_list(), default=0)
    units: dict[str, list[str]] = defaultdict(list)
    # A later command may have rendered more without measuring it.
    measured = set(run.rows("measures", ["test"])["test"])
    measures = {name: info.metrics for name, info in run.manifest.measures.items()}
    told = {"answer": asked, "measure": measured & asked}
    for node in build_graph(
        system=run.manifest.system, bank=bank, tests=tests, arms=[arm], repeats=repeats, measures=measures
    ):
        if node.arm == arm and node.test.id in told.get(node.kind, {node.test.id}):
            units[TABLES[node.kind]] += [unit.id for unit in node.units]
    return units


def _heard_silence(run: Run) -> set[str]:
    """Answers of the muted control that heard what they should: silence, which no run renders."""
    import polars as pl

    from torus_ray.protocol.requests import SILENCE

    rows = run.rows("answers", ["unit_id", "control", "clip"])
    return set(rows.filter((pl.col("control") == "muted") & (pl.col("clip") == SILENCE.id))["unit_id"])


def _gathered(run: Run, found: list[Finding]) -> Iterator[Finding]:
    """Of a run that says itself that it is not finished, one line for all that is still to do."""
    from torus_ray.store.verify import Finding

    if run.manifest.state == "finished":
        yield from found
        return
    missing = [finding for finding in found if finding.kind == "missing_unit"]
    yield from (finding for finding in found if finding.kind != "missing_unit")
    if missing:
        message = f"the run is {run.manifest.state}: {len(missing)} units have no row yet, the first {missing[0].where}"
        yield Finding("unfinished", str(run.folder), message)


def _counts(run: Run) -> Iterator[Finding]:
    """run.json's counts against the rows; a run that goes on has no counts of its own yet."""
    from torus_ray.store.layout import MANIFEST
    from torus_ray.store.verify import Finding

    if run.manifest.state != "finished":
        return
    for table in ("renders", "captions", "answers", "measures"):
        have = Counter(run.rows(table, ["status"])["status"].to_list())
        said = Counter(run.manifest.counts.get(table, {}))
        for status in sorted({*have, *said}, key=str):
            if have[status] != said[status]:
                message = f"{table}: it says {said[status]} {status}, the rows have {have[status]}"
                yield Finding("counts", str(run.folder / MANIFEST), message)


def _table(folder: Path) -> Iterator[Finding]:
    """The coherence table from the stored columns against the one from replies read anew."""
    from torus_ray.report.tables import ORDERS, coherence_table
    from torus_ray.store.verify import Finding

    by = [(name,) for name in ORDERS]
    try:
        stored, anew = (coherence_table([folder], by=by, reread=reread, objective=False) for reread in (False, True))
    except InputError as error:
        yield Finding("table", error.where or str(folder), error.message)
        return
    told, right = _numbers(stored), _numbers(anew)
    for name in sorted({*told, *right}):
        if told.get(name) != right.get(name):
            message = f"the rows' own columns give {told.get(name)}, the replies read anew {right.get(name)}"
            yield Finding("table", f"{folder} {name}", message)


def _distances(run: Run) -> Iterator[Finding]:
    """Stored WER, CM and distances against the same made anew from the measures; what no longer belongs to the rows
    that are there is no concern."""
    from torus_ray.report.objective import stored_and_anew
    from torus_ray.store.verify import Finding

    try:
        pairs = stored_and_anew(run)
    except InputError as error:
        yield Finding("distance", error.where or str(run.folder), error.message)
        return
    for told, right in pairs:
        close = told.value == right.value or (
            told.value is not None
            and right.value is not None
            and math.isclose(told.value, right.value, rel_tol=CLOSE, abs_tol=CLOSE)
        )
        if not close or (told.n, told.expected, told.reason) != (right.n, right.expected, right.reason):
            message = f"the row says {told.value} ({told.n}/{told.expected}), the measures give {right.value} "
            yield Finding("distance", f"{run.folder} {told.convention}", f"{message}({right.n}/{right.expected})")


def _numbers(table: CoherenceTable) -> dict[str, str]:
    """Each number of a table by its name, as right/expected (percent)."""
    cells = {f"{row.arm} {name}": cell for row in table.arms for name, cell in row.cells.items()}
    cells |= {f"{row.arm} {'/'.join(row.group)}": row.cell for part in table.breakdowns for row in part.rows}
    return {name: f"{c.correct}/{c.expected} ({c.pct:.2f} %, {c.scored} scored)" for name, c in cells.items()}
