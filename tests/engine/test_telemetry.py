"""Metrics of Ray: pushed at a tick, named as the Grafana dashboard asks for them, nothing at all without Ray."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torus_ray.engine import telemetry
from torus_ray.engine.telemetry import EXPORTED_PREFIX, METRICS, OBSERVED, SECONDS, Telemetry, unit_seconds
from torus_ray.protocol.executor import Attempt, Call, HostState, Outcome

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "torus.json"
STATES = {"g": HostState(2, 5, 7)}
UNITS = {("native", "generate", "ok"): 3, ("native", "answer", "unparsed"): 2}
OF_A_HISTOGRAM = ("_bucket", "_sum", "_count")


def outcome(seconds: float, *, batch: int = 1, questions: int = 0) -> Outcome:
    request = {"questions": [{}] * questions} if questions else {}
    attempt = Attempt(1, "ok", "g#1", batch=batch, started_at=10.0, ended_at=10.0 + seconds)
    return Outcome(Call(1, "g", "answer", request), "ok", attempts=[attempt])


# --- the dashboard ----------------------------------------------------------------------------------------------------


def queries() -> list[str]:
    board = json.loads(DASHBOARD.read_text())
    variables = [v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    return variables + [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def exported(name: str) -> set[str]:
    suffixes = OF_A_HISTOGRAM if METRICS[name].kind == "histogram" else ("",)
    return {EXPORTED_PREFIX + name + suffix for suffix in suffixes}


def test_the_dashboard_asks_for_exactly_what_is_pushed() -> None:
    asked = set(re.findall(r"\b[a-z]+_torus_\w+", " ".join(queries())))
    assert asked <= set().union(*map(exported, METRICS))
    for name in METRICS:
        assert asked & exported(name), f"no panel shows {name}"


def test_the_dashboard_groups_by_tags_that_are_there() -> None:
    for query in queries():
        asked = [METRICS[name].tags for name in METRICS if any(each in query for each in exported(name))]
        words = re.findall(r"by \(([^)]*)\)", query) + re.findall(r"(\w+)(?:=~|!=|=)\"", query)
        tags = {tag.strip() for word in words for tag in word.split(",")}
        assert asked
        assert all(tags <= {*of, "le"} for of in asked), query


def test_the_panels_of_the_dashboard_do_not_lie_on_each_other() -> None:
    board = json.loads(DASHBOARD.read_text())
    places = [panel["gridPos"] for panel in board["panels"]]
    cells = [(p["x"] + x, p["y"] + y) for p in places for x in range(p["w"]) for y in range(p["h"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


# --- what is pushed ---------------------------------------------------------------------------------------------------


class Recorder:
    """Stands for ray.util.metrics: remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, float, dict[str, str]]] = []

    def metric(self, name: str, about: str, **declared: Any) -> Any:
        assert set(declared["tag_keys"]) == set(METRICS[name].tags)

        def tell(how: str) -> Any:
            return lambda value, tags: self.told.append((how, name, value, tags))

        return SimpleNamespace(inc=tell("inc"), set=tell("set"), observe=tell("observe"))

    def of(self, name: str) -> list[float]:
        return [value for _, told, value, _ in self.told if told == name]


