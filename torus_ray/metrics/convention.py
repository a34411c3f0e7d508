"""What a number is: the convention that its column names, and the count that stands beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Convention:
    """One way to compute one metric, as data.

    name: the start of its column; the backbone follows (:meth:`column`). title: a table's heading. unit: of the value.
    better: which way. bounds: least and largest possible value, None without limit. minimum: clips below which there is
    no value. says: the formula in words. source: METRICS section. headline: the one that stands in the paper's row.
    """

    name: str
    title: str
    unit: str
    better: Literal["lower", "higher"]
    bounds: tuple[float | None, float | None]
    minimum: int
    says: str
    source: str
    headline: bool = False

    def column(self, backbone: str = "") -> str:
        """Column of a number made with a backbone (model and reading), such as ``fad.vggish128.preact``."""
        return f"{self.name}.{backbone}" if backbone else self.name

    def measure(self, value: float | None, n: int, expected: int, *, backbone: str = "", reason: str = "") -> Measure:
        """A number of this convention; one made of fewer clips than `minimum` is None, with the reason."""
        if n < self.minimum:
            reason = reason or ("no_clips" if n == 0 else f"fewer_than_{self.minimum}_clips")
            value = None
        return Measure(self.column(backbone), value, n, expected, None if value is not None else reason or "undefined")


@dataclass(frozen=True)
class Measure:
    """A number with what it rests on.

    column: convention and backbone. value: None where it is undefined. n: clips behind it, of `expected`.
    reason: why the value is None, in one word (no_clips, windows_differ, ...); None beside a value.
    """

    column: str
    value: float | None
    n: int
    expected: int
    reason: str | None
