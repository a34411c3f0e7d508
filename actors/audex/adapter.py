"""Nemotron-Labs-Audex (30B-A3B and 2B) on vllm-omni: one engine a mode, each mode a host of its own.

`AudexAudio` renders sound, music and speech from a description (the text-to-audio mode, 16 kHz mono, at most 10 s),
`AudexSpeech` speaks words (text-to-speech, 16 kHz mono, at most 41 s), `AudexListener` hears. Audex edits nothing: it
runs the self-caption chain. Written against vllm-omni 0.30.0 and its examples.
"""

from __future__ import annotations

import copy
import os
import re
import tempfile
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence

import numpy as np

from torus_ray.audio import Clip, decode, downmix, silence
from torus_ray.heads import Host, Model, Refused

from .loading import find_weights, needs_gpu

RATE_HZ = 16_000
FRAME = RATE_HZ // 50
"""Samples of one step of either codec."""
CODEBOOKS = 4
"""Tokens of one step of the codec of text-to-audio."""
LONGEST_HEARD_S = 900.0
MOST_OF_A_GPU = 0.93
"""What the engines may take of a GPU that is theirs alone, as in vllm-omni's own files for the 30B."""
PLACEHOLDER = "<so_embedding>"


class _Engine(Model):
    """One vllm-omni engine. deploy: its file of stages in vllm_omni/deploy, without the ending; the 30B's has to be
    said, else the 2B's is taken. decoder_gpu: of the GPU, what the stage that makes sound of tokens gets.
    """

    weights = ("audex",)

    def __init__(self, deploy: str, decoder_gpu: float = 0.0) -> None:
        self._deploy, self._decoder_gpu = deploy, decoder_gpu
        self._host = Host()
        self._engine: Any = None
        self._stages: List[Dict[str, Any]] = []
        self._folder: Optional[tempfile.TemporaryDirectory[str]] = None

    def load(self, host: Host) -> None:
        needs_gpu(host, "Audex")
        for name in self.weights:
            find_weights(host, name, f"folder of weights {name}", folder=True)
        self._host = host
        self._start()

    def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    # --- the engine -----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        from vllm_omni.entrypoints.omni import Omni

        self._engine = Omni(
            model=self._host.weights["audex"], deploy_config=str(self._deploy_file()), trust_remote_code=True
        )

    def _deploy_file(self) -> Path:
        """vllm-omni's own file of the mode, with our share of the GPU and the places of our weights."""
        import vllm_omni
        import yaml

        source = Path(vllm_omni.__file__).parent / "deploy" / f"{self._deploy}.yaml"
        content = yaml.safe_load(source.read_text(encoding="utf-8"))
        self._stages = content["stages"]
        share = min(self._host.gpu_share, MOST_OF_A_GPU)
        first, *rest = self._stages
        first["gpu_memory_utilization"] = round(share - (self._decoder_gpu if rest else 0.0), 4)
        for stage in rest:
            stage["gpu_memory_utilization"] = self._decoder_gpu
            if "model" in stage:
                stage["model"] = self._host.weights["xcodec"]
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="torus-audex-")
        file = Path(self._folder.name) / f"{self._deploy}.yaml"
        file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        return file

    def _generate(self, prompts: Sequence[Any], params: Any) -> List[Any]:
        """The outputs of prompts, in their order."""
        if self._engine is None:
            self._start()
        try:
            outputs = list(self._engine.generate(list(prompts), params, use_tqdm=False))
        except Exception:  # whatever it was, the engine closed itself before it left: the next call starts a new one
            self._engine = None
            raise
        if len(outputs) != len(prompts):
            raise RuntimeError(f"{len(outputs)} outputs for {len(prompts)} prompts")
        ordered = sorted(outputs, key=_place)
        for output in ordered:
            if getattr(output, "error", None):
                raise RuntimeError(f"vllm-omni: {output.error}")
        return ordered

    def _params(self, seed: int, sampling: Mapping[str, Any], extra: Optional[Mapping[str, Any]] = None) -> Any:
        """Sampling parameters of every stage; the first one's as the card has them. A copy: the engine's own are
        shared by all requests."""
        if self._engine is None:
            self._start()
        params = copy.deepcopy(list(self._engine.resolve_sampling_params_list(None)))
        for name, value in {**sampling, "seed": seed}.items():
            setattr(params[0], name, value)
        if extra:
            params[0].extra_args = {**(params[0].extra_args or {}), **extra}
        return params

    def _fits(self, length: int, max_tokens: int) -> None:
        most = int(self._stages[0]["max_model_len"]) - max_tokens
        if length > most:
            raise Refused("prompt_too_long", f"the prompt has {length} tokens, at most {most} leave room for a reply")


