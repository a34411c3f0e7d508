"""laion-clap and frechet-audio-distance themselves as measuring heads, so that their numbers stand beside ours.

Both are run as they come, but for what would make a number wrong: nothing is fetched, a clip longer than 10 s is
cropped to its first 10 s before CLAP would crop it at random, and a clip that gives no embedding is an error of its own
instead of ending the set.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar, Iterator, List, Mapping, Sequence

import numpy as np

from torus_ray.heads import Host, MeasureReply, MeasureRequest, Model, Refused

from .loading import Unusable, find_weights, quiet
from .measuring import digest_of, hear, known, same_as_first, tone, values_reply

CLAP_RATE_HZ = 48_000
CLAP_SAMPLES = 10 * CLAP_RATE_HZ
KINDS = ("speech", "music", "sound", "noise")
CLAP_EMBEDDING, CLAP_KINDS = "clap.laion", "clap.laion.labels"
FAD_EMBEDDING = "gudgud96"
FAD_RATE_HZ = 16_000


class LaionClap(Model):
    """`clap.laion`: laion_clap's vector of a clip (512,), its 16-bit step included. `clap.laion.labels`: its cosines
    (4,) with "This is a sound of ..." speech, music, sound and noise.

    Weights: `model`, the checkpoint (630k-audioset-best.pt); `texts`, a folder that holds the folder roberta-base.
    """

    batch_invariant: ClassVar[bool] = True

    def load(self, host: Host) -> None:
        """Read the checkpoint. Raises loading.Unusable."""
        checkpoint = find_weights(host, "model", "the checkpoint 630k-audioset-best.pt")
        texts = find_weights(host, "texts", "the folder that holds roberta-base")
        if not (texts / "roberta-base" / "config.json").is_file():
            raise Unusable("no roberta-base", str(texts), "roberta-base/config.json and its tokenizer", "put it there")
        import torch

        torch.set_num_threads(host.threads)
        self._digest = digest_of(checkpoint)
        _hold_no_code(checkpoint)
        # The library asks for "roberta-base": a folder of that name where it stands is taken before any hub.
        with contextlib.chdir(texts), quiet():
            import laion_clap

            self._net = laion_clap.CLAP_Module(enable_fusion=False, device=host.device).eval()
            self._net.load_ckpt(str(checkpoint), verbose=False)
        with torch.inference_mode():
            self._texts = self._net.get_text_embedding([f"This is a sound of {kind}." for kind in KINDS])
        self._torch = torch
        same_as_first("clap.laion", self._digest, {"tone": self._embed(tone(CLAP_RATE_HZ)), "texts": self._texts})

    def observe(self) -> Mapping[str, Any]:
        return {"weights_sha256": self._digest}

    def measure(self, requests: Sequence[MeasureRequest]) -> List[MeasureReply]:
        return [request.reply(self._values(request)) for request in requests]

    def _values(self, request: MeasureRequest) -> Mapping[str, Any]:
        measure = known(request, (CLAP_EMBEDDING, CLAP_KINDS))
        heard = hear(request.clip_bytes, CLAP_RATE_HZ)
        vector = self._embed(heard.wave[:CLAP_SAMPLES])
        flags = (*heard.flags, *(("cropped",) if len(heard.wave) > CLAP_SAMPLES else ()))
        return values_reply(vector if measure == CLAP_EMBEDDING else self._texts @ vector, flags)

    def _embed(self, wave: Any) -> Any:
        with self._torch.inference_mode():
            return self._net.get_audio_embedding_from_data([wave], use_tensor=False)[0]


class GudgudVggish(Model):
    """`gudgud96`: frechet-audio-distance's own VGGish embeddings of a clip, (k, 128), without PCA and activation as is
    its default; the distance over them is ours.

    It pads nothing: a clip without a whole example (0.975 s) is refused as `too_short`.
    Weights: `hub`, a torch.hub folder with the repository harritaylor/torchvggish and its checkpoints.
    """

    batch_invariant: ClassVar[bool] = True

    def load(self, host: Host) -> None:
        """Read the weights. Raises loading.Unusable."""
        hub = find_weights(host, "hub", "a torch.hub folder with torchvggish and its checkpoints")
        repositories = [path for path in hub.glob("harritaylor_torchvggish_*") if (path / "hubconf.py").is_file()]
        files = [hub / "checkpoints" / name for name in ("vggish-10086976.pth", "vggish_pca_params-970ea276.pth")]
        missing = [str(file) for file in files if not file.is_file()]
        if missing or not repositories:
            raise Unusable(
                f"the torch.hub folder lacks {', '.join(missing) or 'the repository'}",
                str(hub),
                "harritaylor_torchvggish_main/hubconf.py and both files in checkpoints; nothing is fetched",
                "load the model once by torch.hub with that folder on a connected machine, and copy it",
            )
        import torch

        torch.set_num_threads(host.threads)
        for file in files:
            _hold_no_code(file)
        self._digest = digest_of(hub)
        with quiet(), _untouched(hub) as beside:
            from frechet_audio_distance import FrechetAudioDistance

            self._fad = FrechetAudioDistance(ckpt_dir=str(beside), model_name="vggish", sample_rate=FAD_RATE_HZ)
        self._torch = torch
        same_as_first("fad.gudgud96", self._digest, {"tone": self._embed(tone(FAD_RATE_HZ))[0]})

    def observe(self) -> Mapping[str, Any]:
        return {"weights_sha256": self._digest}

    def measure(self, requests: Sequence[MeasureRequest]) -> List[MeasureReply]:
        return [request.reply(self._values(request)) for request in requests]

    def _values(self, request: MeasureRequest) -> Mapping[str, Any]:
        known(request, (FAD_EMBEDDING,))
        heard = hear(request.clip_bytes, FAD_RATE_HZ)
        return values_reply(self._embed(heard.wave), heard.flags)

    def _embed(self, wave: Any) -> Any:
        """(k, 128). Raises Refused `too_short`, RuntimeError with what the library printed where it swallowed one."""
        told = io.StringIO()
        try:
            with contextlib.redirect_stdout(told), self._torch.inference_mode():
                found = self._fad.get_embeddings([wave], sr=FAD_RATE_HZ)
        except ValueError as error:  # nothing to concatenate: the library printed why and went on
            found, cause = np.empty((0, 0)), error
        else:
            cause = None
        if len(found):
            return found
        if len(wave) < 15_600:
            raise Refused("too_short", f"{len(wave)} samples at 16 kHz give no example of VGGish")
        raise RuntimeError(f"frechet-audio-distance gave no embedding: {told.getvalue().strip()}") from cause


@contextlib.contextmanager
def _untouched(hub: Path) -> Iterator[Path]:
    """A folder that shows what the torch.hub folder holds. torch.hub and the import of its code write where they load
    from; that folder's digest is the head's identity."""
    writes = sys.dont_write_bytecode
    with tempfile.TemporaryDirectory(prefix="torus-hub-") as folder:
        for part in hub.iterdir():
            (Path(folder) / part.name).symlink_to(part.absolute())
        sys.dont_write_bytecode = True
        try:
            yield Path(folder)
        finally:
            sys.dont_write_bytecode = writes


def _hold_no_code(file: Path) -> None:
    """Both libraries unpickle their files without restriction. Raises Unusable where a file holds more than numbers."""
    import pickle

    import torch

    arrays = (np.core.multiarray.scalar, np.core.multiarray._reconstruct, np.ndarray, np.dtype)
    kinds = tuple(type(np.dtype(code)) for code in ("f4", "f8", "i8"))
    try:
        with torch.serialization.safe_globals([*arrays, *kinds]):
            torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise Unusable(
            f"weights that hold more than tensors and numbers, or are damaged: {str(error)[:300]}",
            str(file),
            "a file that torch.load reads with weights_only=True",
            "take the published file",
        ) from error
