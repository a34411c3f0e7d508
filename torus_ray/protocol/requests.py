"""What a node asks of a head, once its parents' rows are there: the request exactly as sent, its key, or why there is
none.

Keys (DESIGN 4): sha256 of {operation, the request with its clip by hash, head fingerprint, repeat}. No path, host,
time or bank hash is in it, so equal work is found again in any run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torus_ray.audio import encode, silence
from torus_ray.bank.digest import sha256_of
from torus_ray.bank.load import Bank
from torus_ray.bank.order import shown_options
from torus_ray.bank.schema import STAGES
from torus_ray.heads import (
    AnswerRequest,
    CaptionRequest,
    EditRequest,
    GenerateRequest,
    MeasureRequest,
    Question,
    Request,
)
from torus_ray.protocol.graph import Node, Unit
from torus_ray.protocol.texts import SILENT_CONTROL_S, Texts, texts_of
from torus_ray.protocol.words import words_to_speak
from torus_ray.systems import HostSpec, System

Row = Mapping[str, Any]

SILENCE = encode(silence(SILENT_CONTROL_S))
"""The muted control's clip."""
MEASURING_SEED = 0
"""Of heads that draw while they measure: the same for every clip of every run."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One unit's own request: `content` is what the head gets (clip by hash), `key` its identity."""

    unit: Unit
    key: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a node asks: one call to `host`, about the clip `clip` (an id; None where it hears nothing)."""

    host: HostSpec
    operation: str
    clip: str | None
    asks: tuple[Ask, ...]
    caption: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a node asks nothing: `refused` or `no_clip`, with a reason."""

    status: str
    reason: str