class _Renderer(_Engine):
    """sampling: fields of vLLM's SamplingParams. cfg_scale: of classifier-free guidance, 1 for none."""

    def __init__(
        self, deploy: str, sampling: Mapping[str, Any], cfg_scale: float = 3.0, decoder_gpu: float = 0.1
    ) -> None:
        super().__init__(deploy, decoder_gpu)
        self._sampling, self._cfg_scale = dict(sampling), float(cfg_scale)
        self._tokenizer: Any = None

    def load(self, host: Host) -> None:
        from transformers import AutoTokenizer

        super().load(host)
        self._tokenizer = AutoTokenizer.from_pretrained(
            os.path.join(host.weights["audex"], "checkpoint_folder_audiogen")
        )

    def _guidance(self, request_id: str, null_prompt: Any, prompt: str) -> Dict[str, Any]:
        """What pairs a request with its companion without a prompt: a null prompt of the same number of tokens, and an
        id that is this pair's alone. The two go in step; the engine makes the companion."""
        if self._cfg_scale <= 1.0:
            return {}
        return {
            "cfg_scale": self._cfg_scale,
            "cfg_role": "cond",
            "cfg_pair_id": f"torus-{request_id}",
            "cfg_null_prompt": null_prompt(prompt, self._tokenizer),
        }

    def _render(self, request: Any, prompt: str, extra: Mapping[str, Any], most_samples: int) -> Any:
        self._fits(len(self._tokenizer.encode(prompt)), int(self._sampling["max_tokens"]))
        (output,) = self._generate([prompt], self._params(request.seed, self._sampling, extra))
        wave = _wave(output)
        return request.reply(Clip(wave, RATE_HZ), hit_limit=len(wave) >= most_samples)


