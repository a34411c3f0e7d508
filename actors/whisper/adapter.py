"""What a clip says: Whisper large-v3 by openai-whisper, as METRICS 3 fixes it."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Dict, List, Mapping, Sequence

from torus_ray.heads import Host, MeasureReply, MeasureRequest, Model

from .loading import Unusable, find_weights
from .measuring import digest_of, hear, known, same_as_first, tone

RATE_HZ = 16_000
MEASURE = "whisper-large-v3"
LOOPED_ABOVE = 2.4
"""A segment whose text compresses by more than this repeats itself (the library's own threshold)."""


class Whisper(Model):
    """`whisper-large-v3`: the transcript of a clip as `text`, and how sure the decoder was.

    English, transcribed, temperature 0 and then the library's ladder, no text carried from window to window, float32 on
    every device. What the ladder draws hangs on the request's seed alone, so a clip never depends on its neighbours.
    Flags: `silent` (the text is then "", what was made of it stands in `raw`: METRICS 11), `looped`.

    sha256: of the checkpoint, where the card knows it.
    """

    batch_invariant: ClassVar[bool] = True

    def __init__(self, sha256: str = "") -> None:
        self._expected = sha256

    def load(self, host: Host) -> None:
        """Read the checkpoint. Raises loading.Unusable."""
        import torch

        import whisper

        torch.set_num_threads(host.threads)
        path = find_weights(host, "model", "the checkpoint of Whisper large-v3 (large-v3.pt)")
        self._digest = digest_of(path)
        if self._expected and self._digest != self._expected:
            raise Unusable(
                f"this is not the checkpoint that the card names: its sha256 is {self._digest}",
                str(path),
                f"sha256 {self._expected}",
                "take the published file, or write a card of your own without settings.sha256",
            )
        self._torch = torch
        # A path, never a name: by a name the library would fetch the file itself.
        self._net = whisper.load_model(str(path), device=host.device).eval()
        same_as_first("whisper", self._digest, self._self_test())

    def observe(self) -> Mapping[str, Any]:
        dims = self._net.dims
        return {"weights_sha256": self._digest, "mels": dims.n_mels, "multilingual": self._net.is_multilingual}

    def measure(self, requests: Sequence[MeasureRequest]) -> List[MeasureReply]:
        return [request.reply(self._transcript(request)) for request in requests]

    def _transcript(self, request: MeasureRequest) -> Dict[str, Any]:
        known(request, (MEASURE,))
        heard = hear(request.clip_bytes, RATE_HZ)
        self._torch.manual_seed(request.seed)
        told = self._net.transcribe(
            heard.wave,
            language="en",
            task="transcribe",
            temperature=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
            condition_on_previous_text=False,
            fp16=False,
        )
        text = " ".join(told["text"].split())
        segments = told["segments"]
        flags = list(heard.flags)
        if any(segment["compression_ratio"] > LOOPED_ABOVE for segment in segments):
            flags.append("looped")
        values: Dict[str, Any] = {"text": "" if "silent" in flags else text, "decoding": _decoding(segments)}
        if "silent" in flags:
            values["raw"] = text
        return {**values, **({"flags": flags} if flags else {})}

    def _self_test(self) -> Mapping[str, Any]:
        """What the encoder makes of a tone, and the decoder's first scores."""
        from whisper.audio import N_SAMPLES, log_mel_spectrogram, pad_or_trim
        from whisper.tokenizer import get_tokenizer

        dims, device = self._net.dims, self._net.device
        mel = log_mel_spectrogram(pad_or_trim(tone(RATE_HZ), N_SAMPLES), dims.n_mels).to(device)
        tokens = get_tokenizer(self._net.is_multilingual, num_languages=self._net.num_languages, language="en")
        with self._torch.inference_mode():
            encoded = self._net.embed_audio(mel[None])
            start = self._torch.tensor([list(tokens.sot_sequence)], device=device)
            scores = self._net.logits(start, encoded)[0, -1]
        frame = encoded[0, 0].float().cpu().numpy()
        return {"encoder": frame[:16], "spread": [float(encoded.std())], "decoder": scores[:16].float().cpu().numpy()}


def _decoding(segments: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """The worst of the decoder's own figures over segments; None where there is none."""
    worst = {"temperature": max, "compression_ratio": max, "no_speech_prob": max, "avg_logprob": min}
    figures = {name: [float(segment[name]) for segment in segments] for name in worst}
    return {
        "segments": len(segments),
        **{name: _finite(pick(figures[name])) if figures[name] else None for name, pick in worst.items()},
    }


def _finite(value: float) -> Any:
    return round(value, 6) if math.isfinite(value) else None
