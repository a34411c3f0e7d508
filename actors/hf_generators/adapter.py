"""Text-to-audio models of diffusers and transformers: clips from words, and from a clip and words where the pipeline
takes one.

Stable Audio Open, AudioLDM 2, ACE-Step 1.5 (diffusers), MusicGen, Bark (transformers): one code for all, what differs
is in diffusion.py, tokens.py and the cards. One request at a time: the samplers draw for a batch as a whole, so that
a clip would hang on its neighbours.
"""

from __future__ import annotations

from typing import Any, Callable, ClassVar, List, Mapping, Optional, Sequence, Union

from torus_ray.audio import Clip
from torus_ray.heads import EditRequest, GenerateRequest, Host, Model, Refused, RenderReply

from .checkpoint import find
from .diffusion import AceStep, AudioLDM2, StableAudio
from .kind import Kind
from .tokens import Bark, MusicGen

KINDS: Mapping[str, Callable[..., Kind]] = {
    "StableAudioPipeline": StableAudio,
    "AudioLDM2Pipeline": AudioLDM2,
    "AceStepPipeline": AceStep,
    "musicgen": MusicGen,
    "bark": Bark,
}
"""`_class_name` of a pipeline's model_index.json, or `model_type` of a model's config.json -> what runs it."""
LONG_PROMPT = ("refuse", "cut")
LENGTH_TOLERANCE_S = 0.05
"""An edit that is longer or shorter than its clip by more than this says so; latents are up to 0.04 s apart."""


class Generator(Model):
    """kind: see KINDS. dtype: of the weights, a name in torch. generate, edit: keywords of the pipeline's call, or of
    the model's `generate`, under their own names, and what the kind adds to them.

    long_prompt: `refuse` a prompt beyond the text encoder's limit (Refused `prompt_too_long`), or let the model `cut`
    it, which the row notes.
    """

    batch_invariant: ClassVar[bool] = True

    def __init__(
        self,
        kind: str,
        dtype: str = "float16",
        long_prompt: str = "refuse",
        generate: Optional[Mapping[str, Any]] = None,
        edit: Optional[Mapping[str, Any]] = None,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind is one of {', '.join(KINDS)}, got {kind!r}")
        if long_prompt not in LONG_PROMPT:
            raise ValueError(f"long_prompt is one of {', '.join(LONG_PROMPT)}, got {long_prompt!r}")
        self._name, self._dtype, self._long_prompt = kind, dtype, long_prompt
        self._generate, self._edit = dict(generate or {}), dict(edit or {})

    def load(self, host: Host) -> None:
        """Read the folder of the checkpoint. Raises loading.Unusable; ValueError for a setting that the model's
        call does not have."""
        import torch

        torch.set_num_threads(host.threads)
        self._torch, self._device = torch, host.device
        folder = find(host, self._name)
        self._kind = KINDS[self._name](torch, folder, getattr(torch, self._dtype), host.device)
        self._kind.check(self._generate)
        if self._edit:
            self._kind.check_edit(self._edit)

    def close(self) -> None:
        del self._kind
        if self._device == "cuda":
            self._torch.cuda.empty_cache()

    def generate(self, requests: Sequence[GenerateRequest]) -> List[RenderReply]:
        return [self._render(request, None, self._generate) for request in requests]

    def edit(self, requests: Sequence[EditRequest]) -> List[RenderReply]:
        return [self._render(request, request.clip, self._edit) for request in requests]

    def _render(
        self, request: Union[GenerateRequest, EditRequest], source: Optional[Clip], settings: Mapping[str, Any]
    ) -> RenderReply:
        text = request.prompt if request.words is None else request.words
        tokens, limit = self._kind.length(text, settings)
        if tokens > limit and self._long_prompt == "refuse":
            raise Refused("prompt_too_long", f"{tokens} tokens, the text encoder takes {limit}")
        # The pipelines draw from the generator they are given and, for some of it, from torch's own.
        self._torch.manual_seed(request.seed)
        with self._torch.inference_mode():
            if source is None:
                clip, hit_limit = self._kind.generate(text, request.seed, settings)
            else:
                clip, hit_limit = self._kind.edit(text, source, request.seed, settings)
        notes = [f"prompt of {tokens} tokens cut to {limit}"] if tokens > limit else []
        return request.reply(clip, hit_limit=hit_limit, notes="; ".join(notes + _changed(source, clip)))


def _changed(source: Optional[Clip], clip: Clip) -> List[str]:
    """How an edit took its clip, where that was not as it came."""
    if source is None:
        return []
    rate = [f"clip resampled from {source.rate_hz} to {clip.rate_hz} Hz"] if source.rate_hz != clip.rate_hz else []
    apart = abs(source.duration_s - clip.duration_s) > LENGTH_TOLERANCE_S
    return rate + ([f"clip of {source.duration_s:.2f} s taken as {clip.duration_s:.2f} s"] if apart else [])