class AudexAudio(_Renderer):
    """Text to audio. codec_cap: codec tokens after which the mask ends a clip; 2,000 are the 10 s that are decoded."""

    weights = ("audex", "xcodec")

    def __init__(
        self,
        deploy: str,
        sampling: Mapping[str, Any],
        cfg_scale: float = 3.0,
        codec_cap: int = 2_000,
        decoder_gpu: float = 0.1,
    ) -> None:
        super().__init__(deploy, sampling, cfg_scale, decoder_gpu)
        self._codec_cap = codec_cap
        self._mask: Dict[str, Any] = {}

    def load(self, host: Host) -> None:
        from vllm_omni.model_executor.models.audex.tta import build_tta_phase_token_ids

        super().load(host)
        phases, start, end = build_tta_phase_token_ids(self._tokenizer)
        # The prompt ends with the token that begins the codes, so the first code is of codebook 0.
        self._mask = {
            "phase_token_ids": phases,
            "start_tid": start,
            "end_tid": end,
            "codec_cap": self._codec_cap,
            "start_in_prompt": True,
        }

    def generate(self, requests: List[Any]) -> List[Any]:
        from vllm_omni.model_executor.models.audex.prompt import build_tta_cond_prompt, build_tta_null_prompt

        replies = []
        for request in requests:
            prompt = build_tta_cond_prompt(_not_empty(request.prompt, "prompt"))
            extra = {"tta_rvq": self._mask, **self._guidance(request.id, build_tta_null_prompt, prompt)}
            replies.append(self._render(request, prompt, extra, self._codec_cap // CODEBOOKS * FRAME))
        return replies


class AudexSpeech(_Renderer):
    """Text to speech: the words of the request in the model's one voice."""

    def generate(self, requests: List[Any]) -> List[Any]:
        from vllm_omni.model_executor.models.audex.prompt import build_cond_prompt, build_null_prompt

        replies = []
        for request in requests:
            prompt = build_cond_prompt(_not_empty(request.words, "words"))
            extra = self._guidance(request.id, build_null_prompt, prompt)
            replies.append(self._render(request, prompt, extra, int(self._sampling["max_tokens"]) * FRAME))
        return replies


class AudexListener(_Engine):
    """Understanding. answer, caption: fields of vLLM's SamplingParams for that head."""

    max_batch: ClassVar[Mapping[str, int]] = {"answer": 4, "caption": 8}

    def __init__(
        self, deploy: str, answer: Optional[Mapping[str, Any]] = None, caption: Optional[Mapping[str, Any]] = None
    ) -> None:
        super().__init__(deploy)
        self._sampling = {"answer": dict(answer or {}), "caption": dict(caption or {})}

    def answer(self, requests: List[Any]) -> List[Any]:
        prompts = [(_asked(q.prompt, sound), r.seed) for r, sound in _heard(requests) for q in r.questions]
        texts = iter(self._texts("answer", prompts))
        return [request.reply([next(texts) for _ in request.questions]) for request in requests]

    def caption(self, requests: List[Any]) -> List[Any]:
        prompts = [(_asked(request.instruction, sound), request.seed) for request, sound in _heard(requests)]
        return [request.reply(text) for request, text in zip(requests, self._texts("caption", prompts))]

    def _texts(self, operation: str, prompts: Sequence[Any]) -> List[str]:
        """What is said to each prompt. One call has one seed, so those of a seed go together."""
        texts = [""] * len(prompts)
        for seed in dict.fromkeys(seed for _, seed in prompts):
            places = [place for place, (_, own) in enumerate(prompts) if own == seed]
            params = self._params(seed, self._sampling[operation])
            for place, output in zip(places, self._generate([prompts[place][0] for place in places], params)):
                texts[place] = output.outputs[0].text if output.outputs else ""
        return texts


def _heard(requests: Sequence[Any]) -> Any:
    """Each request with its clip as the engine takes it: (mono float32, its own rate); resampled to 16 kHz there.
    The model takes no prompt without audio: where there is none, a second of silence."""
    for request in requests:
        clip = downmix(silence() if request.clip_bytes is None else decode(request.clip_bytes))
        if clip.duration_s > LONGEST_HEARD_S:
            raise Refused("clip_too_long", f"{clip.duration_s:.0f} s, the model hears {LONGEST_HEARD_S:.0f}")
        yield request, (clip.wave[0], clip.rate_hz)


def _asked(text: str, sound: Any) -> Dict[str, Any]:
    """A prompt about a clip: one user turn, the answer begun behind closed thinking."""
    if PLACEHOLDER in text:
        raise Refused("special_token", f"the text has {PLACEHOLDER}, where the model puts a clip")
    turn = f"<|im_start|>user\n{PLACEHOLDER}\n{text}<|im_end|>\n<|im_start|>assistant\n<think></think>"
    return {"prompt": turn, "multi_modal_data": {"audio": sound}}


def _not_empty(text: Optional[str], what: str) -> str:
    if not text or not text.strip():
        raise Refused(f"no_{what}", f"there is no {what} to render")
    return text


def _place(output: Any) -> int:
    """The place of an output's prompt: outputs come as they are done, their ids begin with it."""
    found = re.match(r"\D*(\d+)", str(output.request_id))
    if found is None:
        raise RuntimeError(f"vllm-omni: request id {output.request_id!r} does not begin with a number")
    return int(found.group(1))


def _wave(output: Any) -> Any:
    """float32 (frames,) of a finished render; no samples where the model gave no codes."""
    held = output.multimodal_output  # of its first completion, or its own
    sound = held.get("model_outputs")
    sound = held.get("audio") if sound is None else sound
    if sound is None:
        raise RuntimeError(f"vllm-omni gave no audio, but {', '.join(sorted(held)) or 'nothing'}")
    parts = sound if isinstance(sound, list) else [sound]
    waves = [np.asarray(_on_cpu(part), dtype=np.float32).reshape(-1) for part in parts if part is not None]
    return np.concatenate(waves) if waves else np.zeros(0, dtype=np.float32)


def _on_cpu(tensor: Any) -> Any:
    return tensor.detach().float().cpu().numpy() if hasattr(tensor, "detach") else tensor
