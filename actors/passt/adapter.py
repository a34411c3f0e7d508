"""What a clip is, by PaSST's 527 AudioSet classes (hear21passt): METRICS 4."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from torus_ray.heads import Host, MeasureReply, MeasureRequest, Model, Refused

from .loading import Unusable, find_weights, quiet
from .measuring import digest_of, hear, known, same_as_first, tone, values_reply

MEASURE = "passt527"
RATE_HZ = 32_000
WINDOW = 10 * RATE_HZ
DROPPED = 4_800
"""A piece of up to 0.15 s is dropped."""
AT_ONCE = 4
"""Windows in one pass."""
CLASSES = 527


class Passt(Model):
    """`passt527`: scores before the softmax, one row for each 10 s of a clip from its start, (windows, 527).

    32 kHz, no overlap, no padding, pieces up to 0.15 s dropped; a clip that has no other is refused as `too_short`.
    Flag `silent`.

    network: sizes other than those of passt_s_swa_p16_128_ap476 (embed_dim, depth, num_heads).
    """

    max_batch: ClassVar[Mapping[str, int]] = {"measure": 4}

    def __init__(self, network: Optional[Mapping[str, int]] = None) -> None:
        self._sizes = {"embed_dim": 768, "depth": 12, "num_heads": 12, **(network or {})}

    def load(self, host: Host) -> None:
        """Read the weights. Raises loading.Unusable."""
        import torch

        # The library prints while it is imported and built, and offers no way to build without fetching.
        with quiet():
            from hear21passt.models import passt
            from hear21passt.models.preprocess import AugmentMelSTFT
            from hear21passt.wrapper import PasstBasicWrapper

            passt.first_RUN = False
            mel = AugmentMelSTFT(
                n_mels=128,
                sr=RATE_HZ,
                win_length=800,
                hopsize=320,
                n_fft=1024,
                freqm=48,
                timem=192,
                htk=False,
                fmin=0.0,
                fmax=None,
                norm=1,
                fmin_aug_range=10,
                fmax_aug_range=2000,
            )
            net = passt.PaSST(
                img_size=(128, 998),
                patch_size=16,
                stride=(10, 10),
                num_classes=CLASSES,
                distilled=True,
                **self._sizes,
            )
        torch.set_num_threads(host.threads)
        path = find_weights(host, "model", "PaSST's weights (passt-s-f128-p16-s10-ap.476-swa.pt)")
        self._torch, self._device, self._digest = torch, host.device, digest_of(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
        try:
            net.load_state_dict(state)
        except RuntimeError as error:
            raise Unusable(
                f"these are no weights of this PaSST: {str(error)[:500]}",
                str(path),
                f"the state of a network of {self._sizes}",
                "take the file that hear21passt names, or say its sizes in settings.network",
            ) from error
        # In training mode the network masks and jitters what it hears.
        self._net = PasstBasicWrapper(mel=mel, net=net, mode="logits").eval().to(host.device)
        same_as_first("passt", self._digest, {"tone": self._logits([tone(RATE_HZ)])[0]})

    def observe(self) -> Mapping[str, Any]:
        return {"weights_sha256": self._digest, "network": dict(self._sizes)}

    def measure(self, requests: Sequence[MeasureRequest]) -> List[MeasureReply]:
        for request in requests:
            known(request, (MEASURE,))
        heard = [hear(request.clip_bytes, RATE_HZ) for request in requests]
        windows = [_windows(h.wave) for h in heard]
        found = iter(self._logits([window for each in windows for window in each]))
        return [
            request.reply(values_reply([next(found) for _ in each], h.flags))
            for request, h, each in zip(requests, heard, windows)
        ]

    def _logits(self, windows: Sequence[Any]) -> List[Any]:
        """(527,) of each window, those of one length together."""
        by_length: Dict[int, List[int]] = {}
        for at, window in enumerate(windows):
            by_length.setdefault(len(window), []).append(at)
        found: Dict[int, Any] = {}
        for places in by_length.values():
            for start in range(0, len(places), AT_ONCE):
                some = places[start : start + AT_ONCE]
                found.update(zip(some, self._pass(np.stack([windows[at] for at in some]))))
        return [found[at] for at in range(len(windows))]

    def _pass(self, waves: Any) -> Any:
        with self._torch.inference_mode():
            return self._net(self._torch.from_numpy(waves).to(self._device)).float().cpu().numpy()


def _windows(wave: Any) -> Tuple[Any, ...]:
    """Pieces of 10 s from the start. Raises Refused where all are too short."""
    pieces = [wave[at : at + WINDOW] for at in range(0, len(wave), WINDOW)]
    kept = tuple(piece for piece in pieces if len(piece) > DROPPED)
    if not kept:
        raise Refused("too_short", f"{len(wave) / RATE_HZ:.3f} s, and pieces up to 0.15 s have no window")
    return kept
