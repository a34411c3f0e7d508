"""What adapters of released repositories share: seeds set, a clip as a file, tensors as arrays."""

from __future__ import annotations

import contextlib
import random
import tempfile
from pathlib import Path
from typing import Any, Iterator

import numpy as np
import soundfile


def seed_everything(torch: Any, seed: int) -> None:
    """Every generator that released code draws from where it takes no seed."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


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
