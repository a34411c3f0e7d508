"""What a run may cost where a host is paid by the token: told before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torus_ray.bank.load import Bank
from torus_ray.bank.schema import Test
from torus_ray.protocol.graph import Arm, Node, build_graph
from torus_ray.protocol.requests import Protocol
from torus_ray.systems import System

CLIP_S = 10.0
"""Seconds of audio that a question is taken to bring along: what the paper's systems render."""
BYTES_A_TOKEN, LEAST_BYTES_A_TOKEN = 4, 2
TEMPLATE_TOKENS = 64
"""What a service may put around a prompt, at most."""


@dataclass(frozen=True)
class Estimate:
    """calls: of one host, tries again not counted. likely, most: money in the currency of its prices, with short
    replies and with replies as long as they may be; None where its card states no prices."""

    host: str
    calls: int
    likely: float | None
    most: float | None

    def __str__(self) -> str:
        if self.likely is None or self.most is None:
            return f"host {self.host}: {self.calls} paid calls; its card has no operating.prices to reckon with"
        return (
            f"host {self.host}: {self.calls} paid calls, about {self.likely:.2f} in money and at most {self.most:.2f}, "
            f"with clips of {CLIP_S:g} s"
        )


def estimate(system: System, bank: Bank, graph: Sequence[Node]) -> list[Estimate]:
    """One entry for each host that holds a key; what is done already is not taken off."""
    protocol = Protocol(system, bank)
    told = []
    for name, host in system.hosts.items():
        operating = host.card.operating
        if not operating.get("key_env"):
            continue
        asked = [
            (text, heard, host.card.heads[node.operation].settings)
            for node in graph
            if protocol.host(node) is host
            for text, heard in _prompts(node, protocol)
        ]
        prices = operating.get("prices")
        if not asked:
            continue
        if not prices:
            told.append(Estimate(name, len(asked), None, None))
            continue
        reply = prices.get("reply_tokens", 20)
        likely = sum(_cost(prices, len(text.encode()) // BYTES_A_TOKEN, heard, reply) for text, heard, _ in asked)
        most = sum(
            _cost(prices, len(text.encode()) // LEAST_BYTES_A_TOKEN + TEMPLATE_TOKENS, heard, _limit(settings))
            for text, heard, settings in asked
        )
        told.append(Estimate(name, len(asked), likely, max(likely, most)))
    return told


def estimate_run(
    system: System, bank: Bank, tests: Sequence[Test], arms: Sequence[Arm], *, repeats: int
) -> list[Estimate]:
    """The same of a run that has no graph yet; none is made where nothing is paid for."""
    if not any(host.card.operating.get("key_env") for host in system.hosts.values()):
        return []
    graph = build_graph(system=system.name, bank=bank, tests=tests, arms=arms, repeats=repeats)
    return estimate(system, bank, graph)


def _prompts(node: Node, protocol: Protocol) -> Iterator[tuple[str, float]]:
    """The text of each call of a node, and the seconds of audio with it."""
    for unit in node.units:
        if unit.question is not None:
            yield protocol.texts.ask(unit.question.text, protocol.shown(node, unit)), CLIP_S
        elif node.operation == "caption":
            yield protocol.texts.caption_instruction, CLIP_S


def _cost(prices: Mapping[str, Any], words: int, seconds: float, reply: int) -> float:
    """Money; the prices as actors/openai_api has them, for a million tokens."""
    audio = seconds * prices.get("audio_tokens_per_s", 32.0)
    audio_price = prices.get("audio_in", prices["text_in"])
    return float(words * prices["text_in"] + audio * audio_price + reply * prices["text_out"]) / 1e6


def _limit(settings: Mapping[str, Any]) -> int:
    return int(settings.get("max_completion_tokens") or settings.get("max_tokens") or 0)
