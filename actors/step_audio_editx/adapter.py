"""Step-Audio-EditX: words spoken by a reference voice, and speech edited (stepfun-ai/Step-Audio-EditX)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, List, Mapping, Sequence, Tuple

from torus_ray.audio import Clip, mono
from torus_ray.heads import EditRequest, GenerateRequest, Host, Model, Refused, RenderReply

from .loading import Unusable, find_weights, needs_gpu, quiet
from .released import samples, seed_everything, wav_file
from .router import CLONE, FREE, Step, route

MAX_TOKENS = 8192
"""Prompt and speech together: `max_length` of the released calls."""
MAX_INPUT_S = 30.0
"""The audio tokenizer splits what is longer."""
KMEANS = "linguistic_tokenizer.npy"
PARAFORMER = "dengcunqin/speech_paraformer-large_asr_nat-zh-cantonese-en-16k-vocab8501-online"
INSTRUCTION = "{prompt}\nThe text corresponding to the audio is: {words}\n"
"""A free instruction in the form of the released ones, which end with the clip's text."""


class StepAudioEditX(Model):
    """24 kHz mono speech. It speaks the words of the request; an edit goes through the router to the closed list.

    voice, voice_text: the reference recording, relative to the repository, and what is said in it: there is no speech
    without one. unrouted: an edit that is on no list is put to the model as it is ("free") or refused ("refuse").
    The steps taken and the clauses that none served are the edit's notes, as JSON.
    """

    capabilities: ClassVar[Mapping[str, Sequence[str]]] = {"generate": ("speech",), "edit": ("speech",)}

    def __init__(
        self,
        voice: str = "examples/zero_shot_en_prompt.wav",
        voice_text: str = "",
        unrouted: str = FREE,
    ) -> None:
        if not voice_text:
            raise ValueError("voice_text is what is said in the reference recording; the model cannot do without it")
        if unrouted not in (FREE, "refuse"):
            raise ValueError(f'unrouted is "{FREE}" or "refuse", got {unrouted!r}')
        self._voice_file, self._voice_text, self._unrouted = voice, voice_text, unrouted
        self._longest = 0

    def load(self, host: Host) -> None:
        """Read the weights. Raises loading.Unusable."""
        needs_gpu(host, "Step-Audio-EditX")
        # All of these: where one is missing the released loader falls back to a download.
        tokens = find_weights(
            host, "tokenizer", "stepfun-ai/Step-Audio-Tokenizer", "speech_tokenizer_v1.onnx", KMEANS, PARAFORMER
        )
        folder = find_weights(host, "model", "stepfun-ai/Step-Audio-EditX", "config.json", "CosyVoice-300M-25Hz")
        import torch
        import tts
        from model_loader import ModelSource
        from tokenizer import StepAudioTokenizer

        torch.set_num_threads(host.threads)
        self._torch = torch
        voice = Path(tts.__file__).parent / self._voice_file
        if not voice.is_file():
            raise Unusable(
                "there is no reference voice",
                str(voice),
                "a recording, by a path relative to the repository or absolute",
                "name one in settings.voice, and what is said in it in settings.voice_text",
            )
        self._voice = str(voice)
        with quiet():
            ears = StepAudioTokenizer(str(tokens), model_source=ModelSource.LOCAL)
            self._tts = tts.StepAudioTTS(str(folder), ears, model_source=ModelSource.LOCAL)
        self._told(self._tts)

    def _told(self, speaker: Any) -> None:
        """Two ears in the released object: how long each generation was, and instructions that are on no list."""
        generate, build = speaker.llm.generate, speaker._build_audio_edit_instruction

        def counted(*arguments: Any, **keywords: Any) -> Any:
            made = generate(*arguments, **keywords)
            self._longest = max(self._longest, int(made.shape[1]))
            return made

        def built(audio_text: str, edit_type: str, edit_info: Any = None, text: Any = None) -> Any:
            if edit_type == FREE:
                return INSTRUCTION.format(prompt=text, words=audio_text)
            return build(audio_text, edit_type, edit_info, text)

        speaker.llm.generate, speaker._build_audio_edit_instruction = counted, built

    def generate(self, requests: Sequence[GenerateRequest]) -> List[RenderReply]:
        return [self._speak(request) for request in requests]

    def edit(self, requests: Sequence[EditRequest]) -> List[RenderReply]:
        return [self._edit(request) for request in requests]

    def _speak(self, request: GenerateRequest) -> RenderReply:
        words = _words(request.words)
        seed_everything(self._torch, request.seed)
        self._longest = 0
        wave, rate_hz = self._take(Step(CLONE, text=words), words, None, 0)
        return request.reply(Clip(wave, rate_hz), hit_limit=self._longest >= MAX_TOKENS)

    def _edit(self, request: EditRequest) -> RenderReply:
        words = _words(request.words)
        found = route(request.prompt, words)
        steps = found.steps
        if not steps:
            if self._unrouted != FREE:
                raise Refused("no_such_edit", f"nothing of Step-Audio-EditX's list is named: {request.prompt[:200]}")
            steps = (Step(FREE, text=request.prompt),)
        heard = request.clip
        if heard.duration_s > MAX_INPUT_S and steps[0].kind != CLONE:
            raise Refused("clip_too_long", f"{heard.duration_s:.1f} s, Step-Audio-EditX takes {MAX_INPUT_S:g} s")
        seed_everything(self._torch, request.seed)
        self._longest = 0
        wave, rate_hz = mono(heard, heard.rate_hz), heard.rate_hz
        for step in steps:
            wave, rate_hz = self._take(step, words, wave, rate_hz)
        told = [[step.kind, step.info, step.text] for step in steps]
        notes = json.dumps({"steps": told, "unserved": found.unserved})
        return request.reply(Clip(wave, rate_hz), hit_limit=self._longest >= MAX_TOKENS, notes=notes)

    def _take(self, step: Step, words: str, wave: Any, rate_hz: int) -> Tuple[Any, int]:
        """One step's speech, float32 (frames,), and its rate."""
        with quiet():
            if step.kind == CLONE:
                made, rate_hz = self._tts.clone(
                    prompt_wav_path=self._voice, prompt_text=self._voice_text, target_text=step.text
                )
            else:
                with wav_file(wave, rate_hz) as path:
                    made, rate_hz = self._tts.edit(
                        input_audio_path=path,
                        audio_text=words,
                        edit_type=step.kind,
                        edit_info=step.info,
                        text=step.text,
                    )
        return samples(made).reshape(-1), int(rate_hz)

    def close(self) -> None:
        self._tts: Any = None


def _words(words: Any) -> str:
    """Raises Refused where there is nothing to say."""
    if not words:
        raise Refused("no_words", "Step-Audio-EditX speaks words, and none are quoted")
    return str(words)
