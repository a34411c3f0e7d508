"""Ears: from a clip to evidence, a caption, and answers. Nothing but the samples goes in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits

from torus_ray.audio import Clip, mono
from torus_ray.heads import Question

from .after import bare_background
from .answer import choose
from .describe import describe
from .events import Scene, scene_of
from .music import NOTES_RATE_HZ, Music, NoteTranscriber, music_of
from .signal import RATE_HZ, Array, pitch_track
from .space import Space, space_of
from .speech import Recognizer, Speech, VoiceDetector, spans
from .tags import Tagger, Tags
from .text import Embedder
from .voice import Voice, voice_of

SPEECH_TAGS = (
    "Speech",
    "Child speech, kid speaking",
    "Narration, monologue",
    "Conversation",
    "Whispering",
    "Shout",
    "Speech synthesizer",
)


@dataclass(frozen=True)
class Models:
    """Everything loaded, each once; the recogniser and transcriber only when first needed."""

    weights: Mapping[str, str]
    threads: int

    @cached_property
    def tagger(self) -> Tagger:
        return Tagger(self.weights, self.threads)

    @cached_property
    def detector(self) -> VoiceDetector:
        return VoiceDetector(self.weights, self.threads)

    @cached_property
    def recognizer(self) -> Recognizer:
        return Recognizer(self.weights, self.threads)

    @cached_property
    def transcriber(self) -> NoteTranscriber:
        return NoteTranscriber(self.weights, self.threads)

    @cached_property
    def embedder(self) -> Embedder:
        return Embedder(self.weights, self.threads)

    @cached_property
    def label_vectors(self) -> Array:
        """MiniLM vectors of the 521 class names."""
        return self.embedder(self.tagger.labels)


@dataclass(frozen=True)
class Evidence:
    """What was heard in one clip. Each part is computed when first asked for, then kept."""

    clip: Clip
    models: Models = field(repr=False)

    @cached_property
    def wave(self) -> Array:
        """One channel at 16 kHz."""
        return np.asarray(mono(self.clip, RATE_HZ), dtype=np.float32)

    @cached_property
    def scene(self) -> Scene:
        return scene_of(self.wave)

    @cached_property
    def tags(self) -> Tags:
        """Tags of the clip brought to a peak of 0.5, so that a quiet clip is not tagged as silence."""
        peak = float(np.abs(self.wave).max(initial=0.0))
        return self.models.tagger(self.wave * (0.5 / peak) if peak > 1e-4 else self.wave)

    @cached_property
    def pitch(self) -> tuple[Array, Array]:
        return pitch_track(self.wave)

    @cached_property
    def speech(self) -> Speech:
        """Recognised only where both the detector and the tagger allow for speech."""
        if self.scene.silent:
            return Speech("", (), (), 0.0)
        probability = self.models.detector(self.wave)
        found = spans(probability)
        share = float((probability > 0.5).mean())
        _, tagged = self.tags.of(SPEECH_TAGS)
        spoken = sum(b - a for a, b in found)
        if not found or (tagged < 0.2 and spoken < 0.5) or (tagged < 0.05 and share < 0.4):
            return Speech("", (), found, share)
        text, words = self.models.recognizer(self.wave, found)
        return Speech(text, words, found, share)

    @cached_property
    def voice(self) -> Voice:
        return voice_of(self.speech, self.scene, *self.pitch)

    @cached_property
    def backdrop(self) -> Evidence | None:
        """What is heard between the words, as a clip of its own; None where nothing is."""
        return bare_background(self)

    @cached_property
    def space(self) -> Space:
        return space_of(self.clip, self.scene)

    @cached_property
    def music(self) -> Music:
        notes = () if self.scene.silent else self.models.transcriber(mono(self.clip, NOTES_RATE_HZ))
        return music_of(self.wave, self.scene, notes)

    @cached_property
    def kind(self) -> str:
        """`silence`, `speech`, `music` or `sound`: what the clip mostly is."""
        if self.scene.silent:
            return "silence"
        musical, _ = self.tags.of(("Music", "Musical instrument"))
        spoken, _ = self.tags.of(SPEECH_TAGS)
        if self.speech.present and (self.speech.voiced_share > 0.25 or spoken > musical):
            return "speech"
        return "music" if musical > 0.4 else "sound"


class Ears:
    """The listening half of `pocket`.

    weights: path by weight name (keys of files.PACKAGE_FILES); what is not named is looked for in its package.
    threads: CPU threads of every network. Raises FileNotFoundError where a weight file is missing.
    """

    def __init__(self, weights: Mapping[str, str] | None = None, threads: int = 1) -> None:
        self.models = Models(dict(weights or {}), threads)

    def load(self) -> None:
        """Load every network now, so that the first clip does not pay for it."""
        for name in ("tagger", "detector", "recognizer", "transcriber", "embedder", "label_vectors"):
            getattr(self.models, name)

    def hear(self, clip: Clip) -> Evidence:
        """Evidence of a clip; its parts are computed as questions need them."""
        return Evidence(clip, self.models)

    def caption(self, clip: Clip | Evidence, instruction: str = "") -> str:
        """One paragraph of plain English from which a generator could render the clip again."""
        with threadpool_limits(self.models.threads):
            return describe(self._evidence(clip))

    def answer(self, clip: Clip | Evidence, questions: Sequence[Question]) -> list[str]:
        """A bare letter for each question, from the clip alone."""
        with threadpool_limits(self.models.threads):
            evidence = self._evidence(clip)
            return [choose(evidence, question) for question in questions]

    def _evidence(self, clip: Clip | Evidence) -> Evidence:
        return clip if isinstance(clip, Evidence) else self.hear(clip)
