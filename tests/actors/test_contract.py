"""The contract suite over cards that can run here, each in its own environment on Ray: pocket and the embedded heads on
their real weights, the others on tiny random ones. What comes from Hugging Face: tests/actors/hf/test_contract.py;
what needs no environment of its own: tests/contract/test_adapters.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.actors.measures.tiny import HEADS, LAION, with_tiny_weights
from torus_ray.contract import check_host
from torus_ray.engine.opening import Opening, open_executor
from torus_ray.protocol.executor import Executor
from torus_ray.systems import HostSpec, System, load_system

TINY = {tiny.card: tiny for tiny in (*HEADS, LAION)}
REAL = ("embedded", "pocket")


@pytest.mark.ray
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", [*TINY, *REAL])
def test_a_card_keeps_the_contract(name: str, ray_address: str, tmp_path: Path) -> None:
    system = with_tiny_weights(TINY[name], tmp_path) if name in TINY else load_system(name)

    @contextmanager
    def opened(host: HostSpec, _limit_s: float | None) -> Iterator[Executor]:
        one = replace(host, card=host.card.model_copy(update={"replicas": 1}))
        with open_executor(System(system.card, {host.name: one}), Opening(address=ray_address)) as executor:
            executor.start()
            yield executor

    for host in system.hosts.values():
        found = list(check_host(system, host, opened, calls=0, ends_at=float("inf")))
        bad = [f"{f.operation} {f.check}: {f.found}; expected {f.expected}" for f in found if f.verdict == "failed"]
        assert not bad
        assert sum(f.verdict == "ok" for f in found) > 4 * len(host.card.heads)
