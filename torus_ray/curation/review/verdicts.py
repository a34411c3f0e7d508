"""What reviewers said of which test: one record a verdict, and what of it still stands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast, get_args

from torus_ray.bank.digest import sha256_of
from torus_ray.bank.schema import Test

Decision = Literal["accept", "edit", "reject"]
State = Literal["unreviewed", "accepted", "rejected", "edited", "changed"]

DECISIONS: tuple[Decision, ...] = get_args(Decision)
REVIEWED: frozenset[State] = frozenset({"accepted", "rejected"})
"""States in which a test needs no further look; the others wait for one."""


@dataclass(frozen=True)
class Verdict:
    """One line of the log.

    at: UTC, ISO 8601. content: :func:`content_hash` of the test as judged, of an edit as it became. file_before,
    file_after: sha256 of the file's bytes. verified_by: what provenance.human_verified_by became. test: the whole test
    as an edit left it, else None. So the last verdict can be carried out again after a crash.
    """

    at: str
    reviewer: str
    test_id: str
    decision: Decision
    reason: str | None
    content: str
    file_before: str
    file_after: str
    verified_by: str | None
    test: dict[str, Any] | None = None


@dataclass(frozen=True)
class Standing:
    """How a test stands. by: whose verdicts make it so, oldest first. reason: of the rejection or the edit."""

    state: State
    by: tuple[str, ...] = ()
    reason: str | None = None


def content_hash(test: Test) -> str:
    """Over everything that a reviewer judges: a test without its provenance."""
    return sha256_of(test.model_dump(exclude={"provenance"}))


def standing(test: Test, verdicts: Sequence[Verdict]) -> Standing:
    """How `test`, as it is now, stands after all verdicts on it, oldest first.

    An edit ends the verdicts before it, a rejection the acceptances, an acceptance the rejections. A verdict on another
    content does not count: where the file was changed by other means, the test is `changed` and waits for a look.
    """
    names = test.provenance.human_verified_by
    if not verdicts:
        return Standing("accepted", (names,)) if names else Standing("unreviewed")
    last = verdicts[-1]
    if (last.content, last.verified_by) != (content_hash(test), names):
        return Standing("changed", (last.reviewer,))
    if last.decision == "accept":
        return Standing("accepted", acceptors(verdicts))
    return Standing("rejected" if last.decision == "reject" else "edited", (last.reviewer,), last.reason)


def acceptors(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Who accepted the content of the last verdict since it was last edited or rejected, oldest first, each once."""
    names: list[str] = []
    for verdict in reversed(verdicts):
        if verdict.decision != "accept" or verdict.content != verdicts[-1].content:
            break
        names.append(verdict.reviewer)
    return tuple(dict.fromkeys(reversed(names)))


def verified_by(test: Test, verdicts: Sequence[Verdict], reviewer: str) -> str:
    """provenance.human_verified_by once `reviewer` accepts `test`: every acceptance that stands, and this one."""
    found = standing(test, verdicts)
    before = found.by if found.state == "accepted" else ()
    return ", ".join(dict.fromkeys((*before, reviewer)))


def to_line(verdict: Verdict) -> bytes:
    """The record as one line of JSON, newline included."""
    return (json.dumps(asdict(verdict), ensure_ascii=False) + "\n").encode()


def from_line(line: bytes) -> Verdict:
    """The record in a line. Raises ValueError saying what is wrong with it."""
    found: Any = json.loads(line)
    if not isinstance(found, dict) or found.keys() != Verdict.__dataclass_fields__.keys():
        raise ValueError(f"expected an object with {', '.join(Verdict.__dataclass_fields__)}")
    if found["decision"] not in DECISIONS:
        raise ValueError(f"unknown decision {found['decision']!r}, expected {', '.join(DECISIONS)}")
    optional = ("reason", "verified_by")
    texts = [name for name in found if name not in (*optional, "test")]
    if not all(isinstance(found[name], str) for name in texts):
        raise ValueError(f"expected text in {', '.join(texts)}")
    if not all(isinstance(found[name], str | None) for name in optional) or not isinstance(found["test"], dict | None):
        raise ValueError("expected text or null in reason and verified_by, an object or null in test")
    return Verdict(**cast(dict[str, Any], found))


def by_test(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """Verdicts by test id, each list oldest first."""
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.test_id, []).append(verdict)
    return found