@pytest.fixture
def pushed(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(telemetry, "_on_ray", lambda: True)
    monkeypatch.setattr(
        telemetry, "_made", lambda name, metric: recorder.metric(name, metric.about, tag_keys=metric.tags)
    )
    return recorder


def test_counters_grow_by_what_is_new_and_every_metric_has_its_tags(pushed: Recorder) -> None:
    told = Telemetry("toy")
    told.take(STATES, [outcome(0.6, batch=2, questions=3)], UNITS, last=True)
    told.take(STATES, [], {**UNITS, ("native", "generate", "ok"): 10}, last=True)
    assert pushed.of("torus_units_total") == [3, 2, 7]
    assert pushed.of("torus_unit_seconds") == [pytest.approx(0.1)]
    assert pushed.of("torus_in_flight") == [5, 5]
    assert pushed.of("torus_waiting") == [7, 7]
    assert pushed.of("torus_replicas") == [2, 2]
    assert {name for _, name, *_ in pushed.told} == METRICS.keys()
    for _, name, _, tags in pushed.told:
        assert tags.keys() == set(METRICS[name].tags)


def test_nothing_is_pushed_between_two_ticks_and_a_tick_observes_a_bounded_number(pushed: Recorder) -> None:
    told = Telemetry("toy")
    told.take(STATES, [], {})
    count = len(pushed.told)
    for _ in range(50):
        told.take(STATES, [outcome(0.1) for _ in range(20)], UNITS)
    assert len(pushed.told) == count
    told.take(STATES, [], UNITS, last=True)
    assert len(pushed.of("torus_unit_seconds")) == OBSERVED


def test_a_call_without_times_has_no_seconds() -> None:
    assert unit_seconds(Outcome(Call(1, "g", "edit", {}), "failed")) is None
    assert unit_seconds(Outcome(Call(1, "g", "edit", {}), "timeout", attempts=[Attempt(1, "timeout", "g#1")])) is None
    assert unit_seconds(outcome(-1.0)) == 0  # the clock was set back


def test_a_tick_costs_little_however_much_comes_back(pushed: Recorder) -> None:
    """60,000 calls of a fast run, in looks of 64: what is done between two ticks is counting."""
    told = Telemetry("toy")
    looks = [[outcome(0.001) for _ in range(64)] for _ in range(20)]
    began = time.process_time()
    for at in range(940):
        told.take(STATES, looks[at % 20], UNITS)
    assert time.process_time() - began < 1.0  # 17 us a call; measured: 0.2 us


def test_without_ray_nothing_is_done_and_ray_is_not_loaded() -> None:
    script = (
        "import sys; from torus_ray.engine.telemetry import Telemetry;"
        "Telemetry('toy').take({}, [], {('a', 'b', 'ok'): 1}, last=True); sys.exit('ray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False, timeout=60).returncode == 0


SCRAPED = """
import sys, time
import ray
from tests.engine.test_telemetry import STATES, UNITS, outcome
from torus_ray.engine.telemetry import Telemetry

for _ in range(2):  # a second run in one process joins anew
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level=40)
    told = Telemetry("toy")
    told.take(STATES, [outcome(0.05), outcome(2.0)], UNITS, last=True)
    (node,) = [node for node in ray.nodes() if node["Alive"]]
    print(node["NodeManagerAddress"], node["MetricsExportPort"], flush=True)
    sys.stdin.readline()
    ray.shutdown()
"""


@pytest.mark.ray
@pytest.mark.timeout(180)
def test_prometheus_finds_them_under_the_names_of_the_dashboard(ray_address: str) -> None:
    command = [sys.executable, "-c", SCRAPED, ray_address]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for turn in (1, 2):
            host, port = process.stdout.readline().split()
            found = scraped(f"http://{host}:{port}/metrics", turn)
            process.stdin.write("\n")
            process.stdin.flush()
    names = set(found)
    for name in METRICS:
        assert exported(name) <= {re.sub(r"\{.*", "", line) for line in names}
    units = sum(value for line, value in found.items() if line.startswith("ray_torus_units_total{"))
    assert units >= sum(Counter(UNITS).values())
    (flight,) = [line for line in names if line.startswith("ray_torus_in_flight{") and 'host="g"' in line]
    assert 'system="toy"' in flight
    bounds = {line for line in names if line.startswith("ray_torus_unit_seconds_bucket{")}
    assert len(bounds) == len(SECONDS) + 1


def scraped(url: str, turn: int, patience_s: float = 60.0) -> dict[str, float]:
    """The metrics of torus as Prometheus would read them; Ray hands them on every few seconds."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        with urllib.request.urlopen(url, timeout=10) as answer:
            lines = [line for line in answer.read().decode().splitlines() if line.startswith("ray_torus_")]
        found = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}
        if all(any(name in line for line in found) for name in METRICS):
            return found
        time.sleep(0.5)
    raise AssertionError(f"turn {turn}: not all metrics came to {url}: {sorted(found)}")
