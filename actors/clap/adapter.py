"""What a clip sounds like to CLAP (laion/clap-htsat-unfused by transformers): METRICS 6, 7."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from torus_ray.heads import Host, MeasureReply, MeasureRequest, Model

from .loading import Unusable, find_weights
from .measuring import digest_of, hear, known, same_as_first, tone, values_reply

RATE_HZ = 48_000
SAMPLES = 10 * RATE_HZ
KINDS = ("speech", "music", "sound", "noise")
PROMPTS: Mapping[str, Tuple[str, ...]] = {
    "clap512": tuple(f"This is a sound of {kind}." for kind in KINDS),
    "clap512.words": KINDS,
}
"""Measures of what kind a clip is -> the texts it is compared with."""
EMBEDDING = "clap512.clip"
KEPT = 64
"""Embeddings kept: the measures of one clip come close together."""


class Clap(Model):
    """`clap512.clip`: the unit vector of a clip (512,). `clap512`, `clap512.words`: its cosines (4,) with the texts of
    speech, music, sound and noise, in the template and as bare words.

    48 kHz, the first 10 s (flag `cropped`; the library would crop at random), shorter clips as whole copies and then
    zeros, no 16-bit step. Flag `silent` too.
    """

    max_batch: ClassVar[Mapping[str, int]] = {"measure": 8}

    def load(self, host: Host) -> None:
        """Read the folder of the checkpoint, tokenizer and preprocessor. Raises loading.Unusable."""
        import torch
        from transformers import ClapModel, ClapProcessor

        torch.set_num_threads(host.threads)
        folder = find_weights(host, "model", "the folder of laion/clap-htsat-unfused")
        self._torch, self._device, self._digest = torch, host.device, digest_of(folder)
        net = ClapModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
        self._net = net.eval().to(host.device)
        processor = ClapProcessor.from_pretrained(folder, local_files_only=True)
        self._tokens, self._features = processor.tokenizer, processor.feature_extractor
        if self._net.config.audio_config.enable_fusion:
            raise Unusable(
                "this CLAP fuses several crops of a clip",
                str(folder),
                "the unfused checkpoint (audio_config.enable_fusion false)",
                "take laion/clap-htsat-unfused",
            )
        self._texts = {measure: self._embed_texts(texts) for measure, texts in PROMPTS.items()}
        self._kept: Dict[bytes, Tuple[Any, Tuple[str, ...]]] = {}
        heard = self._embed([_ten_seconds(tone(RATE_HZ))])
        same_as_first("clap", self._digest, {"tone": heard[0], **self._texts})

    def observe(self) -> Mapping[str, Any]:
        features = self._features
        return {
            "weights_sha256": self._digest,
            "mel_hz": [float(features.frequency_min), float(features.frequency_max)],
            "truncation": str(features.truncation),
        }

    def measure(self, requests: Sequence[MeasureRequest]) -> List[MeasureReply]:
        measures = [known(request, (EMBEDDING, *PROMPTS)) for request in requests]
        found = self._of([request.clip_bytes for request in requests])
        return [
            request.reply(values_reply(vector if measure == EMBEDDING else self._texts[measure] @ vector, flags))
            for request, measure, (vector, flags) in zip(requests, measures, found)
        ]

    def _of(self, clips: Sequence[bytes]) -> List[Tuple[Any, Tuple[str, ...]]]:
        """(embedding, flags) of each clip; those not known yet in one batch."""
        new = [clip for clip in dict.fromkeys(clips) if clip not in self._kept]
        if new:
            heard = [hear(clip, RATE_HZ) for clip in new]
            flags = [(*h.flags, *(("cropped",) if len(h.wave) > SAMPLES else ())) for h in heard]
            vectors = self._embed([_ten_seconds(h.wave) for h in heard])
            self._kept.update(zip(new, zip(vectors, flags)))
        found = [self._kept[clip] for clip in clips]
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def _embed(self, waves: Sequence[Any]) -> Any:
        """Unit vectors (n, 512), float32."""
        # "rand_trunc" names the mel filters of the unfused checkpoint; at exactly 10 s nothing is cropped.
        inputs = self._features(
            list(waves), sampling_rate=RATE_HZ, truncation="rand_trunc", padding="repeatpad", return_tensors="pt"
        )
        with self._torch.inference_mode():
            return _unit(self._net.get_audio_features(**inputs.to(self._device)))

    def _embed_texts(self, texts: Sequence[str]) -> Any:
        inputs = self._tokens(list(texts), padding=True, return_tensors="pt").to(self._device)
        with self._torch.inference_mode():
            return _unit(self._net.get_text_features(**inputs))


def _ten_seconds(wave: Any) -> Any:
    """(480000,): the first 10 s; else as many whole copies as fit, then zeros."""
    repeated = np.tile(wave, max(1, SAMPLES // len(wave)))[:SAMPLES]
    return np.pad(repeated, (0, SAMPLES - len(repeated)))


def _unit(features: Any) -> Any:
    # transformers 5 returns an object, 4 the tensor itself.
    vectors = getattr(features, "pooler_output", features).float().cpu().numpy()
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
