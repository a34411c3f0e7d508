"""The contract suite over every card of the two folders, its weights tiny and random, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.actors.hf.tiny_generators import GENERATORS
from tests.actors.hf.tiny_listeners import LISTENERS, SPECIAL, VOCABULARY, WORDS
from tests.actors.hf.tiny_omni import OMNI
from tests.actors.serving import ACTORS
from tests.contract.batching import Batching
from torus_ray.contract import check_host
from torus_ray.engine.hosts import HostPlan
from torus_ray.systems import CARD_SUFFIX, HostSpec, read_card

CARDS = sorted(
    path for folder in ("hf_listeners", "hf_generators") for path in (ACTORS / folder).glob(f"*{CARD_SUFFIX}")
)
MAKE = {**GENERATORS, **LISTENERS, **OMNI}
STEPS = {"num_inference_steps": 2}
QUICK: dict[str, dict[str, Any]] = {
    "StableAudioPipeline": {"audio_end_in_s": 0.2, **STEPS},
    "AceStepPipeline": {"audio_duration": 0.4, **STEPS},
    "AudioLDM2Pipeline": {"audio_length_in_s": 0.128, "max_new_tokens": 8, **STEPS},
    "musicgen": {"max_new_tokens": 20},
    "bark": {"semantic_max_new_tokens": 20, "voice": ""},
    "qwen2_5_omni": {"thinker_max_new_tokens": 6, "talker_max_new_tokens": 12},
    "qwen3_omni_moe": {"thinker_max_new_tokens": 6, "talker_max_new_tokens": 12},
}
"""Kind -> what makes its `generate` short. Everything else is as the card has it."""


def letters_only(kind: str) -> dict[str, Any]:
    """An answer that is one letter, which letter is the weights' doing."""
    first = len(SPECIAL) + (7 if kind in OMNI else 3) + WORDS.index("A")
    return {"max_new_tokens": 1, "suppress_tokens": [*range(first), *range(first + 6, VOCABULARY)]}


def tiny(card: Path, weights: Path) -> HostSpec:
    """The card's host, its weights and sizes replaced."""
    (host,) = read_card(card).hosts.values()
    kind = host.card.settings["kind"]
    quick = {
        "generate": QUICK.get(kind, {}),
        "edit": STEPS,
        "answer": letters_only(kind),
        "caption": {"max_new_tokens": 4, "min_new_tokens": 4, "suppress_tokens": [*range(12), *range(25, VOCABULARY)]},
    }
    heads = {
        operation: head.model_copy(update={"settings": {**head.settings, **quick[operation]}})
        for operation, head in host.card.heads.items()
    }
    long_prompt = {"long_prompt": "cut"} if kind in GENERATORS else {}
    update = {
        "settings": {**host.card.settings, "dtype": "float32", **long_prompt},
        "weights": {"model": host.card.weights["model"].model_copy(update={"path": str(MAKE[kind](weights))})},
        "heads": heads,
        "num_gpus": 0.0,
    }
    return replace(host, card=host.card.model_copy(update=update))


@contextmanager
def opened(host: HostSpec, _limit_s: float | None) -> Iterator[Batching]:
    executor = Batching(HostPlan(host, str(host.folder), 16))
    executor.start()
    try:
        yield executor
    finally:
        executor.close()


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name.removesuffix(CARD_SUFFIX))
def test_every_card_keeps_the_contract(card: Path, tmp_path: Path) -> None:
    found = list(check_host(read_card(card), tiny(card, tmp_path), opened, calls=0, ends_at=float("inf")))
    bad = [f"{f.operation} {f.check}: {f.found}; expected {f.expected}" for f in found if f.verdict == "failed"]
    assert not bad
    assert sum(f.verdict == "ok" for f in found) > 4
