"""Pipelines of diffusers. Every keyword of a pipeline's call may stand in a card under its own name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Tuple

import numpy as np

from torus_ray.audio import Clip, resample

from .kind import Kind, known, tokens_of


class _Pipeline(Kind):
    name = ""

    def __init__(self, torch: Any, folder: Path, dtype: Any, device: str) -> None:
        import diffusers

        self._torch, self._device = torch, device
        pipeline = getattr(diffusers, self.name)
        self._pipe = pipeline.from_pretrained(str(folder), dtype=dtype, local_files_only=True).to(device)
        self._pipe.set_progress_bar_config(disable=True)

    def check(self, settings: Mapping[str, Any]) -> None:
        known(type(self._pipe).__call__, settings)

    def _run(self, text: str, seed: int, **settings: Any) -> Any:
        """The samples of the one clip, float32, (channels, frames) or (frames,)."""
        generator = self._torch.Generator(self._device).manual_seed(seed)
        audio = self._pipe(text, generator=generator, **settings).audios[0]
        return np.asarray(audio.float().cpu() if hasattr(audio, "cpu") else audio, dtype=np.float32)

    def _tensor(self, clip: Clip, rate_hz: int, channels: int, dtype: Any) -> Any:
        """A clip as the pipeline's autoencoder takes it: at its rate, one channel doubled where it wants two."""
        wave = resample(clip, rate_hz).wave
        if wave.shape[0] != channels:
            wave = np.repeat(wave.mean(axis=0, keepdims=True), channels, axis=0)
        return self._torch.from_numpy(np.ascontiguousarray(wave)).to(self._device, dtype)


class StableAudio(_Pipeline):
    """Stable Audio Open. Its edit starts from the clip and noise, and not from noise alone: a variation of the clip
    that the prompt steers, nothing that follows an instruction.

    Ours in edit: sigma_max, how much noise stands over the clip's latents at the start. The published scheduler's 500
    leaves next to nothing of them; stable-audio-tools calls it init_noise_level.
    """

    name = "StableAudioPipeline"

    def check_edit(self, settings: Mapping[str, Any]) -> None:
        known(type(self._pipe).__call__, settings, ours=("sigma_max",))

    def length(self, text: str, settings: Mapping[str, Any]) -> Tuple[int, int]:
        return tokens_of(self._pipe.tokenizer, text), self._pipe.tokenizer.model_max_length

    def generate(self, text: str, seed: int, settings: Mapping[str, Any]) -> Tuple[Clip, bool]:
        return Clip(self._run(text, seed, **settings), self._rate), False

    def edit(self, text: str, clip: Clip, seed: int, settings: Mapping[str, Any]) -> Tuple[Clip, bool]:
        call = dict(settings)
        sigma_max = call.pop("sigma_max", None)
        vae, scheduler = self._pipe.vae, self._pipe.scheduler
        # As long as the clip was, within what the model makes.
        longest_s = self._pipe.transformer.config.sample_size * vae.hop_length / self._rate
        call.setdefault("audio_end_in_s", min(clip.duration_s, longest_s))
        wave = self._tensor(clip, self._rate, vae.config.audio_channels, vae.dtype)
        if sigma_max is not None:
            self._pipe.scheduler = type(scheduler).from_config(scheduler.config, sigma_max=float(sigma_max))
        try:
            audio = self._run(
                text, seed, initial_audio_waveforms=wave[None], initial_audio_sampling_rate=self._rate, **call
            )
        finally:
            self._pipe.scheduler = scheduler
        return Clip(audio, self._rate), False

    @property
    def _rate(self) -> int:
        return int(self._pipe.vae.config.sampling_rate)


class AudioLDM2(_Pipeline):
    """AudioLDM 2: sound and music at 16 kHz, one channel."""

    name = "AudioLDM2Pipeline"

    def length(self, text: str, settings: Mapping[str, Any]) -> Tuple[int, int]:
        pipe = self._pipe
        # CLAP's encoder and T5 both read the prompt: what is beyond either is cut there.
        over = [(tokens_of(t, text), t.model_max_length) for t in (pipe.tokenizer, pipe.tokenizer_2)]
        return max(over, key=lambda both: both[0] - both[1])

    def generate(self, text: str, seed: int, settings: Mapping[str, Any]) -> Tuple[Clip, bool]:
        return Clip(self._run(text, seed, **settings), self._pipe.vocoder.config.sampling_rate), False


class AceStep(_Pipeline):
    """ACE-Step 1.5 without its planner: music at 48 kHz, two channels, scaled by the pipeline to a peak of -1 dB.

    Its edit, by task_type: `cover` keeps what the source's semantic codes hold (melody, rhythm, form) and renders it
    anew as the prompt describes; `repaint` makes the stretch from repainting_start to repainting_end anew and keeps the
    rest (without them it keeps nothing of the source but its length). Neither follows an instruction.
    """

    name = "AceStepPipeline"

    def length(self, text: str, settings: Mapping[str, Any]) -> Tuple[int, int]:
        # The prompt stands in a template with an instruction before it and the duration behind it, cut at the end.
        instruction = self._pipe._get_task_instruction(task_type=settings.get("task_type", "text2music"))
        filled, _ = self._pipe._format_prompt(text, instruction=settings.get("instruction", instruction))
        return tokens_of(self._pipe.tokenizer, filled), int(settings.get("max_text_length", 256))

    def generate(self, text: str, seed: int, settings: Mapping[str, Any]) -> Tuple[Clip, bool]:
        return Clip(self._run(text, seed, **settings), self._pipe.sample_rate), False

    def edit(self, text: str, clip: Clip, seed: int, settings: Mapping[str, Any]) -> Tuple[Clip, bool]:
        vae = self._pipe.vae
        source = self._tensor(clip, self._pipe.sample_rate, vae.config.audio_channels, vae.dtype)
        # No duration: the source's own.
        return Clip(
            self._run(text, seed, **{"audio_duration": 0.0, **settings}, src_audio=source), self._pipe.sample_rate
        ), False
