"""What adapters share around a model's own code: weights found and a GPU asked for first, its prints kept away.

Here lies what several adapters use. Each folder of theirs has a link to it and imports it as its own: a folder's
identity is made of what its links lead to, and what travels to hosts are plain files.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Iterator

from torus_ray.heads import Host


class Unusable(RuntimeError):
    """The head cannot be used as it is; the message says what, where, what was expected and the mend."""

    def __init__(self, what: str, where: str, expected: str, mend: str) -> None:
        super().__init__(f"{what}\n  where: {where}\n  expected: {expected}\n  mend: {mend}")


def find_weights(host: Host, name: str, what: str, *inside: str, folder: bool = False) -> Path:
    """Where the card says that weights lie, absolute. what: what they are, for the error. inside: what their folder
    must hold. folder: no single file, whatever it holds.

    The model's own code would download what it misses, or fail far from the cause. Raises Unusable.
    """
    given = host.weights.get(name, "")
    path = Path(given).expanduser().absolute()
    there = bool(given) and (path.is_dir() if folder else path.exists())
    missing = [part for part in inside if there and not (path / part).exists()]
    if not there or missing:
        kind = f"a folder with {', '.join(inside)}" if inside else "a folder" if folder else "a file or folder"
        raise Unusable(
            f"there is no {what}" + (f": {', '.join(missing)} missing" if missing else ""),
            str(path) if given else f"weights.{name} of the card",
            f"{kind}; nothing is fetched here",
            f"put it there (source: `torus weights list`), or name its place as weights.{name}.path in the card",
        )
    return path


def needs_gpu(host: Host, what: str) -> None:
    """Raises Unusable on a host without a GPU, for code that runs nowhere else."""
    if host.device != "cuda":
        raise Unusable(
            f"{what} runs on a GPU only",
            f"a host on {host.device}",
            "a GPU",
            "give the host num_gpus in the card, on a machine that has one",
        )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Standard output away: released code prints token ids and seeds."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
