"""The contract over the adapters that need no environment of their own: simulated, and the API heads before a server
that speaks the real protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.contract.batching import Batching
from tests.standin.openai_server import Reply, StandIn
from tests.systems.api import KEY, KEY_ENV
from torus_ray.contract import Finding, check_host
from torus_ray.engine.hosts import HostPlan
from torus_ray.protocol.executor import Executor
from torus_ray.systems import HostSpec, System, load_system


def findings(system: System) -> Mapping[tuple[str, str], Finding]:
    @contextmanager
    def opened(host: HostSpec, _limit_s: float | None) -> Iterator[Executor]:
        executor = Batching(HostPlan(host, str(host.folder), 16))
        executor.start()
        yield executor
        executor.close()

    (host,) = system.hosts.values()
    found = list(check_host(system, host, opened, calls=0, ends_at=float("inf")))
    assert [f"{f.operation} {f.check}: {f.found}" for f in found if f.verdict == "failed"] == []
    return {(f.operation, f.check): f for f in found}


def changed(name: str, class_name: str = "", **card: Any) -> System:
    """A card of the project whose one host is said to be otherwise."""
    system = load_system(name)
    ((host, spec),) = system.hosts.items()
    spec = replace(spec, card=spec.card.model_copy(update=card), class_name=class_name or spec.class_name)
    return System(system.card, {host: spec})


@pytest.mark.parametrize(
    ("class_name", "style"),
    [("Simulated", "batch"), ("SimulatedAsync", "async")],
)
def test_the_simulated_system(class_name: str, style: str) -> None:
    operations = ("generate", "edit", "caption", "answer")
    settings = {"max_batch": dict.fromkeys(operations, 4)} if style == "batch" else {"max_in_flight": 4}
    found = findings(changed("simulated", class_name, style=style, settings=settings))
    for operation in ("generate", "edit"):
        assert found[operation, "order"].found == "4 at once, in order, each equal to the one given alone"
    assert found["answer", "60 s clip"].verdict == "ok"


@pytest.mark.parametrize("name", ["gpt-audio", "gemini-judge", "openai-compatible"])
def test_a_listener_behind_an_api(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(body: dict[str, Any]) -> Reply:
        text = body["messages"][0]["content"][0]["text"]
        return Reply("The answer is D." if "\nD. " in text else "A tone that swells.")

    monkeypatch.setenv(KEY_ENV, KEY)
    with StandIn(said, key=KEY) as server:
        operating = {"base_url": server.base_url, "key_env": KEY_ENV, "in_flight": 4}
        found = findings(changed(name, operating=operating))
    for operation in ("caption", "answer"):
        assert "at once" in found[operation, "order"].found
        assert found[operation, "raises"].found.startswith("a clip that is none came back as failed")
        assert found[operation, "seed"].verdict == "skipped", "the card says that no seed is kept to"
    assert server.most_at_once > 1
