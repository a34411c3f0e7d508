"""ACE-Step 1.5: music from words, by its own language model and diffusion transformer (ace-step/ACE-Step-1.5)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar, List, Mapping, Optional, Sequence

from torus_ray.audio import Clip
from torus_ray.heads import GenerateRequest, Host, Model, Refused, RenderReply

from .loading import Unusable, find_weights, quiet
from .released import samples, seed_everything

MAX_CAPTION_CHARS = 512
"""What GenerationParams documents for a caption; beyond it the text encoder's 256 tokens cut."""
MAX_SEED = 2**32
LOOKED_FOR = ("acestep-v15-turbo", "vae", "Qwen3-Embedding-0.6B", "acestep-5Hz-lm-1.7B")
"""Parts of a checkpoint that the handler wants to see, used or not; one that is missing would start a download."""


class AceStep(Model):
    """48 kHz stereo, 10 to 600 s.

    dit, planner: folders of the checkpoint. backend: of the planner ("pt" needs neither nano-vllm nor flash-attn).
    duration_s: the length asked for; -1 lets the planner choose, up to ten minutes.
    generation: more fields of the released `GenerationParams`.
    """

    capabilities: ClassVar[Mapping[str, Sequence[str]]] = {"generate": ("music",)}

    def __init__(
        self,
        dit: str = "acestep-v15-turbo",
        planner: str = "acestep-5Hz-lm-1.7B",
        backend: str = "pt",
        duration_s: float = 10.0,
        generation: Optional[Mapping[str, Any]] = None,
    ) -> None:
        if duration_s != -1 and not 10 <= duration_s <= 600:
            raise ValueError(f"ACE-Step renders 10 to 600 s, or -1 for a length of its own; got {duration_s}")
        self._dit_name, self._planner_name, self._backend = dit, planner, backend
        self._duration_s, self._generation = duration_s, dict(generation or {})

    def load(self, host: Host) -> None:
        """Read the weights. Raises loading.Unusable."""
        folder = find_weights(
            host,
            "checkpoints",
            "checkpoint of ACE-Step 1.5 (ACE-Step/Ace-Step1.5)",
            *dict.fromkeys([self._dit_name, self._planner_name, *LOOKED_FOR]),
        )
        # Quantization alone would use it, and with it in sight diffusers 0.36 cannot be imported beside its 0.16.
        sys.modules.setdefault("torchao", None)  # type: ignore[arg-type]
        import torch
        from acestep import inference
        from acestep.handler import AceStepHandler
        from acestep.llm_inference import LLMHandler

        torch.set_num_threads(host.threads)
        self._torch, self._api = torch, inference
        # The handler looks for ROOT/checkpoints beside its own code whatever root it is given, and writes there.
        self._root = tempfile.TemporaryDirectory(prefix="torus-ace-step-")
        root = self._root.name
        (Path(root) / "checkpoints").symlink_to(folder, target_is_directory=True)

        class Rooted(AceStepHandler):
            def _get_project_root(self) -> str:
                return root

        with quiet():
            self._dit = Rooted()
            status, ready = self._dit.initialize_service(
                project_root=root, config_path=self._dit_name, device=host.device, use_flash_attention=False
            )
            self._started(status, ready, folder)
            self._planner = LLMHandler()
            status, ready = self._planner.initialize(
                checkpoint_dir=str(folder), lm_model_path=self._planner_name, backend=self._backend, device=host.device
            )
            self._started(status, ready, folder)

    def _started(self, status: str, ready: bool, folder: Path) -> None:
        if not ready:
            raise Unusable(
                f"ACE-Step does not start: {status.strip()[:500]}",
                str(folder),
                "the checkpoint of ACE-Step/Ace-Step1.5",
                "see the message; fetch the checkpoint anew where it names a file",
            )

    def generate(self, requests: Sequence[GenerateRequest]) -> List[RenderReply]:
        return [request.reply(self._render(request)) for request in requests]

    def _render(self, request: GenerateRequest) -> Clip:
        if len(request.prompt) > MAX_CAPTION_CHARS:
            raise Refused(
                "prompt_too_long", f"{len(request.prompt)} characters, ACE-Step reads captions of {MAX_CAPTION_CHARS}"
            )
        # The planner samples unseeded for one clip; the transformer takes its seed from the configuration alone.
        seed_everything(self._torch, request.seed)
        params = self._api.GenerationParams(caption=request.prompt, duration=self._duration_s, **self._generation)
        config = self._api.GenerationConfig(batch_size=1, use_random_seed=False, seeds=[request.seed % MAX_SEED])
        with quiet():
            result = self._api.generate_music(self._dit, self._planner, params=params, config=config, save_dir=None)
        if not result.success or not result.audios:
            raise RuntimeError(f"ACE-Step made nothing: {result.error or result.status_message or 'no audio'}")
        audio = result.audios[0]
        return Clip(samples(audio["tensor"]), int(audio["sample_rate"]))

    def close(self) -> None:
        planner, self._planner, self._dit = getattr(self, "_planner", None), None, None
        if planner is not None:
            planner.unload()
        if getattr(self, "_root", None) is not None:
            self._root.cleanup()
