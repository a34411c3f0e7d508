"""Unified-IO 2, the PyTorch port: one model over text, images and audio (allenai/unified-io-2.pytorch)."""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

from torus_ray.audio import Clip, mono
from torus_ray.heads import (
    AnswerReply,
    AnswerRequest,
    CaptionReply,
    CaptionRequest,
    GenerateRequest,
    Host,
    Model,
    Refused,
    RenderReply,
)

from .dataclass_shim import hashable_dataclasses
from .loading import find_weights, quiet
from .released import seed_everything, window

RATE_HZ = 16_000
SEGMENT_S = 4.08
SEGMENTS = 5
"""What it hears at most: one segment as audio, four before it as its history."""
TEMPLATES = "Audio_Generation"


class UnifiedIO2(Model):
    """16 kHz mono, always 65,536 samples, 4.10 s (512 tokens).

    top_p, guidance_scale: of the sampled audio. templates: put the prompt into one of the library's wordings, drawn by
    the seed, as its own task runner does. caption_tokens, answer_tokens: the most of each, decoded greedily.
    long_clips: what is beyond 20.4 s is "cut" (noted) or the request "refuse"d.
    """

    def __init__(
        self,
        top_p: float = 0.9,
        guidance_scale: float = 0.0,
        templates: bool = True,
        caption_tokens: int = 64,
        answer_tokens: int = 32,
        long_clips: str = "cut",
    ) -> None:
        if long_clips not in ("cut", "refuse"):
            raise ValueError(f'long_clips is "cut" or "refuse", got {long_clips!r}')
        self._top_p, self._guidance, self._templates = top_p, guidance_scale, templates
        self._caption_tokens, self._answer_tokens, self._long_clips = caption_tokens, answer_tokens, long_clips

    def load(self, host: Host) -> None:
        """Read the weights. Raises loading.Unusable."""
        folder = find_weights(host, "model", "Unified-IO 2 (allenai/uio2-xxl)", "config.json")
        prepared = find_weights(host, "preprocessor", "preprocessor allenai/uio2-preprocessor")
        tokenizer = find_weights(host, "tokenizer", "tokenizer.model of the first LLaMA (a SentencePiece file)")
        import tensorflow
        import torch
        import transformers  # noqa: F401  outside the shim: its dataclasses stay as they are

        # It only prepares inputs, and would take the whole GPU for that.
        tensorflow.config.set_visible_devices([], "GPU")
        torch.set_num_threads(host.threads)
        self._torch = torch
        with hashable_dataclasses(), quiet():
            from uio2 import audio_utils, config
            from uio2.model import UnifiedIOModel
            from uio2.preprocessing import UnifiedIOPreprocessor
            from uio2.runner import TaskRunner

        self._audio, self._config = audio_utils, config
        with quiet():
            net = UnifiedIOModel.from_pretrained(str(folder)).to(host.device).eval()
            reader = UnifiedIOPreprocessor.from_pretrained(str(prepared), tokenizer=str(tokenizer))
            self._runner = TaskRunner(net, reader, use_hifigan_for_audio=True)

    def generate(self, requests: Sequence[GenerateRequest]) -> List[RenderReply]:
        return [self._render(request) for request in requests]

    def _render(self, request: GenerateRequest) -> RenderReply:
        seed_everything(self._torch, request.seed)
        text, notes = request.prompt, ""
        if self._templates:
            # Drawn here and not by `use_prompt`, so that its length counts and the row can name it.
            text = self._runner.prompt.random_prompt(TEMPLATES).replace("{}", text)
            notes = f"told: {text}"
        self._fits(text, "audio")
        with self._torch.no_grad(), quiet():
            wave = self._runner.audio_generation(
                text, use_prompt=False, guidance_scale=self._guidance, num_out=None, top_p=self._top_p
            )
        return request.reply(Clip(wave, RATE_HZ), notes=notes)

    def caption(self, requests: Sequence[CaptionRequest]) -> List[CaptionReply]:
        return [self._caption(request) for request in requests]

    def answer(self, requests: Sequence[AnswerRequest]) -> List[AnswerReply]:
        return [self._answers(request) for request in requests]

    def _caption(self, request: CaptionRequest) -> CaptionReply:
        heard, notes = self._hear(request.clip_bytes)
        return request.reply(self._told(request.instruction, heard, request.seed, self._caption_tokens), notes)

    def _answers(self, request: AnswerRequest) -> AnswerReply:
        heard, notes = (None, "") if request.clip_bytes is None else self._hear(request.clip_bytes)
        return request.reply(
            [self._told(q.prompt, heard, request.seed, self._answer_tokens) for q in request.questions], notes
        )

    def _told(self, text: str, heard: Any, seed: int, max_tokens: int) -> str:
        self._fits(text, "text")
        seed_everything(self._torch, seed)
        with self._torch.no_grad(), quiet():
            example = self._runner.uio2_preprocessor(text_inputs=text, audio_inputs=heard, target_modality="text")
            return str(self._runner.predict_text(example, max_tokens=max_tokens)).strip()

    def _hear(self, clip_bytes: bytes) -> Tuple[Any, str]:
        """Spectrograms (segments, 128, 256), made as `load_audio` makes them but for its call of ffprobe, and a note
        of what was cut."""
        wave = mono(clip_bytes, RATE_HZ)
        length = round(SEGMENTS * SEGMENT_S * RATE_HZ)
        if not len(wave):
            raise Refused("empty", f"no sample is left at {RATE_HZ} Hz")
        notes = ""
        if len(wave) > length:
            most, given = f"{SEGMENTS * SEGMENT_S:g}", f"{len(wave) / RATE_HZ:.2f}"
            if self._long_clips == "refuse":
                raise Refused("clip_too_long", f"{given} s, Unified-IO 2 hears the first {most}")
            notes = f"heard the first {most} of {given} s"
            wave = window(wave, length)
        spectrograms = self._audio.extract_spectrograms_from_audio(
            wave,
            audio_length=len(wave) / RATE_HZ,
            audio_segment_length=self._config.AUDIO_SEGMENT_LENGTH,
            spectrogram_length=self._config.AUDIO_SEGMENT_LENGTH,
        )
        return spectrograms, notes

    def _fits(self, text: str, target: str) -> None:
        """Raises Refused for what the encoder would cut."""
        reader = self._runner.uio2_preprocessor
        count = len(reader.tokenizer.encode(reader.PREFIXES[target] + text)) + 1
        if count > self._config.MAX_TEXT_LEN:
            raise Refused("prompt_too_long", f"{count} tokens, Unified-IO 2 reads {self._config.MAX_TEXT_LEN}")

    def close(self) -> None:
        self._runner: Any = None
