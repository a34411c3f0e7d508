"""UniAudio 2.0: one language model over text and audio tokens (yangdongchao/UniAudio2)."""

from __future__ import annotations

import argparse
import importlib
import tempfile
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from torus_ray.audio import Clip, mono, resample, silence
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
from .released import samples, seed_everything, wav_file

CODEC_RATE_HZ = 24_000
CONTEXT = 2_048
"""Positions of the key-value caches."""
FRAMES = 500
"""The most that one call makes, of text or of both audio streams together: about 28 s."""
RENDERED_AT_LIMIT = FRAMES - 3
"""Frames returned of a generation that never ended: the first of each stream and the mark between them are dropped."""
CODEC = "ReasoningCodec.checkpoint"
CODEC_PATHS: Mapping[str, str] = {
    "transformer_diffusion_config": "model_config.json",
    "sq_config": "sqcodec_config.yaml",
    "sq_resume": "sqcodec.pth",
    "whisper_path": "whisper-medium",
    "prompt_path": "prompt.json",
    "best_rq_ckpt": "music_ssl.pt",
    "wav_lm_path": "wavlm",
}
"""Of infer_config.yaml, whose own paths are relative to the working directory."""
TASKS: Mapping[str, Tuple[str, str, str]] = {
    "TTA": ("evaluation.audiogen_task", "generate_audio", "text-to-audio generation"),
    "TTS": (
        "evaluation.tts_task",
        "generate_tts",
        "Convert the given text into natural, human-like speech with clear pronunciation.",
    ),
}
"""Generation task -> module, method, the instruction that the repository's own examples give."""


class UniAudio2(Model):
    """At most 28 s, one channel; 24 kHz in the code, at `rate_hz` when it leaves.

    task: `TTA` renders the prompt, `TTS` speaks the words. checkpoint: the language model's file. topk, temperature,
    cfg_scale: of every generation. codec_steps: of the decoder. answer_instruction: the task prompt of questions; that
    of captions is the request's instruction, which the card's texts fix.
    """

    def __init__(
        self,
        task: str = "TTA",
        checkpoint: str = "llm_ep3.checkpoint",
        topk: int = 1,
        temperature: float = 0.9,
        cfg_scale: float = 1.0,
        codec_steps: int = 10,
        rate_hz: int = 16_000,
        answer_instruction: str = "listen the audio. then answer the user's question",
    ) -> None:
        if task not in TASKS:
            raise ValueError(f"task is one of {', '.join(TASKS)}, got {task!r}")
        if cfg_scale != 1.0:
            raise ValueError(f"the released generators do not use guidance: cfg_scale is 1.0, got {cfg_scale}")
        self._task, self._checkpoint, self._codec_steps, self._rate_hz = task, checkpoint, codec_steps, rate_hz
        self._sampling = {"temperature": temperature, "topk": topk, "cfg_scale": cfg_scale}
        self._answer_instruction = answer_instruction

    def load(self, host: Host) -> None:
        """Read the weights, which are pickles. Raises loading.Unusable."""
        folder = find_weights(
            host,
            "model",
            "UniAudio 2 (Dongchao/UniAudio2_ckpt)",
            *(self._checkpoint, "llm_config.yaml", CODEC, *CODEC_PATHS.values()),
        )
        import torch
        import transformers  # noqa: F401  outside the shim: its dataclasses stay as they are
        import yaml

        torch.set_num_threads(host.threads)
        self._torch, self._device = torch, torch.device(host.device)
        with hashable_dataclasses(), quiet():
            from llm_models import model_new
            from llm_utils.train_utils import resume_for_inference
            from tools.tokenizer.ReasoningCodec_film.reason_tokenizer import ReasoningTokenizer

            renderer, asker, captioner = (
                importlib.import_module(name)
                for name in (
                    TASKS[self._task][0],
                    "evaluation.audio_understanding",
                    "evaluation.audio_music_caption_task",
                )
            )
            repository = Path(model_new.__file__).parents[1]
            trained = argparse.Namespace(**yaml.safe_load((folder / "llm_config.yaml").read_text()))
            net = model_new.Model_stage3(_model_arguments(model_new.ModelArgs, trained))
            net.to(device=self._device)
            resume_for_inference(str(folder / self._checkpoint), None, net, self._device)
            self._codec = _codec(ReasoningTokenizer, repository, folder, self._device, yaml)
            net.eval()
            self._renderer, self._asker, self._captioner = (
                module.Generator(
                    net,
                    trained,
                    audio_tokenizer_config=None,
                    audio_model_path=None,
                    text_tokenizer_path=str(repository / "tools/tokenizer/Text2ID/llama3_2_tokenizer"),
                    is_cfg=False,
                )
                for module in (renderer, asker, captioner)
            )

    # --- rendering ----------------------------------------------------------------------------------------------------

    def generate(self, requests: Sequence[GenerateRequest]) -> List[RenderReply]:
        return [self._render(request) for request in requests]

    def _render(self, request: GenerateRequest) -> RenderReply:
        _, method, instruction = TASKS[self._task]
        text = request.prompt if self._task == "TTA" else request.words
        if not text:
            raise Refused("no_words", "UniAudio 2's TTS speaks words, and none are quoted")
        task_prompt, tokens = self._tokens(f"{instruction}\n\n"), self._tokens(text.strip())
        _fits(len(task_prompt) + len(tokens) + 2)
        seed_everything(self._torch, request.seed)
        with quiet():
            made = _unless_empty(
                lambda: getattr(self._renderer, method)(
                    task_prompt=task_prompt, task_name=self._task.lower(), text_token=tokens, **self._sampling
                )
            )
            if made is None:
                return request.reply(Clip(np.zeros((1, 0), dtype=np.float32), CODEC_RATE_HZ))
            reason, semantic = made
            wave = self._codec.detokenize_no_reason(
                semantic, return_reasoning_text=False, steps=self._codec_steps, disable_progress=True
            )
        clip = resample(Clip(samples(wave), CODEC_RATE_HZ), self._rate_hz)
        return request.reply(clip, hit_limit=reason.shape[1] + semantic.shape[1] >= RENDERED_AT_LIMIT)

    # --- listening ----------------------------------------------------------------------------------------------------

    def caption(self, requests: Sequence[CaptionRequest]) -> List[CaptionReply]:
        return [request.reply(self._caption(request)) for request in requests]

    def answer(self, requests: Sequence[AnswerRequest]) -> List[AnswerReply]:
        return [self._answers(request) for request in requests]

    def _caption(self, request: CaptionRequest) -> str:
        reason, semantic = self._encode(request.clip_bytes)
        task_prompt = self._tokens(f"{request.instruction}\n\n")
        _fits(len(task_prompt) + reason.shape[1] + semantic.shape[1] + 4)
        seed_everything(self._torch, request.seed)
        with quiet():
            # Frames come first here, and second in the questions.
            said = _unless_empty(
                lambda: self._captioner.generate_audio_caption(
                    task_prompt=task_prompt,
                    task_name="audio_caption",
                    reason_token=reason.transpose(0, 1).long(),
                    semantic_token=semantic.transpose(0, 1).long(),
                    **self._sampling,
                )
            )
        return "" if said is None else str(said).strip()

    def _answers(self, request: AnswerRequest) -> AnswerReply:
        # Its questions always carry audio: where there is none to be heard, a second of silence (DESIGN 8).
        reason, semantic = self._encode(silence() if request.clip_bytes is None else request.clip_bytes)
        task_prompt = self._tokens(f"{self._answer_instruction}\n\n")
        return request.reply(
            [self._answer(q.prompt, task_prompt, reason, semantic, request.seed) for q in request.questions],
            "" if request.clip_bytes is not None else "no clip: heard a second of silence",
        )

    def _answer(self, question: str, task_prompt: Any, reason: Any, semantic: Any, seed: int) -> str:
        asked = self._tokens(question)
        _fits(len(task_prompt) + len(asked) + reason.shape[1] + semantic.shape[1] + 4)
        seed_everything(self._torch, seed)
        with quiet():
            said = _unless_empty(
                lambda: self._asker.generate_answer(
                    task_prompt=task_prompt,
                    task_name="audio_understanding",
                    d={"text_seq_question": asked, "reason_seq": reason, "semantic_seq": semantic},
                    keys=["text_seq_question", "reason_seq", "semantic_seq"],
                    types=["text", "audio", "audio"],
                    **self._sampling,
                )
            )
        return "" if said is None else str(said).strip()

    def _encode(self, clip: Union[Clip, bytes]) -> Tuple[Any, Any]:
        """(reason, semantic) tokens of a clip on the CPU, each (8, frames)."""
        with wav_file(mono(clip, CODEC_RATE_HZ), CODEC_RATE_HZ) as path, quiet(), self._torch.no_grad():
            reason, semantic = self._codec.tokenize(path, return_reasoning_text=False)
        return reason.cpu(), semantic.cpu()

    def _tokens(self, text: str) -> Any:
        return self._torch.tensor(self._renderer._text_tokenizer.tokenize(text), dtype=self._torch.long)

    def close(self) -> None:
        self._codec: Any = None
        self._renderer: Any = None
        self._asker: Any = None
        self._captioner: Any = None


