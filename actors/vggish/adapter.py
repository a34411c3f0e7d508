"""VGGish embeddings of a clip (METRICS 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, List, Mapping, Sequence

import numpy as np

from torus_ray.heads import Host, MeasureReply, MeasureRequest, Model

from .loading import Unusable, find_weights
from .measuring import digest_of, hear, known, same_as_first, tone, values_reply

if TYPE_CHECKING:
    from .network import Vggish

MEASURE = "vggish128.preact"
AT_ONCE = 64
"""Examples in one pass, so that a long clip needs no more memory than a short one."""


class VggishHead(Model):
    """`vggish128.preact`: embeddings before the last activation, one for each 0.96 s of a clip, (k, 128).

    A clip shorter than 0.975 s is padded with zeros to 1 s and flagged `padded`; `silent` is flagged too.
    """

    max_batch: ClassVar[Mapping[str, int]] = {"measure": 8}

    def load(self, host: Host) -> None:
        """Read the weights. Raises loading.Unusable."""
        import torch

        from .network import Vggish, examples_of

        torch.set_num_threads(host.threads)
        path = find_weights(host, "model", "VGGish's weights (vggish-10086976.pth)")
        self._torch, self._device, self._digest = torch, host.device, digest_of(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
        try:
            net = Vggish(state)
        except (KeyError, RuntimeError) as error:
            raise Unusable(
                f"these are no weights of VGGish: {error}",
                str(path),
                "features.0 to features.13 and embeddings.0 to embeddings.4, as in vggish-10086976.pth",
                "take the file that torchvggish publishes",
            ) from error
        self._net: Vggish = net.eval().to(host.device)
        self._examples = examples_of
        same_as_first("vggish", self._digest, {"tone": self._embed([self._examples(tone(16_000))])[0]})

    def observe(self) -> Mapping[str, Any]:
        return {"weights_sha256": self._digest}

    def measure(self, requests: Sequence[MeasureRequest]) -> List[MeasureReply]:
        from .network import LEAST, RATE_HZ

        for request in requests:
            known(request, (MEASURE,))
        heard = [hear(request.clip_bytes, RATE_HZ) for request in requests]
        short = [len(h.wave) < LEAST for h in heard]
        waves = [np.pad(h.wave, (0, RATE_HZ - len(h.wave))) if s else h.wave for h, s in zip(heard, short)]
        found = self._embed([self._examples(wave) for wave in waves])
        return [
            request.reply(values_reply(vectors, (*h.flags, *(("padded",) if s else ()))))
            for request, h, s, vectors in zip(requests, heard, short, found)
        ]

    def _embed(self, examples: Sequence[Any]) -> List[Any]:
        """Embeddings of each clip, (k, 128), from its examples."""
        together = np.concatenate(list(examples))
        with self._torch.inference_mode():
            parts = [
                self._net(self._torch.from_numpy(together[at : at + AT_ONCE]).to(self._device)).cpu().numpy()
                for at in range(0, len(together), AT_ONCE)
            ]
        return np.split(np.concatenate(parts), np.cumsum([len(each) for each in examples])[:-1])
