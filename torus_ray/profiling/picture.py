"""A profile as a picture: for each head its rate, its latency and where the time of a call goes, by size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torus_ray.profiling.rows import ProfileRow

PARTS = (("queue_s", "queue", "#c9c9c9"), ("transfer_s", "transfer", "#e0a030"), ("model_s", "model", "#1b6ca8"))
LATENCIES = (
    ("latency_p50_s", "p50", "#1b6ca8"),
    ("latency_p95_s", "p95", "#8e44ad"),
    ("latency_p99_s", "p99", "#c0392b"),
)
STORE = ("store_s", "store", "#2e8b57")
ROW_INCHES, WIDTH_INCHES = 2.6, 11.0


def draw_profile(rows: Sequence[ProfileRow], path: Path) -> None:
    """Draw the sizes that went well, a line of three panels a head; nothing where there are none."""
    from matplotlib.figure import Figure

    heads: dict[tuple[str, str], list[ProfileRow]] = {}
    for row in rows:
        if row.status == "ok" and row.rate:
            heads.setdefault((row.host, row.operation), []).append(row)
    if not heads:
        return
    figure = Figure(figsize=(WIDTH_INCHES, ROW_INCHES * len(heads)), layout="constrained")
    lines = figure.subplots(len(heads), 3, squeeze=False)
    for (rate, latency, parts), ((host, operation), found) in zip(lines, heads.items(), strict=True):
        found.sort(key=lambda row: row.size)
        names = [str(row.size) for row in found]
        size = "in flight" if found[0].style == "async" else "batch"
        rate.plot(names, [row.rate or 0.0 for row in found], "o-", color="#1b6ca8")
        rate.set_ylim(bottom=0)
        rate.set_ylabel("audio s a second" if found[0].audio_s is not None else "units a second")
        rate.set_title(f"{host}: {operation}", loc="left")
        for name, label, colour in LATENCIES:
            known = [(row, getattr(row, name)) for row in found if getattr(row, name) is not None]
            if known:
                sizes, values = [str(row.size) for row, _ in known], [value for _, value in known]
                latency.plot(sizes, values, "o-", color=colour, label=label)
        latency.set_ylim(bottom=0)
        latency.set_ylabel("seconds a call")
        below = [0.0] * len(found)
        for name, label, colour in (*PARTS, STORE):
            heights = [getattr(row, name) or 0.0 for row in found]
            parts.bar(names, heights, bottom=below, color=colour, label=label)
            below = [low + height for low, height in zip(below, heights, strict=True)]
        parts.set_ylabel("seconds a call")
        for panel in (rate, latency, parts):
            panel.set_xlabel(size)
    marks = [panel.get_legend_handles_labels() for panel in lines[0][1:]]
    handles, labels = ([each for found in marks for each in found[part]] for part in (0, 1))
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=120)
