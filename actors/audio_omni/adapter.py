"""Audio-Omni: one checkpoint that renders, edits and listens (ZeyueT/Audio-Omni)."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

import numpy as np

from torus_ray.audio import Clip, mono
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

from .loading import find_weights, quiet
from .released import samples, seed_everything, window

RATE_HZ = 44_100
HEARD_RATE_HZ = 16_000
"""What Qwen2.5-Omni's front end takes."""
SECONDS = 10
"""The mel conditioner holds exactly ten seconds; no other length works."""
MAX_SEED = 2**32
TASKS = ("T2A", "T2M", "TTS")


class AudioOmni(Model):
    """44.1 kHz stereo, 10.96 s (236 latents of 2,048 samples), scaled to full peak as its authors do.

    steps, cfg_scale: of the diffusion. tasks: the released task of each audio type; TTS speaks the words of the
    request. long_edits: an edit hears the first ten seconds of the clip, its end "cut" (as the released code does, and
    noted) or the edit "refuse"d. max_new_tokens: of captions and answers, decoded greedily.
    """

    def __init__(
        self,
        steps: int = 100,
        cfg_scale: float = 7.0,
        tasks: Optional[Mapping[str, str]] = None,
        long_edits: str = "cut",
        max_new_tokens: int = 512,
    ) -> None:
        self._tasks = {"speech": "T2A", "sound": "T2A", "music": "T2M", **(tasks or {})}
        if wrong := sorted(set(self._tasks.values()) - set(TASKS)):
            raise ValueError(f"tasks are {', '.join(TASKS)}, got {', '.join(wrong)}")
        if long_edits not in ("cut", "refuse"):
            raise ValueError(f'long_edits is "cut" or "refuse", got {long_edits!r}')
        self._steps, self._cfg_scale = steps, cfg_scale
        self._long_edits, self._max_new_tokens = long_edits, max_new_tokens

    def load(self, host: Host) -> None:
        """Read the weights. Raises loading.Unusable."""
        folder = find_weights(host, "model", "Audio-Omni (HKUSTAudio/Audio-Omni)", "Audio-Omni.json", "model.ckpt")
        thinker = find_weights(host, "qwen_omni", "Qwen/Qwen2.5-Omni-3B", "config.json")
        import torch

        import audio_omni
        from audio_omni.api import AudioOmni as Api
        from audio_omni.inference.generation import generate_diffusion_cond
        from audio_omni.prompts import SYSTEM_EDITING, SYSTEM_UNDERSTANDING, _wrap, build_prompt

        torch.set_num_threads(host.threads)
        self._torch, self._diffuse = torch, generate_diffusion_cond
        self._prompt, self._wrap = build_prompt, _wrap
        self._editor, self._listener = SYSTEM_EDITING, SYSTEM_UNDERSTANDING
        vocabulary = Path(audio_omni.__file__).parent / "data" / "vocab.txt"
        with _variable("QWEN_OMNI_MODEL_PATH", str(thinker)), tempfile.TemporaryDirectory() as scratch, quiet():
            config = Path(scratch) / "Audio-Omni.json"
            config.write_text(json.dumps(_with_vocabulary(json.loads((folder / config.name).read_text()), vocabulary)))
            self._api = Api(config_path=str(config), ckpt_path=str(folder / "model.ckpt"), device=host.device)
        self._ears = self._api._get_omni_conditioner()

    def observe(self) -> Mapping[str, Any]:
        return {"sample_rate": int(self._api.sample_rate), "sample_size": int(self._api.sample_size)}

    # --- rendering ----------------------------------------------------------------------------------------------------

    def generate(self, requests: Sequence[GenerateRequest]) -> List[RenderReply]:
        return [request.reply(self._generate(request)) for request in requests]

    def edit(self, requests: Sequence[EditRequest]) -> List[RenderReply]:
        return [self._edit(request) for request in requests]

    def _generate(self, request: GenerateRequest) -> Clip:
        task = self._tasks[request.audio_type]
        text = request.prompt
        if task == "TTS":
            if not request.words:
                raise Refused("no_words", "Audio-Omni's TTS speaks words, and none are quoted")
            text = request.words
        told = self._prompt(task, text)
        self._fits(told)
        with quiet():
            conditioning = self._api._build_conditioning(
                qwen_prompt=told,
                prompt=text,
                task=task,
                video_path=None,
                voice_prompt_path=None,
                voice_ref_text=None,
                seconds_total=SECONDS,
            )
        return self._render(conditioning, request.seed)

    def _edit(self, request: EditRequest) -> RenderReply:
        heard = mono(request.clip_bytes, RATE_HZ)
        length = SECONDS * RATE_HZ
        if len(heard) > length and self._long_edits == "refuse":
            raise Refused("clip_too_long", f"{len(heard) / RATE_HZ:.2f} s, Audio-Omni edits the first {SECONDS}")
        # `edit` has four templates; the prompt itself goes where the authors' interface puts theirs.
        told = self._wrap(self._editor, request.prompt)
        self._fits(told)
        torch, device = self._torch, self._api.device
        source = torch.from_numpy(window(heard, length, pad=True)).to(device)
        conditioning = [
            {
                "omni_prompt": {"text_prompt": told, "video_prompt": None, "audio_prompt": None},
                "text_prompt": request.prompt,
                "audio_input_prompt": {"audio_input_wav": source, "TASK_TTS": False},
                "sync_feature": torch.zeros(1, 240, 768, device=device),
                "speech_prompt": None,
            }
        ]
        return request.reply(self._render(conditioning, request.seed), notes=_window_note(len(heard), length))

    def _render(self, conditioning: Sequence[Mapping[str, Any]], seed: int) -> Clip:
        with self._torch.no_grad(), quiet():
            made = self._diffuse(
                self._api.model,
                steps=self._steps,
                cfg_scale=self._cfg_scale,
                conditioning=conditioning,
                sample_size=self._api.sample_size,
                sample_rate=self._api.sample_rate,
                seed=seed % MAX_SEED,
                device=self._api.device,
            )
            raw = samples(made)[0]
            # The released scaling divides by the peak and casts: NaN would pass for sound, silence for NaN.
            if not np.isfinite(raw).all() or not np.abs(raw).max():
                return Clip(raw, int(self._api.sample_rate))
            scaled = samples(self._api._postprocess(made))
        return Clip(scaled / 32_768, int(self._api.sample_rate))

    def _fits(self, told: str) -> None:
        """Raises Refused for a text beyond the conditioner's length, which it would squeeze together."""
        count = len(self._ears.processor.tokenizer(told).input_ids)
        if count > self._ears.pad_length:
            raise Refused("prompt_too_long", f"{count} tokens, Audio-Omni's conditioner holds {self._ears.pad_length}")

    # --- listening ----------------------------------------------------------------------------------------------------

    def caption(self, requests: Sequence[CaptionRequest]) -> List[CaptionReply]:
        return [
            request.reply(self._told(request.instruction, mono(request.clip_bytes, HEARD_RATE_HZ), request.seed))
            for request in requests
        ]

    def answer(self, requests: Sequence[AnswerRequest]) -> List[AnswerReply]:
        return [self._answers(request) for request in requests]

    def _answers(self, request: AnswerRequest) -> AnswerReply:
        heard = None if request.clip_bytes is None else mono(request.clip_bytes, HEARD_RATE_HZ)
        return request.reply([self._told(question.prompt, heard, request.seed) for question in request.questions])

    def _told(self, text: str, heard: Any, seed: int) -> str:
        """The thinker's own reply. `understand` would give the whole conversation back, question and all."""
        processor, thinker = self._ears.processor, self._ears.model.thinker
        content: List[Dict[str, Any]] = [] if heard is None else [{"type": "audio", "audio": heard}]
        conversation = [
            {"role": "system", "content": [{"type": "text", "text": self._listener}]},
            {"role": "user", "content": [*content, {"type": "text", "text": text}]},
        ]
        filled = processor.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
        given = processor(
            text=filled,
            audio=None if heard is None else [heard],
            images=None,
            videos=None,
            return_tensors="pt",
            padding=True,
            use_audio_in_video=False,
        )
        given = given.to(self._api.device).to(self._ears.model.dtype)
        seed_everything(self._torch, seed)
        with self._torch.no_grad():
            ids = thinker.generate(
                **given, use_audio_in_video=False, max_new_tokens=self._max_new_tokens, do_sample=False
            )
        fresh = ids[:, given["input_ids"].shape[1] :]
        said = processor.batch_decode(fresh, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(said[0]).strip()

    def close(self) -> None:
        self._api: Any = None
        self._ears: Any = None


def _window_note(heard: int, length: int) -> str:
    """What became of a clip of so many samples in the conditioner's window."""
    if heard == length:
        return ""
    done = f"heard the first {SECONDS} of" if heard > length else f"padded with silence to {SECONDS} s, from"
    return f"{done} {heard / RATE_HZ:.2f} s"


def _with_vocabulary(config: Dict[str, Any], vocabulary: Path) -> Dict[str, Any]:
    """The released configuration with the one path in it that hangs on the working directory."""
    for part in config["model"]["conditioning"]["configs"]:
        if "vocab_file" in part["config"]:
            part["config"]["vocab_file"] = str(vocabulary)
    return config


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """An environment variable for as long as released code reads it."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
