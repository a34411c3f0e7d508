"""Audio language models of transformers that hear a clip and answer in text; Qwen-Omni speaks as well.

Qwen2-Audio, Audio Flamingo 3, Music Flamingo and Audio-Flamingo-Next, Qwen2.5-Omni, Qwen3-Omni: one code for all, what
differs is in families.py and in the cards.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

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

from .checkpoint import find
from .families import FAMILIES, RATE_HZ
from .loading import Unusable

LONGER = ("refuse", "crop")
THINKING = re.compile(r"^.*</think>|<think>.*$", re.DOTALL)
"""What a thinking model says before what it has to say, or all of it where it was cut off."""


class Listener(Model):
    """kind: `model_type` of the checkpoint. dtype: of the weights, a name in torch. system: the system turn, "" for the
    chat template's own.

    longest_s: the longest clip heard, in seconds, where it is less than the family's; longer: `refuse` one beyond it
    (Refused `clip_too_long`) or `crop` it to its beginning. answer, caption: keywords of transformers' `generate`
    (max_new_tokens, do_sample, ...): greedy where nothing is said; a draw is seeded by the request.
    """

    def __init__(
        self,
        kind: str,
        dtype: str = "bfloat16",
        system: str = "",
        longest_s: float = 0.0,
        longer: str = "refuse",
        answer: Optional[Mapping[str, Any]] = None,
        caption: Optional[Mapping[str, Any]] = None,
    ) -> None:
        if kind not in FAMILIES:
            raise ValueError(f"kind is one of {', '.join(FAMILIES)}, got {kind!r}")
        if longer not in LONGER:
            raise ValueError(f"longer is one of {', '.join(LONGER)}, got {longer!r}")
        self._kind, self._family = kind, FAMILIES[kind]
        self._dtype, self._system, self._longer = dtype, system, longer
        self._longest_s = min(longest_s or self._family.longest_s, self._family.longest_s)
        self._say: Dict[str, Dict[str, Any]] = {
            "answer": {"do_sample": False, **(answer or {})},
            "caption": {"do_sample": False, **(caption or {})},
        }

    def load(self, host: Host) -> None:
        """Read the folder of the checkpoint and of its processor. Raises loading.Unusable."""
        self._load(host, self._family.model)
        self._ears = self._net

    def _load(self, host: Host, model: str) -> None:
        import torch
        import transformers

        torch.set_num_threads(host.threads)
        self._torch, self._device = torch, host.device
        folder = str(find(host, self._kind))
        self._processor = getattr(transformers, self._family.processor).from_pretrained(folder, local_files_only=True)
        if not self._processor.chat_template:
            raise Unusable(
                "the processor has no chat template",
                folder,
                "chat_template.jinja or a chat_template in processor_config.json or tokenizer_config.json",
                "fetch the whole repository of an instruction-tuned checkpoint",
            )
        net = getattr(transformers, model).from_pretrained(
            folder, local_files_only=True, dtype=getattr(torch, self._dtype)
        )
        self._net = net.eval().to(host.device)

    def observe(self) -> Mapping[str, Any]:
        """What generation takes from the checkpoint where the card says nothing."""
        kept = ("do_sample", "num_beams", "repetition_penalty", "no_repeat_ngram_size", "max_new_tokens")
        config = self._ears.generation_config
        return {"generation_config": {name: getattr(config, name, None) for name in kept}}

    def close(self) -> None:
        self._net = self._ears = self._processor = None
        if self._device == "cuda":
            self._torch.cuda.empty_cache()

    def answer(self, requests: Sequence[AnswerRequest]) -> List[AnswerReply]:
        """Each question a conversation of its own; those of one clip go through the model together. Raw replies:
        reading a letter, thinking apart, is the engine's."""
        replies = []
        for request in requests:
            wave, notes = self._hear(request.clip_bytes)
            texts = self._ask("answer", [question.prompt for question in request.questions], wave, request.seed)
            replies.append(request.reply(texts, notes=notes))
        return replies

    def caption(self, requests: Sequence[CaptionRequest]) -> List[CaptionReply]:
        """What the model says, its thinking taken away: a caption is sent on as a prompt."""
        replies = []
        for request in requests:
            wave, notes = self._hear(request.clip_bytes)
            (text,) = self._ask("caption", [request.instruction], wave, request.seed)
            replies.append(request.reply(THINKING.sub("", text).strip(), notes=notes))
        return replies

    def _hear(self, clip: Optional[bytes]) -> Tuple[Optional[Any], str]:
        """float32 (frames,), one channel at 16 kHz, None where there is no clip; and what was done to it. Raises
        Refused."""
        if clip is None:
            return None, ""
        wave = mono(clip, RATE_HZ)
        most, seconds = round(self._longest_s * RATE_HZ), len(wave) / RATE_HZ
        if len(wave) <= most:
            return wave, ""
        if self._longer == "refuse":
            raise Refused("clip_too_long", f"{seconds:.1f} s, this listener hears {self._longest_s:g} s")
        return wave[:most], f"the first {self._longest_s:g} s heard of {seconds:.1f} s"

    def _ask(self, purpose: str, texts: Sequence[str], wave: Optional[Any], seed: int) -> List[str]:
        """What the model says to each text about one clip."""
        inputs = self._inputs([self._conversation(self._system, text, wave is not None) for text in texts], wave)
        self._torch.manual_seed(seed)
        with self._torch.inference_mode():
            said = self._ears.generate(**inputs, **self._say[purpose])
        new = said[:, inputs["input_ids"].shape[1] :]
        return [text.strip() for text in self._processor.batch_decode(new, skip_special_tokens=True)]

    def _conversation(self, system: str, text: str, heard: bool) -> List[Dict[str, Any]]:
        content = [{"type": "text", "text": text}]
        if heard:
            content.insert(0 if self._family.audio_first else 1, {"type": "audio", "audio": ""})
        first = [{"role": "system", "content": [{"type": "text", "text": system}]}] if system else []
        return [*first, {"role": "user", "content": content}]

    def _inputs(self, conversations: Sequence[List[Dict[str, Any]]], wave: Optional[Any]) -> Any:
        texts = [
            self._processor.apply_chat_template(one, add_generation_prompt=True, tokenize=False)
            for one in conversations
        ]
        # Padding is the text's alone: a clip's features have the length that the processor gives them.
        settings = {"text_kwargs": {"padding": True, "padding_side": "left"}, "return_tensors": "pt"}
        audio = {} if wave is None else {"audio": [wave] * len(texts), "audio_kwargs": {"sampling_rate": RATE_HZ}}
        inputs = self._processor(text=texts, **audio, **settings).to(self._device)
        # Features come as float32, whatever the weights are.
        floats = {name: value.to(self._net.dtype) for name, value in inputs.items() if value.is_floating_point()}
        return {**inputs, **floats}


