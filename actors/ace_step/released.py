"""What adapters of released repositories share: weights found, seeds set, prints kept quiet, a clip as a file.

The same file lies in the folder of each of them, since a folder travels alone and is what its head's identity is made
of; a test holds the copies equal.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from pathlib import Path
from typing import Any, Iterator

import numpy as np
import soundfile

from torus_ray.heads import Host


class Unusable(RuntimeError):
    """The head cannot be used as it is; the message says what, where, what was expected and the mend."""

    def __init__(self, what: str, where: str, expected: str, mend: str) -> None:
        super().__init__(f"{what}\n  where: {where}\n  expected: {expected}\n  mend: {mend}")


def find_weights(host: Host, name: str, what: str, *inside: str) -> Path:
    """Where the card says that weights lie. what: what they are, for the error; inside: what the folder must hold.

    Checked before the model's own code runs: that code would download what it misses, or fail far from the cause.
    Raises Unusable.
    """
    path = Path(host.weights.get(name, "")).expanduser().absolute()
    where = str(path) if name in host.weights else f"the card, weights.{name}"
    missing = [part for part in inside if not (path / part).exists()]
    if name not in host.weights or not path.exists() or missing:
        raise Unusable(
            f"there is no {what}" + (f": {', '.join(missing)} missing" if missing and path.exists() else ""),
            where,
            f"a folder with {', '.join(inside)}" if inside else "a file or folder",
            "fetch it (docs/model-adapters.md names the source), or point the card at where it lies",
        )
    return path


def needs_gpu(host: Host, what: str) -> None:
    """Raises Unusable on a host without a GPU, for code that names the device itself."""
    if host.device != "cuda":
        raise Unusable(
            f"{what} runs on a GPU only: its code moves tensors there by name",
            f"a host on {host.device}",
            "a GPU",
            "give the host num_gpus in the card, on a machine that has one",
        )


def seed_everything(torch: Any, seed: int) -> None:
    """Every generator that released code draws from where it takes no seed."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Standard output away: released code prints token ids and seeds."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


@contextlib.contextmanager
def wav_file(wave: Any, rate_hz: int) -> Iterator[str]:
    """The path of a float WAV, for code that hears files only; float32 (frames,), nothing requantised."""
    with tempfile.TemporaryDirectory(prefix="torus-") as folder:
        path = str(Path(folder) / "clip.wav")
        soundfile.write(path, wave, rate_hz, subtype="FLOAT")
        yield path


def samples(tensor: Any) -> Any:
    """A float tensor as float32 numpy, on the CPU."""
    return tensor.detach().float().cpu().numpy()


def window(wave: Any, length: int, *, pad: bool = False) -> Any:
    """The first `length` samples of (frames,); with `pad`, zeros behind what is shorter."""
    cut = wave[:length]
    return np.pad(cut, (0, length - len(cut))) if pad and len(cut) < length else cut
