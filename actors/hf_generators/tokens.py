"""Models of transformers that write audio tokens. Keywords of `generate` may stand in a card under their own names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Mapping, Tuple

from torus_ray.audio import Clip

from .kind import UNLIMITED, Kind, tokens_of
from .loading import Unusable


class MusicGen(Kind):
    """MusicGen: as long as max_new_tokens says, which is its length and no limit that it hits."""

    def __init__(self, torch: Any, folder: Path, dtype: Any, device: str) -> None:
        from transformers import AutoProcessor, MusicgenForConditionalGeneration

        self._device = device
        self._processor = AutoProcessor.from_pretrained(str(folder), local_files_only=True)
        net = MusicgenForConditionalGeneration.from_pretrained(str(folder), local_files_only=True, dtype=dtype)
        self._net = net.eval().to(device)

    def check(self, settings: Mapping[str, Any]) -> None:
        """`generate` refuses by itself what it does not know."""

    def length(self, text: str, settings: Mapping[str, Any]) -> Tuple[int, int]:
        return tokens_of(self._processor.tokenizer, text), UNLIMITED

    def generate(self, text: str, seed: int, settings: Mapping[str, Any]) -> Tuple[Clip, bool]:
        inputs = self._processor(text=[text], padding=True, return_tensors="pt").to(self._device)
        audio = self._net.generate(**inputs, **settings)[0]
        return Clip(audio.float().cpu().numpy(), self._net.config.audio_encoder.sampling_rate), False


class Bark(Kind):
    """Bark: says the words. Ours: voice, a preset of the checkpoint's speaker_embeddings or an .npz file; "" for
    none."""

    LONGEST = 256
    """Tokens of text; the model cuts what is beyond without a word."""

    def __init__(self, torch: Any, folder: Path, dtype: Any, device: str) -> None:
        from transformers import AutoProcessor, BarkModel

        self._device, self._folder = device, folder
        self._processor = AutoProcessor.from_pretrained(str(folder), local_files_only=True)
        self._net = BarkModel.from_pretrained(str(folder), local_files_only=True, dtype=dtype).eval().to(device)

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raises Unusable where the voice is not there: it would be fetched in the middle of a run."""
        voice = settings.get("voice", "")
        presets = getattr(self._processor, "speaker_embeddings", None) or {}
        if voice and voice not in presets and not Path(voice).is_file():
            raise Unusable(
                f"no voice {voice!r}",
                str(self._folder),
                "a name in speaker_embeddings_path.json with its files beside it, or the path of an .npz file",
                "fetch the whole repository, or take voice out of the card",
            )

    def length(self, text: str, settings: Mapping[str, Any]) -> Tuple[int, int]:
        return len(self._processor.tokenizer(text, add_special_tokens=False).input_ids), self.LONGEST

    def generate(self, text: str, seed: int, settings: Mapping[str, Any]) -> Tuple[Clip, bool]:
        call: Dict[str, Any] = dict(settings)
        inputs = self._processor(text, voice_preset=call.pop("voice", "") or None).to(self._device)
        wave = self._net.generate(**inputs, **call)[0].float().cpu().numpy()
        config = self._net.generation_config
        rate = int(config.sample_rate)
        # Semantic tokens are told by the length of the sound: it has as many as its limit where nothing ended it.
        semantic = config.semantic_config
        limit = call.get("semantic_max_new_tokens", semantic["max_new_tokens"])
        said = len(wave) / rate * semantic["semantic_rate_hz"]
        return Clip(wave, rate), said >= limit - 2
