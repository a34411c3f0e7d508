"""TangoFlux: sound effects from words (declare-lab/TangoFlux)."""

from __future__ import annotations

import json
from typing import Any, ClassVar, List, Mapping, Sequence

from torus_ray.audio import Clip
from torus_ray.heads import GenerateRequest, Host, Model, Refused, RenderReply

from .loading import Unusable, find_weights, quiet
from .released import samples

TIED = "text_encoder.encoder.embed_tokens.weight"
"""The one parameter that the released file leaves out: it is shared with another."""


class TangoFlux(Model):
    """44.1 kHz stereo, 1 to 30 s.

    steps, guidance_scale, duration_s: as `inference_flow` takes them. Its parts are built one by one, since the
    package's own class takes neither a seed nor a folder.
    """

    batch_invariant: ClassVar[bool] = True
    capabilities: ClassVar[Mapping[str, Sequence[str]]] = {"generate": ("sound",)}

    def __init__(self, steps: int = 50, guidance_scale: float = 4.5, duration_s: float = 10.0) -> None:
        if not 1 <= duration_s <= 30:
            raise ValueError(f"TangoFlux renders 1 to 30 s, got duration_s = {duration_s}")
        if guidance_scale <= 1:
            raise ValueError(f"TangoFlux fails without guidance: guidance_scale is above 1, got {guidance_scale}")
        self._steps, self._guidance, self._duration_s = steps, guidance_scale, duration_s

    def load(self, host: Host) -> None:
        """Read the weights. Raises loading.Unusable."""
        folder = find_weights(
            host,
            "model",
            "TangoFlux (declare-lab/TangoFlux)",
            "config.json",
            "tangoflux.safetensors",
            "vae.safetensors",
        )
        encoder = find_weights(host, "text_encoder", "text encoder google/flan-t5-large", "config.json")
        import torch
        from diffusers import AutoencoderOobleck
        from safetensors.torch import load_file

        from tangoflux.model import TangoFlux as Net

        torch.set_num_threads(host.threads)
        self._torch = torch
        vae = AutoencoderOobleck()
        vae.load_state_dict(load_file(str(folder / "vae.safetensors")))
        net = Net(json.loads((folder / "config.json").read_text()), text_encoder_dir=str(encoder))
        left = net.load_state_dict(load_file(str(folder / "tangoflux.safetensors")), strict=False)
        untrained = sorted(set(left.missing_keys) - {TIED})
        if untrained:
            raise Unusable(
                f"{len(untrained)} parameters are not in the weights ({', '.join(untrained[:3])}, ...)",
                str(folder / "tangoflux.safetensors"),
                "every parameter but the tied embedding",
                "take tangoflux.safetensors and config.json of one release",
            )
        self._vae, self._net = vae.to(host.device).eval(), net.to(host.device).eval()

    def generate(self, requests: Sequence[GenerateRequest]) -> List[RenderReply]:
        return [self._render(request) for request in requests]

    def _render(self, request: GenerateRequest) -> RenderReply:
        tokenizer = self._net.tokenizer
        count = len(tokenizer(request.prompt).input_ids)
        if count > tokenizer.model_max_length:
            raise Refused("prompt_too_long", f"{count} tokens, TangoFlux reads {tokenizer.model_max_length}")
        with self._torch.no_grad(), quiet():
            latents = self._net.inference_flow(
                request.prompt,
                num_inference_steps=self._steps,
                guidance_scale=self._guidance,
                duration=self._duration_s,
                seed=request.seed,
                disable_progress=True,
            )
            wave = samples(self._vae.decode(latents.transpose(2, 1)).sample)[0]
        rate_hz = int(self._vae.config.sampling_rate)
        # Latents are always those of 30 s; the package cuts here as well.
        kept = wave[:, : int(self._duration_s * rate_hz)]
        whole_s = wave.shape[1] / rate_hz
        notes = f"cut to the first {self._duration_s:g} of {whole_s:.2f} s" if kept.shape[1] < wave.shape[1] else ""
        return request.reply(Clip(kept, rate_hz), notes=notes)

    def close(self) -> None:
        self._net: Any = None
        self._vae: Any = None
