"""MMEdit: sound and music edited by a free instruction (xycs6k8r2Anonymous/MMEdit)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, List, Mapping, Sequence

from torus_ray.audio import Clip, mono
from torus_ray.heads import EditRequest, Host, Model, Refused, RenderReply

from .loading import find_weights, needs_gpu, quiet
from .released import samples, seed_everything, window

RATE_HZ = 24_000
LATENT = 480
"""Samples that become one latent frame; a clip shorter than one has none."""
MAX_INPUT_S = 10.0
VAE = "vae/epoch=13-step=1000000.ckpt"


class MMEdit(Model):
    """24 kHz mono, as long as what it hears, at most 10 s.

    steps, guidance_scale, guidance_rescale, mask_time_aligned_content: as `inference` takes them. input_s: what is
    heard of a longer clip, from its start. long_prompts: the encoder keeps 320 tokens of clip and instruction
    together, of which ten seconds fill 250; what lies beyond is "cut" (as released, and noted) or "refuse"d.
    """

    capabilities: ClassVar[Mapping[str, Sequence[str]]] = {"edit": ("sound", "music")}

    def __init__(
        self,
        steps: int = 50,
        guidance_scale: float = 5.0,
        guidance_rescale: float = 0.5,
        mask_time_aligned_content: bool = False,
        input_s: float = MAX_INPUT_S,
        long_prompts: str = "cut",
    ) -> None:
        if not 0 < input_s <= MAX_INPUT_S:
            raise ValueError(f"MMEdit hears at most {MAX_INPUT_S:g} s, got input_s = {input_s}")
        if long_prompts not in ("cut", "refuse"):
            raise ValueError(f'long_prompts is "cut" or "refuse", got {long_prompts!r}')
        self._arguments = {
            "num_steps": steps,
            "guidance_scale": guidance_scale,
            "guidance_rescale": guidance_rescale,
            "mask_time_aligned_content": mask_time_aligned_content,
        }
        self._input_s, self._long_prompts = input_s, long_prompts

    def load(self, host: Host) -> None:
        """Read the weights. Raises loading.Unusable."""
        needs_gpu(host, "MMEdit")
        folder = find_weights(host, "model", "MMEdit (CocoBro/MMEdit)", "model.safetensors", VAE)
        listener = find_weights(host, "qwen2_audio", "Qwen/Qwen2-Audio-7B-Instruct", "config.json")
        import torch
        from diffusers import schedulers
        from hydra.utils import instantiate
        from omegaconf import OmegaConf
        from safetensors.torch import load_file
        from utils import config as released_config

        torch.set_num_threads(host.threads)
        self._torch, self._device = torch, host.device
        released_config.register_omegaconf_resolvers()
        repository = Path(released_config.__file__).parents[1]
        noise = str(repository / "stabilityai" / "stable-diffusion-2-1")
        config = OmegaConf.load(repository / "ckpt" / "config.yaml")["model"]
        # The released paths are relative to the working directory, and the scheduler's is a hub's.
        config["autoencoder"]["pretrained_ckpt"] = str(folder / VAE)
        config["content_encoder"]["text_encoder"]["model_path"] = str(listener)
        config["noise_scheduler_name"] = noise
        with quiet():
            net = instantiate(config)
            net.load_pretrained(load_file(str(folder / "model.safetensors")))
        self._net = net.to(host.device).eval()
        self._scheduler = schedulers.DDIMScheduler.from_pretrained(noise, subfolder="scheduler")

    def edit(self, requests: Sequence[EditRequest]) -> List[RenderReply]:
        return [self._edit(request) for request in requests]

    def _edit(self, request: EditRequest) -> RenderReply:
        heard = mono(request.clip_bytes, RATE_HZ)
        wave = window(heard, round(self._input_s * RATE_HZ))
        if len(wave) < LATENT:
            raise Refused(
                "clip_too_short", f"{len(wave) / RATE_HZ:.3f} s, MMEdit hears {LATENT / RATE_HZ:g} s and more"
            )
        notes = self._beyond(request, wave)
        if len(wave) < len(heard):
            notes.insert(0, f"heard the first {self._input_s:g} of {len(heard) / RATE_HZ:.2f} s")
        seed_everything(self._torch, request.seed)
        with self._torch.no_grad(), quiet():
            made = self._net.inference(
                content=[{"audio": self._torch.from_numpy(wave).to(self._device), "caption": request.prompt}],
                task=["audio_editing"],
                scheduler=self._scheduler,
                **self._arguments,
            )
        return request.reply(Clip(samples(made)[0, 0], RATE_HZ), notes="; ".join(notes))

    def _beyond(self, request: EditRequest, wave: Any) -> List[str]:
        """A note where clip and instruction are more than the encoder keeps, else none. Raises Refused."""
        encoder = self._net.content_encoder.text_encoder
        turn = {"role": "user", "content": [{"type": "audio", "audio": None}, {"type": "text", "text": request.prompt}]}
        text = encoder.processor.apply_chat_template([turn], add_generation_prompt=True, tokenize=False)
        # One of the text's tokens stands for the clip: Qwen2-Audio makes one of each 40 ms.
        count = len(encoder.processor.tokenizer(text).input_ids) - 1 + _audio_tokens(len(wave))
        if count <= encoder.max_length:
            return []
        told = f"{count} tokens of clip and instruction, MMEdit's encoder keeps {encoder.max_length}"
        if self._long_prompts == "refuse":
            raise Refused("prompt_too_long", told)
        return [f"{told}: the end is cut"]

    def close(self) -> None:
        self._net: Any = None


def _audio_tokens(length: int) -> int:
    """Tokens that Qwen2-Audio makes of so many samples at 24 kHz: 10 ms frames, halved twice."""
    frames = int(length * 16_000 / RATE_HZ) // 160
    return ((frames - 1) // 2 + 1 - 2) // 2 + 1
