"""The contract finds what a model breaks, each fault by its own check, and nothing in a model that keeps it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.batching import Batching
from torus_ray.contract import Finding, OutOfTime, check_host
from torus_ray.contract.material import Head, tone
from torus_ray.engine.hosts import HostPlan
from torus_ray.protocol.executor import Executor, Outcome
from torus_ray.systems import HeadCard, HostSpec, System, TextsCard, read_card

ODD = Path(__file__).parent / "odd.py"
HEADS = "generate = {}\nedit = {}\ncaption = {}\nanswer = {}\n"


def card(folder: Path, *, fault: str = "", heads: str = HEADS, adapter: str = f"{ODD}:Odd") -> System:
    path = folder / "odd.system.toml"
    settings = f'settings = {{ fault = "{fault}" }}\n' if adapter.endswith(":Odd") else ""
    path.write_text(
        f'name = "odd"\ntitle = "Odd"\n[hosts.main]\nadapter = "{adapter}"\n{settings}[hosts.main.heads]\n{heads}'
    )
    return read_card(path)


def findings(
    system: System, *, calls: int = 0, ends_at: float = float("inf"), kind: type[Batching] = Batching
) -> list[Finding]:
    @contextmanager
    def opened(host: HostSpec, limit_s: float | None) -> Iterator[Executor]:
        executor = kind(HostPlan(host, str(host.folder), 16))
        executor.start()
        yield executor
        executor.close()

    (host,) = system.hosts.values()
    return list(check_host(system, host, opened, calls=calls, ends_at=ends_at))


def failed(found: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.operation, finding.check) for finding in found if finding.verdict == "failed"]


def test_a_model_that_keeps_the_contract(tmp_path: Path) -> None:
    found = findings(card(tmp_path), calls=40)
    assert failed(found) == []
    told = {(f.operation, f.check): f for f in found}
    assert told["generate", "order"].found == "4 at once, in order, each equal to the one given alone"
    assert told["edit", "order"].verdict == "skipped"
    assert "failed: error" in told["answer", "raises"].found
    assert "40 calls" in told["", "memory"].found
    assert ("generate", "silence") not in told
    # The model runs in this very process, which cannot be stopped under its own request.
    (last,) = [f for f in found if f.check == "hangs"]
    assert last.verdict == "skipped"


RAISING = ("batch raises", "out of order", "one rate", "no short clips", "no long clips", "broken for ever")


@pytest.mark.parametrize(
    ("fault", "operation", "check"),
    [
        ("silent", "generate", "shape"),
        ("too short", "generate", "shape"),
        ("too loud", "generate", "shape"),
        ("out of order", "generate", "order"),
        ("batch raises", "generate", "order"),
        ("depends on the batch", "generate", "order"),
        ("deaf to the seed", "generate", "seed"),
        ("draws for itself", "generate", "seed"),
        ("one rate", "edit", "rates"),
        ("divides by the peak", "edit", "silence"),
        ("no short clips", "edit", "0.1 s clip"),
        ("no long clips", "edit", "60 s clip"),
        ("speechless", "caption", "shape"),
        ("no letter", "answer", "shape"),
        ("broken for ever", "answer", "raises"),
    ],
)
def test_a_fault_is_found_by_its_check(tmp_path: Path, fault: str, operation: str, check: str) -> None:
    found = findings(card(tmp_path, fault=fault, heads=f"{operation} = {{}}\n"))
    assert (operation, check) in failed(found)
    (bad, *_) = [finding for finding in found if finding.verdict == "failed"]
    assert bad.found
    assert bad.expected
    assert bad.mend
    assert ("Traceback" in bad.detail) == (fault in RAISING)


def test_what_fails_at_a_plain_request_is_asked_no_more(tmp_path: Path) -> None:
    found = findings(card(tmp_path, fault="speechless"))
    others = [f for f in found if f.operation == "caption" and f.check != "shape"]
    assert others
    assert {finding.verdict for finding in others} == {"skipped"}


def test_a_leak_is_found(tmp_path: Path) -> None:
    heads = "caption = {}\n"
    assert failed(findings(card(tmp_path, fault="leaks", heads=heads), calls=40)) == [("", "memory")]


def test_a_clip_may_be_declined_with_a_reason(tmp_path: Path) -> None:
    found = findings(card(tmp_path, fault="declines long clips"))
    assert failed(found) == []
    (long,) = [f for f in found if (f.operation, f.check) == ("edit", "60 s clip")]
    assert "clip_too_long" in long.found


def test_no_seed_is_asked_for_where_the_card_says_that_none_is_taken(tmp_path: Path) -> None:
    found = findings(card(tmp_path, fault="draws for itself", heads="generate = { seeded = false }\n"))
    assert failed(found) == []


def test_only_the_types_of_the_card_are_asked(tmp_path: Path) -> None:
    found = findings(card(tmp_path, heads='generate = { audio_types = ["music"] }\n'))
    (shape,) = [f for f in found if f.check == "shape"]
    assert shape.found.startswith("music: ")
    assert "speech" not in shape.found


def test_the_time_for_everything_ends(tmp_path: Path) -> None:
    class Never(Batching):
        def collect(self, timeout_s: float) -> list[Outcome]:
            return []

    with pytest.raises(OutOfTime, match="before the time was up"):
        findings(card(tmp_path), calls=100, ends_at=time.monotonic(), kind=Never)


def test_a_speaking_head_is_given_words() -> None:
    head = Head("generate", HeadCard(words=True, audio_types=("speech",)), TextsCard())
    request = head.request()
    assert request.words == "the train leaves at nine in the morning"  # type: ignore[union-attr]
    assert Head("generate", HeadCard(), TextsCard()).request("speech").words is None  # type: ignore[union-attr]


def test_the_clips_are_the_same_every_time() -> None:
    tone.cache_clear()
    first = tone(0)
    tone.cache_clear()
    assert tone(0) == first
    assert tone(1) != first
