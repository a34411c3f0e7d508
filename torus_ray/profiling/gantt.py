"""A run as a picture: workers by row, calls as bars coloured by operation, and how busy each host was beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from torus_ray.profiling.slices import Slice, lanes
from torus_ray.profiling.use import use_of

COLOURS = {"generate": "#1b6ca8", "edit": "#4aa3df", "caption": "#e0a030", "answer": "#2e8b57", "measure": "#9a9a9a"}
NOT_WELL = "#c0392b"
ROW_INCHES, WIDTH_INCHES, MOST_INCHES = 0.28, 11.0, 60.0
FEW = 2_000
"""Calls up to which they are set apart by a gap."""
LEAST_S = 1e-6
"""How long the bar of a call without length is."""
SUFFIXES = (".png", ".svg", ".pdf")


def draw_gantt(ordered: Sequence[Slice], path: Path, title: str) -> None:
    """Draw slices into a file of a format that its suffix names (SUFFIXES). Calls with a failed unit are framed."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    origin = min(each.begin for each in ordered)
    placed = [
        (each, (each.host, each.worker, each.pid, lane)) for each, lane in zip(ordered, lanes(ordered), strict=True)
    ]
    rows = {row: number for number, row in enumerate(sorted({row for _, row in placed}, key=_in_order))}
    spans: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    bad: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for each, row in placed:
        span = (each.begin - origin, max(each.seconds, LEAST_S))
        spans[each.operation, rows[row]].append(span)
        if set(each.statuses) & {"failed", "timeout"}:
            bad[rows[row]].append(span)
    figure = Figure(figsize=(WIDTH_INCHES, min(MOST_INCHES, 2.0 + ROW_INCHES * len(rows))), layout="constrained")
    bars, shares = figure.subplots(1, 2, width_ratios=[5, 1])
    gap = 0.2 if len(placed) < FEW else 0.0
    for (operation, number), spots in spans.items():
        bars.broken_barh(spots, (number - 0.4, 0.8), facecolors=COLOURS[operation], edgecolors="white", linewidth=gap)
    for number, spots in bad.items():
        bars.broken_barh(spots, (number - 0.4, 0.8), facecolors="none", edgecolors=NOT_WELL, linewidth=1.2)
    names = [worker + (f" ({lane + 1})" if lane else "") for _, worker, _, lane in rows]
    bars.set_yticks(range(len(rows)), names)
    bars.set_ylim(len(rows) - 0.5, -0.5)
    bars.set_xlabel("seconds from the first call")
    bars.set_title(title)
    used = [name for name in COLOURS if any(operation == name for operation, _ in spans)]
    marks = [Patch(facecolor=COLOURS[name], label=name) for name in used]
    marks += [Patch(facecolor="none", edgecolor=NOT_WELL, label="failed")] if bad else []
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False)
    for use in use_of(ordered):
        own = [number for (host, *_), number in rows.items() if host == use.host]
        shares.barh(sum(own) / len(own), 100 * (use.busy_share or 0.0), max(own) - min(own) + 0.8, color="#777777")
        shares.text(3, sum(own) / len(own), f"{use.host}: {use.busy_share or 0.0:.0%}", va="center")
    shares.set_ylim(len(rows) - 0.5, -0.5)
    shares.set_yticks([])
    shares.set_xlim(0, 100)
    shares.set_xlabel("busy, %")
    figure.savefig(path, dpi=120)


def _in_order(row: tuple[str, str, int, int]) -> tuple[str, int, str, int, int]:
    """Hosts by name, their workers by number."""
    host, worker, pid, lane = row
    number = worker.rpartition("#")[2]
    return host, int(number) if number.isdecimal() else 0, worker, pid, lane
