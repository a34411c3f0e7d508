"""A checkpoint's folder: whether it is there, and what it says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping

from torus_ray.heads import Host

from .loading import Unusable, find_weights


def find(host: Host, kind: str) -> Path:
    """The folder that the card's weights.model names, holding a checkpoint of this kind. Raises Unusable."""
    folder = find_weights(host, "model", "checkpoint", folder=True)
    found = kind_of(folder)
    if found != kind:
        raise Unusable(
            f"the checkpoint is of the kind {found or 'unknown'!r}",
            str(folder),
            f"{kind!r}, as the card says",
            "take the checkpoint that the card is for, or the card of this checkpoint",
        )
    return folder


def kind_of(folder: Path) -> str:
    """`_class_name` of a diffusers pipeline, `model_type` of a transformers model; "" where neither is said."""
    return str(
        _read(folder / "model_index.json").get("_class_name") or _read(folder / "config.json").get("model_type", "")
    )


def _read(file: Path) -> Mapping[str, Any]:
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Unusable(f"not JSON: {error}", str(file), "a JSON object", "fetch the file anew") from error
    return content if isinstance(content, dict) else {}
