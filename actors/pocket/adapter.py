"""pocket: the embedded default system, real small models from PyPI packages alone, on one CPU thread.

Generation: Kokoro-82M or Piper for speech, a General MIDI soundfont for music, procedural sound effects. Editing works
on the audio. Understanding: Whisper, YAMNet, Basic Pitch and signal measures. Each model loads at its first use, so a
host that only renders never pays for the ears, and the other way round.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from torus_ray.audio import decode, silence
from torus_ray.heads import (
    AnswerReply,
    AnswerRequest,
    CaptionReply,
    CaptionRequest,
    EditRequest,
    GenerateRequest,
    Host,
    Model,
    Refused,
    RenderReply,
)

if TYPE_CHECKING:
    from .ears.listen import Ears, Evidence

CLIPS_REMEMBERED = 4


class Pocket(Model):
    """All four abilities for speech, sound and music. Same request, same bytes: nothing is drawn but from the request's
    own seed."""

    max_batch: ClassVar[Mapping[str, int]] = {"generate": 1, "edit": 1, "caption": 1, "answer": 1}
    batch_invariant: ClassVar[bool] = True
    capabilities: ClassVar[Mapping[str, Sequence[str]]] = {
        "generate": ("speech", "sound", "music"),
        "edit": ("speech", "sound", "music"),
    }

    def __init__(self) -> None:
        self._host = Host()
        self._ears: Ears | None = None
        self._evidence: OrderedDict[bytes, Evidence] = OrderedDict()

    def load(self, host: Host) -> None:
        """Keep what the host grants; no weights are read before they are needed. Raises weights.MissingWeights without
        a single voice."""
        from . import weights

        self._host = host
        if not weights.available("speech.kokoro.voices") and not weights.available("speech.piper"):
            weights.path("speech.kokoro.voices")

    def generate(self, requests: Sequence[GenerateRequest]) -> list[RenderReply]:
        from .scene import render_scene

        replies = []
        for request in requests:
            if not re.search(r"\w", request.prompt):
                raise Refused("empty_prompt", f"the prompt of {request.id} has no words")
            clip = render_scene(request.prompt, request.audio_type, request.seed, request.words)
            replies.append(request.reply(clip))
        return replies

    def edit(self, requests: Sequence[EditRequest]) -> list[RenderReply]:
        from .edit import apply_edit

        return [r.reply(apply_edit(r.clip, r.prompt, r.audio_type, r.seed)) for r in requests]

    def caption(self, requests: Sequence[CaptionRequest]) -> list[CaptionReply]:
        ears = self._listening()
        return [r.reply(ears.caption(self._heard(r.clip_bytes), r.instruction)) for r in requests]

    def answer(self, requests: Sequence[AnswerRequest]) -> list[AnswerReply]:
        ears = self._listening()
        return [r.reply(ears.answer(self._heard(r.clip_bytes), r.questions)) for r in requests]

    def close(self) -> None:
        self._ears = None
        self._evidence.clear()

    def _heard(self, data: bytes | None) -> Evidence:
        """What the clip gave, kept for a while: its caption and its questions come close together.

        No clip is silence.
        """
        key = hashlib.sha256(data or b"").digest()
        if key not in self._evidence:
            self._evidence[key] = self._listening().hear(decode(data) if data else silence())
        self._evidence.move_to_end(key)
        while len(self._evidence) > CLIPS_REMEMBERED:
            self._evidence.popitem(last=False)
        return self._evidence[key]

    def _listening(self) -> Ears:
        if self._ears is None:
            from .ears.listen import Ears

            self._ears = Ears(self._host.weights, self._host.threads)
        return self._ears