def _model_arguments(arguments: Any, trained: Any) -> Any:
    return arguments(
        decoder_name=trained.local_model,
        llm_pretrained_model=trained.llm_pretrained_model,
        llm_name=trained.llm_name,
        audio_semantic_vocab_size=trained.audio_semantic_card,
        audio_reason_vocab_size=trained.audio_reason_card,
        audio_num_codebooks=trained.parallel_number - 1,
        audio_embeddings_path=trained.audio_embeddings_path,
        audio_understanding_expert_path=trained.audio_understanding_expert_path,
    )


def _codec(tokenizer: Any, repository: Path, folder: Path, device: Any, yaml: Any) -> Any:
    """The released codec over a configuration whose paths lead to the weights."""
    film = repository / "tools" / "tokenizer" / "ReasoningCodec_film"
    config = yaml.safe_load((film / "infer_config.yaml").read_text())
    config.update({key: str(folder / part) for key, part in CODEC_PATHS.items()})
    with tempfile.TemporaryDirectory(prefix="torus-uniaudio2-") as scratch:
        file = Path(scratch) / "infer_config.yaml"
        file.write_text(yaml.safe_dump(config))
        return tokenizer(
            train_config=str(file),
            model_path=str(folder / CODEC),
            music_ssl_folder=str(film / "modules" / "our_MERT_BESTRQ" / "mert_fairseq"),
            device=device,
        )


def _fits(prompt: int) -> None:
    if prompt + FRAMES > CONTEXT:
        raise Refused("prompt_too_long", f"{prompt} positions, UniAudio 2 has {CONTEXT - FRAMES} beside its {FRAMES}")


def _unless_empty(generate: Any) -> Optional[Any]:
    """What a generator makes; None where it ended at once, which the released code answers by stacking nothing."""
    try:
        return generate()
    except RuntimeError as error:
        if "non-empty TensorList" in str(error):
            return None
        raise
