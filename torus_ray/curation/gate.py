"""The coupled gate (paper 3.2, Appendix D): both solvers on every question, two repair rounds, flags kept.

Round 0 judges the bank as it is. Round 1: the Question Author rewrites the options of each flagged question; round 2:
of each that is flagged again, question and options. What is flagged then keeps its flags, for people to look at.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torus_ray.bank.digest import question_hash, sha256_of
from torus_ray.bank.load import Bank
from torus_ray.bank.schema import LETTERS, STAGES, Question, StageName, Test
from torus_ray.curation.chat import Caller, ChatReply, in_parallel
from torus_ray.curation.endpoints import Endpoint
from torus_ray.curation.judging import (
    RULES,
    Job,
    Rule,
    Solver,
    Verdict,
    fault_text,
    flagged,
    verdict,
)
from torus_ray.curation.ledger import Ledger
from torus_ray.curation.replies import (
    OptionsRepair,
    QuestionRepair,
    StepFailed,
    ask_until_good,
    read_shape,
    read_whole_test,
    spec_text,
    with_question,
)
from torus_ray.curation.solvers import GateSolver, Run
from torus_ray.curation.wording import prompt

Place = tuple[str, StageName, str]
"""test, stage, question."""
Row = dict[str, Any]

REPAIRS: Mapping[int, tuple[str, type[OptionsRepair]]] = {
    1: ("repair_options", OptionsRepair),
    2: ("repair_question", QuestionRepair),
}
"""What each round is asked for, and the shape of its reply (Appendix D)."""


@dataclass(frozen=True)
class GateOptions:
    """orders: asks of a question by each solver, 1 to 6. threshold: of the posterior. rule: which one sends a question
    to repair. asks: how often the author is asked for one repair at most. repair: False to judge only."""

    orders: int
    threshold: float
    rule: Rule
    asks: int
    repair: bool


@dataclass(frozen=True)
class Repair:
    """One try at mending a question. status: ok or failed, then with the reason."""

    round: int
    status: str
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class GateResult:
    """bank: as it is after the repairs. verdicts: of every question, the last of each solver. first: those of round 0.
    repairs: of each question that was sent back, in order."""

    bank: Bank
    verdicts: Mapping[Place, Mapping[Solver, Verdict]]
    first: Mapping[Place, Mapping[Solver, Verdict]]
    repairs: Mapping[Place, Sequence[Repair]]
    rule: Rule

    def state(self, place: Place) -> bool | None:
        """Whether a question is flagged at the end; None where it could not be judged."""
        return flagged(self.verdicts[place], self.rule)

    def flags(self) -> list[Row]:
        """A record a question, in the order of the bank: both rules, both solvers, the repairs."""
        records = []
        for place, last in self.verdicts.items():
            test, stage, question = place
            record: Row = {"test": test, "stage": stage, "question": question}
            record |= {"question_hash": last["muted"].question_hash, "rule": self.rule, "flagged": self.state(place)}
            record |= {f"flagged_{rule}": flagged(last, rule) for rule in RULES}
            record |= {"flagged_at_first": flagged(self.first[place], self.rule)}
            record |= {str(solver): _shown(found) for solver, found in last.items()}
            record |= {"repairs": [repair.__dict__ for repair in self.repairs.get(place, ())]}
            records.append(record)
        return records


class Gate:
    """One gate of one bank. run: runs a coroutine on the command's event loop."""

    def __init__(
        self,
        solvers: Sequence[GateSolver],
        author: Endpoint,
        caller: Caller,
        ledger: Ledger,
        options: GateOptions,
        run: Run,
    ) -> None:
        self._solvers, self._author, self._caller, self._ledger = solvers, author, caller, ledger
        self._options, self._run = options, run
        self._noted = {
            (row["unit"], row["step"], row["key"], row["status"])
            for row in ledger.rows("outcomes", ["unit", "step", "key", "status"]).iter_rows(named=True)
        }
        self._judged = {sha256_of(row) for row in ledger.rows("verdicts").drop("at").iter_rows(named=True)}

    def gate(self, bank: Bank) -> GateResult:
        """Judge, repair and judge again. Raises CurationStop, EngineStop, StoreError; what was answered stands."""
        places = [(t.id, name, q.id) for t in bank.tests for name in STAGES for q in t.stage(name).questions]
        verdicts = first = self.judge(bank, places, 0)
        repairs: dict[Place, list[Repair]] = {}
        for number in REPAIRS if self._options.repair else ():
            back = [place for place in places if flagged(verdicts[place], self._options.rule)]
            if not back:
                break
            bank = self._mend(bank, back, verdicts, number, repairs)
            verdicts = {**verdicts, **self.judge(bank, back, number)}
        return GateResult(bank, verdicts, first, repairs, self._options.rule)

    def judge(self, bank: Bank, places: Sequence[Place], number: int) -> dict[Place, dict[Solver, Verdict]]:
        """The verdicts of both solvers on some questions in one round, durable on return."""
        tests = {test.id: test for test in bank.tests}
        shifts = range(self._options.orders)
        jobs: list[Job] = []
        for test_id, stage, question_id in places:
            test = tests[test_id]
            question = _question(test, stage, question_id)
            jobs += [Job(test, stage, question, bank.card.order_seed, shift) for shift in shifts]
        found: dict[Place, dict[Solver, Verdict]] = {place: {} for place in places}
        for solver in self._solvers:
            heard = solver.solve(bank, jobs)
            for at, place in enumerate(places):
                mine = slice(at * len(shifts), (at + 1) * len(shifts))
                found[place][solver.role] = verdict(
                    jobs[mine],
                    heard[mine],
                    round_=number,
                    solver=solver.role,
                    kind=solver.kind,
                    model=solver.model,
                    threshold=self._options.threshold,
                )
        rows = [each.row() for place in places for each in found[place].values()]
        new = [row for row in rows if sha256_of(row) not in self._judged]
        self._ledger.add_now("verdicts", [{**row, "at": time.time()} for row in new])
        self._judged |= {sha256_of(row) for row in new}
        return found

    def _mend(
        self,
        bank: Bank,
        back: Sequence[Place],
        verdicts: Mapping[Place, Mapping[Solver, Verdict]],
        number: int,
        repairs: dict[Place, list[Repair]],
    ) -> Bank:
        """The bank after one repair round on the questions `back`; what came of each is added to `repairs`."""
        tests = {test.id: test for test in bank.tests}
        by_test: dict[str, list[Place]] = {}
        for place in back:
            by_test.setdefault(place[0], []).append(place)

        async def mend(test_id: str) -> None:
            # One after the other in a test: each author sees the test as the one before left it.
            for place in by_test[test_id]:
                tests[test_id], done = await self._repair(tests[test_id], place, number, verdicts[place])
                repairs.setdefault(place, []).append(done)

        self._run(in_parallel(self._author.in_flight, list(by_test), mend))
        ordered = tuple(tests[test.id] for test in bank.tests)
        return replace(bank, tests=ordered, path=None)

    async def _repair(
        self, test: Test, place: Place, number: int, verdicts: Mapping[Solver, Verdict]
    ) -> tuple[Test, Repair]:
        """The test with one question mended, or as it was where the author brought nothing usable."""
        _, stage, question_id = place
        question = _question(test, stage, question_id)
        name, shape = REPAIRS[number]
        values = {
            "spec": spec_text(test, stage),
            "text": question.text,
            "options": "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, question.options, strict=True)),
            "answer": question.answer,
            "attribute": question.key.attribute,
            "value": question.key.value,
            "fault": fault_text(verdicts, self._options.rule),
        }

        def read(reply: ChatReply) -> Test:
            mended = read_shape(shape, reply).model_dump(mode="json", exclude={"diagnosis"})
            document = with_question(test, stage, {**question.model_dump(mode="json"), **mended})
            document["provenance"] = _mended_provenance(test, f"{stage}.{question_id}", number, reply, self._author)
            return read_whole_test(document, before=test)

        wording = prompt(name)
        unit = ".".join(place)
        key = sha256_of({"prompt": wording.version, "model": self._author.model, "values": values})
        row: Row = {"unit": unit, "step": name, "key": key, "status": "ok"}
        try:
            test, _, row["asks"] = await ask_until_good(
                self._caller, self._author, wording, values, read, unit=unit, asks=self._options.asks
            )
        except StepFailed as error:
            row |= {"status": "failed", "reason": error.reason, "message": error.message, "asks": error.asks}
        else:
            row["document"] = json.dumps(
                _question(test, stage, question_id).model_dump(mode="json"), ensure_ascii=False
            )
        if (unit, name, key, row["status"]) not in self._noted:
            await self._ledger.add("outcomes", {**row, "at": time.time()})
        return test, Repair(number, row["status"], row.get("reason"), row.get("message"))


def _question(test: Test, stage: StageName, question_id: str) -> Question:
    return next(q for q in test.stage(stage).questions if q.id == question_id)


def _mended_provenance(test: Test, place: str, number: int, reply: ChatReply, author: Endpoint) -> Row:
    """Whoever had verified the test has not seen this question: nobody has verified the test now."""
    note = f"{place} repaired in round {number} by {reply.model_version or author.model}"
    notes = "; ".join(part for part in (test.provenance.notes, note) if part)
    return {**test.provenance.model_dump(mode="json"), "human_verified_by": None, "notes": notes}


def _shown(found: Verdict) -> Row:
    names = "kind model model_version round asks right unparsed failed letters right_letters flagged_paper posterior"
    return {name: getattr(found, name) for name in (*names.split(), "threshold", "flagged_posterior", "reason")}


def changed_questions(before: Bank, after: Bank) -> int:
    """How many questions differ."""
    return sum(
        question_hash(old) != question_hash(new)
        for one, other in zip(before.tests, after.tests, strict=True)
        for name in STAGES
        for old, new in zip(one.stage(name).questions, other.stage(name).questions, strict=True)
    )