class Protocol:
    """Turns nodes into plans for one system on one bank."""

    def __init__(self, system: System, bank: Bank) -> None:
        self.system = system
        self.bank = bank
        self.texts: Texts = texts_of(**system.card.texts.model_dump())
        self._fingerprints = {
            (host.name, operation): host.head_fingerprint(operation)
            for host in system.hosts.values()
            for operation in host.card.heads
        }

    @property
    def fingerprints(self) -> frozenset[str]:
        """Of all heads in use."""
        return frozenset(self._fingerprints.values())

    def fingerprint(self, host: HostSpec, operation: str) -> str:
        return self._fingerprints[host.name, operation]

    def resolve(self, node: Node, parents: Sequence[Row]) -> Plan | Verdict:
        """The plan of a node whose parents left `parents` (their current rows, in the order of node.parents)."""
        for row in parents:
            if row["status"] != "ok":
                return Verdict("no_clip", _cause(row))
        host = self.host(node)
        if host is None:
            return Verdict("refused", "no_capability")
        if node.kind == "measure":
            return self._measure(node, host, str(parents[0]["clip"]))
        if node.kind == "render":
            return self._render(node, host, parents)
        if node.kind == "caption":
            clip = str(parents[0]["clip"])
            content = {"instruction": self.texts.caption_instruction, "clip": clip}
            return Plan(host, "caption", clip, (self._ask(node, host, content),))
        return self._answer(node, host, parents)

    def host(self, node: Node) -> HostSpec | None:
        """Who serves a node; None where the system has nobody for it."""
        if node.measure is not None:
            return self.system.measures.get(node.measure)
        # Understanding is routed by the type of the test whose clip is heard, rendering by the test's own.
        return self.system.routes.get((node.operation, node.source.audio_type))

    def _measure(self, node: Node, host: HostSpec, clip: str) -> Plan:
        # Neither arm nor seed is in it: a clip is measured once, whoever made it.
        content = {"measure": node.measure, "clip": clip, "seed": MEASURING_SEED}
        return Plan(host, "measure", clip, (Ask(node.units[0], self._key(node, host, content), content),))

    def _render(self, node: Node, host: HostSpec, parents: Sequence[Row]) -> Plan | Verdict:
        prompt = node.test.stage(node.stage).prompt
        caption = str(parents[1]["text"]) if len(parents) > 1 else None
        words = None
        if host.card.heads[node.operation].words:
            words = self._words(node, caption)
            if words is None:
                return Verdict("refused", "no_words")
        content: dict[str, Any] = {
            "prompt": prompt if caption is None else self.texts.edit_by_caption(caption, prompt),
            "audio_type": node.test.audio_type,
            "words": words,
            "bits": self.system.card.bits,
        }
        clip = None
        if node.operation == "edit":
            clip = content["clip"] = str(parents[0]["clip"])
        return Plan(host, node.operation, clip, (self._ask(node, host, content),), caption)

    def _words(self, node: Node, caption: str | None) -> str | None:
        """Words to speak at a stage; in a native arm those of the last stage before that quoted any."""
        before = None
        if node.arm.edit_mode == "native":
            for stage in STAGES[: STAGES.index(node.stage)]:
                before = words_to_speak(prompt=node.test.stage(stage).prompt, before=before, caption=None)
        return words_to_speak(prompt=node.test.stage(node.stage).prompt, before=before, caption=caption)

    def _answer(self, node: Node, host: HostSpec, parents: Sequence[Row]) -> Plan:
        clip = str(parents[0]["clip"]) if parents else SILENCE.id
        # The questions of a clip share one call, so one seed: derived from the clip alone.
        seed = self._seed(node, {"clip": clip})
        asks = []
        for unit in node.units:
            question = unit.question
            assert question is not None
            options = self.shown(node, unit)
            content = {
                "question": question.text,
                "options": list(options),
                "prompt": self.texts.ask(question.text, options),
                "clip": clip,
                "seed": seed,
            }
            asks.append(Ask(unit, self._key(node, host, content), content))
        return Plan(host, "answer", clip, tuple(asks))

    def shown(self, node: Node, unit: Unit) -> tuple[str, ...]:
        """The options of a question in the order shown."""
        assert unit.question is not None
        item = f"{node.test.id}.{node.stage}.{unit.question.id}"
        return shown_options(seed=self.bank.card.order_seed, item=item, options=unit.question.options, shift=node.shift)

    def _ask(self, node: Node, host: HostSpec, content: Mapping[str, Any]) -> Ask:
        content = {**content, "seed": self._seed(node, content)}
        return Ask(node.units[0], self._key(node, host, content), content)

    def _seed(self, node: Node, seeded_by: Mapping[str, Any]) -> int:
        if self.system.card.seeds == "fixed":
            return node.arm.seed + node.repeat
        origin = {
            "request": seeded_by,
            "stage": node.stage,
            "purpose": node.operation,
            "seed": node.arm.seed,
            "repeat": node.repeat,
        }
        return int(sha256_of(origin)[:8], 16) & 0x7FFFFFFF

    def _key(self, node: Node, host: HostSpec, content: Mapping[str, Any]) -> str:
        return sha256_of(
            {
                "operation": node.operation,
                "request": content,
                "head": self.fingerprint(host, node.operation),
                "repeat": node.repeat,
            }
        )

    def request(self, plan: Plan, asks: Sequence[Ask], clip_bytes: bytes | None, request_id: str) -> Request:
        """The request of those units of a plan that nobody has answered yet."""
        content = asks[0].content
        seed = int(content["seed"])
        if plan.operation == "answer":
            questions = tuple(
                Question(a.content["question"], tuple(a.content["options"]), a.content["prompt"]) for a in asks
            )
            return AnswerRequest(request_id, questions, clip_bytes, seed)
        if plan.operation == "caption":
            assert clip_bytes is not None
            return CaptionRequest(request_id, content["instruction"], clip_bytes, seed)
        if plan.operation == "measure":
            assert clip_bytes is not None
            return MeasureRequest(request_id, content["measure"], clip_bytes, seed)
        prompt, audio_type, words = content["prompt"], content["audio_type"], content["words"]
        if plan.operation == "edit":
            assert clip_bytes is not None
            return EditRequest(request_id, prompt, clip_bytes, audio_type, seed, words)
        return GenerateRequest(request_id, prompt, audio_type, seed, words)


def _cause(row: Row) -> str:
    """Why there is no clip, for those that hang on it: the first cause, carried along."""
    reason = str(row["reason"] or row["status"])
    if row["status"] == "no_clip":
        return reason
    return f"{row['status']}: {reason}" if row["reason"] else str(row["status"])
