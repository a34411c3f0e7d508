"""A bank's statistics as Markdown, for its card: the numbers of a check, no words that a person has to keep true."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from torus_ray.bank.load import Bank

if TYPE_CHECKING:
    from torus_ray.bank.check import BankReport
    from torus_ray.bank.rates import Rate


def statistics(bank: Bank, report: BankReport) -> str:
    """Size, balance, deaf solvers, echo and findings of `bank`, as `report` has them."""
    return "\n".join(_lines(bank, report)) + "\n"


def verified(bank: Bank) -> str:
    """One sentence: how many tests a person has verified, and who."""
    names = [test.provenance.human_verified_by for test in bank.tests]
    done = sum(name is not None for name in names)
    if not done:
        return f"No human has verified any of the {len(names)} tests."
    who = sorted({each.strip() for name in names if name for each in name.split(",")})
    return (
        f"{done} of {len(names)} tests have been verified by a human ({', '.join(who)}); {len(names) - done} have not."
    )


def _lines(bank: Bank, report: BankReport) -> Iterator[str]:
    yield verified(bank)
    yield ""
    yield f"{report.tests} tests, {report.questions} questions of six options (chance 16.7 %), hash `{bank.hash}`."
    yield ""
    yield from _table(("audio type", "tests"), _counts(report.audio_types))
    yield from _table(("family", "questions"), _counts(report.families))
    yield from _table(("right letter", "questions"), _counts(report.letters))
    yield "What rules that hear nothing get right; ties count in shares. Intervals: Wilson, 95 %, n = questions."
    yield ""
    yield from _table(("deaf solver", "right", "of", "%", "95 %", "limit"), map(_rate, report.solvers))
    yield "Echo: how often the right option is the one with"
    yield ""
    yield from _table(("echo", "right", "of", "%", "95 %", "limit"), map(_rate, report.echoes))
    if report.not_made:
        yield f"Not checked, for want of the sentence embeddings: {'; '.join(report.not_made)}."
        yield ""
    counts = {severity: sum(f.severity == severity for f in report.findings) for severity in ("error", "warning")}
    yield f"`torus bank check` found {counts['error']} errors and {counts['warning']} warnings."


def _counts(counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    return [(name.replace("_", " "), str(count)) for name, count in counts.items()]


def _rate(rate: Rate) -> tuple[str, ...]:
    interval, limit = rate.interval.scaled(100), f"{'under' if rate.below else 'at most'} {100 * rate.limit:.0f}"
    spread = f"{interval.lo:.1f} to {interval.hi:.1f}"
    return rate.rule, f"{rate.hits:.1f}", str(rate.questions), f"{100 * rate.share:.1f}", spread, limit


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (heads, ("---",) * len(heads), *rows):
        yield f"| {' | '.join(row)} |"
    yield ""