class SpeakingListener(Listener):
    """The same for Qwen-Omni with its voice: `generate` says the words of a request aloud.

    generate: keywords of the model's own `generate` (speaker, thinker_max_new_tokens, talker_max_new_tokens, ...);
    persona: the system turn without which the voice breaks (the model card); say: what it is asked, with {words}.
    """

    def __init__(
        self,
        kind: str,
        persona: str,
        say: str,
        generate: Optional[Mapping[str, Any]] = None,
        **listening: Any,
    ) -> None:
        super().__init__(kind, **listening)
        if not self._family.speaker:
            raise ValueError(
                f"{kind} has no voice; those that have: " + ", ".join(k for k, f in FAMILIES.items() if f.speaker)
            )
        if "{words}" not in say:
            raise ValueError(f"say has a place {{words}} for the words to say, got {say!r}")
        self._persona, self._ask_to_say = persona, say
        self._speak = {"thinker_do_sample": False, **(generate or {})}

    def load(self, host: Host) -> None:
        """The whole model: the part that listens is one of its parts. Raises loading.Unusable."""
        self._load(host, self._family.speaker)
        self._ears = self._net.thinker

    def generate(self, requests: Sequence[GenerateRequest]) -> List[RenderReply]:
        return [self._render(request) for request in requests]

    def _render(self, request: GenerateRequest) -> RenderReply:
        if request.words is None:
            raise Refused("no_words", "this head speaks words; its card says words = true")
        text = self._ask_to_say.replace("{words}", request.words)
        inputs = self._inputs([self._conversation(self._persona, text, heard=False)], None)
        self._torch.manual_seed(request.seed)
        with self._torch.inference_mode():
            ids, spoken = self._net.generate(**inputs, **self._speak)
        # Text that was cut off is speech that was cut off; of the voice's own limit the model says nothing.
        limit = self._speak.get("thinker_max_new_tokens")
        hit_limit = limit is not None and ids.shape[1] - inputs["input_ids"].shape[1] >= limit
        wave = (spoken[0] if isinstance(spoken, (list, tuple)) else spoken).float().cpu().numpy()
        return request.reply(Clip(np.atleast_2d(wave.squeeze()), self._family.speech_hz), hit_limit=hit_limit)
